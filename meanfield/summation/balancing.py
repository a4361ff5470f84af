"""Balancing a kernel: the Sinkhorn potentials that give both marginals, in the log domain, product by product.

Each product is one kernel sum without values. A symmetric kernel has one potential and takes averaged steps
u <- u - (2/3) r with r = log(u-scaled marginal), which contract by 1/3 for every positive semi-definite kernel whatever
the radius; any other kernel alternates rows and columns. Anderson mixing speeds both up. Where that crawls (large
logits of another kind, close to an assignment problem) Newton's method takes over, from a blurred kernel down if need
be, if a plan fits into memory.
"""

from dataclasses import dataclass

import numpy as np

from .annealing import NEWTON_PAIRS, descended, potential, soft_minimum
from .select import softmax_mean

#: Contracts best for a symmetric positive semi-definite kernel: errors shrink by |1 - theta (1 + lambda)|.
AVERAGING = 2.0 / 3.0
#: Products after which Newton's method takes over, for few tokens and per token: a step of it costs some n / 60.
PATIENCE, PATIENCE_A_TOKEN = 60, 0.1
#: Iterations that it may take from where the products ended, before annealing begins.
POLISH = 50


class NotConvergedError(ArithmeticError):
    """An inner iteration met its limit before its tolerance; the message says by how much it missed.

    Attributes
    ----------
    miss : float
        For balancing, max |marginal / weight - 1| at the last iterate.
    """

    def __init__(self, message, miss):
        super().__init__(message)
        self.miss = miss


@dataclass(frozen=True, eq=False)
class Balance:
    """Potential g of the keys (n,), the marginal miss max |marginal / weight - 1|, and the products used."""

    potential: np.ndarray
    miss: float
    products: int


