"""Softmax attention with a feed-forward part x' = attn + W x + b: equilibria, collapse to zero, and blow-up."""

import numpy as np

import meanfield as mf
from meanfield.gaussian.closed_forms import (
    affine_equilibrium,
    affine_fate,
    affine_solution,
    scalar_affine_blow_up_time,
)

from . import full_size

CLAIM = (
    "A feed-forward part x' = W x + b beside softmax attention decides the covariance's fate: an equilibrium P*^{-1}, "
    "zero, or blow-up when P0 - P* has a negative direction."
)

#: Two parts that grow (Re eig(W) > 0) for attention that contracts, two that contract for attention that expands.
STABILISING = {
    "symmetric": {"drift": ((1.0, 0.3), (0.3, 0.5)), "A": ((-1.0, 0.4), (-0.2, -0.6))},
    "spiral": {"drift": ((0.5, -1.5), (1.2, 0.4)), "A": ((-0.5, 0.0), (0.3, -1.0))},
}
DESTABILISING = {
    "symmetric": {"drift": ((-1.0, 0.3), (0.3, -0.5)), "A": ((1.0, 0.4), (-0.2, 0.6))},
    "spiral": {"drift": ((-0.5, -1.5), (1.2, -0.4)), "A": ((0.5, 0.0), (-0.3, 1.0))},
}


def cases(quick):
    """Blow-up times in one dimension, runs onto an equilibrium, and a plane of starts between zero and blow-up."""
    count, starts, grid = (4, 6, 11) if quick else (40, 24, 81) if full_size() else (14, 24, 41)
    common = {"part": "scalar", "pushes": [0.25, 0.5, 1.0, 2.0], "count": count}
    result = [common | {"side": side} for side in ("stabilising", "destabilising")]
    names = ("symmetric",) if quick else tuple(STABILISING)
    horizon = {"symmetric": 12.0, "spiral": 14.0}
    result += [
        {"part": "equilibrium", "drift": name, "starts": starts, "horizon": horizon[name], "outputs": 61}
        for name in names
    ]
    result += [{"part": "threshold", "drift": name, "grid": grid, "sizes": [0.05, 20.0]} for name in names]
    return result


def run(case, rng):
    """One part.

    Returns
    -------
    dict of arrays
        scalar: rates (c,) of w, pushes (p,), simulated and exact (c, p) blow-up times with inf where there is none, and
        the exact ones again, curves (f, p), at many curve_rates (f,).
        equilibrium: times (k,), distances (s, k) of Sigma from P*^{-1} relative to it, mismatch of the simulation with
        the closed form, limit (2, 2), predicted and fitted (s,) rates of decay.
        threshold: sizes (g,) of the eigenvalues of Sigma0 = diag(s1, s2), simulated and exact (g, g) blow-up times, a
        row for each s2, margins (g, g) of lambda_min(P0 - P*), border (f, 2) of starts with margin zero, disagreements
        between simulation and exact times on whether there is a pole, and fates_apart, how far `affine_fate` is from
        these times on a dozen starts.
    """
    return {"scalar": scalar, "equilibrium": equilibrium, "threshold": threshold}[case["part"]](case, rng)


def plane(part):
    """Head with V = I and W of a row of the tables above."""
    eye = np.eye(2)
    return mf.Head(np.array(part["A"]), eye, eye), np.array(part["drift"])


def scalar(case, rng):
    """s' = 2 w s + 2 a s^2 for w >= 0, which hastens the pole, or w <= 0, which puts it off."""
    pushes, sign = np.array(case["pushes"]), 1.0 if case["side"] == "destabilising" else -1.0
    # 1.95: no rate is minus a push, where s0 is a stationary point that round-off leaves.
    rates = sign * np.linspace(0.0, 1.95, case["count"])
    head = mf.Head.identity(1)
    starts = pushes[:, None, None]

    def exactly(rates):
        return np.array(
            [[scalar_affine_blow_up_time(head, [[w]], mf.Gaussian([0.0], start)) for start in starts] for w in rates]
        )

    simulated = []
    for w in rates:
        field = mf.SumField((mf.SoftmaxAttention(head), mf.AffinePerceptron([[w]])))
        runs = mf.simulate_ensemble(field, np.zeros((len(pushes), 1)), starts, [0.0, 12.0])
        simulated.append(runs.blow_up_times)
    fine = np.linspace(rates[0], rates[-1], 400)
    return {
        "rates": rates,
        "pushes": pushes,
        "simulated": np.array(simulated),
        "exact": exactly(rates),
        "curve_rates": fine,
        "curves": exactly(fine),
    }


