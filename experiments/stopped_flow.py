"""The exact covariance flow of many Gaussians, accurately integrated and stopped by the rules of the published scheme.

S' = B(S) S + S B(S)^T, with B from the package's fields, by a Rosenbrock method of order 4 with a step of its own for
each run: with random V many runs creep along a slow manifold, where explicit methods take tens of thousands of steps.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import meanfield as mf
from meanfield.gaussian.batched import narrowed
from meanfield.velocity import SumField, affine_on_gaussian

from .published import CONVERGED, DIVERGED, EXHAUSTED

#: Error of one step, relative to the largest entry of the covariance.
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Law:
    """What fields ask of a centred Gaussian, its square root only when they do: covariances (n, d, d)."""

    covariance: np.ndarray

    @property
    def dimension(self):
        """d."""
        return self.covariance.shape[-1]

    @property
    def mean(self):
        """Zeros, shape (n, d)."""
        return np.zeros(self.covariance.shape[:-1])

    @cached_property
    def root(self):
        """L with L L^T = S."""
        values, vectors = np.linalg.eigh(self.covariance)
        return vectors * np.sqrt(np.maximum(values, 0))[:, None, :]  # a stage may end a rounding below zero


def field_of(variant, query, key, value, heads=1):
    """The package's field for the published scales.

    Parameters
    ----------
    variant : str
    query, key : ndarray, shape ([n,] r, d)
    value : ndarray, shape ([n,] d, d)
    heads : int
        For "multihead": how many heads the rows are shared out to.
    """
    d = value.shape[-1]
    if variant == "sinkhorn":
        return mf.SinkhornAttention(mf.Head(query, key, value))
    if variant == "multihead":
        width, parts = d // heads, []
        for first in range(0, query.shape[-2], width):
            rows = slice(first, first + width)
            own = np.zeros(value.shape)  # C_h = W_h^T V_h with W = I
            own[..., rows, :] = value[..., rows, :]
            parts.append(mf.SoftmaxAttention(mf.Head(query[..., rows, :], key[..., rows, :], own, scale=width**-0.5)))
        return mf.MultiHeadAttention(tuple(parts))
    # sqrt(d) goes into Q, so that A = K^T Q / sqrt(d) and G = K^T K.
    attention = {"softmax": mf.SoftmaxAttention, "l2": mf.L2Attention}[variant]
    return attention(mf.Head(query / np.sqrt(d), key, value))


def drift(field, S):
    """B, shape (n, d, d); for L2 without the square root of S, smooth where a stage is a rounding outside the cone."""
    if isinstance(field, mf.L2Attention):
        head = field.head
        return 2 * head.value @ np.linalg.solve(np.eye(S.shape[-1]) + 2 * S @ head.G, S @ head.A)
    return affine_on_gaussian(field, 0.0, Law(S)).matrix


def covariance_rate(field, S, B=None):
    """dS/dt = B S + S B^T, shape (n, d, d)."""
    half = (drift(field, S) if B is None else B) @ S
    return half + np.swapaxes(half, -1, -2)


def response(field, S):
    """Matrices P, N (n, d, d) for which the derivative of B along D is P D N S, a pair a head; None where not known."""
    if isinstance(field, mf.MultiHeadAttention):
        return [pair for part in field.fields for pair in response(part, S)]
    if isinstance(field, mf.SoftmaxAttention):
        return [(field.head.value, field.head.A)]
    if isinstance(field, mf.L2Attention):
        inner = np.linalg.inv(np.eye(S.shape[-1]) + 2 * field.head.G @ S)
        return [(2 * field.head.value @ np.swapaxes(inner, -1, -2), inner @ field.head.A)]
    return None


def jacobian(field, S, B, triangle):
    """Derivative of the lower triangle of dS/dt by the lower triangle of S, shape (n, m, m), given B at S."""
    n, d, _ = S.shape
    pairs = response(field, S)
    if pairs is None:
        return differences(field, S, triangle)
    by_entry = np.einsum("nik,jl->nijkl", B, np.eye(d))
    for P, N in pairs:
        by_entry += P.reshape(-1, d, 1, d, 1) * np.swapaxes(N @ S, -1, -2).reshape(n, 1, d, 1, d)
    by_entry = (by_entry + np.swapaxes(by_entry, 1, 2))[:, *triangle]
    i, j = triangle
    return by_entry[:, :, i, j] + np.where(i == j, 0.0, by_entry[:, :, j, i])


def differences(field, S, triangle):
    """The same by central differences, for a field whose derivative is not written down."""
    columns, size = [], 1e-6 * np.abs(S).max(axis=(1, 2))[:, None, None]
    for i, j in zip(*triangle, strict=True):
        bump = np.zeros(S.shape[1:])
        bump[i, j] = bump[j, i] = 1
        change = covariance_rate(field, S + size * bump) - covariance_rate(field, S - size * bump)
        columns.append((change / (2 * size))[:, *triangle])
    return np.stack(columns, axis=-1)


def norm(matrices):
    """Frobenius norms of matrices (..., d, d)."""
    return np.sqrt(np.einsum("...ij,...ij->...", matrices, matrices))


@dataclass(frozen=True, eq=False)
class StoppedRuns:
    """Where n runs of the flow were stopped.

    Parameters
    ----------
    final : ndarray, shape (n, d, d)
        The covariance there.
    status : ndarray of int, shape (n,)
        CONVERGED (|dS/dt|_F fell to ``low``), DIVERGED (the trace rose to ``high``) or EXHAUSTED (at the end).
    times : ndarray, shape (n,)
        When.
    """

    final: np.ndarray
    status: np.ndarray
    times: np.ndarray


def stopped_flow(field, covariances, *, low, high, end, start=0.0, tolerance=TOLERANCE, watch=None):
    """Integrate S' = B S + S B^T until |S'|_F = low, tr S = high or the end, whichever comes first.

    A rule met inside a step is located on the cubic that fits both ends of the step.

    Parameters
    ----------
    field : object
        With one head for all, or one for each.
    covariances : ndarray, shape (n, d, d)
    low, high : float
    end, start : float
        The times run from ``start`` to ``end``.
    tolerance : float
        Error of one step, relative to the largest entry of S.
    watch : callable, optional
        ``watch(ids, S)`` is shown the states (m, d, d) of all runs that go on, whenever some have moved.

    Returns
    -------
    StoppedRuns

    Raises
    ------
    ArithmeticError
        If a step falls to round-off, as it does at a pole before the trace has come to ``high``.
    """
    n = len(covariances)
    final, status, times = covariances.copy(), np.full(n, EXHAUSTED), np.full(n, float(end))
    ids, S, t = np.arange(n), covariances.copy(), np.full(n, float(start))
    B = drift(field, S)
    F = covariance_rate(field, S, B)
    step = np.minimum(0.01 * norm(S) / np.maximum(norm(F), np.finfo(float).tiny), end - start)
    gone = norm(F) < low
    status[gone], times[gone] = CONVERGED, start
    while True:
        if gone.any():
            keep = np.flatnonzero(~gone)
            field = narrowed(field, keep)
            ids, S, B, F, t, step = (array[keep] for array in (ids, S, B, F, t, step))
        if not len(ids):
            return StoppedRuns(final, status, times)
        if watch is not None:
            watch(ids, S)
        step = np.minimum(step, end - t)
        moved, error = rosenbrock(field, S, B, step)
        drift_there = drift(field, moved)
        slope = covariance_rate(field, moved, drift_there)
        size = tolerance * np.maximum(np.abs(S), np.abs(moved)).max(axis=(1, 2))
        miss = np.abs(error).max(axis=(1, 2)) / size
        good = np.isfinite(slope).all(axis=(1, 2)) & (miss <= 1)
        met = good & ((norm(slope) < low) | (np.trace(moved, axis1=1, axis2=2) > high))
        rows = np.flatnonzero(met)
        if len(rows):
            own = narrowed(field, rows)
            code, when, where = crossing(own, (S[rows], F[rows]), (moved[rows], slope[rows]), step[rows], low, high)
            status[ids[rows]], times[ids[rows]], final[ids[rows]] = code, t[rows] + when, where
        t = np.where(good, t + step, t)
        S, B, F = (np.where(good[:, None, None], *pair) for pair in ((moved, S), (drift_there, B), (slope, F)))
        ended = good & ~met & (t >= end * (1 - 1e-14))
        final[ids[ended]] = S[ended]
        factor = np.clip(0.9 * np.where(miss > 0, miss, 1e-12) ** -0.25, 0.2, 4.0)
        step = step * np.where(np.isfinite(factor), factor, 0.2)
        if (step < 1e-14 * t).any():
            raise ArithmeticError(f"a step fell to round-off at t = {t[step < 1e-14 * t][0]:g}; lower high or end.")
        gone = met | ended


def rosenbrock(field, S, B, step):
    """One step of the method of order 4 with Shampine's coefficients: the new S and an estimate of its error."""
    triangle = np.tril_indices(S.shape[-1])
    inverse = np.linalg.inv(np.eye(len(triangle[0])) * (2 / step)[:, None, None] - jacobian(field, S, B, triangle))

    def whole(g):
        result = np.empty_like(S)
        result[:, *triangle] = g
        result[:, triangle[1], triangle[0]] = g
        return result

    def solved(slope, *earlier):
        right = slope[:, *triangle] + sum(c * g for c, g in earlier) / step[:, None]
        return np.einsum("nij,nj->ni", inverse, right)

    g1 = solved(covariance_rate(field, S, B))
    g2 = solved(covariance_rate(field, S + whole(2 * g1)), (-8, g1))
    slope = covariance_rate(field, S + whole(48 / 25 * g1 + 6 / 25 * g2))
    g3 = solved(slope, (372 / 25, g1), (12 / 5, g2))
    g4 = solved(slope, (-112 / 125, g1), (-54 / 125, g2), (-2 / 5, g3))
    moved = S + whole(19 / 9 * g1 + g2 / 2 + 25 / 108 * g3 + 125 / 108 * g4)
    return moved, whole(17 / 54 * g1 + 7 / 36 * g2 + 125 / 108 * g4)


