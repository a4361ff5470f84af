"""Blow-up over planes of parameters, variant by variant, and thousands of random laws against what is proved."""

import numpy as np

import meanfield as mf
from meanfield.gaussian.ensemble import narrowed
from meanfield.gaussian.predictions import predict
from meanfield.integration.trajectory import Outcome

from . import full_size

CLAIM = (
    "Softmax and linear attention blow up over whole regions of parameters, L2 and Sinkhorn attention with regular K "
    "nowhere, and no simulation contradicts what is proved."
)

FIELDS = ("softmax", "linear", "l2", "sinkhorn")

#: Angles are in degrees. V = R diag(1, r), or V = R diag(1, r) R^T; A and minus A, whose symmetric part is definite.
PLANES = {
    "turned": {"value": "turned", "sign": 1, "angles": (-180.0, 180.0)},
    "tilted, expanding": {"value": "tilted", "sign": 1, "angles": (-90.0, 90.0)},
    "tilted, contracting": {"value": "tilted", "sign": -1, "angles": (-90.0, 90.0)},
}
A = ((1.0, 0.7), (-0.3, 0.5))
COVARIANCE = ((1.0, 0.3), (0.3, 0.6))
MEAN = (0.8, -0.4)

#: Kinds of random parameters: those that statements speak of, and plain ones.
KINDS = ("random", "scalar", "definite", "tied", "one row", "rank one")

#: Relative accuracy of simulated blow-up times that a contradiction has to exceed.
TOLERANCE = 1e-6

#: How a run ended, as it is stored.
FINISHED, BLEW_UP, UNSETTLED = range(3)


def cases(quick):
    """Every field on every plane, and random parameters of every kind: 216 when quick, 5,280 else, or 52,800."""
    # An instance that needs more evaluations counts as unsettled; a pole takes about 800.
    limit = {"evaluations": 1_500 if quick else 3_000}
    common = limit | {"part": "map", "grid": 9 if quick else 33, "horizon": 6.0}
    result = [common | {"plane": plane, "field": field} for plane in PLANES for field in FIELDS]
    count = 9 if quick else 2_100 if full_size() else 210
    common = limit | {"part": "random", "count": count, "horizon": 30.0}
    result += [common | {"kind": kind, "field": field} for kind in KINDS for field in FIELDS]
    if not quick:
        drifts = ((-1.0, 0.4, 0.0, -0.6), (0.6, -0.8, 0.8, 0.3))
        result += [common | {"kind": "scalar", "field": "softmax", "drift": drift, "count": 120} for drift in drifts]
    return result


def run(case, rng):
    """One plane or one kind under one field.

    Returns
    -------
    dict of arrays
        blow_up_times (b,) with inf where none was met, outcomes (b,) as FINISHED, BLEW_UP or UNSETTLED, last_times
        (b,), growth (b,) of lambda_max as a logarithm to base 10, proved (b,) as 1 blow-up, 0 global, -1 undecided,
        bounds (b, 2) on t*, contradicted (b,); with b = grid * grid (rows: anisotropy) on a plane, where angles and
        anisotropies (grid,) say where.
    """
    if case["part"] == "map":
        angles, ratios, head = plane_heads(case["plane"], case["grid"])
        b = len(head.value)
        means, covariances = np.tile(MEAN, (b, 1)), np.tile(COVARIANCE, (b, 1, 1))
        field = mf.make_attention(case["field"], head)
        return {"angles": angles, "anisotropies": ratios} | compared(field, means, covariances, case)
    head, means, covariances = random_parameters(case["kind"], case["count"], rng)
    field = mf.make_attention(case["field"], in_units_of_the_earliest(head, means, covariances, case["field"]))
    if "drift" in case:
        field = mf.SumField((field, mf.AffinePerceptron(np.reshape(case["drift"], (2, 2)))))
    return compared(field, means, covariances, case)


def rotation(angles):
    """Rotations by angles in degrees, shape (..., 2, 2)."""
    c, s = np.cos(np.radians(angles)), np.sin(np.radians(angles))
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


def plane_heads(plane, grid):
    """Angles and anisotropies (grid,) of a plane and its heads as one batch, rows of one anisotropy after another."""
    chosen = PLANES[plane]
    angles, ratios = np.linspace(*chosen["angles"], grid), np.linspace(-1.0, 1.0, grid)
    ratio, angle = (axis.ravel() for axis in np.meshgrid(ratios, angles, indexing="ij"))
    turn = rotation(angle)
    value = turn * np.stack([np.ones_like(ratio), ratio], axis=-1)[:, None, :]
    if chosen["value"] == "tilted":
        value = value @ np.swapaxes(turn, 1, 2)
        value = (value + np.swapaxes(value, 1, 2)) / 2
    query = np.tile(chosen["sign"] * np.array(A), (len(value), 1, 1))
    return angles, ratios, mf.Head(query, np.broadcast_to(np.eye(2), query.shape), value)


