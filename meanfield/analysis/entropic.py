"""Entropic transport in the log domain: the debiased Sinkhorn divergence and the cost it is made of."""

import numpy as np

from ..checks import number
from ..spaces import Euclidean
from ..summation.annealing import descended, soft_minimum
from ..summation.balancing import NotConvergedError
from .transport import clouds

#: Largest squared diameter over epsilon: beyond it, rounding alone exceeds the tolerance.
MAX_RATIO = 1e8


def entropic_cost(mu, nu, *, epsilon, tolerance=1e-9, max_iterations=5000):
    """OT_eps(mu, nu) = min over couplings of E|x - y|^2 + eps KL(pi | mu x nu). **Not a distance**: OT_eps(mu, mu) > 0.

    For the debiased value use `sinkhorn_divergence`; parameters and errors as there.
    """
    x, log_a, y, log_b, epsilon, shift = _prepared("entropic_cost", mu, nu, epsilon)
    return shift + epsilon * cross_cost(x, log_a, y, log_b, *_limits(tolerance, max_iterations))


def sinkhorn_divergence(mu, nu, *, epsilon, tolerance=1e-9, max_iterations=5000):
    """S_eps = OT_eps(mu, nu) - (OT_eps(mu, mu) + OT_eps(nu, nu)) / 2, debiased and not rooted.

    OT_eps is the least E|x - y|^2 + eps KL(pi | mu x nu) over couplings, as in `entropic_cost`.
    Tends to W_2^2 as eps -> 0 and to |mean difference|^2 as eps -> infinity; zero (to round-off) exactly when
    mu = nu. A sweep costs 2 n m exponentials.

    Parameters
    ----------
    mu, nu : Measure
        Without positions, of the same dimension.
    epsilon : float
        Greater than zero, in units of a squared distance.
    tolerance : float
        Allowed logarithm of a marginal's relative error.
    max_iterations : int
        Sweeps allowed for each of the three costs (at this epsilon; larger ones, on the way down, take up to 60
        each). Plans of up to 16 million entries are finished by Newton's method, which is then what is counted.

    Raises
    ------
    ValueError
        On bad input, and if epsilon is below 1e-8 times the squared diameter.
    NotConvergedError
        If the marginals are missed after ``max_iterations``; the message says by how much.
    """
    x, log_a, y, log_b, epsilon, shift = _prepared("sinkhorn_divergence", mu, nu, epsilon)
    limits = _limits(tolerance, max_iterations)
    selves = self_cost(x, log_a, *limits) + self_cost(y, log_b, *limits)
    return shift + epsilon * (cross_cost(x, log_a, y, log_b, *limits) - selves / 2)


def self_cost(x, log_a, tolerance, max_iterations):
    """OT_1 of a cloud with itself: one potential f = T(f), averaged with weight 2/3, which contracts by 1/3 a step."""
    f = np.zeros(len(x))
    for _ in range(max_iterations):
        change = soft_minimum(x, x, log_a + f) - f
        if np.abs(change).max() <= tolerance:
            # The dual value 2 <a, f> - (mass of the plan - 1), to second order in the change.
            return float(np.exp(log_a) @ (2 * f + change))
        f = f + 2 / 3 * change
    raise _missed(change, tolerance, max_iterations)


def cross_cost(x, log_a, y, log_b, tolerance, max_iterations):
    """OT_1 of two clouds: the dual value at a fixed point of Sinkhorn's map, reached from large epsilon downwards.

    With g = softmin(y, x, log a + f) the second marginal is exact, and the dual value <a, f> + <b, g> is second
    order in the error.
    """
    if len(x) > len(y):
        x, log_a, y, log_b = y, log_b, x, log_a
    f, change = descended(x, log_a, y, log_b, tolerance, max_iterations)
    if np.ptp(change) > tolerance:
        raise _missed(change, tolerance, max_iterations)
    g = soft_minimum(y, x, log_a + f)
    return float(np.exp(log_a) @ f + np.exp(log_b) @ g)


def _missed(change, tolerance, max_iterations):
    return NotConvergedError(
        f"Sinkhorn's iteration missed the marginals by a factor exp({np.ptp(change):.3g}) after max_iterations = "
        f"{max_iterations:,}; the tolerance is {tolerance:g}. "
        "Raise epsilon or max_iterations, or use wasserstein (epsilon = 0).",
        float(np.ptp(change)),
    )


def _prepared(caller, mu, nu, epsilon):
    """Clouds centred at their own means and divided by sqrt(epsilon), log weights, epsilon and |mean difference|^2.

    The squared distance splits into the squared shift of the means and the cost of the centred clouds, entropy
    included.
    """
    epsilon = number("epsilon", epsilon, above=0)
    (x, a, _), (y, b, _) = clouds(caller, mu, nu, Euclidean())
    origin = (a @ x + b @ y) / 2
    x, y = x - origin, y - origin
    mean_x, mean_y = a @ x, b @ y
    shift = float(((mean_x - mean_y) ** 2).sum())
    x, y = x - mean_x, y - mean_y
    size = 4 * max(float((z**2).sum(axis=1).max()) for z in (x, y))
    if not shift + size < np.inf or size > MAX_RATIO * epsilon:
        raise ValueError(
            f"epsilon must be at least {1 / MAX_RATIO:g} times the squared diameter (up to {size:g}); got {epsilon:g}. "
            "Raise epsilon, or use wasserstein for the limit epsilon = 0."
        )
    root = np.sqrt(epsilon)
    return x / root, np.log(a), y / root, np.log(b), epsilon, shift


def _limits(tolerance, max_iterations):
    return number("tolerance", tolerance, above=0), number("max_iterations", max_iterations, at_least=1, integer=True)
