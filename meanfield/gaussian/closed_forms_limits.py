"""Where contracting flows end: the closed-form limits of the covariance, and the flow of covariances of rank one."""

import math
from dataclasses import dataclass

import numpy as np

from ..checks import finite_array
from .closed_forms_doors import ROUND_OFF, constant_head, elapsed_times, fitting_law, multiple_of_identity, norm
from .closed_forms_quadratic import quadratic_part


def _vanishing_part(root, contraction):
    """L N N^T L^T, N a basis of ker(C L): with S0 > 0 this is Z (Z^T S0^{-1} Z)^{-1} Z^T, Z a basis of ker C."""
    _, values, vectors = np.linalg.svd(contraction @ root)
    negligible = len(root) * np.finfo(float).eps * norm(contraction) * norm(root)
    rank = int((values > negligible).sum())
    kept = root @ vectors[rank:].T
    return kept @ kept.T


def softmax_limit(head, law):
    """lim Sigma(t) of `softmax_solution` for H = V A + A^T V^T <= 0: Z (Z^T Sigma0^{-1} Z)^{-1} Z^T, Z spanning ker H.

    Its rank is dim ker H for Sigma0 > 0; for singular Sigma0 it is dim(range Sigma0 intersected with ker H)
    [S4].

    Parameters
    ----------
    head : Head
        As for `softmax_solution`, with V A + A^T V^T negative semi-definite.
    law : Gaussian
        Any covariance.

    Returns
    -------
    ndarray, shape (d, d)

    Raises
    ------
    ValueError
        If the form is not negative semi-definite (a direction then grows) or V is not of the kind asked for.
    """
    head = constant_head(head)
    law = fitting_law(head, law)
    _, twice = quadratic_part(head, law.covariance)
    values, vectors = np.linalg.eigh(twice)
    negligible = 8 * head.dimension * np.finfo(float).eps * norm(head.value) * norm(head.A)
    if values[-1] > negligible:
        raise ValueError(
            f"the limit needs V A + A^T V^T <= 0; got eigenvalue {values[-1]:g}. "
            "Ask softmax_solution(head, law).blow_up_time instead."
        )
    active = values < -negligible
    return _vanishing_part(law.root, (vectors[:, active] * np.sqrt(-values[active])).T)


def tied_limit(head, law):
    """lim Sigma(t) for K = -c Q (c > 0), V = v I (v > 0), scale > 0: one limit for softmax, L2 and Sinkhorn attention.

    It is Z (Z^T Sigma0^{-1} Z)^{-1} Z^T with Z spanning ker Q: for all three P(t) = P0 + Q^T N(t) Q, where N grows
    without bound [S4].

    Parameters
    ----------
    head : Head
        Constant, tied as said.
    law : Gaussian
        Any covariance.

    Returns
    -------
    ndarray, shape (d, d)

    Raises
    ------
    ValueError
        If the head is not of this form.
    """
    head = constant_head(head)
    law = fitting_law(head, law)
    query, key, v = head.query, head.key, multiple_of_identity(head)
    weight = float((query * query).sum())
    c = -float((query * key).sum()) / weight if weight > 0 else 1.0
    tied = norm(key + c * query) <= ROUND_OFF * norm(key)
    if not (tied and c > 0 and v > 0 and head.scale > 0):
        raise ValueError(
            f"the common limit needs K = -c Q with c > 0, V = v I with v > 0 and scale > 0; got c = {c:g}, v = {v:g}, "
            f"scale = {head.scale:g}, |K + c Q| = {norm(key + c * query):g}. Use simulate() instead."
        )
    _, values, rows = np.linalg.svd(query, full_matrices=False)
    active = values > max(query.shape) * np.finfo(float).eps * values.max(initial=0.0)
    return _vanishing_part(law.root, values[active, None] * rows[active])


@dataclass(frozen=True, eq=False)
class RankOneSolution:
    """Sigma = w w^T under softmax attention, w' = (w^T A w) V w with V w0 = v w0: w(t) = w0 (1 - 2 v a t)^{-1/2}.

    Here a = w0^T A w0; stationary iff v a = 0; in the direction u, r^2 = r0^2 / (1 - 2 v r0^2 t u^T A u)
    [S8].
    """

    root0: np.ndarray
    rate: float

    @property
    def blow_up_time(self):
        """t* = 1 / (2 v a) if that is positive, else inf."""
        return 1 / self.rate if self.rate > 0 else math.inf

    def root(self, times):
        """w(t), shape times.shape + (d,)."""
        times = elapsed_times(times, self.blow_up_time)
        return self.root0 / np.sqrt(1 - times[..., None] * self.rate)


def rank_one_solution(head, root):
    """Softmax attention on covariances w w^T, solved where w is an eigenvector of V (V = v I: always).

    Parameters
    ----------
    head : Head
        Constant.
    root : array_like, shape (d,)
        w(0).

    Returns
    -------
    RankOneSolution

    Raises
    ------
    ValueError
        If V w is no multiple of w.
    """
    head = constant_head(head)
    w = finite_array("root", root, ndim=1)
    if len(w) != head.dimension:
        raise ValueError(f"root must have shape ({head.dimension},) like the head; got {w.shape}.")
    pushed = head.value @ w
    v = float(w @ pushed / (w @ w)) if w.any() else 0.0
    if norm((pushed - v * w)[:, None]) > ROUND_OFF * norm(head.value) * norm(w[:, None]):
        raise ValueError(
            f"the rank-one closed form needs V w = v w; got V w = {pushed} for w = {w}. Use simulate() instead."
        )
    rate = 2 * v * float(w @ head.A @ w)
    negligible = 16 * len(w) * np.finfo(float).eps * norm(head.value) * norm(head.A) * float(w @ w)
    return RankOneSolution(w, rate if abs(rate) > negligible else 0.0)
