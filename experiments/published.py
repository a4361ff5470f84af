"""The scheme of the authors of [CACP25], re-implemented for many starts at once: projected Euler on the covariance.

S <- S + h (right-hand side), then eigenvalues below zero are set to 1e-14. A run converges when the Frobenius norm of
the right-hand side is below ``low``, diverges when the trace is above ``high``; its result is the state before the last
step. Scales are theirs: A = K^T Q / sqrt(d) for softmax and L2, whose G = K^T K is not scaled; for heads made of rows
A_h = K_h^T Q_h / sqrt(d / H); nothing for Sinkhorn. Arrays of matrices have instances on their last axis: (d, d, n).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

#: How a run ends: with a small right-hand side, with a large trace, or after the last iteration.
CONVERGED, DIVERGED, EXHAUSTED = 0, 1, 2

#: What an eigenvalue below zero is set to.
FLOOR = 1e-14

#: States that are shown to a watch one by one.
EVERY_STEP = 200

#: Matrices so few that finding their eigenvalues costs no more than finding out whether that is needed.
FEW = 16


def product(a, b):
    """Products of matrices (p, q, n) and (q, r, n)."""
    return np.einsum("ijn,jkn->ikn", a, b)


def transposed(a):
    """Transposes of matrices (p, q, n)."""
    return a.swapaxes(0, 1)


def with_transpose(a):
    """a + a^T."""
    return a + transposed(a)


def softmax_rate(S, Q, K, V):
    """V S A S + transpose, A = K^T Q / sqrt(d)."""
    side = product(V, product(S, transposed(K)))
    return with_transpose(product(side, product(Q, S) / np.sqrt(len(S))))


def l2_rate(S, Q, K, V):
    """2 V S (I + 2 K^T K S)^{-1} A S + transpose, A = K^T Q / sqrt(d), K^T K as it is."""
    side = product(S, transposed(K))
    # S (I + 2 K^T K S)^{-1} K^T = S K^T (I + 2 K S K^T)^{-1}: an inverse as small as the head is wide.
    gram = 2 * product(K, side)
    add_identity(gram)
    middle = product(small_inverse(gram), product(Q, S) * (2 / np.sqrt(len(S))))
    return with_transpose(product(product(V, side), middle))


def multihead_rate(S, Q, K, V, heads):
    """sum_h C_h S A_h S + transpose: rows of Q, K and V shared out to the heads, C_h = W_h^T V_h with W = I.

    A head whose rows are missing (Q of one row, two heads) adds nothing, as in the authors' code.
    """
    width = len(S) // heads
    total = np.zeros_like(S)
    for first in range(0, len(S), width):
        rows = slice(first, first + width)
        if len(Q[rows]):
            side = product(V[rows], product(S, transposed(K[rows])))
            total[rows] += product(side, product(Q[rows], S) / np.sqrt(width))
    return with_transpose(total)


def sinkhorn_rate(S, Q, K, V):
    """V C^T + transpose, C = 2 R (I + (I + 4 B B^T)^{1/2})^{-1} B R, B = R A^T R, R = S^{1/2}; 2 x 2 only."""
    R = small_root(S)
    B = product(product(R, product(transposed(Q), K)), R)
    inner = 4 * product(B, transposed(B))
    add_identity(inner)
    inner = small_root(inner)
    add_identity(inner)
    C = 2 * product(product(R, small_inverse(inner)), product(B, R))
    return with_transpose(product(V, transposed(C)))


def add_identity(a):
    """Add I to matrices (p, p, n) in place."""
    for k in range(len(a)):
        a[k, k] += 1


def small_inverse(a):
    """Inverses of matrices (1, 1, n) or (2, 2, n)."""
    if len(a) == 1:
        return 1 / a
    (p, q), (r, s) = a
    return np.array([[s, -q], [-r, p]]) / (p * s - q * r)


def small_root(a):
    """Square roots of positive semi-definite matrices (2, 2, n): (a + sqrt(det) I) / sqrt(trace + 2 sqrt(det))."""
    (p, q), (r, s) = a
    det = np.sqrt(np.maximum(p * s - q * r, 0))  # round-off below zero at rank one
    root = a.copy()
    root[0, 0] += det
    root[1, 1] += det
    return root / np.sqrt(p + s + 2 * det)


@dataclass(frozen=True, eq=False)
class Rate:
    """The authors' right-hand side S -> dS/dt for some instances.

    Parameters
    ----------
    formula : callable
        ``formula(S, Q, K, V)``.
    matrices : list of ndarray
        Q, K, V with instances on the last axis, or one for all of them.
    """

    formula: Callable
    matrices: list

    def __call__(self, S):
        """dS/dt, shape (d, d, n)."""
        return self.formula(S, *self.matrices)

    def take(self, rows):
        """The right-hand side of some instances only."""
        return Rate(self.formula, [m if m.shape[-1] == 1 else m[..., rows] for m in self.matrices])


def rate_of(variant, query, key, value, heads=1):
    """The `Rate` of a variant for heads (r, d) or (r, d, n) and values (d, d) or (d, d, n)."""
    matrices = [np.asarray(m, dtype=float) for m in (query, key, value)]
    formula = {
        "softmax": softmax_rate,
        "l2": l2_rate,
        "sinkhorn": sinkhorn_rate,
        "multihead": partial(multihead_rate, heads=heads),
    }[variant]
    return Rate(formula, [m[..., None] if m.ndim == 2 else np.ascontiguousarray(m) for m in matrices])


def clip(S):
    """Set eigenvalues below zero to 1e-14, in place; matrices without any are left alone. Returns how many had one."""
    doubtful = np.arange(S.shape[-1])
    if len(doubtful) > FEW:
        doubtful = np.flatnonzero(~(smallest_pivots(S) > 0))
        if not len(doubtful):
            return 0
    values, vectors = np.linalg.eigh(S[..., doubtful].transpose(2, 0, 1))
    rows = np.flatnonzero(values[:, 0] < 0)
    if len(rows):
        values, vectors = np.where(values[rows] < 0, FLOOR, values[rows]), vectors[rows]
        S[..., doubtful[rows]] = ((vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)).transpose(1, 2, 0)
    return len(rows)


def smallest_pivots(S):
    """The smallest pivot of each matrix (d, d, n): if it is above zero, so are all eigenvalues, at a tenth the cost."""
    pivots, rest = [S[0, 0]], S
    with np.errstate(divide="ignore", invalid="ignore"):
        while len(rest) > 1:
            rest = rest[1:, 1:] - rest[1:, :1] * (rest[:1, 1:] / pivots[-1])
            pivots.append(rest[0, 0])
        return np.minimum.reduce(pivots)


@dataclass(frozen=True, eq=False)
class EulerRuns:
    """Where n runs of the scheme ended.

    Parameters
    ----------
    final : ndarray, shape (d, d, n)
        The state whose norm or whose next trace ended the run, or the one after the last step.
    status : ndarray of int, shape (n,)
        CONVERGED, DIVERGED or EXHAUSTED.
    iterations : ndarray of int, shape (n,)
    clipped : int
        Steps, over all runs, after which an eigenvalue was clipped.
    """

    final: np.ndarray
    status: np.ndarray
    iterations: np.ndarray
    clipped: int


def projected_euler(rate, start, *, step, low, high, max_iterations, watch=None):
    """Run the scheme from many starts at once; runs that end leave the batch.

    Parameters
    ----------
    rate : Rate
    start : ndarray, shape (d, d, n)
    step, low, high : float
        h, and the two stopping rules.
    max_iterations : int
    watch : callable, optional
        ``watch(kept, S)`` is shown states (m, d, d) of the runs that go on: EVERY_STEP of them, then every tenth.

    Returns
    -------
    EulerRuns
    """
    n = start.shape[-1]
    status, iterations, final = np.full(n, EXHAUSTED), np.full(n, max_iterations), start.copy()
    kept, S, clipped = np.arange(n), start.copy(), 0
    for iteration in range(max_iterations):
        # Later steps are small, and looking at one costs as much as taking it.
        if watch is not None and (iteration < EVERY_STEP or iteration % 10 == 0):
            watch(kept, S.transpose(2, 0, 1))
        slope = rate(S)
        moved = S + step * slope
        clipped += clip(moved)
        small = np.einsum("ijn,ijn->n", slope, slope) < low**2
        ended = small | (np.einsum("iin->n", moved) > high)
        if ended.any():
            gone = kept[ended]
            status[gone] = np.where(small[ended], CONVERGED, DIVERGED)
            iterations[gone], final[..., gone] = iteration, S[..., ended]
            rate, kept, moved = rate.take(~ended), kept[~ended], moved[..., ~ended]
            if not len(kept):
                break
        S = moved
    final[..., kept] = S if len(kept) else final[..., kept]
    return EulerRuns(final, status, iterations, clipped)


class Tracks:
    """Remembers n runs coarsely: a state is kept when its coordinates have moved by ``spacing`` since the last one.

    Parameters
    ----------
    n, d : int
    coordinates : callable
        Covariances (..., d, d) to points (..., p).
    spacing : float
    capacity : int
        Most states of one run; later ones are not kept.
    """

    def __init__(self, n, d, *, coordinates, spacing, capacity):
        self.coordinates, self.spacing = coordinates, spacing
        self.states = np.zeros((n, capacity, d, d))
        self.count = np.zeros(n, dtype=int)
        self.places = np.full((n, len(coordinates(np.eye(d)))), np.inf)

    def __call__(self, ids, S):
        """Note the states (m, d, d) of the runs ``ids``."""
        places = self.coordinates(S)
        moved = ((places - self.places[ids]) ** 2).sum(axis=1) > self.spacing**2
        rows = np.flatnonzero(moved & (self.count[ids] < self.states.shape[1]))
        if len(rows):
            kept = ids[rows]
            self.states[kept, self.count[kept]] = S[rows]
            self.places[kept] = places[rows]
            self.count[kept] += 1

    def ending_at(self, final):
        """The tracks (n, k, d, d), each with its end from ``final`` (n, d, d) behind it, where short ones stay.

        A track that has filled its room ends at the last state it had room for.
        """
        length = min(self.count.max() + 1, self.states.shape[1])
        states = self.states[:, :length]
        behind = np.arange(length) >= self.count[:, None]
        return np.where(behind[..., None, None], final[:, None], states)