def equilibrium(case, rng):
    """Random starts on their way to P*^{-1}, which P = Sigma^{-1} reaches like e^{-2 t min Re eig(W)}."""
    head, drift = plane(STABILISING[case["drift"]])
    bias = np.array([0.5, -0.3])
    limit = affine_equilibrium(head, drift, bias).covariance
    turns = np.linalg.qr(rng.standard_normal((case["starts"], 2, 2)))[0]
    covariances = turns * 10 ** rng.uniform(-1, 1, (case["starts"], 1, 2)) @ np.swapaxes(turns, 1, 2)
    times = np.linspace(0.0, case["horizon"], case["outputs"])
    field = mf.SumField((mf.SoftmaxAttention(head), mf.AffinePerceptron(drift, bias)))
    runs = mf.simulate_ensemble(field, np.zeros((case["starts"], 2)), covariances, times)
    checked = slice(0, None, 10)
    exact = [affine_solution(head, drift, mf.Gaussian([0.0, 0.0], S)).covariance(times[checked]) for S in covariances]
    distances = np.linalg.norm(runs.covariances - limit, 2, axis=(2, 3)) / np.linalg.norm(limit, 2)
    # The middle of the run: past the start, and before the distance is one of round-off.
    late = (times > 0.4 * case["horizon"]) & (times < 0.8 * case["horizon"])
    fitted = -np.polyfit(times[late], np.log(distances[:, late]).T, 1)[0]
    return {
        "times": times,
        "distances": distances,
        "mismatch": np.abs(runs.covariances[:, checked] - exact).max() / np.linalg.norm(limit, 2),
        "limit": limit,
        "predicted": 2 * np.linalg.eigvals(drift).real.min(),
        "fitted": fitted,
    }


def threshold(case, rng):
    """Starts diag(s1, s2) under a contracting part: zero where P0 > P*, blow-up elsewhere."""
    head, drift = plane(DESTABILISING[case["drift"]])
    sizes = np.geomspace(*case["sizes"], case["grid"])
    s2, s1 = (axis.ravel() for axis in np.meshgrid(sizes, sizes, indexing="ij"))
    covariances = np.zeros((len(s1), 2, 2))
    covariances[:, 0, 0], covariances[:, 1, 1] = s1, s2
    precision = precision_of(head, drift)
    exact = first_poles(drift, precision, covariances)
    asked = rng.choice(len(s1), min(12, len(s1)), replace=False)
    fates = [affine_fate(head, drift, mf.Gaussian([0.0, 0.0], covariances[i])) for i in asked]
    horizon = 12.0
    field = mf.SumField((mf.SoftmaxAttention(head), mf.AffinePerceptron(drift)))
    runs = mf.simulate_ensemble(field, np.zeros((len(s1), 2)), covariances, [0.0, horizon])
    margins = np.linalg.eigvalsh(np.linalg.inv(covariances) - precision)[:, 0]
    blew_up = np.isfinite(runs.blow_up_times)
    square = (case["grid"], case["grid"])
    return {
        "sizes": sizes,
        "simulated": runs.blow_up_times.reshape(square),
        "exact": exact.reshape(square),
        "margins": margins.reshape(square),
        "border": border(precision, sizes[0]),
        "disagreements": int((blew_up != (exact < horizon)).sum()),
        "fates_apart": max(_apart(fate.blow_up_time, exact[i]) for fate, i in zip(fates, asked, strict=True)),
    }


def precision_of(head, drift):
    """P* with P* W + W^T P* = -(A + A^T), written out as one linear system in its entries."""
    eye = np.eye(2)
    system = np.kron(eye, drift.T) + np.kron(drift.T, eye)
    return np.linalg.solve(system, -(head.A + head.A.T).ravel()).reshape(2, 2)


def border(precision, least):
    """Starts diag(s1, s2), shape (f, 2), on which diag(1/s1, 1/s2) - P* is singular, from s1 = least on."""
    (p11, p12), (_, p22) = precision
    s1 = 1 / (p11 + np.geomspace(1 / least - p11, 1e-6, 400))
    return np.stack([s1, 1 / (p22 + p12**2 / (1 / s1 - p11))], axis=1)


def first_poles(drift, precision, covariances):
    """Blow-up times (b,) by bisection, inf where there is none, for A + A^T > 0 and a diagonalisable Hurwitz W.

    P(t) = P0 - P* + e^{tW}^T P* e^{tW} after the congruence by e^{tW}, and its last term decreases with t. So P has a
    zero eigenvalue at one time at most, and has one iff the limit P0 - P* has a negative eigenvalue.
    """

    def lowest(times):
        flow = ((vectors * np.exp(times[:, None, None] * rates)) @ inverse).real
        return np.linalg.eigvalsh(start - precision + np.swapaxes(flow, 1, 2) @ precision @ flow)[:, 0]

    rates, vectors = np.linalg.eig(drift)
    inverse = np.linalg.inv(vectors)
    start = np.linalg.inv(covariances)
    poles = np.full(len(start), np.inf)
    doomed = np.linalg.eigvalsh(start - precision)[:, 0] < 0
    start = start[doomed]
    low, high = np.zeros(len(start)), np.full(len(start), 1.0)
    while (open_ := lowest(high) > 0).any():
        high[open_] *= 2
    for _ in range(60):
        middle = (low + high) / 2
        below = lowest(middle) > 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    poles[doomed] = high
    return poles


def _apart(one, other):
    """Relative distance of two times that may be infinite."""
    return 0.0 if one == other else abs(one / other - 1)
