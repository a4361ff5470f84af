"""Energy dissipation: which attentions are gradient flows, shown by refining the step, and two that are not."""

import numpy as np
from scipy.interpolate import make_interp_spline

import meanfield as mf
from meanfield.gradient_flow.energies import (
    InteractionEnergy,
    QuadraticEnergy,
    SigmoidEnergy,
    SinkhornEnergy,
    SphereEnergy,
)
from meanfield.gradient_flow.metric import SoftmaxMobility, TwistedMetric
from meanfield.gradient_flow.multihead import MultiHeadEnergy
from meanfield.gradient_flow.twisted import dissipation

CLAIM = (
    "Softmax, unnormalised, linear, sigmoid and Sinkhorn attention with V A^{-1} symmetric and definite dissipate "
    "their energy at the rate of their metric: the residual falls with the fourth power of the step or faster. For two "
    "heads, or where V A^{-1} is not symmetric, it stays."
)

#: A of the logits, indefinite, and H of V = -H A: symmetric and positive definite, so that energies descend.
A = np.array([[0.8, 0.3], [0.3, -0.5]])
H = np.array([[1.0, 0.4], [0.4, 0.7]])

#: H turned by this angle is not symmetric, and the second head has another matrix than the first.
TURN = 1.7
SECOND = np.array([[-0.4, 0.5], [0.5, 0.9]])

#: Inverse temperature on the sphere.
BETA = 2.0

#: What is a gradient flow, on tokens, on Gaussians and on the sphere; and what is not.
QUALIFY = (
    "softmax",
    "unnormalised",
    "linear",
    "sigmoid",
    "sinkhorn",
    "softmax Gaussian",
    "linear moments",
    "sinkhorn Gaussian",
    "softmax on the sphere",
    "unnormalised on the sphere",
)
FAIL = ("two heads", "turned")

HORIZON = 1.5


def cases(quick):
    """Every pair of a field and an energy, with the numbers of steps that the horizon is cut into."""
    size = {"n": 8, "steps": [8, 16, 32]} if quick else {"n": 16, "steps": [8, 16, 32, 64]}
    return [size | {"pair": name} for name in (*QUALIFY, *FAIL)]


def run(case, rng):
    """Fixed steps of the fourth order, finer and finer, and the two ways to dE/dt on each.

    Returns
    -------
    dict of arrays
        steps (r,); residual (r,), the largest miss of the energy-dissipation identity over the range of the energy;
        chain_residual (r,), the same with the chain rule in place of the metric; quotients (r,), the largest miss of
        central difference quotients of the energy from the chain rule, at the times of the coarsest run, over the
        largest rate; order, chain_order and
        quotient_order, minus the fitted slopes of the three over the finest runs; and of the finest run times (k,),
        energies (k,), chain_rule (k,), metric (k,), gap (the largest difference of these two over the largest rate),
        sign, monotone.
    """
    field, energy, space, start = problem(case["pair"], case["n"])
    found = []
    for count in case["steps"]:
        times = np.linspace(0.0, HORIZON, count + 1)
        moving = mf.simulate(field, start, times, space=space, scheme=mf.RK4, dt=times[1], progress=False)
        if moving.outcome is not mf.Outcome.FINISHED:
            raise ArithmeticError(f"{case['pair']} in {count} steps: {moving.outcome.name}, {moving.message}")
        found.append(two_ways(case["pair"], field, energy, moving))
        every = count // case["steps"][0]
        found[-1]["quotients"] = found[-1]["quotients"][every - 1 :: every].max()
    steps, finest = np.array(case["steps"]), found[-1]
    misses = {key: np.array([one[key] for one in found]) for key in ("residual", "chain_residual", "quotients")}
    kept = {key: finest[key] for key in ("times", "energies", "chain_rule", "metric", "sign", "monotone")}
    return (
        kept
        | misses
        | {
            "steps": steps,
            "order": order(steps, misses["residual"]),
            "chain_order": order(steps, misses["chain_residual"]),
            "quotient_order": order(steps, misses["quotients"]),
            "gap": np.abs(finest["chain_rule"] - finest["metric"]).max() / np.abs(finest["metric"]).max(),
        }
    )


def order(steps, misses):
    """Minus the slope of the logarithms of the misses against those of the numbers of steps, over the finest three."""
    return -np.polyfit(np.log(steps[-3:]), np.log(misses[-3:]), 1)[0]


