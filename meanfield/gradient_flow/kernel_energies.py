"""Interactions by other functions of the logit: what linear and sigmoid attention are gradients of."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from ..checks import number
from ..summation.exact import kernel_sum
from .base import Energy, fitting, interaction_matrix, symmetric


def _symmetric_matrix(name, A):
    A = interaction_matrix(A)
    if not symmetric(A):
        raise ValueError(
            f"{name} needs a symmetric A; got a difference of {np.abs(A - A.T).max():g} from its transpose. "
            "Use (A + A.T) / 2 if that is what you mean."
        )
    return A


@dataclass(frozen=True, eq=False)
class QuadraticEnergy(Energy):
    """E(mu) = 1/4 ∬ (x^T A y)^2 = 1/4 tr(A M A M), M the second moment: linear attention with V = H A is H grad E.

    A function of M alone, so measures and Gaussians share it; finite for every law, O(n d^2).

    Parameters
    ----------
    A : array_like, shape (d, d), or Head
        Symmetric.
    """

    A: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "A", _symmetric_matrix("QuadraticEnergy", self.A))

    def _value(self, R):
        AM = self._product(R)
        return np.sum(AM * AM.T) / 4

    def _product(self, R):
        """A M with M = R R^T: R is [m | L], or the tokens times the roots of their masses."""
        fitting(self.A, len(R))
        return self.A @ (R @ R.T)

    def _first(self, R, U):
        return np.sum((self.A @ (R @ U.T)) * self._product(R).T)

    def _second(self, R, U):
        mixed, moved = self.A @ (R @ U.T + U @ R.T), self.A @ (U @ U.T)
        return np.sum(mixed * mixed.T) / 2 + np.sum(self._product(R) * moved.T)

    def _variation(self, R, x):
        return np.einsum("ij,jk,ik->i", x, self._product(R) @ self.A, x) / 2

    def _measure_value(self, mu):
        return self._value(_root(mu, mu.points))

    def _measure_variation(self, mu, x):
        return self._variation(_root(mu, mu.points), x)

    def _measure_gradient(self, mu, x):
        return x @ (self._product(_root(mu, mu.points)) @ self.A)

    def _measure_second(self, mu, u):
        return self._second(_root(mu, mu.points), _root(mu, u))

    def _gaussian_value(self, mean, root):
        return self._value(np.column_stack([mean, root]))

    def _gaussian_variation(self, mean, root, x):
        return self._variation(np.column_stack([mean, root]), x)

    def _gaussian_gradient(self, mean, root, x):
        return x @ (self._product(np.column_stack([mean, root])) @ self.A)

    def _gaussian_first(self, mean, root, dm, dL):
        return self._first(np.column_stack([mean, root]), np.column_stack([dm, dL]))

    def _gaussian_second(self, mean, root, dm, dL):
        return self._second(np.column_stack([mean, root]), np.column_stack([dm, dL]))


def _root(mu, rows):
    """Rows (n, d) times the roots of the masses, as columns (d, n)."""
    return (rows * np.sqrt(mu.weights)[:, None]).T


@dataclass(frozen=True, eq=False)
class SigmoidEnergy(Energy):
    """E(mu) = 1/2 ∬ log(1 + e^{x^T A y + bias}): sigmoid attention with V = H A is H grad E. Finite for every measure.

    Parameters
    ----------
    A : array_like, shape (d, d), or Head
        Symmetric.
    bias : float
    """

    A: np.ndarray
    bias: float = field(default=0.0, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "A", _symmetric_matrix("SigmoidEnergy", self.A))
        object.__setattr__(self, "bias", number("bias", self.bias))

    def _sums(self, mu, x, kernel, values):
        fitting(self.A, mu.dimension)
        return kernel_sum(x @ self.A, mu.points, mu.weights[:, None] * values, lambda l: kernel(l + self.bias))

    def _measure_value(self, mu):
        return mu.weights @ self._measure_variation(mu, mu.points) / 2

    def _measure_variation(self, mu, x):
        return self._sums(mu, x, _softplus, np.ones((len(mu), 1)))[:, 0]

    def _measure_gradient(self, mu, x):
        return self._sums(mu, x, expit, mu.points) @ self.A

    def _measure_second(self, mu, u):
        x, w, A = mu.points, mu.weights, self.A
        columns = np.concatenate([x, u], axis=1)
        k = columns.shape[1]
        moments = self._sums(mu, x, _bump, (columns[:, :, None] * columns[:, None, :]).reshape(len(mu), k * k))
        sides = np.concatenate([u @ A, x @ A], axis=1)
        squares = np.einsum("ij,ijk,ik->i", sides, moments.reshape(-1, k, k), sides)
        bends = 2 * np.einsum("ij,ij->i", u @ A, self._sums(mu, x, expit, u))
        return w @ (squares + bends) / 2


def _softplus(logits):
    return np.logaddexp(0.0, logits)


def _bump(logits):
    return expit(logits) * expit(-logits)
