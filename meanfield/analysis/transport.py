"""Optimal couplings of two weighted clouds: sorting on a line, assignment or network simplex elsewhere."""

import warnings
from dataclasses import dataclass

import numpy as np

from ..measures import Gaussian, Measure
from ..spaces import Euclidean, Positioned
from ..summation.balancing import NotConvergedError

#: Entries of the largest cost matrix that is made (0.8 GB, and about four times that inside the network simplex).
MAX_PAIRS = 100_000_000
#: Pivots allowed to the network simplex; 4,000 unrelated points take about 10^5.
MAX_PIVOTS = 100_000_000
#: Masses sum to one up to this round-off: a smaller piece of a coupling is noise, and its p-th root is not small.
MASS_NOISE = 4 * np.finfo(float).eps
#: Share of distinct nearest neighbours above which scipy's assignment beats POT's network simplex (measured).
NEAR_SHARE = 0.5
#: Up to this many tokens of equal weight the assignment is fast enough on any pair.
SMALL = 200
#: Covariances worse conditioned than this are not used to align two clouds.
ALIGNABLE = 1e6
#: Floats in one block of distances on a space other than R^d.
BLOCK = 1 << 18


@dataclass(frozen=True, eq=False)
class Coupling:
    """Which token goes where: mass ``masses[k]`` from token ``rows[k]`` of mu to token ``columns[k]`` of nu.

    Parameters
    ----------
    rows, columns : numpy.ndarray of int, shape (k,)
    masses : numpy.ndarray, shape (k,)
        Positive, with sum one.
    shape : tuple of int
        Numbers of tokens (n, m) of mu and nu.
    """

    rows: np.ndarray
    columns: np.ndarray
    masses: np.ndarray
    shape: tuple[int, int]

    @property
    def matrix(self):
        """The plan as a dense matrix, shape (n, m): its row sums are mu's weights, its column sums nu's."""
        plan = np.zeros(self.shape)
        np.add.at(plan, (self.rows, self.columns), self.masses)
        return plan


def clouds(caller, mu, nu, space, *, positioned=False):
    """The door of every distance between measures: (tokens, weights, token numbers) of both, without massless tokens.

    Raises
    ------
    ValueError
        If these are no measures of one dimension, have positions where ``caller`` takes none (or none where it
        needs them), or do not lie in the space.
    """
    for name, measure in (("mu", mu), ("nu", nu)):
        if not isinstance(measure, Measure):
            gaussian = isinstance(measure, Gaussian)
            way = "bures_wasserstein or gaussian_to_samples" if gaussian else "Measure(points, weights)"
            raise ValueError(f"{caller} needs two Measures; {name} is of type {type(measure).__name__}. Use {way}.")
        if measure.has_positions and not positioned:
            raise ValueError(
                f"{caller} does not know what to do with positions, and {name} has them. Use conditional_wasserstein, "
                f"or leave positions out: Measure({name}.tokens, {name}.weights)."
            )
        if positioned and not measure.has_positions:
            raise ValueError(
                f"{caller} needs positioned measures; {name} has no positions. "
                "Use Measure.positioned(positions, tokens, weights), or wasserstein for measures without positions."
            )
    if mu.dimension != nu.dimension:
        raise ValueError(f"mu and nu must have the same dimension; got {mu.dimension} and {nu.dimension}.")
    if isinstance(space, Positioned):
        raise ValueError(f"{caller} measures tokens without positions; got {space}. Pass its base space, {space.base}.")
    return tuple(_cloud(name, measure, space) for name, measure in (("mu", mu), ("nu", nu)))


def _cloud(name, measure, space):
    kept = np.flatnonzero(measure.weights)
    tokens = measure.tokens[kept]
    if not np.isfinite(tokens).all():
        raise ValueError(f"the tokens of {name} must be finite; got NaN or inf. Compare states before the blow-up.")
    space.check(tokens)
    return tokens, measure.weights[kept], kept


