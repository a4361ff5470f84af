"""Metrics on laws of tokens weighted by a mobility: <<v, v>> = ∫ Z_mu(x) <|H|^{-1} v, v> dmu."""

from dataclasses import dataclass

import numpy as np

from ..checks import matrix_array
from .base import displaced, fitting, interaction_matrix, massive
from .pairs import log_sums, tilted


@dataclass(frozen=True)
class UnitMobility:
    """Z = 1: the metric of W_2, in the coordinates of |H|^{-1}."""

    def log_at(self, mu, x):
        """Zeros, shape (m,)."""
        return np.zeros(len(x))

    def tilt(self, mean, root):
        """(log of ∫ Z dmu, mean, covariance) of xi under the weight Z, x = m + L xi ~ N(m, L L^T)."""
        r = root.shape[1]
        return 0.0, np.zeros(r), np.eye(r)


@dataclass(frozen=True, eq=False)
class SoftmaxMobility:
    """Z_mu(x) = ∫ e^{x^T A^T y} dmu(y), the normaliser of softmax attention.

    Parameters
    ----------
    A : array_like, shape (d, d), or Head
    """

    A: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "A", interaction_matrix(self.A))

    def log_at(self, mu, x):
        """log Z_mu(x) at points x (m, d), shape (m,)."""
        fitting(self.A, mu.dimension)
        return log_sums(x, self.A, mu.points, mu.log_weights)[1]

    def tilt(self, mean, root):
        """(log of ∫ Z dmu, mean, covariance) of xi under the weight Z; a ValueError where the integral is infinite."""
        fitting(self.A, len(mean))
        total, covariance, p = tilted(mean, root, self.A)
        r = root.shape[1]
        return total, (covariance @ p)[:r], covariance[:r, :r]


@dataclass(frozen=True, eq=False)
class HeadsMobility:
    """1 / mean_h(1 / Z_h): the scalar mobility that is claimed for several heads, exact for one [2605.18870].

    Parameters
    ----------
    matrices : tuple of array_like, shape (d, d) each
        A_h.
    """

    matrices: tuple

    def __post_init__(self):
        object.__setattr__(self, "matrices", tuple(interaction_matrix(A) for A in self.matrices))

    def log_at(self, mu, x):
        """The log mobility at points x (m, d), shape (m,)."""
        logs = [-SoftmaxMobility(A).log_at(mu, x) for A in self.matrices]
        return np.log(len(logs)) - np.logaddexp.reduce(logs, axis=0)

    def tilt(self, mean, root):
        """As for one head; a ValueError for more."""
        if len(self.matrices) > 1:
            raise ValueError("the mobility of several heads has no closed integral over a Gaussian. Sample the law.")
        return SoftmaxMobility(self.matrices[0]).tilt(mean, root)


@dataclass(frozen=True, eq=False)
class TwistedMetric:
    """<<v, v>>_mu = ∫ Z_mu(x) <|H|^{-1} v(x), v(x)> dmu(x), in which v = (H / Z) grad dE/dmu is steepest [CACP25].

    Ascent for positive definite H, descent for negative definite H: dE/dt = sign <<v, v>>.

    Parameters
    ----------
    H : array_like, shape (d, d)
        Symmetric and definite.
    mobility : UnitMobility, SoftmaxMobility or HeadsMobility
        Z; one everywhere by default, where H = I gives the metric of W_2.

    Raises
    ------
    ValueError
        If H is not symmetric or not definite.
    """

    H: np.ndarray
    mobility: UnitMobility | SoftmaxMobility | HeadsMobility = UnitMobility()

    def __post_init__(self):
        H = matrix_array("H", self.H, (None, None))
        if H.ndim != 2 or H.shape[0] != H.shape[1] or np.abs(H - H.T).max() > 1e-10 * np.abs(H).max():
            raise ValueError(f"H must be one symmetric matrix (d, d); got shape {H.shape}. Use (H + H.T) / 2.")
        values = np.linalg.eigvalsh((H + H.T) / 2)
        if not (values[0] > 0 or values[-1] < 0):
            raise ValueError(f"H must be definite; got eigenvalues from {values[0]:.6g} to {values[-1]:.6g}.")
        object.__setattr__(self, "H", (H + H.T) / 2)

    @property
    def sign(self):
        """+1 where gradients of this metric climb, -1 where they descend."""
        return 1 if self.H[0, 0] > 0 else -1

    @property
    def weight(self):
        """|H|^{-1}, shape (d, d)."""
        return np.linalg.inv(self.sign * self.H)

    def mobility_at(self, mu, x):
        """Z_mu(x) at points x (m, d), shape (m,)."""
        return np.exp(self.mobility.log_at(massive(mu), x))

    def squared_norm(self, law, displacement):
        """<<u, u>> at a law.

        Parameters
        ----------
        law : Measure or Gaussian
        displacement : array_like, shape (n, d) or (d, 1 + r), or AffineMap
            As for energies.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the integral over a Gaussian is infinite; names the condition.
        """
        mean_or_mu, root, u = displaced(law, displacement)
        W = self.weight
        if root is None:
            logs = mean_or_mu.log_weights + self.mobility.log_at(mean_or_mu, mean_or_mu.points)
            return float(np.exp(logs) @ np.einsum("ij,jk,ik->i", u, W, u))
        total, tilt, covariance = self.mobility.tilt(mean_or_mu, root)
        centre = u[:, 0] + u[:, 1:] @ tilt
        spread = u[:, 1:] @ covariance @ u[:, 1:].T
        return float(np.exp(total) * (centre @ W @ centre + np.sum(W * spread)))


def wasserstein_metric(d):
    """The metric of W_2 in dimension d: H = I, Z = 1."""
    return TwistedMetric(np.eye(d))