def crossing(field, before, after, step, low, high):
    """Bisection for the first rule met inside a step, on the cubic that fits both ends: (code, time, covariance)."""
    (S0, F0), (S1, F1) = before, after

    def at(x):
        x, h = x[:, None, None], step[:, None, None]
        inner = h * x * (1 - x) * (F0 * (1 - x) - F1 * x)
        return S0 * (1 + 2 * x) * (1 - x) ** 2 + S1 * x**2 * (3 - 2 * x) + inner

    left, right = np.zeros(len(S0)), np.ones(len(S0))
    for _ in range(20):
        middle = (left + right) / 2
        S = at(middle)
        met = (norm(covariance_rate(field, S)) < low) | (np.trace(S, axis1=1, axis2=2) > high)
        left, right = np.where(met, left, middle), np.where(met, middle, right)
    S = at(right)
    return np.where(norm(covariance_rate(field, S)) < low, CONVERGED, DIVERGED), right * step, S


def hurried(field, factors):
    """The field for n runs of which run i is faster by factors[i]: its V is larger by it."""
    if isinstance(field, SumField):
        return replace(field, fields=tuple(hurried(part, factors) for part in field.fields))
    head, n = field.head, len(factors)
    query, key = (np.broadcast_to(m, (n, *m.shape)) for m in (head.query, head.key))
    return replace(field, head=mf.Head(query, key, factors[:, None, None] * head.value, scale=head.scale))
