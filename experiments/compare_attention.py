"""One start under every attention: tokens, moments, entropy, clusters, and the Gaussian reduction beside them."""

import numpy as np

import meanfield as mf
from meanfield.analysis.clustering import cluster_count
from meanfield.analysis.observables import attention_entropy, diameter

CLAIM = (
    "One start, every attention: with V = I, linear and unnormalised tokens and softmax Gaussians blow up in finite "
    "time and all else lives on; with V = -I every spread but the masked one falls like t^(-1/2)."
)

#: The two regimes: the sign of V, the inverse temperature, the horizon.
REGIMES = {"growing": (1.0, 0.5, 2.0), "contracting": (-1.0, 1.0, 100.0)}

#: Two tokens are linked when they are nearer than this share of the diameter at that time.
GAP = 0.05

#: Three loose groups: centres, and how far each spreads along the axes.
CENTRES = ((1.3, 0.1), (-0.7, 1.0), (-0.4, -1.2))
SPREADS = ((0.40, 0.22), (0.25, 0.35), (0.30, 0.30))


def cases(quick):
    """Every registered variant, masked and multi-head softmax, in both regimes."""
    variants = [*mf.ATTENTION, "masked", "multihead"]
    size = {"n": 24, "outputs": 31} if quick else {"n": 48, "outputs": 121}
    return [size | {"variant": variant, "regime": regime} for regime in REGIMES for variant in variants]


def run(case, rng):
    """The tokens and, where it exists, the Gaussian with the mean and covariance of the start.

    Returns
    -------
    dict of arrays
        times (k,) reached by the tokens, points (k, n, 2), spread (k,), diameter (k,), clusters (k,), entropy (k,) in
        units of log n unless the weights have signs, blow_up (t*, or NaN), slope of log spread against log t over the
        last decade (NaN when the horizon was not reached), late_constant = spread sqrt(beta t) at the end, beta,
        horizon; for the Gaussian gaussian_times, gaussian_means, gaussian_covariances, gaussian_spread,
        gaussian_blow_up. A spread is sqrt(tr covariance).
    """
    sign, beta, _ = REGIMES[case["regime"]]
    field = field_of(case["variant"], sign, beta)
    tokens = three_groups(case["n"])
    times = output_times(case["regime"], case["outputs"])
    masked = case["variant"] == "masked"
    start = mf.Measure.positioned(np.arange(case["n"]) / case["n"], tokens) if masked else mf.Measure(tokens)
    moving = mf.simulate(field, start, times, progress=False)
    result = {
        "times": moving.times,
        "points": np.stack([state.tokens for state in moving]),
        "spread": spread(moving),
        "diameter": moving.observe(diameter),
        "clusters": moving.observe(lambda state: cluster_count(state, GAP * diameter(state))),
        "blow_up": found_time(moving),
        "slope": late_slope(moving.times, spread(moving), times[-1]),
        "late_constant": spread(moving)[-1] * np.sqrt(beta * moving.times[-1]),
        "beta": beta,
        "horizon": times[-1],
    }
    if case["variant"] != "linear":
        entropies = [attention_entropy(field, t, state) for t, state in moving.items()]
        result["entropy"] = np.array(entropies) / np.log(case["n"])
    try:
        law = mf.simulate(field, mf.Gaussian(start.mean, start.covariance), times, progress=False)
    except mf.NotGaussianError:
        return result
    return result | {
        "gaussian_times": law.times,
        "gaussian_means": law.observe(lambda state: state.mean),
        "gaussian_covariances": law.observe(lambda state: state.covariance),
        "gaussian_spread": spread(law),
        "gaussian_blow_up": found_time(law),
    }


def output_times(regime, outputs):
    """From 0 to the horizon: evenly while things grow, evenly in log t while they decay by a power law."""
    horizon = REGIMES[regime][2]
    if regime == "growing":
        return np.linspace(0.0, horizon, outputs)
    return np.concatenate([[0.0], np.geomspace(1e-3 * horizon, horizon, outputs - 1)])


def field_of(variant, sign, beta):
    """Q = K = I and V = sign * I; several heads see one coordinate each and share V equally."""
    eye = np.eye(2)
    head = mf.Head(eye, eye, sign * eye, scale=beta)
    if variant == "masked":
        return mf.MaskedAttention(mf.SoftmaxAttention(head))
    if variant == "multihead":
        heads = [mf.Head(row[None], row[None], sign * eye / 2, scale=beta) for row in eye]
        return mf.MultiHeadAttention(tuple(mf.SoftmaxAttention(one) for one in heads))
    return mf.make_attention(variant, head)


def three_groups(n):
    """n tokens in three loose groups, the same for every case; tokens 0, 1, 2, 3, ... belong to groups 0, 1, 2, 0, ...

    Within a group the k-th token lies at a quantile of the radius of a normal law and at k golden angles, so that the
    groups need no random numbers and the order of the tokens, which is all a mask sees, says nothing of the groups.
    """
    group = np.arange(n) % len(CENTRES)
    k = np.arange(n) // len(CENTRES)
    radius = np.sqrt(-2 * np.log1p(-(k + 0.5) / (k.max() + 1)))
    angle = k * np.pi * (3 - np.sqrt(5)) + group
    normal = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.array(CENTRES)[group] + np.array(SPREADS)[group] * normal


def spread(trajectory):
    """sqrt(tr covariance) along a trajectory."""
    return trajectory.observe(lambda state: np.sqrt(np.trace(state.covariance)))


def late_slope(times, values, horizon):
    """Slope of log values against log t over the last decade before the horizon, or NaN if it was not reached."""
    if times[-1] < horizon:
        return np.nan
    late = times >= horizon / 10
    return np.polyfit(np.log(times[late]), np.log(values[late]), 1)[0]


def found_time(trajectory):
    """t* of a confirmed pole, else NaN."""
    return np.nan if trajectory.blow_up_time is None else trajectory.blow_up_time
