"""Softmax tokens sampled from a Gaussian that blows up: their covariance stays finite, and follows for a while."""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

import meanfield as mf
from meanfield.gaussian.closed_forms import softmax_solution

from . import full_size

CLAIM = (
    "The Gaussian blows up at t*, n tokens never: their covariance stays below the square of the radius bound "
    "R0 exp(|V| t), which grows only like log n."
)

#: Above this many tokens the field is interpolated.
EXACT = 500


def cases(quick):
    """Replicas for each n: to 1,000 tokens when quick, to 10,000 else, to 100,000 at full size."""
    sizes = {100: 4, 1_000: 2} if quick else {100: 16, 300: 8, 1_000: 8, 3_000: 6, 10_000: 4}
    if full_size():
        sizes |= {30_000: 2, 100_000: 1}
    common = {"value": 1.0, "logit": 1.0, "variance": 1.0, "horizon": 1.5, "outputs": 61}
    return [common | {"n": n, "replica": k} for n, count in sizes.items() for k in range(count)]


def run(case, rng):
    """n tokens on the line up to ``horizon`` t*, scaled to the mean and the variance of their Gaussian at the start.

    Returns
    -------
    dict of arrays
        times (k,), covariance (k,), radius (k,), bound (k,) of the radius, gaussian (k,) with inf from t* on, pole,
        at_pole the covariance at t*, departure the first time with a covariance 10 % off the Gaussian's, and
        field_error, how far the interpolated field was off exact sums, relative to its size.
    """
    law = mf.Gaussian([0.0], [[case["variance"]]])
    head = mf.Head([[case["logit"]]], [[1.0]], [[case["value"]]])
    solution = softmax_solution(head, law)
    pole = solution.blow_up_time
    # Multiples of t* are hit exactly: the pole is an output time.
    times = pole * np.linspace(0.0, case["horizon"], case["outputs"])
    sample = law.sample(case["n"], rng)
    tokens = (sample.points - sample.mean) * np.sqrt(case["variance"] / sample.covariance[0, 0])
    exact = mf.SoftmaxAttention(head)
    field = exact if case["n"] <= EXACT else InterpolatedAttention(exact)
    trajectory = mf.simulate(
        field, mf.Measure(tokens), times, scheme=mf.Adaptive("RK45", rtol=1e-5, atol=1e-7), progress=False
    )
    radius = np.abs(trajectory.arrays[..., 0]).max(axis=1)
    gaussian = np.full(len(times), np.inf)
    before = times < pole
    gaussian[before] = solution.covariance(times[before])[:, 0, 0]
    covariance = np.array([state.covariance[0, 0] for _, state in trajectory.items()])
    return {
        "times": times,
        "covariance": covariance,
        "radius": radius,
        "bound": radius[0] * np.exp(abs(case["value"]) * times),
        "gaussian": gaussian,
        "pole": pole,
        "at_pole": covariance[np.argmin(np.abs(times - pole))],
        "departure": departure(times, covariance, gaussian),
        "field_error": field_error(exact, field, trajectory, rng),
    }


def departure(times, covariance, gaussian):
    """The first time at which the covariance is 10 % off the Gaussian's, interpolated between outputs."""
    off = np.abs(covariance / gaussian - 1)
    k = int(np.argmax(off > 0.1))
    share = (0.1 - off[k - 1]) / (off[k] - off[k - 1])
    return times[k - 1] + share * (times[k] - times[k - 1])


@dataclass(frozen=True)
class InterpolatedAttention:
    """Attention in one dimension from exact sums at Chebyshev points of the tokens' interval, O(n) a call.

    On a bounded law the field is analytic in x, so that the error falls geometrically with the number of points.

    Parameters
    ----------
    exact : callable
        ``exact(t, x, mu)``.
    points : int
    """

    exact: object
    points: int = 256

    def __call__(self, t, x, mu):
        low, high = x.min(), x.max()
        middle, half = (low + high) / 2, (high - low) / 2
        nodes = middle + half * chebyshev.chebpts1(self.points)
        values = self.exact(t, nodes[:, None], mu)[:, 0]
        series = chebyshev.chebinterpolate(lambda _: values, self.points - 1)
        return chebyshev.chebval((x - middle) / half, series)


def field_error(exact, field, trajectory, rng, count=50):
    """Largest error of the field at random tokens of every tenth state, relative to the largest velocity there."""
    errors = []
    for t, state in list(trajectory.items())[::10]:
        chosen = rng.integers(len(state), size=count)
        velocities = field(t, state.points, state)
        right = exact(t, state.points[chosen], state)
        errors.append(np.abs(velocities[chosen] - right).max() / np.abs(velocities).max())
    return max(errors)
