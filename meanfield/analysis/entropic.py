"""Entropic transport in the log domain: the debiased Sinkhorn divergence and the cost it is made of."""

import numpy as np

from ..checks import number
from ..spaces import Euclidean
from ..summation.balancing import NotConvergedError
from .transport import clouds

#: Floats in one block of the kernel.
BLOCK = 1 << 17
#: Largest squared diameter over epsilon: beyond it, rounding alone exceeds the tolerance.
MAX_RATIO = 1e8
#: Steps remembered by Anderson's acceleration.
MEMORY = 6
#: Tolerance and sweeps at each larger epsilon on the way down.
WARM_UP = (0.1, 60)
#: Accelerated sweeps before Newton's method, and the largest plan (entries) for which it is tried.
PATIENCE, NEWTON_PAIRS = 30, 16_000_000
#: Relative shift of Newton's matrix; the longest step (potentials over epsilon), and how often it is halved.
RIDGE, REACH, HALVINGS = 1e-12, 100.0, 16


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
        Sweeps allowed for each of the three costs (at this epsilon; larger ones, on the way down, take up to 20
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


def soft_minimum(x, y, h):
    """-log sum_j exp(h_j - |x_i - y_j|^2), shape (n,), in row blocks of constant size."""
    from scipy.spatial.distance import cdist

    result = np.empty(len(x))
    rows = max(1, BLOCK // len(y))
    for start in range(0, len(x), rows):
        block = cdist(x[start : start + rows], y, "sqeuclidean")
        np.subtract(h, block, out=block)
        top = block.max(axis=1)
        block -= top[:, None]
        result[start : start + rows] = -top - np.log(np.exp(block, out=block).sum(axis=1))
    return result


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
    low, high = np.minimum(x.min(axis=0), y.min(axis=0)), np.maximum(x.max(axis=0), y.max(axis=0))
    epsilon = float(((high - low) ** 2).sum())
    f = np.zeros(len(x))
    while epsilon > 1:
        root, finer = np.sqrt(epsilon), max(1.0, epsilon / 4)
        f, _ = _potential(x / root, log_a, y / root, log_b, f, *WARM_UP)
        f, epsilon = f * (epsilon / finer), finer
    f, change = _potential(x, log_a, y, log_b, f, tolerance, max_iterations)
    if np.ptp(change) > tolerance:
        raise _missed(change, tolerance, max_iterations)
    g = soft_minimum(y, x, log_a + f)
    return float(np.exp(log_a) @ f + np.exp(log_b) @ g)


def _potential(x, log_a, y, log_b, f, tolerance, max_iterations):
    """The first potential and its last change: accelerated sweeps, then Newton's method where memory allows it."""

    def sweep(f):
        return soft_minimum(x, y, log_b + soft_minimum(y, x, log_a + f))

    newton = len(x) * len(y) <= NEWTON_PAIRS
    f, change = _anderson(sweep, f, tolerance, min(PATIENCE, max_iterations) if newton else max_iterations)
    if newton and np.ptp(change) > tolerance and max_iterations > PATIENCE:
        f, change = _newton(x, log_a, y, log_b, f, tolerance, max_iterations - PATIENCE)
    return f, change


def _newton(x, log_a, y, log_b, f, tolerance, max_iterations):
    """Newton's method for the dual value D(f) = <a, f> + <b, g(f)>, concave, with halved steps; else a plain sweep.

    Its gradient is a - r and its second derivative -(diag(r) - P diag(1/b) P^T), with P the plan and r its row
    sums. The constant mode, which changes nothing, is lifted out of the kernel.
    """
    from scipy.spatial.distance import cdist

    costs = cdist(x, y, "sqeuclidean")
    a, b = np.exp(log_a), np.exp(log_b)

    def measured(f):
        g = soft_minimum(y, x, log_a + f)
        return f, g, soft_minimum(x, y, log_b + g) - f, a @ f + b @ g

    here, used = measured(f), 1
    while np.ptp(here[2]) > tolerance and used < max_iterations:
        f, g, change, value = here
        plan = np.exp((log_a + f)[:, None] + (log_b + g) - costs)
        rows = plan.sum(axis=1)
        direction = _newton_direction(plan, rows, a) if rows.all() else change
        slope = direction @ (a - rows)
        # Parts of the plan that hardly exchange mass ask for huge steps: REACH is as far as one is followed.
        for length in min(1.0, REACH / np.abs(direction).max()) * 0.5 ** np.arange(HALVINGS):
            here, used = measured(f + length * direction), used + 1
            if here[3] > value + length * slope / 4 or np.ptp(here[2]) < (1 - length / 4) * np.ptp(change):
                break
        else:
            here, used = measured(f + change), used + 1
    return here[0], here[2]


def _newton_direction(plan, rows, a):
    """The ascent direction H^{-1} (a - r), by one Cholesky factorisation; overwrites the plan."""
    from scipy.linalg import cho_factor, cho_solve

    root = np.sqrt(rows)
    plan /= np.sqrt(plan.sum(axis=0))
    plan /= root[:, None]
    matrix = np.outer(root, root) - plan @ plan.T
    matrix[np.diag_indices_from(matrix)] += 1 + RIDGE
    return cho_solve(cho_factor(matrix, overwrite_a=True), (a - rows) / root) / root


def _anderson(sweep, f, tolerance, max_iterations):
    """Anderson's acceleration of f = sweep(f); a step that increases the miss is replaced by a plain sweep.

    The miss is the spread of sweep(f) - f, the logarithm of the first marginal's relative error; plain sweeps
    never increase it. Returns f and sweep(f) - f, of the last iterate or of the first one within the tolerance.
    """
    points, changes, bound = [], [], np.inf
    plain = f
    for _ in range(max_iterations):
        change = sweep(f) - f
        miss = np.ptp(change)
        if miss <= tolerance:
            break
        if miss > bound:
            f, points, changes, bound = plain, [], [], np.inf
            continue
        bound, plain = miss, f + change
        points, changes = [*points[-MEMORY:], f], [*changes[-MEMORY:], change]
        f = plain
        if len(points) > 1:
            steps, turns = np.diff(points, axis=0), np.diff(changes, axis=0)
            weights = np.linalg.lstsq(turns.T, change, rcond=1e-10)[0]
            f = plain - weights @ (steps + turns)
    return f, change


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
