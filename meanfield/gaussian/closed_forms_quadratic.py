"""Softmax and linear attention with V = v I: the inverse covariance is linear in time."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from ..measures import Gaussian, Measure
from .closed_forms_doors import ROUND_OFF, constant_head, elapsed_times, fitting_law, norm, representable


@dataclass(frozen=True, eq=False)
class QuadraticFlow:
    """S' = S H S from S(0) = L L^T: S(t) = L (I - t L^T H L)^{-1} L^T, so that S^{-1} is linear in t [S3].

    Parameters
    ----------
    modes : ndarray, shape (d, r)
        L U, where U holds the eigenvectors of L^T H L.
    rates : ndarray, shape (r,)
        Its eigenvalues, increasing; those within round-off of zero are zero.
    """

    modes: np.ndarray
    rates: np.ndarray

    @classmethod
    def of(cls, root, twice, size):
        """The flow from a root L (d, r) with H = ``twice`` (d, d), itself known up to round-off of ``size``."""
        rates, vectors = np.linalg.eigh(root.T @ twice @ root)
        negligible = 8 * max(root.shape) * np.finfo(float).eps * norm(root) ** 2 * size
        return cls(root @ vectors, np.where(np.abs(rates) <= negligible, 0.0, rates))

    @property
    def blow_up_time(self):
        """t* = 1 / (largest rate) if that is positive, else inf."""
        fastest = self.rates.max(initial=0.0)
        return float(1 / fastest) if fastest > 0 else math.inf

    def matrix(self, times):
        """S(t), shape times.shape + (d, d); positive semi-definite by construction."""
        times = elapsed_times(times, self.blow_up_time)
        root = self.modes / np.sqrt(1 - times[..., None, None] * self.rates)
        return root @ np.swapaxes(root, -1, -2)

    def map(self, times):
        """F with F' = (S H / 2) F, F(0) = I, shape times.shape + (d, d), up to the right factor H / 2.

        Returns the matrix X with F = I + X H / 2: no inverse of S(0) is needed.
        """
        times = elapsed_times(times, self.blow_up_time)[..., None]
        growth = np.expm1(-np.log1p(-times * self.rates) / 2)
        moving = self.rates != 0
        clock = np.where(moving, 2 * growth / np.where(moving, self.rates, 1.0), times)
        return (self.modes * clock[..., None, :]) @ self.modes.T


def quadratic_part(head, second):
    """D = V A and H = D + D^T, if V commutes with S(0) and with H.

    Then V commutes with S(t) for all times and S' = V S A S + transpose is S' = S H S. V = v I always does.
    """
    value, product = head.value, head.value @ head.A
    twice = product + product.T
    for name, matrix in (("the start", second), ("V A + A^T V^T", twice)):
        defect = norm(value @ matrix - matrix @ value)
        if defect > ROUND_OFF * norm(value) * max(norm(matrix), ROUND_OFF * norm(value) * norm(head.A)):
            raise ValueError(
                "this closed form needs V = v I, or V that commutes with the start and with V A + A^T V^T; "
                f"the commutator with {name} has norm {defect:g}. Use simulate() instead."
            )
    return product, twice


def _symmetric(product, size, what):
    """D = V A, if it is symmetric up to round-off."""
    defect = norm(product - product.T)
    if defect > ROUND_OFF * size:
        raise ValueError(
            f"{what} has a closed form only for symmetric V A; got a difference of norm {defect:g} from its transpose. "
            "Use simulate() instead."
        )
    return (product + product.T) / 2


@dataclass(frozen=True, eq=False)
class SoftmaxSolution:
    """N(m, Sigma) under softmax attention with V = v I: Sigma^{-1}(t) = Sigma0^{-1} - t v (A + A^T) [CACP25].

    Singular Sigma0 included. If A is symmetric the mean is e^{v t} F m0 with F' = v Sigma A F, F(0) = I.

    Parameters
    ----------
    law : Gaussian
        The start.
    value, product : ndarray, shape (d, d)
        V and V A.
    flow : QuadraticFlow
        The covariance.
    size : float
        |V| |A|, the scale of round-off in V A.
    """

    law: Gaussian
    value: np.ndarray
    product: np.ndarray
    flow: QuadraticFlow
    size: float

    @property
    def blow_up_time(self):
        """t* = 1 / lambda_max(Sigma0^{1/2} v (A + A^T) Sigma0^{1/2}) if that is positive, else inf."""
        return self.flow.blow_up_time

    def covariance(self, times):
        """Sigma(t), shape times.shape + (d, d); any A."""
        return self.flow.matrix(times)

    def mean(self, times):
        """m(t), shape times.shape + (d,); a ValueError unless V A is symmetric or m0 = 0."""
        times = elapsed_times(times, self.blow_up_time)
        m0 = self.law.mean
        if not m0.any():
            return np.zeros((*times.shape, len(m0)))
        half = _symmetric(self.product, self.size, "the mean")
        pulled = m0 + self.flow.map(times) @ (half @ m0)
        with np.errstate(over="ignore", invalid="ignore"):
            return representable("the mean", (expm(times[..., None, None] * self.value) @ pulled[..., None])[..., 0])

    def at(self, t):
        """The law at time t."""
        return Gaussian(self.mean(t), self.covariance(t))


def softmax_solution(head, law):
    """Softmax attention on a Gaussian, solved for V = v I: a `SoftmaxSolution`.

    Parameters
    ----------
    head : Head
        Constant, any A. V = v I, or more generally V that commutes with Sigma0 and with V A + A^T V^T (V, A and Sigma0
        symmetric and commuting, for instance).
    law : Gaussian
        Any covariance, singular ones included.

    Raises
    ------
    ValueError
        If V is not of this kind.
    """
    head = constant_head(head)
    law = fitting_law(head, law)
    product, twice = quadratic_part(head, law.covariance)
    size = norm(head.value) * norm(head.A)
    return SoftmaxSolution(law, head.value, product, QuadraticFlow.of(law.root, twice, size), size)


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Linear attention x' = V M A x with V = v I, for any law: M^{-1}(t) = M0^{-1} - t v (A + A^T) [S12].

    M is the second moment; finite clouds of tokens and M0 without inverse are included, and both do blow up.
    """

    product: np.ndarray
    flow: QuadraticFlow
    size: float

    @property
    def blow_up_time(self):
        """t* = 1 / lambda_max(M0^{1/2} v (A + A^T) M0^{1/2}) if that is positive, else inf."""
        return self.flow.blow_up_time

    def second_moment(self, times):
        """M(t), shape times.shape + (d, d)."""
        return self.flow.matrix(times)

    def flow_map(self, times):
        """F(t) with x(t) = F(t) x(0), shape times.shape + (d, d); a ValueError unless V A is symmetric."""
        half = _symmetric(self.product, self.size, "the flow map")
        return np.eye(len(half)) + self.flow.map(times) @ half


def linear_solution(head, law):
    """Linear attention, solved for V = v I (or V that commutes with M0 and with V A + A^T V^T): a `LinearSolution`.

    Parameters
    ----------
    head : Head
        Constant.
    law : Gaussian or Measure
        Any law; it enters by its second moment M0 = Sigma0 + m0 m0^T.

    Raises
    ------
    ValueError
        If V is not of this kind or the law is no law.
    """
    head = constant_head(head)
    if isinstance(law, Measure):
        root = (law.tokens * np.sqrt(law.weights)[:, None]).T
    else:
        law = fitting_law(head, law)
        root = np.column_stack([law.root, law.mean])
    if len(root) != head.dimension:
        raise ValueError(f"law must have dimension {head.dimension} like the head; got {len(root)}.")
    second = root @ root.T
    if root.shape[1] > len(root):
        root = Gaussian(np.zeros(len(root)), second).root
    product, twice = quadratic_part(head, second)
    size = norm(head.value) * norm(head.A)
    return LinearSolution(product, QuadraticFlow.of(root, twice, size), size)
