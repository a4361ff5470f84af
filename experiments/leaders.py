"""Leaders: the tokens that attention ends on, for V = I and for a random V with one leading eigenvalue."""

import numpy as np

import meanfield as mf
from meanfield.analysis.boolean_attention import BooleanAttentionDetector, attention_shares
from meanfield.analysis.hull_vertices import vertex_distances
from meanfield.analysis.observables import rescaled

from . import full_size

CLAIM = (
    "Attention ends on a few leaders, corners of the convex hull of the tokens: several when all matrices are I, two "
    "or one when V and K^T Q are random and V has one leading direction."
)

#: A row is Boolean when all but this share of it is on one token.
TOLERANCE = 1e-3


def cases(quick):
    """The published setting [GLPR23], n = 20, d = 2, T = 10, and identity matrices beside it.

    The published script starts in [-1, 1]^d; here it is [-5, 5]^d, as in the published pictures of hulls.

    V is divided by its largest eigenvalue: that changes the clock and nothing else, and makes runs comparable.
    """
    replicas = 3 if quick else 200 if full_size() else 16
    common = {"n": 20, "d": 2, "box": 5.0, "horizon": 10.0, "outputs": 41}
    return [common | {"matrices": kind, "replica": k} for kind in MATRICES for k in range(replicas)]


def run(case, rng):
    """Tokens uniform in [-box, box]^d.

    Returns
    -------
    dict of arrays
        times (k,), leaders (k,) and undecided (k,) numbers of tokens, boolean_time (infinite without), z (k, n, d) in
        rescaled coordinates, leader (n,) each token's at the end, its share (n,), corner_distance the largest distance
        of a leader to a corner of the hull at the end in units of the hull's size, eigenvalue_ratio of V.
    """
    n, d = case["n"], case["d"]
    value, product = MATRICES[case["matrices"]](d, rng)
    field = mf.SoftmaxAttention(mf.Head(product, np.eye(d), value))
    trajectory = mf.simulate(
        field,
        mf.Measure(rng.uniform(-case["box"], case["box"], (n, d))),
        np.linspace(0.0, case["horizon"], case["outputs"]),
        scheme=mf.Adaptive(rtol=1e-10, atol=1e-10),
        progress=False,
    )
    verdict = BooleanAttentionDetector(field, tolerance=TOLERANCE)(trajectory)
    view = rescaled(value)
    seen = [view(t, state) for t, state in trajectory.items()]
    shares = attention_shares(field, trajectory.times[-1], trajectory[-1])[0][0]
    leader = shares.argmax(axis=1)
    far = vertex_distances(seen[-1].points[np.unique(leader)], seen[-1])
    return {
        "times": trajectory.times,
        "leaders": verdict.evidence["leaders"],
        "undecided": verdict.evidence["undecided"],
        "boolean_time": np.inf if verdict.time is None else verdict.time,
        "z": np.stack([measure.points for measure in seen]),
        "leader": leader,
        "share": shares.max(axis=1),
        "corner_distance": far.max() / np.ptp(seen[-1].points, axis=0).max(),
        "eigenvalue_ratio": np.divide(*np.sort(np.linalg.eigvalsh(value))[-2:]),
    }


def identities(d, rng):
    """V = K^T Q = I."""
    return np.eye(d), np.eye(d)


def random_squares(d, rng):
    """V and K^T Q of the form W W^T with W uniform in [-1, 1], V with largest eigenvalue one."""
    factors = rng.uniform(-1, 1, (2, d, d))
    return leading_one(factors[0] @ factors[0].T), factors[1] @ factors[1].T


def leading_one(value):
    """A symmetric matrix divided by its largest eigenvalue."""
    return value / np.linalg.eigvalsh(value)[-1]


#: How a case makes V and K^T Q.
MATRICES = {"identity": identities, "random": random_squares}
