"""Potentials of a sharp entropic problem, reached from a blurred one: epsilon falls, then Newton's method finishes.

In units in which epsilon ends at 1, the plan is exp(log a + f + log b + g - |x - y|^2).
"""

import numpy as np

#: Floats in one block of the kernel.
BLOCK = 1 << 17
#: Steps remembered by Anderson's acceleration.
MEMORY = 6
#: Tolerance and sweeps at each larger epsilon on the way down.
WARM_UP = (0.1, 60)
#: Accelerated sweeps before Newton's method, and the largest plan (entries) for which it is tried.
PATIENCE, NEWTON_PAIRS = 30, 16_000_000
#: Relative shift of Newton's matrix; the longest step (potentials over epsilon), and how often it is halved.
RIDGE, REACH, HALVINGS = 1e-12, 100.0, 16


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


def descended(x, log_a, y, log_b, tolerance, max_iterations):
    """The first potential f at a fixed point of Sinkhorn's map, reached from large epsilon downwards.

    Parameters
    ----------
    x, y : ndarray, shapes (n, k) and (m, k)
    log_a, log_b : ndarray, shapes (n,) and (m,)
        Logarithms of the marginals, finite.
    tolerance : float
        Allowed spread of the change, which is the logarithm of the first marginal's relative error.
    max_iterations : int
        Sweeps allowed at epsilon = 1; the way down takes up to 60 at each larger epsilon.

    Returns
    -------
    f : ndarray, shape (n,)
    change : ndarray, shape (n,)
        What one more sweep adds to f; its spread exceeds the tolerance where the limit was met first.
    """
    low, high = np.minimum(x.min(axis=0), y.min(axis=0)), np.maximum(x.max(axis=0), y.max(axis=0))
    epsilon = float(((high - low) ** 2).sum())
    f = np.zeros(len(x))
    while epsilon > 1:
        root, finer = np.sqrt(epsilon), max(1.0, epsilon / 4)
        f, _ = potential(x / root, log_a, y / root, log_b, f, *WARM_UP)
        f, epsilon = f * (epsilon / finer), finer
    return potential(x, log_a, y, log_b, f, tolerance, max_iterations)


def potential(x, log_a, y, log_b, f, tolerance, max_iterations):
    """The first potential from a guess, and its last change: accelerated sweeps, then Newton's method where it fits.

    Parameters and results as for `descended`, with the guess f, shape (n,).
    """

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
