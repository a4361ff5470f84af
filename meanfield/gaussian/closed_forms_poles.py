"""Poles where none is expected: L2 attention with one-row Q and K, and one token alone under unnormalised attention."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm
from scipy.special import exp1, expi

from ..checks import finite_array
from ..parameters import Head
from .closed_forms_doors import ROUND_OFF, constant_head, elapsed_times, fitting_law, norm, representable
from .scalar_flows import increasing_root


@dataclass(frozen=True, eq=False)
class OneRowL2Solution:
    """L2 attention with K = k^T and Q = q^T of one row each, where V^T k = 0 and V^T q = nu q.

    Then a = k^T Sigma k is constant, c = q^T Sigma k obeys c' = nu beta c^2 with beta = 2 scale / (1 + 2 scale a), and
    L(t) = L0 + (e^{lambda V} - I) Sigma0 k (q^T L0) / c0 with lambda = -log(1 - nu beta c0 t) / nu. If nu c0 > 0 this
    blows up at t* = 1 / (nu beta c0): L2 attention is not global when K has deficient rank [S9].

    Parameters
    ----------
    value : ndarray, shape (d, d)
    root : ndarray, shape (d, r)
        L0 with L0 L0^T = Sigma0.
    pull : ndarray, shape (d,)
        Sigma0 k.
    weight : ndarray, shape (r,)
        q^T L0.
    rate, nu : float
        beta and nu.
    """

    value: np.ndarray
    root: np.ndarray
    pull: np.ndarray
    weight: np.ndarray
    cross: float
    rate: float
    nu: float

    @property
    def blow_up_time(self):
        """t* = 1 / (nu beta c0), or inf."""
        growth = self.nu * self.rate * self.cross
        return 1 / growth if growth > 0 else math.inf

    def covariance(self, times):
        """Sigma(t), shape times.shape + (d, d)."""
        times = elapsed_times(times, self.blow_up_time)
        clock = self.rate * times
        if self.cross * self.nu != 0:
            clock = -np.log1p(-self.nu * self.rate * self.cross * times) / (self.nu * self.cross)
        d = len(self.value)
        # The block exponential gives ((e^{lambda V} - I) / c0) p without a division by c0, which may vanish.
        block = np.zeros((*times.shape, d + 1, d + 1))
        block[..., :d, :d] = clock[..., None, None] * self.cross * self.value
        block[..., :d, d] = clock[..., None] * (self.value @ self.pull)
        root = self.root + expm(block)[..., :d, d:] * self.weight
        return representable("the covariance", root @ np.swapaxes(root, -1, -2))


def one_row_l2(head, law):
    """L2 attention whose Q and K have one row, solved where V^T k = 0 and q is an eigenvector of V^T.

    Parameters
    ----------
    head : Head
        Constant, Q and K of shape (1, d), scale >= 0.
    law : Gaussian
        Any covariance; the mean is not used.

    Returns
    -------
    OneRowL2Solution

    Raises
    ------
    ValueError
        If the head has not this form.
    """
    head = constant_head(head)
    law = fitting_law(head, law)
    if len(head.query) != 1 or head.scale < 0:
        raise ValueError(
            f"this closed form needs Q and K of shape (1, d) and scale >= 0; got {len(head.query)} rows and "
            f"scale {head.scale:g}. Use simulate() instead."
        )
    k, q, value = head.key[0], head.query[0], head.value
    pushed = value.T @ q
    nu = float(q @ pushed / (q @ q)) if q.any() else 0.0
    allowed = ROUND_OFF * norm(value)
    kept = norm(value.T @ k[:, None]) <= allowed * norm(k[:, None])
    if not kept or norm((pushed - nu * q)[:, None]) > allowed * norm(q[:, None]):
        raise ValueError(
            f"this closed form needs V^T k = 0 and V^T q = nu q; got V^T k = {value.T @ k} and V^T q = {pushed} "
            f"for q = {q}. Use simulate() instead."
        )
    pull = law.covariance @ k
    rate = 2 * head.scale / (1 + 2 * head.scale * float(k @ pull))
    return OneRowL2Solution(value, law.root, pull, q @ law.root, float(q @ pull), rate, nu)


def l2_counterexample_head(scale=1.0):
    """The head K = [1 0], Q = [0 1], V = diag(0, 1) with which L2 attention blows up, at
    t* = (1 / (2 scale) + Sigma_11) / Sigma_12 if Sigma_12 > 0 [S9]."""
    return Head([[0.0, 1.0]], [[1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]], scale=scale)


def _reciprocal_exponential(w, w0):
    """Integral of e^{-y} / y from w0 to w, for w and w0 of one sign."""
    return exp1(w0) - exp1(w) if w0 > 0 else expi(-w) - expi(-w0)


@dataclass(frozen=True, eq=False)
class TokenSolution:
    """One token under unnormalised attention along an eigenvector of V: x' = V x exp(x^T A x), V x0 = v x0.

    The direction stays; w = x^T A x obeys w' = 2 v w e^w, so that E(w) - E(w0) = 2 v t with E' = e^{-w} / w. If v > 0
    and w0 > 0 it blows up at t* = E_1(w0) / (2 v); V = A = I gives E_1(|x0|^2) / 2 [S14].

    Parameters
    ----------
    token0 : ndarray, shape (d,)
    value : float
        v.
    logit0 : float
        w0 = x0^T A x0.
    """

    token0: np.ndarray
    value: float
    logit0: float

    @property
    def blow_up_time(self):
        """t* = E_1(w0) / (2 v) if v > 0 and w0 > 0, else inf."""
        return float(exp1(self.logit0)) / (2 * self.value) if self.value > 0 and self.logit0 > 0 else math.inf

    def token(self, times):
        """x(t), shape times.shape + (d,)."""
        times = elapsed_times(times, self.blow_up_time)
        target = 2 * self.value * times
        if self.logit0 == 0:
            return representable("the token", np.exp(target / 2)[..., None] * self.token0)
        w0 = self.logit0

        def function(growth):
            w = w0 * np.exp(growth)
            return _reciprocal_exponential(w, w0), np.exp(-w)

        # The slope lies between its values at the two ends, e^{-w0} at the start and 1 for small w.
        ends = np.stack([target, target * math.exp(w0)])
        low, high = ends.min(axis=0), ends.max(axis=0)
        if w0 > 0 and self.value > 0:
            left = exp1(w0) - target
            with np.errstate(divide="ignore"):
                high = np.maximum(np.log(np.maximum(1.0, -np.log(left)) / w0), low)
        elif w0 < 0 and self.value > 0:
            low = np.zeros_like(target)
        growth = increasing_root(function, target, low, high)
        return np.exp(growth / 2)[..., None] * self.token0


def unnormalised_token(head, token):
    """One token alone under unnormalised attention, solved where V x0 = v x0: a `TokenSolution`.

    Parameters
    ----------
    head : Head
        Constant.
    token : array_like, shape (d,)
        The start x0; |x0^T A x0| <= 700, the range of the exponential.

    Raises
    ------
    ValueError
        If x0 is not an eigenvector of V, or its logit is out of range.
    """
    head = constant_head(head)
    x = finite_array("token", token, ndim=1)
    if len(x) != head.dimension:
        raise ValueError(f"token must have shape ({head.dimension},) like the head; got {x.shape}.")
    pushed = head.value @ x
    v = float(x @ pushed / (x @ x)) if x.any() else 0.0
    if norm((pushed - v * x)[:, None]) > ROUND_OFF * norm(head.value) * norm(x[:, None]):
        raise ValueError(
            f"this closed form needs V x0 = v x0; got V x0 = {pushed} for x0 = {x}. Use simulate() instead."
        )
    logit = float(x @ head.A @ x)
    if abs(logit) > 700:
        raise ValueError(f"the logit x0^T A x0 must be at most 700 in size; got {logit:g}. Scale the token down.")
    return TokenSolution(x, v, logit)