def problem(pair, n):
    """The field, its energy, the space, and a start, by the name of the pair."""
    tokens = mf.Measure(spiral(n))
    law = mf.Gaussian([0.4, -0.3], [[0.5, 0.1], [0.1, 0.3]])
    head = mf.Head(np.eye(2), A, -H @ A)
    sinking = mf.Head(np.eye(2), A, H @ A)
    by_name = {
        "softmax": (mf.SoftmaxAttention(head), InteractionEnergy(head), tokens),
        "unnormalised": (mf.UnnormalisedAttention(head), InteractionEnergy(head), tokens),
        "linear": (mf.LinearAttention(head), QuadraticEnergy(head), tokens),
        "sigmoid": (mf.SigmoidAttention(head), SigmoidEnergy(head), tokens),
        "sinkhorn": (mf.SinkhornAttention(sinking), SinkhornEnergy(sinking), tokens),
        "softmax Gaussian": (mf.SoftmaxAttention(head), InteractionEnergy(head), law),
        "linear moments": (mf.LinearAttention(head), QuadraticEnergy(head), law),
        "sinkhorn Gaussian": (mf.SinkhornAttention(sinking), SinkhornEnergy(sinking), law),
        "two heads": (*two_heads(), tokens),
        "turned": (mf.SoftmaxAttention(turned()), InteractionEnergy(turned()), tokens),
    }
    if pair in by_name:
        field, energy, start = by_name[pair]
        return field, energy, mf.Euclidean(), start
    sphere = mf.Sphere()
    start = mf.Measure(sphere.retract(np.column_stack([spiral(n), np.full(n, 0.3)])))
    attention = mf.make_attention(pair.split()[0], mf.Head.identity(3, beta=BETA))
    return attention, SphereEnergy(BETA), sphere, start


def spiral(n):
    """n tokens in the plane at golden angles, off the centre and wider along the first axis; the same for all pairs."""
    k = np.arange(n)
    radius, angle = np.sqrt((k + 0.5) / n), k * np.pi * (3 - np.sqrt(5))
    return np.column_stack([0.3 + 1.2 * radius * np.cos(angle), -0.2 + 0.8 * radius * np.sin(angle)])


def two_heads():
    """Two softmax heads that share V A^{-1} = -H, and their energy."""
    heads = [mf.Head(np.eye(2), matrix, -H @ matrix / 2) for matrix in (A, SECOND)]
    return mf.MultiHeadAttention(tuple(mf.SoftmaxAttention(head) for head in heads)), MultiHeadEnergy(tuple(heads))


def turned():
    """A head with V A^{-1} = -H turned by `TURN`: refused as a gradient flow, because that is not symmetric."""
    cos, sin = np.cos(TURN), np.sin(TURN)
    return mf.Head(np.eye(2), A, -np.array([[cos, -sin], [sin, cos]]) @ H @ A)


def two_ways(pair, field, energy, moving):
    """Energies, both rates, both residuals, and at each inner time the miss of the difference quotient, along a run."""
    if pair == "turned":
        return as_if(field, energy, moving)
    found = dissipation(field, energy, moving)
    _, quotients = found.difference_quotients()
    return {
        "times": found.times,
        "energies": found.energies,
        "chain_rule": found.chain_rule,
        "metric": found.metric,
        "residual": found.largest_residual,
        "chain_residual": found.largest_chain_residual,
        "quotients": np.abs(quotients - found.chain_rule[1:-1]) / np.abs(found.chain_rule).max(),
        "sign": found.sign,
        "monotone": found.monotone,
    }


def as_if(field, energy, moving):
    """The same for a field that is refused, as if it belonged to the metric of H before it was turned."""
    metric = TwistedMetric(-H, SoftmaxMobility(A))
    velocities = [field(t, mu.points, mu) for t, mu in moving.items()]
    energies = moving.observe(energy.value)
    chain = np.array([energy.derivative(mu, v) for mu, v in zip(moving, velocities, strict=True)])
    rates = np.array([metric.sign * metric.squared_norm(mu, v) for mu, v in zip(moving, velocities, strict=True)])
    moved, times = energies - energies[0], moving.times
    done = [make_interp_spline(times, rate, k=5).antiderivative()(times) for rate in (rates, chain)]
    central = (energies[2:] - energies[:-2]) / (times[2:] - times[:-2])
    return {
        "times": times,
        "energies": energies,
        "chain_rule": chain,
        "metric": rates,
        "residual": np.abs(moved - done[0]).max() / np.ptp(energies),
        "chain_residual": np.abs(moved - done[1]).max() / np.ptp(energies),
        "quotients": np.abs(central - chain[1:-1]) / np.abs(chain).max(),
        "sign": metric.sign,
        "monotone": bool((metric.sign * np.diff(energies) >= 0).all()),
    }
