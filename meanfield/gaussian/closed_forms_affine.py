"""Softmax attention with V = v I and an affine feed-forward part, x' = v attn + W x + b: a matrix Riccati equation.

With H = v (A + A^T), Sigma' = W Sigma + Sigma W^T + Sigma H Sigma, so that P = Sigma^{-1} obeys the linear equation
P' = -P W - W^T P - H [S13].
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import expm, solve_continuous_lyapunov

from ..checks import finite_array, matrix_array, number
from ..measures import Gaussian
from .closed_forms_doors import (
    POLE_MARGIN,
    ROUND_OFF,
    constant_head,
    elapsed_times,
    fitting_law,
    multiple_of_identity,
    norm,
    past_the_pole,
    representable,
)

#: Exact steps of one propagation before it is given up.
MOST_STEPS = 200_000


def affine_parts(head, drift):
    """v, W and H = v (A + A^T) of a constant head with V = v I."""
    head = constant_head(head)
    v = multiple_of_identity(head)
    drift = matrix_array("drift", drift, (head.dimension, head.dimension))
    if drift.ndim != 2:
        raise ValueError(f"drift must be one matrix W of shape (d, d); got shape {drift.shape}.")
    return v, drift, v * (head.A + head.A.T)


def affine_precision(drift, quadratic):
    """The stationary P* of P' = -P W - W^T P - H: the solution of P* W + W^T P* = -H.

    Parameters
    ----------
    drift, quadratic : array_like, shape (d, d)
        W and the symmetric H.

    Returns
    -------
    ndarray, shape (d, d)
        Symmetric, of any signature; its inverse is a stationary covariance if it is positive definite.

    Raises
    ------
    ValueError
        If two eigenvalues of W add up to zero: P* is then not unique, or there is none.
    """
    drift = matrix_array("drift", drift, (None, None))
    quadratic = matrix_array("quadratic", quadratic, drift.shape)
    rates = np.linalg.eigvals(drift)
    smallest = np.abs(rates[:, None] + rates).min()
    if smallest <= ROUND_OFF * max(norm(drift), np.finfo(float).tiny):
        raise ValueError(
            "P* needs W without two eigenvalues (or one twice) that add up to zero; the smallest such sum is "
            f"{smallest:g}. Without P* use affine_solution(...).covariance(times)."
        )
    precision = solve_continuous_lyapunov(drift.T, -quadratic)
    return (precision + precision.T) / 2


def _propagator(drift, quadratic, h):
    """E = e^{hW} and N = int_0^h E_s^T H E_s ds, by one exponential of a 2d x 2d block (Van Loan 1978)."""
    d = len(drift)
    block = expm(h * np.block([[-drift.T, quadratic], [np.zeros_like(drift), drift]]))
    return block[d:, d:], block[d:, d:].T @ block[:d, d:]


@dataclass(frozen=True, eq=False)
class AffineSolution:
    """Sigma(t) of x' = v attn + W x + b for softmax attention, exact from step to step, singular Sigma0 included.

    Sigma(t) = E L (I - L^T N(t) L)^{-1} L^T E^T with E = e^{tW}, N(t) = int_0^t E_s^T H E_s ds. For indefinite H the
    largest eigenvalue of L^T N L can pass 1 and come back; so time is crossed in steps within which a bound excludes a
    pole, and steps that shrink to nothing have found the first one.

    Parameters
    ----------
    drift, quadratic : ndarray, shape (d, d)
        W and H = v (A + A^T).
    start : ndarray, shape (d, r)
        L with L L^T = Sigma0.
    """

    drift: np.ndarray
    quadratic: np.ndarray
    start: np.ndarray

    @cached_property
    def _sizes(self):
        """|W|, |H| and whether H has a positive eigenvalue."""
        size, strength = norm(self.drift), norm(self.quadratic)
        top = np.linalg.eigvalsh(self.quadratic)[-1]
        return size, strength, bool(top > len(self.drift) * np.finfo(float).eps * strength)

    def _safe_step(self, root):
        """h such that lambda_max(L^T N(s) L) <= 0.9 for all s <= h.

        While |W| h <= 1/2 it is at most h lambda_max(L^T H L) + e |L|^2 |H| |W| h^2.
        """
        size, strength, feeds = self._sizes
        if not feeds or not root.size:
            return 4 / size if size > 0 else math.inf
        slope = max(np.linalg.eigvalsh(root.T @ self.quadratic @ root)[-1], 0.0)
        bend = math.e * float((root * root).sum()) * strength * size
        speed = slope + math.sqrt(slope * slope + 3.6 * bend)
        longest = 0.5 / size if size > 0 else math.inf
        return min(1.8 / speed if speed > 0 else math.inf, longest)

    def _march(self, stops):
        """Roots at the increasing times ``stops``, as long as there is no pole; then (None, t*)."""
        t, root, known = 0.0, self.start, None
        steps = 0
        for stop in stops:
            while t < stop:
                h = self._safe_step(root)
                if h <= POLE_MARGIN * t:
                    yield None, t
                    return
                steps += 1
                if steps > MOST_STEPS:
                    raise ArithmeticError(f"{MOST_STEPS} exact steps reached t = {t:g} only. Ask for earlier times.")
                last = h >= stop - t
                h = min(h, stop - t)
                if h != known:
                    (flow, gramian), known = _propagator(self.drift, self.quadratic, h), h
                values, vectors = np.linalg.eigh(root.T @ gramian @ root)
                with np.errstate(over="ignore", invalid="ignore"):
                    root = representable("the covariance", flow @ root @ (vectors / np.sqrt(1 - values)))
                t = stop if last else t + h
            yield root, t

    def blow_up_time(self, horizon):
        """The first pole t* in (0, horizon], or inf if there is none there."""
        *_, (root, t) = self._march([number("horizon", horizon, above=0)])
        return t if root is None else math.inf

    def covariance(self, times):
        """Sigma(t), shape times.shape + (d, d); a ValueError naming t* for times past the first pole."""
        times = elapsed_times(times)
        stops, where = np.unique(times, return_inverse=True)
        results = []
        for root, t in self._march(stops):
            if root is None:
                raise past_the_pole(times.max(), t)
            with np.errstate(over="ignore"):
                results.append(representable("the covariance", root @ root.T))
        return np.array(results)[where.reshape(times.shape)]


def affine_solution(head, drift, law):
    """Covariance of softmax attention with V = v I plus W x + b: an `AffineSolution` (b moves the mean only).

    Parameters
    ----------
    head : Head
        Constant, V = v I, any A.
    drift : array_like, shape (d, d)
        W.
    law : Gaussian
        Any covariance.

    Raises
    ------
    ValueError
        If V is no multiple of the identity or shapes do not fit.
    """
    _, drift, quadratic = affine_parts(head, drift)
    return AffineSolution(drift, quadratic, fitting_law(head, law).root)


def affine_equilibrium(head, drift, bias):
    """The stationary Gaussian of full rank: covariance P*^{-1}, mean the solution of (v (I + Sigma* A) + W) m = -b.

    Parameters
    ----------
    head : Head
        Constant, V = v I.
    drift : array_like, shape (d, d)
        W.
    bias : array_like, shape (d,)
        b.

    Returns
    -------
    Gaussian

    Raises
    ------
    ValueError
        If P* is not unique or not positive definite.

    Notes
    -----
    v Sigma* A + W is similar to an antisymmetric matrix, so all eigenvalues of v (I + Sigma* A) + W have real part v:
    the mean is always unique, and attracts other means only if v < 0.
    """
    v, drift, quadratic = affine_parts(head, drift)
    bias = finite_array("bias", bias, ndim=1)
    if len(bias) != head.dimension:
        raise ValueError(f"bias must have shape ({head.dimension},); got {bias.shape}.")
    precision = affine_precision(drift, quadratic)
    values = np.linalg.eigvalsh(precision)
    if values[0] <= ROUND_OFF * np.abs(values).max():
        raise ValueError(
            f"an equilibrium of full rank needs P* > 0; got smallest eigenvalue {values[0]:g} of P*. "
            "Re eig(W) > 0 with v (A + A^T) < 0 is enough."
        )
    covariance = np.linalg.inv(precision)
    pull = v * (np.eye(head.dimension) + covariance @ head.A) + drift
    return Gaussian(np.linalg.solve(pull, -bias), (covariance + covariance.T) / 2)


def scalar_affine_blow_up_time(head, drift, law):
    """t* of s' = 2 w s + 2 v a s^2, the case of one dimension, or inf.

    It blows up iff v a s0 > 0 and v a s0 > -w, at ln(1 + w / (v a s0)) / (2 w); at w = 0 that is 1 / (2 v a s0).

    Parameters
    ----------
    head : Head
        Constant, dimension 1.
    drift : array_like, shape (1, 1)
        W = [[w]].
    law : Gaussian
        Dimension 1.

    Returns
    -------
    float
    """
    _, drift, quadratic = affine_parts(head, drift)
    fitting_law(head, law, dimension=1)
    w, push = float(drift[0, 0]), float(quadratic[0, 0] * law.covariance[0, 0]) / 2
    if push <= 0 or push <= -w:
        return math.inf
    return 1 / (2 * push) if w == 0 else math.log1p(w / push) / (2 * w)
