"""Near-linear kernel sums for keys of dimension 1, 2 or 3, to a stated relative error.

exp(<q, k>) is a product over coordinates. On a pair of boxes where half-width times the other side's reach is at most
tau it is, per coordinate, a polynomial of degree p - 1 in q and in k, to a relative error that depends on (p, tau)
alone: a wider cloud costs more boxes, not accuracy. So the sum is moments of the values per box of keys, one small
matrix of exponentials per coordinate applied dimension by dimension, and polynomials evaluated at the queries:
O((m + n) p^k) plus a term that depends on the spread and not on m and n.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

#: (accuracy, p, tau): relative error of the interpolation, measured over the whole range; several trades per accuracy.
TRADES = (
    (1e-6, 8, 1.0),
    (1e-6, 11, 2.0),
    (1e-10, 12, 1.0),
    (1e-10, 15, 2.0),
    (1e-10, 21, 4.0),
    (1e-13, 16, 1.0),
    (1e-13, 19, 2.0),
)
#: Largest dimension of the keys.
LARGEST_DIMENSION = 3
#: Largest sum over coordinates of max|q| max|k|, and range of the key bias: beyond it products could leave float64.
LARGEST_REACH = 300.0
#: Largest number of entries of the grid of moments (values included).
LARGEST_GRID = 20_000_000


@dataclass(frozen=True)
class Plan:
    """How a separable sum would be done, and what it costs.

    Attributes
    ----------
    nodes : int
        Chebyshev nodes p per box and coordinate.
    query_boxes, key_boxes : tuple of int
        Boxes per coordinate.
    accuracy : float
        Relative error of the sum that (p, tau) guarantees.
    cost : float
        Estimated nanoseconds, from constants that were measured once: the choice must not depend on the clock.
    """

    nodes: int
    query_boxes: tuple
    key_boxes: tuple
    accuracy: float
    cost: float


def plan_separable(queries, keys, key_bias, columns, accuracy):
    """The cheapest plan that meets the accuracy, or None where there is none.

    Parameters
    ----------
    queries, keys : ndarray, shapes (m, k) and (n, k)
        Both measured from a centre of their own.
    key_bias : ndarray, shape (n,)
        Finite.
    columns : int
        Columns of values, normaliser included.
    accuracy : float
        Largest relative error of a sum.

    Returns
    -------
    Plan or None
    """
    k = keys.shape[1]
    if k > LARGEST_DIMENSION:
        return None
    reach_q, reach_k = np.abs(queries).max(axis=0), np.abs(keys).max(axis=0)
    reach = float(reach_q @ reach_k)
    if not (reach <= LARGEST_REACH and np.ptp(key_bias) <= LARGEST_REACH):
        return None
    plans = []
    for met, p, tau in TRADES:
        if met > accuracy:
            continue
        # A box of half-width h fits tau when h * max|other| <= tau.
        boxes = tuple(max(int(np.ceil(a * b / tau)), 1) for a, b in zip(reach_q, reach_k, strict=True))
        if np.prod([float(p * count) for count in boxes]) * columns > LARGEST_GRID:
            continue
        plans.append(Plan(p, boxes, boxes, met, _cost(len(queries), len(keys), p, boxes, columns)))
    return min(plans, key=lambda plan: plan.cost, default=None)


def _cost(m, n, p, boxes, columns):
    """Nanoseconds: polynomials and products per point, exponentials of the nodes, a matrix a coordinate on the grid."""
    sides = [float(p * b) for b in boxes]
    grid = np.prod(sides)
    points = (m + n) * (20.0 * len(boxes) * p + 0.6 * p ** len(boxes) * columns)
    return points + 15.0 * sum(side**2 for side in sides) + 0.17 * grid * columns * sum(sides) + 1e6


def separable_sums(queries, keys, columns, key_bias, plan):
    """Sums ``sum_j exp(<q_i, k_j> + b_j - shift) columns_j`` by a plan.

    Parameters
    ----------
    queries, keys : ndarray, shapes (m, k) and (n, k)
        As given to `plan_separable`.
    columns : ndarray, shape (n, c)
    key_bias : ndarray, shape (n,)
    plan : Plan

    Returns
    -------
    sums : ndarray, shape (m, c)
    shift : float
        The largest bias, taken out so that nothing overflows.
    """
    shift = float(key_bias.max())
    weighted = columns * np.exp(key_bias - shift)[:, None]
    p, c = plan.nodes, columns.shape[1]
    key_grid = _BoxGrid(keys, plan.key_boxes, p)
    query_grid = _BoxGrid(queries, plan.query_boxes, p)
    grid = key_grid.moments(weighted)
    for axis in range(keys.shape[1]):
        exponentials = np.exp(np.outer(query_grid.nodes[axis], key_grid.nodes[axis]))
        grid = np.moveaxis(np.tensordot(exponentials, grid, (1, axis)), 0, axis)
    return query_grid.evaluated(np.ascontiguousarray(grid), c), shift


class _BoxGrid:
    """Points sorted into a grid of boxes, with Chebyshev nodes and Lagrange polynomials on each."""

    def __init__(self, points, boxes, p):
        self.p, self.boxes = p, boxes
        reach = np.abs(points).max(axis=0)
        reach[reach == 0] = 1.0
        counts = np.array(boxes)
        half = reach / counts
        indices = np.minimum(((points + reach) / (2 * half)).astype(int), counts - 1)
        indices = np.maximum(indices, 0)
        flat = np.ravel_multi_index(indices.T, boxes)
        self.order = np.argsort(flat, kind="stable")
        self.borders = np.searchsorted(flat[self.order], np.arange(np.prod(boxes) + 1))
        angles = (2 * np.arange(p) + 1) * np.pi / (2 * p)
        unit = np.cos(angles)
        centres = [(2 * np.arange(count) + 1) * h - r for count, h, r in zip(boxes, half, reach, strict=True)]
        self.nodes = [np.add.outer(centre, h * unit).ravel() for centre, h in zip(centres, half, strict=True)]
        sorted_points = points[self.order]
        self.basis = []
        for axis in range(points.shape[1]):
            local = (sorted_points[:, axis] - centres[axis][indices[self.order, axis]]) / half[axis]
            self.basis.append(_lagrange(local, unit))

    def _boxes(self):
        """(index of the box, rows of its points) for every box that has points."""
        for flat, index in enumerate(product(*map(range, self.boxes))):
            start, stop = self.borders[flat], self.borders[flat + 1]
            if start < stop:
                yield tuple(slice(i * self.p, (i + 1) * self.p) for i in index), slice(start, stop)

    def moments(self, columns):
        """Values moved to the nodes by the transposed interpolation, shape (boxes_1 p, ..., boxes_k p, c)."""
        columns, p, k = columns[self.order], self.p, len(self.boxes)
        c = columns.shape[1]
        grid = np.zeros((*(count * p for count in self.boxes), c))
        for index, rows in self._boxes():
            last = _outer(self.basis[1:], rows, columns[rows])
            grid[index] = (self.basis[0][rows].T @ last).reshape(*[p] * k, c)
        return grid

    def evaluated(self, grid, c):
        """The interpolant of node values at the points, shape (m, c)."""
        result = np.empty((len(self.order), c))
        for index, rows in self._boxes():
            inner = grid[index].reshape(self.p, -1)
            value = self.basis[0][rows] @ inner
            for basis in self.basis[1:]:
                value = np.matmul(basis[rows][:, None, :], value.reshape(len(value), self.p, -1))[:, 0]
            result[rows] = value.reshape(-1, c)
        unsorted = np.empty_like(result)
        unsorted[self.order] = result
        return unsorted


def _outer(bases, rows, columns):
    """Products of the remaining bases with the columns, shape (points, p^(k-1) c)."""
    value = columns
    for basis in reversed(bases):
        value = (basis[rows][:, :, None] * value[:, None, :]).reshape(len(value), -1)
    return value


def _lagrange(x, nodes):
    """Lagrange polynomials of the Chebyshev nodes at x in [-1, 1], shape (len(x), p), by the cosine sum."""
    p = len(nodes)
    degrees = np.arange(p)
    angles = (2 * np.arange(p) + 1) * np.pi / (2 * p)
    to_values = np.cos(np.outer(degrees, angles)) * (2.0 / p)
    to_values[0] /= 2
    polynomials = np.empty((len(x), p))
    polynomials[:, 0] = 1
    if p > 1:
        polynomials[:, 1] = x
    for degree in range(2, p):
        np.multiply(2 * x, polynomials[:, degree - 1], out=polynomials[:, degree])
        polynomials[:, degree] -= polynomials[:, degree - 2]
    return polynomials @ to_values