def balance(queries, keys, log_weights, *, symmetric, tolerance, max_products, start=None, summation="auto"):
    """The key potential g for which ``softmax_j(<q_i, k_j> + log w_j + g_j)`` has both marginals w.

    Parameters
    ----------
    queries, keys : ndarray, shape (n, k)
        Of the same tokens; measured from one token's query and key, so that logits stay small.
    log_weights : ndarray, shape (n,)
        Finite: drop tokens without mass first.
    symmetric : bool
        Whether <q_i, k_j> = <q_j, k_i>.
    tolerance : float
        Largest accepted miss; the round-off of the logits, 8 eps k max|q| max|k|, is accepted where it is larger.
    max_products : int
        Limit on kernel products (a plain sweep is two), and on sweeps and Newton's steps after them.
    start : ndarray, shape (n,), optional
        A potential to start from, for instance that of an earlier time.
    summation : {"auto", "exact", "separable"}
        How products are done; separable ones to a tenth of the tolerance.

    Returns
    -------
    Balance

    Raises
    ------
    NotConvergedError
        If the limit is met first; names the miss.
    """
    largest = [float(np.abs(side).max()) for side in (queries, keys)]
    reach = keys.shape[1] * largest[0] * largest[1]
    if not np.isfinite(reach):
        # Tokens that left the range of float64 have no potential; a run ends on the velocity that is not finite.
        return Balance(np.full(len(keys), np.nan), np.nan, 0)
    tolerance = max(tolerance, 8 * np.finfo(float).eps * reach)
    log_weights = log_weights - np.logaddexp.reduce(log_weights)
    patience = max(PATIENCE, int(PATIENCE_A_TOKEN * len(keys)))
    if len(keys) ** 2 > NEWTON_PAIRS or patience > max_products:
        patience = max_products

    def log_sums(left, right, bias):
        return softmax_mean(left, right, None, bias, summation=summation, accuracy=tolerance / 10)[1]

    iterate = _symmetric if symmetric else _alternating
    point, size, products = iterate(queries, keys, log_weights, log_sums, start, tolerance, patience)
    # No potential varies by more than its logits do: what has run away further has lost the digits to be judged by.
    sane = np.ptp(point) <= 2 * reach + 1
    if patience < max_products and not (sane and size <= tolerance):
        guess = point - point.mean() if sane else np.zeros(len(point))
        point, size = _sharpened(queries, keys, log_weights, guess, largest, tolerance, (max_products - products) // 2)
        products, sane = max_products, True
    with np.errstate(over="ignore"):
        miss = float(np.expm1(size)) if sane else np.inf
    if not miss <= tolerance:
        raise NotConvergedError(
            f"Sinkhorn balancing missed its marginals by {miss:.3g} (max |marginal/weight - 1|) after {products} "
            f"kernel products; the tolerance is {tolerance:g}. Raise max_products or the tolerance, or lower the scale "
            "of the head.",
            miss,
        )
    return Balance(point, miss, products)


def _symmetric(queries, keys, log_weights, log_sums, start, tolerance, max_products):
    """Averaged steps of the one potential; the potential, the logarithm of its miss, and the products spent."""

    def residual(u):
        return -AVERAGING * (u + log_sums(queries, keys, log_weights + u))

    # The fixed point of a kernel that is nothing but its diagonal; right at once for tokens far apart.
    cold = -0.5 * np.einsum("ij,ij->i", queries, keys)
    # Once the rows are made exact, the columns are off by up to twice what both were off by.
    factor = AVERAGING / 2
    first = cold if start is None else start
    point, size, products = _anderson(residual, first, 5, 1, factor * tolerance, max_products)
    return point, size / factor, products


def _alternating(queries, keys, log_weights, log_sums, start, tolerance, max_products):
    """Rows and columns in turn; the key potential, the logarithm of its miss, and the products spent."""

    def residual(g):
        step = -log_sums(keys, queries, log_weights - log_sums(queries, keys, log_weights + g)) - g
        return step - step.mean()

    first = np.zeros(len(keys)) if start is None else start
    return _anderson(residual, first, 8, 2, tolerance, max_products)


def _sharpened(queries, keys, log_weights, guess, largest, tolerance, max_iterations):
    """The key potential by Newton's method from a guess, else by annealing, and the logarithm of its miss.

    Both sides are centred and scaled to one size, so that <q, k> = |x|^2 + |y|^2 - |x - y|^2 up to terms in q or k
    alone, which belong to the potentials.
    """
    stretch, middle = np.sqrt(largest[1] / largest[0]), queries.mean(axis=0)
    x = (queries - middle) * (stretch / np.sqrt(2))
    y = (keys - keys.mean(axis=0)) / (stretch * np.sqrt(2))
    moved = np.einsum("ij,ij->i", y, y) + keys @ middle
    f = soft_minimum(x, y, log_weights + guess + moved)
    f, change = potential(x, log_weights, y, log_weights, f, tolerance, min(POLISH, max_iterations))
    if not np.ptp(change) <= tolerance:
        f, change = descended(x, log_weights, y, log_weights, tolerance, max_iterations)
    return soft_minimum(y, x, log_weights + f) - moved, float(np.ptp(change))


def _anderson(residual, point, memory, cost, tolerance, max_products):
    """Anderson mixing (type II) of x <- x + residual(x), with a restart from the best point when it runs away.

    Stops when max |residual| <= tolerance. Returns the last point, its max |residual|, and the products spent.
    """
    points, residuals = [], []
    best_point, best_step, best_size = point, None, np.inf
    products = 0
    while True:
        step = residual(point)
        products += cost
        size = float(np.abs(step).max())
        if size <= tolerance or products + cost > max_products or not np.isfinite(size):
            return point, size, products
        if size < best_size:
            best_point, best_step, best_size = point, step, size
        elif size > 10 * best_size and len(points) > 1:
            points, residuals = [], []
            point, step = best_point, best_step
            best_size = np.inf
        points, residuals = [*points[-memory:], point], [*residuals[-memory:], step]
        point = _mixed(points, residuals)


def _mixed(points, residuals):
    """The next Anderson point: least-squares combination of the residuals' differences."""
    if len(points) == 1:
        return points[0] + residuals[0]
    dx, dr = np.diff(points, axis=0).T, np.diff(residuals, axis=0).T
    mixing = np.linalg.lstsq(dr, residuals[-1], rcond=1e-12)[0]
    return points[-1] + residuals[-1] - (dx + dr) @ mixing
