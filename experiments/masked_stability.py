"""What the mass of an attention sink at position 0 does to the stability of masked attention, from 0 to 1."""

import numpy as np

import meanfield as mf
from meanfield.analysis.lipschitz import sink_factor
from meanfield.analysis.stability import stability

CLAIM = (
    "The less mass the attention sink at position 0 has, the less stable masked attention is, but by log(1 / mass) in "
    "the rate of d_1 and by at most 2 in that of d_2, not by 1 / mass."
)

MASSES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)

#: |A| R0^2 = 0.004: logits so small that averaging, and not the kernel, is what spreads a disturbance.
RADIUS, SCALE = 0.1, 0.4


def cases(quick):
    """One case a mass and an order of the distance."""
    masses = MASSES[::5] if quick else MASSES
    size = {"n": 24, "replicas": 1} if quick else {"n": 48, "replicas": 2}
    return [size | {"mass": mass, "p": p, "horizon": 0.5} for p in (1, 2) for mass in masses]


def run(case, rng):
    """Softmax with V = I on tokens at n equally heavy positions after the sink, disturbed in three ways.

    Returns
    -------
    dict of arrays
        ratios (3,) at the horizon, the largest over the replicas, for the three `disturbances`; quotients (3,) at the
        start; log_bound with the factor of all masses, log_sink_bound with 1 / mass; mask_factor, sink_factor, and
        in_law, the constant that they multiply at the start.
    """
    n, mass, p = case["n"], case["mass"], case["p"]
    positions = np.arange(n + 1) / n
    weights = np.concatenate([[mass], np.full(n, (1 - mass) / n)])
    field = mf.MaskedAttention(mf.SoftmaxAttention(mf.Head.identity(2, SCALE)))
    times, options = np.array([0.0, case["horizon"]]), {"scheme": mf.RK4, "dt": 0.1, "max_columns": 0}
    ratios, quotients = np.full(3, np.nan), np.full(3, np.nan)
    for _ in range(case["replicas"]):
        tokens = 0.95 * RADIUS * unit(rng.standard_normal((n + 1, 2))) * np.sqrt(rng.uniform(size=(n + 1, 1)))
        for k, size in enumerate(disturbances(weights, rng)):
            if size is None:
                continue
            moved = tokens + 0.02 * RADIUS * size[:, None] * unit(rng.standard_normal(2))
            laws = [mf.Measure.positioned(positions, each, weights) for each in (tokens, moved)]
            found = stability(field, *laws, times, p, **options)
            ratios[k] = np.fmax(ratios[k], found.ratios[-1])
            quotients[k] = np.fmax(quotients[k], found.quotients[0])
    sink = stability(field, *laws, times, p, mask_factor=sink_factor, **options)
    factor = found.lipschitz.parameters["mask factor"]
    return {
        "ratios": ratios,
        "quotients": quotients,
        "log_bound": found.log_bound[-1],
        "log_sink_bound": sink.log_bound[-1],
        "mask_factor": factor,
        "sink_factor": sink.lipschitz.parameters["mask factor"],
        "in_law": found.lipschitz.constants(0.0, found.radius).in_law / factor,
    }


def disturbances(weights, rng):
    """Sizes of the displacements (n + 1,): of the sink alone (None if it has no mass), the worst for averages, random.

    Averaging over what is visible has a matrix H; the positive eigenvector of its symmetric part in L^2(theta) is the
    displacement that it makes grow fastest.
    """
    sink = np.zeros(len(weights))
    sink[0] = 1.0
    massive = weights > 0
    root = np.sqrt(weights[massive])
    averaging = np.tril(np.outer(root, root) / np.cumsum(weights[massive])[:, None])
    leading = np.abs(np.linalg.eigh(averaging + averaging.T)[1][:, -1]) / root
    worst = np.zeros(len(weights))
    worst[massive] = leading / leading.max()
    return sink if weights[0] > 0 else None, worst, rng.uniform(size=len(weights))


def unit(v):
    """Vectors scaled to length one."""
    return v / np.linalg.norm(v, axis=-1, keepdims=True)