def power_mean(distances, masses, p):
    """(sum_k masses_k distances_k^p)^{1/p} along the last axis, safe from overflow and underflow of the powers."""
    top = distances.max(axis=-1, keepdims=True)
    ratio = np.divide(distances, top, out=np.zeros_like(distances), where=top > 0)
    return top[..., 0] * (ratio**p @ masses) ** (1 / p)


def common_scale(x, y):
    """x and y divided by one power of two (exact) so that the largest entry is about one, and that power's exponent."""
    exponent = int(np.frexp(max(np.abs(x).max(), np.abs(y).max()))[1])
    return np.ldexp(x, -exponent), np.ldexp(y, -exponent), exponent


def rescaled(value, exponent):
    """value * 2^exponent as a float.

    Raises
    ------
    ValueError
        If the result is too large for a float.
    """
    with np.errstate(over="ignore"):
        result = float(np.ldexp(value, exponent))
    if not np.isfinite(result):
        raise ValueError(
            f"the distance must fit a float; got {value:g} * 2^{exponent}, which overflows. Rescale the points first."
        )
    return result


def pair_distances(x, y, space):
    """Distances of row k of x to row k of y, shape (k,); on R^d differences are scaled before they are squared."""
    if not isinstance(space, Euclidean):
        return space.distance(x, y)
    difference = x - y
    top = np.abs(difference).max()
    return top * np.linalg.norm(difference / top, axis=-1) if top > 0 else np.zeros(len(x))


def quantile_coupling(a, b):
    """Rows, columns and masses of the monotone coupling of masses a (n,) and b (m,), both listed from left to right."""
    if len(a) == len(b) and np.array_equal(a, b):
        return np.arange(len(a)), np.arange(len(b)), a
    levels = np.concatenate([np.cumsum(w, dtype=np.longdouble)[:-1] for w in (a, b)])
    order = np.argsort(levels, kind="stable")  # a merge of two sorted runs, linear in their lengths
    masses = np.diff(levels[order], prepend=0, append=1).astype(float)
    from_a = np.concatenate([[False], order < len(a) - 1])
    rows = np.cumsum(from_a)
    keep = masses > MASS_NOISE
    return rows[keep], (np.arange(len(rows)) - rows)[keep], masses[keep]


def couple(x, a, y, b, p, space, *, max_pairs=MAX_PAIRS, max_pivots=MAX_PIVOTS):
    """An optimal coupling for the cost distance^p, by the fastest exact route.

    Parameters
    ----------
    x, y : array, shapes (n, d) and (m, d)
    a, b : array, shapes (n,) and (m,)
        Positive masses with sum one.
    p : float
        At least 1.
    space : Euclidean, Sphere or any object with ``distance(x, y)``
    max_pairs, max_pivots : int
        Limits of the cost matrix and of the network simplex.

    Returns
    -------
    rows, columns, masses : array, shape (k,), with k <= n + m - 1 (k = n for equal weights)

    Raises
    ------
    ValueError
        If n m exceeds ``max_pairs``, or if p-th powers of the distances under- or overflow so that no choice is
        possible.
    NotConvergedError
        If the network simplex meets ``max_pivots``.
    """
    n, m = len(x), len(y)
    if min(n, m) == 1:
        rows, columns = (part.ravel() for part in np.indices((n, m)))
        return rows, columns, a[rows] * b[columns]
    flat = isinstance(space, Euclidean)
    if flat and x.shape[1] == 1:
        order_x, order_y = np.argsort(x[:, 0], kind="stable"), np.argsort(y[:, 0], kind="stable")
        rows, columns, masses = quantile_coupling(a[order_x], b[order_y])
        return order_x[rows], order_y[columns], masses
    if n * m > max_pairs:
        raise ValueError(
            f"the cost matrix must have at most max_pairs = {max_pairs:,} entries; got {n:,} x {m:,} = {n * m:,}. "
            "Use sliced_wasserstein, draw fewer tokens, or raise max_pairs if memory allows."
        )
    if flat and p == 2:
        x, y = aligned(x, a, y, b)
    costs, top = _costs(x, y, p, space)
    equal = n == m and np.ptp(a) == 0 and np.ptp(b) == 0
    assign = equal and (n <= SMALL or _near(costs))
    rows, columns, masses = _assign(costs) if assign else _simplex(costs, a, b, max_pivots)
    moved = pair_distances(x[rows], y[columns], space).max()
    if moved > 0 and costs[rows, columns].max() < np.finfo(float).tiny:
        # The solver had nothing to choose by: every cost it could have used is zero in rounding.
        raise ValueError(
            f"distances to the power p = {p:g} must not underflow; the transported distances, at most {moved / top:g} "
            "times the largest one, do. Lower p, or split the clouds into their far parts."
        )
    return rows, columns, masses


