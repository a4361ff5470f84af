"""Low-rank attention: tokens in eighty dimensions look at themselves first, and at two or three tokens in the end."""

import numpy as np

import meanfield as mf
from meanfield.analysis.rank_collapse import AttentionSpectrum, RankCollapseDetector, count_above, effective_number

from . import full_size

CLAIM = (
    "The attention matrix falls from full rank to two or a few more, whether attention moves the tokens or, as in the "
    "published script, V alone does."
)

#: Singular values above this share of the largest count.
RELATIVE = 1e-6

#: Relative accuracy of a run.
TOLERANCE = 1e-6

#: A larger factor on the logits changes no row: e^600 times a difference of doubles of order one is zero or infinite.
LARGEST_EXPONENT = 600.0


def cases(quick):
    """The published setting [GLPR23]: n = 40, d = 80, V = W W^T, W uniform in [-1, 1], T = 11; a quarter when quick.

    Time is counted in units of 1 / lambda_1(V), about 1/107, since dividing V by a number changes the clock alone. The
    published T is some 1,180 of these units. Double precision carries attention's own motion over some 30 of them, as
    tokens behind one leader stay O(1) apart while they grow like e^t and logits like e^{2t}: it is followed to 24,
    where tolerances from 1e-5 to 1e-9 give the same ranks (tested); what V alone does is followed to the end.
    """
    replicas = 1 if quick else 24 if full_size() else 4
    common = {"n": 20, "d": 40} if quick else {"n": 40, "d": 80}
    return [common | {"horizon": 24.0, "published_horizon": 11.0, "outputs": 61, "replica": k} for k in range(replicas)]


def run(case, rng):
    """One start, uniform in [-1, 1]^d, with Q = K = I.

    Returns
    -------
    dict of arrays
        times (k,), spectra (k, n) the singular values of the attention matrix, ranks and effective_ranks (k,),
        half_time since when at most half of them count (infinite without), matrices (4, n, n) at matrix_times (4,);
        drift_times, drift_ranks and drift_effective_ranks (l,) of tokens that move by x' = V x, which is exact to the
        published T; leading_eigenvalue of W W^T, and second_eigenvalue of it divided by that.
    """
    n, d = case["n"], case["d"]
    factor = rng.uniform(-1, 1, (d, d))
    square = factor @ factor.T
    largest = np.linalg.eigvalsh(square)[-2:]
    value = square / largest[1]
    field = mf.SoftmaxAttention(mf.Head(np.eye(d), np.eye(d), value))
    start = mf.Measure(rng.uniform(-1, 1, (n, d)))
    trajectory = mf.simulate(
        field,
        start,
        np.linspace(0.0, case["horizon"], case["outputs"]),
        scheme=mf.Adaptive("RK45", rtol=TOLERANCE, atol=TOLERANCE),
        progress=False,
    )
    spectrum = AttentionSpectrum(field)
    verdict = RankCollapseDetector(n // 2, spectrum=spectrum, relative=RELATIVE)(trajectory)
    shown = moments_shown(verdict.evidence["effective_ranks"])
    times = trajectory.times
    result = {
        "times": times,
        "spectra": np.stack([spectrum(t, state) for t, state in trajectory.items()]),
        "ranks": verdict.evidence["ranks"],
        "effective_ranks": verdict.evidence["effective_ranks"],
        "half_time": np.inf if verdict.time is None else verdict.time,
        "matrices": np.stack([field.matrix(times[k], trajectory[k].points, trajectory[k]) for k in shown]),
        "matrix_times": times[shown],
        "leading_eigenvalue": largest[1],
        "second_eigenvalue": largest[0] / largest[1],
    }
    return result | drift(value, start, np.geomspace(0.1, case["published_horizon"] * largest[1], 81))


def drift(value, start, times):
    """Ranks of attention between tokens e^{tV} x(0), in coordinates scaled by e^{-t}, where nothing overflows."""
    rates, basis = np.linalg.eigh(value)
    coordinates = start.points @ basis
    eye = np.eye(len(rates))
    spectra = []
    for t in times:
        field = mf.SoftmaxAttention(mf.Head(eye, eye, eye, scale=np.exp(min(2 * t, LARGEST_EXPONENT))))
        spectra.append(AttentionSpectrum(field)(t, start.moved_to(coordinates * np.exp((rates - rates[-1]) * t))))
    spectra = np.stack(spectra)
    return {
        "drift_times": times,
        "drift_ranks": count_above(spectra, relative=RELATIVE),
        "drift_effective_ranks": effective_number(spectra),
    }


def moments_shown(effective):
    """Four output times: the start, the first with less than two thirds and a third of its rank, and the end."""
    below = [int(np.argmax(effective <= effective[0] * share)) for share in (2 / 3, 1 / 3)]
    return [0, *below, len(effective) - 1]
