"""L2 attention with a key matrix whose smallest singular value goes to zero: a pole at zero, late levels beside it."""

import math

import numpy as np

import meanfield as mf
from meanfield.gaussian.closed_forms import l2_counterexample_head, one_row_l2

from . import full_size

CLAIM = (
    "L2 attention blows up when K has no full column rank; with smallest singular value epsilon > 0 it is global, and "
    "passes a level N at about t* + c epsilon^2 sqrt(N)."
)

#: Starts (Sigma_11, Sigma_12, Sigma_22): the one of the theory sheet, with t* = 3, and two others.
STARTS = {"sheet": (1.0, 0.5, 1.0), "wide": (0.5, 0.8, 2.0), "weak": (2.0, 0.3, 0.5)}


def cases(quick):
    """The counterexample from each start, and the family of regular keys next to it."""
    starts = ("sheet",) if quick else tuple(STARTS)
    finest = -3 if quick else -4
    count = 5 if quick else 25 if full_size() else 13
    levels = [1e2, 1e4, 1e6, 1e8]
    result = [{"part": "deficient", "start": name, "outputs": 61} for name in starts]
    common = {"part": "regular", "levels": levels, "outputs": 241}
    for name in starts:
        epsilons = np.logspace(finest, 0, count if name == "sheet" else 5).tolist()
        result.append(common | {"start": name, "epsilons": epsilons})
    return result


def run(case, rng):
    """The counterexample, or the same law under K = diag(1, epsilon) for every epsilon.

    Returns
    -------
    dict of arrays
        deficient: times (k,), covariances (k, 2, 2) up to 0.999 t*, exact (k, 2, 2), blow_up_time, proved_time.
        regular: passages (e, levels) and exact_passages, the times at which the largest eigenvalue passes each level;
        proved (e, levels), before which it cannot; times (k,), sizes (e, k) of the largest eigenvalue; blown_up (e,);
        pole, the t* of epsilon = 0, pole_passages (levels,) there, and slope (levels,) of the measured delays; curves
        (f, levels), exact passages at many curve_epsilons (f,).
    """
    law = start_law(case["start"])
    if case["part"] == "deficient":
        return deficient(law, case["outputs"])
    levels, epsilons = np.array(case["levels"]), np.array(case["epsilons"])
    runs = [passages(law, epsilon, levels) for epsilon in epsilons]
    pole = one_row_l2(l2_counterexample_head(), law).blow_up_time
    times = pole * np.linspace(0.0, 2.0, case["outputs"])
    exact = np.stack([passage_time(law, epsilon, levels) for epsilon in epsilons])
    at_pole = passage_time(law, 0.0, levels)
    fine = np.geomspace(epsilons[0], epsilons[-1], 200)
    found = np.stack([run[0] for run in runs])
    return {
        "passages": found,
        "blown_up": np.array([run[1] for run in runs]),
        "exact_passages": exact,
        "proved": np.stack([earliest_passage(law, epsilon, levels) for epsilon in epsilons]),
        "times": times,
        "sizes": np.stack([largest(exact_covariance(law, epsilon, times)) for epsilon in epsilons]),
        "pole": pole,
        "pole_passages": at_pole,
        "curve_epsilons": fine,
        "curves": np.stack([passage_time(law, epsilon, levels) for epsilon in fine]),
        "slope": delay_slopes(epsilons, (found - at_pole) / pole),
    }


def start_law(name):
    """The centred Gaussian of a row of `STARTS`."""
    a, c, b = STARTS[name]
    return mf.Gaussian([0.0, 0.0], [[a, c], [c, b]])


def regular_head(epsilon):
    """The head of the counterexample with K = diag(1, epsilon) and Q = [[0, 1], [0, 0]]: the same A = K^T Q."""
    return mf.Head([[0.0, 1.0], [0.0, 0.0]], np.diag([1.0, epsilon]), np.diag([0.0, 1.0]))