def aligned(x, a, y, b):
    """Two clouds with the same optimal couplings for the squared distance as x and y, but closer to each other.

    The couplings that minimise E|x - y|^2 are those that maximise E<x, y>. Neither shifts nor the change (x, y)
    -> (B x, B^{-1} y), B symmetric, alter this; B = T^{1/2} with T the optimal map between the Gaussians of the
    same moments makes the covariances equal, so that affine images become near clouds and the solvers find them
    easy.
    """
    x, y = x - a @ x, y - b @ y
    values_x, basis = np.linalg.eigh((x.T * a) @ x)
    values_y = np.linalg.eigvalsh((y.T * b) @ y)
    if values_x[-1] >= ALIGNABLE * values_x[0] or values_y[-1] >= ALIGNABLE * values_y[0]:
        return x, y
    root = (basis * np.sqrt(values_x)) @ basis.T
    inverse_root = (basis / np.sqrt(values_x)) @ basis.T
    values, vectors = np.linalg.eigh(root @ ((y.T * b) @ y) @ root)
    map_values, map_vectors = np.linalg.eigh(inverse_root @ (vectors * np.sqrt(values)) @ vectors.T @ inverse_root)
    halves = np.sqrt(map_values)
    return (x @ map_vectors) * halves, (y @ map_vectors) / halves


def _costs(x, y, p, space):
    """(distance / largest distance)^p, shape (n, m), and the largest distance."""
    if isinstance(space, Euclidean):
        from scipy.spatial.distance import cdist

        costs = cdist(x, y)
    else:
        costs = np.empty((len(x), len(y)))
        rows = max(1, BLOCK // y.size)
        for start in range(0, len(x), rows):
            costs[start : start + rows] = space.distance(x[start : start + rows, None], y[None])
    top = costs.max()
    if not np.isfinite(top):
        raise ValueError("distances between the points must be finite; the space returned NaN or infinity. Check them.")
    if top > 0:
        costs /= top
    return np.power(costs, p, out=costs), top


def _near(costs):
    """Whether most tokens have a nearest neighbour of their own, in both directions."""
    shares = (np.unique(costs.argmin(axis=axis)).size / costs.shape[0] for axis in (0, 1))
    return all(share >= NEAR_SHARE for share in shares)


def _assign(costs):
    """The optimal permutation, by shortest augmenting paths: fast on near clouds, slow on far ones."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    return rows, columns, np.full(len(rows), 1 / len(rows))


def _simplex(costs, a, b, max_pivots):
    """The optimal plan by POT's network simplex, as rows, columns and masses."""
    import ot

    with warnings.catch_warnings():
        # POT only warns when it gives up; its result code says the same, and is turned into an error below.
        warnings.simplefilter("ignore")
        plan, log = ot.emd(a, b, costs, numItermax=max_pivots, log=True, center_dual=False)
    if log["warning"] is not None:
        # An optimal plan has no pair cheaper than its prices u_i + v_j.
        miss = float((log["u"][:, None] + log["v"] - costs).max())
        raise NotConvergedError(
            f"the network simplex did not reach an optimal plan within max_pivots = {max_pivots:,} "
            f"on {len(a):,} x {len(b):,} tokens (POT: {log['warning']}); some pair is cheaper than its prices by "
            f"{miss:.3g} of the largest cost. Raise max_pivots or use fewer tokens.",
            miss,
        )
    rows, columns = np.nonzero(plan > MASS_NOISE)
    return rows, columns, plan[rows, columns]
