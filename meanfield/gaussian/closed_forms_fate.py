"""What becomes of the covariance under softmax attention with V = v I and an affine feed-forward part."""

import enum
import math
from dataclasses import dataclass

import numpy as np

from .closed_forms_affine import AffineSolution, affine_parts, affine_precision, scalar_affine_blow_up_time
from .closed_forms_doors import ROUND_OFF, fitting_law, norm


class Fate(enum.Enum):
    """What becomes of the covariance as time goes on."""

    CONVERGES = "converges to a covariance of full rank"
    VANISHES = "tends to zero"
    BLOWS_UP = "blows up in finite time"
    GROWS = "grows without bound, but for all times"
    STAYS = "does not move"
    UNDECIDED = "not decided by the criteria known"


@dataclass(frozen=True, eq=False)
class AffineFate:
    """A `Fate` with its reason and, where there is one, its limit (d, d) or blow-up time."""

    fate: Fate
    reason: str
    limit: np.ndarray | None = None
    blow_up_time: float = math.inf


def affine_fate(head, drift, law):
    """What becomes of Sigma under x' = v attn + W x + b, where a criterion decides it: an `AffineFate`.

    With H = v (A + A^T), Sigma0 = L L^T, and P*(H) the solution of P W + W^T P = -H [S13]:
    W Hurwitz: lambda_max(L^T P*(H) L) > 1 blows up, lambda_max(L^T P*(H_+) L) < 1 vanishes (H_+ the positive part);
    Re eig(W) > 0, H < 0, Sigma0 > 0: converges to P*^{-1};
    H > 0, Sigma0 > 0 and an eigenvalue of W with Re >= 0: blows up. In one dimension every case is decided.

    Parameters
    ----------
    head : Head
        Constant, V = v I.
    drift : array_like, shape (d, d)
        W.
    law : Gaussian
        Any covariance.

    Returns
    -------
    AffineFate
    """
    _, drift, quadratic = affine_parts(head, drift)
    law = fitting_law(head, law)
    if not law.covariance.any():
        return AffineFate(Fate.STAYS, "Sigma0 = 0 is stationary", limit=np.zeros_like(drift))
    if head.dimension == 1:
        return _scalar_fate(head, drift, quadratic, law)
    rates = np.linalg.eigvals(drift).real
    values, vectors = np.linalg.eigh(quadratic)
    margin = ROUND_OFF * norm(quadratic)
    full = law.root.shape[1] == head.dimension
    solution = AffineSolution(drift, quadratic, law.root)
    if rates.max() < 0:
        return _hurwitz_fate(solution, (vectors * np.maximum(values, 0)) @ vectors.T)
    if full and rates.min() > 0 and values[-1] < -margin:
        limit = np.linalg.inv(affine_precision(drift, quadratic))
        return AffineFate(Fate.CONVERGES, "Re eig(W) > 0, H < 0 and Sigma0 > 0: Sigma tends to P*^{-1}", limit=limit)
    if full and values[0] > margin:
        reason = "H > 0, Sigma0 > 0 and W has an eigenvalue with Re >= 0: L^T N(t) L grows past 1"
        return AffineFate(Fate.BLOWS_UP, reason, blow_up_time=_first_pole(solution))
    return AffineFate(Fate.UNDECIDED, "no criterion covers these signs of eig(W) and H; use affine_solution")


def _first_pole(solution):
    """The pole of a solution that is known to have one: the horizon doubles until it is met."""
    horizon = 1 / max(norm(solution.drift), norm(solution.quadratic) * norm(solution.start) ** 2)
    while math.isinf(found := solution.blow_up_time(horizon)):
        horizon *= 2
    return found


def _hurwitz_fate(solution, positive_part):
    """The fate when all of W's eigenvalues have negative real parts, so that N(t) tends to P*(H)."""
    drift, root = solution.drift, solution.start
    reached = np.linalg.eigvalsh(root.T @ affine_precision(drift, solution.quadratic) @ root)[-1]
    bound = np.linalg.eigvalsh(root.T @ affine_precision(drift, positive_part) @ root)[-1]
    if reached > 1 + ROUND_OFF:
        reason = f"W is Hurwitz and lambda_max(L^T P* L) = {reached:.6g} > 1: P0 - P* has a negative direction"
        return AffineFate(Fate.BLOWS_UP, reason, blow_up_time=_first_pole(solution))
    if bound < 1 - ROUND_OFF:
        reason = f"W is Hurwitz and lambda_max(L^T P*(H_+) L) = {bound:.6g} < 1: P0 > P*(H_+)"
        return AffineFate(Fate.VANISHES, reason, limit=np.zeros_like(drift))
    reason = f"W is Hurwitz; lambda_max(L^T P* L) = {reached:.6g} and the bound {bound:.6g} lie on two sides of 1"
    return AffineFate(Fate.UNDECIDED, reason)


def _scalar_fate(head, drift, quadratic, law):
    """Every case of s' = 2 s (w + y) with y = v a s, s0 > 0."""
    w, push = float(drift[0, 0]), float(quadratic[0, 0] * law.covariance[0, 0]) / 2
    pole = scalar_affine_blow_up_time(head, drift, law)
    zero = np.zeros((1, 1))
    if math.isfinite(pole):
        return AffineFate(Fate.BLOWS_UP, "v a s0 > 0 and v a s0 > -w", blow_up_time=pole)
    if w + push == 0:
        return AffineFate(Fate.STAYS, "w + v a s0 = 0", limit=law.covariance.copy())
    if w > 0 and push < 0:
        return AffineFate(Fate.CONVERGES, "w > 0 > v a: s tends to -w / (v a)", limit=-2 * drift / quadratic)
    if w > 0:
        return AffineFate(Fate.GROWS, "v a = 0 < w: s = s0 e^{2 w t}")
    return AffineFate(Fate.VANISHES, "w + v a s0 < 0 and w <= 0", limit=zero)