def deficient(law, outputs):
    """The run into the pole, and its closed form."""
    field = mf.L2Attention(l2_counterexample_head())
    solution = one_row_l2(field.head, law)
    pole = solution.blow_up_time
    times = np.append(np.linspace(0.0, 0.999 * pole, outputs), 1.5 * pole)
    run = mf.simulate(field, law, times, progress=False)
    return {
        "times": run.times,
        "covariances": np.stack([state.covariance for _, state in run.items()]),
        "exact": solution.covariance(run.times),
        "blow_up_time": math.nan if run.blow_up_time is None else run.blow_up_time,
        "proved_time": pole,
    }


def passages(law, epsilon, levels):
    """Simulated times at which the largest eigenvalue passes the levels, and whether a blow-up was called."""
    events = [mf.Event(lambda t, state, level=level: math.log(largest(state.covariance) / level)) for level in levels]
    events[-1] = mf.Event(events[-1].function, terminal=True)
    end = 2 * passage_time(law, epsilon, levels)[-1]
    run = mf.simulate(mf.L2Attention(regular_head(epsilon)), law, [0.0, end], events=events, progress=False)
    found = [times[0] if len(times) else math.nan for times in run.event_times]
    return np.array(found), run.blow_up_time is not None


def delay_slopes(epsilons, delays):
    """Fitted exponents of delays (e, levels) in epsilon, from the delays that an accuracy of 1e-8 resolves to 1e-3."""
    fits = []
    for delay in delays.T:
        kept = delay > 1e-5
        fits.append(np.polyfit(np.log(epsilons[kept]), np.log(delay[kept]), 1)[0])
    return np.array(fits)


def largest(covariances):
    """Largest eigenvalue of covariances (..., 2, 2)."""
    return np.linalg.norm(covariances, 2, axis=(-2, -1))


def exact_covariance(law, epsilon, times):
    """Sigma(t) under K = diag(1, epsilon), shape (k, 2, 2); times past the pole of epsilon = 0 give infinity.

    Sigma_11 = a stays, Sigma_22 = b (c / c0)^2, and with kappa = b / c0^2 - 2 / (1 + 2a) the Woodbury identity turns
    c = Sigma_12 into c' (1 + 2 epsilon^2 kappa c^2) / c^2 = 2 / (1 + 2a), so 2 epsilon^2 kappa c - 1/c grows at the
    constant rate 2 / (1 + 2a): linearly in the end, without a pole.
    """
    a, c0, b, bend = _parts(law, epsilon)
    h = 2 * np.asarray(times) / (1 + 2 * a) - 1 / c0 + bend * c0
    # The positive root of bend c^2 - h c - 1 = 0, by the form that does not cancel; none is left past the pole.
    root = np.sqrt(h * h + 4 * bend)
    with np.errstate(divide="ignore"):
        c = np.where(h > 0, (h + root) / (2 * bend), 2 / (root - h)) if bend > 0 else np.where(h < 0, -1 / h, np.inf)
    covariance = np.empty((*c.shape, 2, 2))
    covariance[..., 0, 0], covariance[..., 1, 1] = a, b * (c / c0) ** 2
    covariance[..., 0, 1] = covariance[..., 1, 0] = c
    return covariance


def passage_time(law, epsilon, levels):
    """The times at which the largest eigenvalue of `exact_covariance` passes the levels.

    Level N is an eigenvalue where (a - N)(Sigma_22 - N) = c^2, with Sigma_22 = b (c / c0)^2.
    """
    a, c0, b, bend = _parts(law, epsilon)
    c = np.sqrt(levels * (levels - a) / (b / c0**2 * (levels - a) + 1))
    return (1 + 2 * a) / 2 * (1 / c0 - 1 / c + bend * (c - c0))


def earliest_passage(law, epsilon, levels):
    """What is proved for any head: |Sigma(t)| <= |Sigma0| exp(2 |V| |Q| t / sigma_min(K)) [S9]."""
    head = regular_head(epsilon)
    speed = 2 * np.linalg.norm(head.value, 2) * np.linalg.norm(head.query, 2)
    return np.linalg.svd(head.key, compute_uv=False)[-1] / speed * np.log(levels / largest(law.covariance))


def _parts(law, epsilon):
    """a, c0, b of the start, and 2 epsilon^2 kappa."""
    (a, c0), (_, b) = law.covariance
    return a, c0, b, 2 * epsilon**2 * (b / c0**2 - 2 / (1 + 2 * a))
