"""Heads that move in time: how small many of them make the dissipation, and whose energy identity is exact."""

import numpy as np

import meanfield as mf
from meanfield.gradient_flow.moving_heads import oscillating_heads, ou_heads
from meanfield.gradient_flow.twisted import dissipation

from . import full_size

CLAIM = (
    "Under repulsive heads that move at random the dissipation G^2 falls like 1/H, under heads that oscillate together "
    "it does not; G^2 is the rate at which the energy falls for one head only."
)

#: Published: 200 tokens around the vertices of an octahedron, T = 20 in steps of 5e-3, Euler, and a circle with 100.
STEP, NOISE = 5e-3, 0.05
PUBLISHED = {3: {"n": 200, "heads": [1, 10, 100]}, 2: {"n": 100, "heads": [1, 5, 20]}}

#: Time between outputs.
TICK = 0.05


def cases(quick):
    """Decay of G^2 on the sphere and on the circle, and the identity along a run, by refinement.

    The published sizes take minutes and are for `full_size`; otherwise there are fewer tokens, up to half the time, and
    more numbers of heads, so that the exponent has more to stand on.
    """
    decay = {"kind": "decay", "n": 12, "horizon": 5.0} if quick else {"kind": "decay", "n": 24, "horizon": 10.0}
    sphere, circle, draws = ([1, 4, 16, 64], [], 2) if quick else ([1, 3, 10, 30, 100], [1, 5, 20], 3)
    identity = {"kind": "identity", "n": 8, "horizon": 0.8, "steps": [8, 16, 32] if quick else [8, 16, 32, 64]}
    result = [identity | {"motion": motion, "heads": count} for motion in MOTIONS for count in (1, 3)]
    for d, counts in ((3, sphere), (2, circle)):
        size = decay | {"d": d}
        if full_size() and not quick:
            counts, size, draws = PUBLISHED[d]["heads"], size | {"n": PUBLISHED[d]["n"], "horizon": 20.0}, 10
        for count in counts:
            result += [size | {"motion": "noise", "heads": count, "draw": draw} for draw in range(draws)]
            result.append(size | {"motion": "oscillation", "heads": count, "draw": 0})
    return result


#: How heads move: made from their number, the time to cover, the step of a path, a Generator and the dimension.
MOTIONS = {
    "noise": lambda count, end, dt, rng, d: ou_heads(count, end, rng, d=d, dt=dt),
    "oscillation": lambda count, end, dt, rng, d: oscillating_heads(count, rng, d=d),
}


def run(case, rng):
    """One run of tokens under moving heads.

    Returns
    -------
    dict of arrays
        Of a decay: times (k,), dissipation (k,) = G^2, rate (k,) = -dE/dt with the heads held, energies (k,), late =
        the mean of G^2 over the second half, gap = the mean of |rate - G^2| / G^2, final (n, d).
        Of an identity: steps (r,), residual (r,) of E(t) - E(0) - (work of the heads) + ∫ G^2 over the range of the
        energy, chain_residual (r,) with the rate in place of G^2, and order, chain_order over the finest three.
    """
    return decay(case, rng) if case["kind"] == "decay" else identity(case, rng)


def decay(case, rng):
    """G^2 along the published scheme: Euler steps and normalisation."""
    heads = MOTIONS[case["motion"]](case["heads"], case["horizon"], STEP, rng, case["d"])
    times = np.arange(0.0, case["horizon"] + TICK / 2, TICK)

    def field(t, x, mu):
        return -head_means(heads.matrix(slice(None), t), x)[0].mean(axis=0)

    start = clusters(case["n"], case["d"], rng)
    moving = mf.simulate(field, start, times, space=mf.Sphere(), scheme=mf.EULER, dt=STEP, progress=False)
    found = np.array([balance(heads.matrix(slice(None), t), mu.points) for t, mu in moving.items()])
    energies, rate, squared = found.T
    return {
        "times": moving.times,
        "energies": energies,
        "rate": rate,
        "dissipation": squared,
        "late": squared[len(squared) // 2 :].mean(),
        "gap": np.mean(np.abs(rate - squared) / squared),
        "final": moving[-1].points,
    }


def clusters(n, d, rng):
    """n tokens around the 2 d vertices of an octahedron (of a square on the circle) with normal noise, normalised."""
    vertices = np.concatenate([np.eye(d), -np.eye(d)])
    points = vertices[np.arange(n) % (2 * d)] + NOISE * rng.standard_normal((n, d))
    return mf.Measure(mf.Sphere().retract(points))


def head_means(matrices, x):
    """What every head averages, D_h E_h[y | x] of shape (H, n, d), and its mean weight Z_h(x) of shape (H, n).

    All heads in one array; the fields of `moving_heads`, which take them in turn, are its check.
    """
    queries = x @ matrices
    weights = np.exp(queries @ x.T)
    total = weights.sum(axis=-1)
    # D_h is symmetric, so x D_h are queries and values at once.
    return weights @ queries / total[..., None], total / len(x)


def balance(matrices, x):
    """Energy, -dE/dt with the heads held, and G^2 = mean_i |v_i|^2 / mean_h (1 / Z_h(x_i)) [2605.18870].

    With v_i = -P mean_h D_h E_h[y | x_i] and the gradient mean_h Z_h D_h E_h[y | x_i].
    """
    means, weights = head_means(matrices, x)
    velocity = -mf.Sphere().tangent(x, means.mean(axis=0))
    gradient = np.mean(weights[..., None] * means, axis=0)
    rate = -np.mean(np.sum(gradient * velocity, axis=1))
    squared = np.mean(np.sum(velocity**2, axis=1) / np.mean(1 / weights, axis=0))
    return weights.mean() / 2, rate, squared


def identity(case, rng):
    """The energy-dissipation identity along finer and finer steps of the same run, by the package's own account.

    A path of noise has corners, which fall between the steps of the coarsest run and so of all.
    """
    coarsest = case["horizon"] / case["steps"][0]
    heads = MOTIONS[case["motion"]](case["heads"], case["horizon"], coarsest, rng, 3)
    start, found = clusters(case["n"], 3, rng), []
    for count in case["steps"]:
        times = np.linspace(0.0, case["horizon"], count + 1)
        moving = mf.simulate(heads.field(), start, times, space=mf.Sphere(), scheme=mf.RK4, dt=times[1], progress=False)
        found.append(dissipation(heads.field(), heads.energy(), moving, degree=1))
    steps = np.array(case["steps"])
    residual = np.array([one.largest_residual for one in found])
    chain_residual = np.array([one.largest_chain_residual for one in found])
    return {
        "steps": steps,
        "residual": residual,
        "chain_residual": chain_residual,
        "order": order(steps, residual),
        "chain_order": order(steps, chain_residual),
    }


def order(steps, misses):
    """Minus the fitted slope of log misses against log steps, over the finest three."""
    return -np.polyfit(np.log(steps[-3:]), np.log(misses[-3:]), 1)[0]