def compared(field, means, covariances, case):
    """Simulate all laws within the limits of the case, ask `predict` about each, and compare."""
    runs = mf.simulate_ensemble(field, means, covariances, [0.0, case["horizon"]], max_evaluations=case["evaluations"])
    verdicts = [predict(narrowed(field, i), mf.Gaussian(means[i], covariances[i])) for i in range(len(means))]
    bounds = np.array([verdict.evidence["time_bounds"] for verdict in verdicts])
    codes = {Outcome.FINISHED: FINISHED, Outcome.BLEW_UP: BLEW_UP}
    outcomes = np.array([codes.get(outcome, UNSETTLED) for outcome in runs.outcomes])
    sizes = [np.linalg.norm(roots, 2, axis=(1, 2)) for roots in (runs.arrays[:, 0, :, 1:], runs.last_arrays[..., 1:])]
    return {
        "blow_up_times": runs.blow_up_times,
        "outcomes": outcomes,
        "last_times": runs.last_times,
        "growth": 2 * np.log10(sizes[1] / sizes[0]),
        "proved": np.array([-1 if verdict.happened is None else int(verdict.happened) for verdict in verdicts]),
        "bounds": bounds,
        "contradicted": contradicted(bounds, runs.blow_up_times, runs.last_times),
    }


def contradicted(bounds, blow_up_times, last_times):
    """Where a simulation is at odds with bounds on t*, both infinite for a flow proved global.

    A pole outside the bounds is, and so is a run without one that went on past the later bound.
    """
    early, late = bounds[:, 0] * (1 - TOLERANCE), bounds[:, 1] * (1 + TOLERANCE)
    blew_up = np.isfinite(blow_up_times)
    return np.where(blew_up, (blow_up_times < early) | (blow_up_times > late), last_times > late)


def random_parameters(kind, b, rng):
    """b random heads in the plane, means (b, 2) and covariances (b, 2, 2) of one kind.

    random: Q, K, V; scalar: V = +-I; definite: V > 0 and the symmetric part of A definite; tied: K = -c Q of one row;
    one row: Q and K of one row with V^T k = 0 and V^T q = nu q; rank one: Sigma0 = w w^T with w an eigenvector of V,
    leading or not: round-off grows out of a direction that is not, and there nothing is claimed.
    """
    query, key, value, root = rng.standard_normal((4, b, 2, 2))
    means = rng.standard_normal((b, 2))
    sign = rng.choice([-1.0, 1.0], (b, 1, 1))
    factor = np.exp(rng.standard_normal((b, 1, 1)))
    if kind == "scalar":
        value = sign * np.eye(2)
    elif kind == "definite":
        value = positive(value)
        skew = query - np.swapaxes(query, 1, 2)
        query, key = sign * positive(key) + skew, np.tile(np.eye(2), (b, 1, 1))
    elif kind == "tied":
        query = query[:, :1]
        key, value = -factor * query, np.where(sign > 0, np.eye(2), positive(value))
    elif kind == "one row":
        query, key = query[:, :1], key[:, :1]
        beside = key @ rotation(90.0)
        value = sign * factor * np.swapaxes(beside, 1, 2) * query / (beside * query).sum(-1, keepdims=True)
    elif kind == "rank one":
        root = root[:, :, :1]
        along, beside = (part / np.linalg.norm(root, axis=1, keepdims=True) for part in (root, rotation(90.0) @ root))
        second = rng.uniform(-3, 3, (b, 1, 1))
        value = along * np.swapaxes(along + value[:, :1, :1] * beside, 1, 2)
        value = sign * factor * (value + second * beside * np.swapaxes(beside, 1, 2))
    return mf.Head(query, key, value), means, root @ np.swapaxes(root, 1, 2)


def positive(matrices):
    """Positive definite matrices from any."""
    return matrices @ np.swapaxes(matrices, 1, 2) + 0.1 * np.eye(2)


def in_units_of_the_earliest(head, means, covariances, field):
    """The heads with V scaled such that 1 / (2 |V| |A| |Sigma0|), before which softmax cannot blow up, is one.

    Linear attention moves the second moment, so it is scaled by that.
    """
    moments = covariances + means[:, :, None] * means[:, None, :] if field == "linear" else covariances
    speed = 2 * np.prod([np.linalg.norm(part, 2, axis=(1, 2)) for part in (head.value, head.A, moments)], axis=0)
    return mf.Head(head.query, head.key, head.value / speed[:, None, None])
