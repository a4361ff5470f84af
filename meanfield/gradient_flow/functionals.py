"""Functionals of Gaussians in closed form: entropies, squared Bures distance and Sinkhorn divergence to a target."""

from dataclasses import dataclass

import numpy as np

from ..analysis.distances import bures_wasserstein
from ..checks import number
from ..measures import Gaussian
from ..velocity import AffineMap
from .base import Energy, OutsideDomainError
from .spectral import EvenFunction, singular_second, singular_sum


def _full(name, root, what):
    """The root as a square invertible matrix, or a ValueError naming the condition."""
    d, r = root.shape[0], np.linalg.matrix_rank(root)
    if r < d:
        raise OutsideDomainError(
            f"{name} needs a non-singular covariance for {what}; got rank {r} in dimension {d}. "
            "Add a multiple of the identity to it, or restrict the law to its support."
        )
    return root


def _one_gaussian(name, law):
    if not isinstance(law, Gaussian) or law.mean.ndim != 1:
        raise ValueError(f"{name} must be one Gaussian; got {type(law).__name__}. Use Gaussian(mean, covariance).")


class _AffineGradient(Energy):
    """An energy of Gaussians whose gradient is affine: first variation and derivative follow from it."""

    def _gaussian_gradient(self, mean, root, x):
        return self.affine_gradient(Gaussian.from_root(mean, root))(x)

    def _gaussian_variation(self, mean, root, x):
        """The primitive of the gradient with mean zero under the law (a first variation is known up to a constant)."""
        affine = self.affine_gradient(Gaussian.from_root(mean, root))
        z = x - mean
        curved = np.einsum("ij,jk,ik->i", z, affine.matrix, z) - np.einsum("ji,jk,ki", root, affine.matrix, root)
        return z @ affine(mean[None])[0] + curved / 2

    def _gaussian_first(self, mean, root, dm, dL):
        affine = self.affine_gradient(Gaussian.from_root(mean, root))
        return affine(mean[None])[0] @ dm + np.sum((affine.matrix @ root) * dL)


@dataclass(frozen=True, eq=False)
class NegativeEntropy(_AffineGradient):
    """∫ rho log rho = -1/2 log det(2 pi e S) of N(m, S): finite for non-singular S, convex along Bures geodesics."""

    def _gaussian_value(self, mean, root):
        root = _full("NegativeEntropy", root, "a finite value")
        return -np.linalg.slogdet(root)[1] - len(mean) / 2 * np.log(2 * np.pi * np.e)

    def affine_gradient(self, law):
        """x -> -S^{-1} (x - m)."""
        inverse = np.linalg.inv(_full("NegativeEntropy", law.root, "its gradient"))
        precision = inverse.T @ inverse
        return AffineMap(-precision, precision @ law.mean)

    def _gaussian_second(self, mean, root, dm, dL):
        B = dL @ np.linalg.inv(_full("NegativeEntropy", root, "its second variation"))
        return np.einsum("ij,ji", B, B)


@dataclass(frozen=True, eq=False)
class RelativeEntropy(_AffineGradient):
    """KL(N(m, S) | target) = 1/2 (tr(P* S) + |m - m*|_{P*}^2 - d - log det(P* S)), P* the precision of the target.

    Parameters
    ----------
    target : Gaussian
        With non-singular covariance; the law's must be non-singular too.
    """

    target: Gaussian

    def __post_init__(self):
        _one_gaussian("target", self.target)
        _full("RelativeEntropy", self.target.root, "its target")

    def _whitened(self, mean, root):
        """Mean and root in the coordinates where the target is standard."""
        _full("RelativeEntropy", root, "a finite value")
        return np.linalg.solve(self.target.root, mean - self.target.mean), np.linalg.solve(self.target.root, root)

    def _gaussian_value(self, mean, root):
        z, R = self._whitened(mean, root)
        return (np.sum(R**2) + z @ z - len(mean)) / 2 - np.linalg.slogdet(R)[1]

    def affine_gradient(self, law):
        """x -> P* (x - m*) - S^{-1} (x - m)."""
        own = NegativeEntropy().affine_gradient(law)
        towards = NegativeEntropy().affine_gradient(self.target)
        return AffineMap(own.matrix - towards.matrix, own.offset - towards.offset)

    def _gaussian_second(self, mean, root, dm, dL):
        _, R = self._whitened(mean, root)
        moved = np.linalg.solve(self.target.root, np.column_stack([dm, dL]))
        B = np.linalg.solve(R.T, moved[:, 1:].T)
        return np.einsum("ij,ji", B, B) + np.sum(moved**2)


#: |s|, with the value at zero that is never reached on non-singular laws.
ABSOLUTE = EvenFunction(np.abs, np.sign, np.zeros_like)


@dataclass(frozen=True, eq=False)
class BuresEnergy(_AffineGradient):
    """1/2 W_2^2(., target) on Gaussians: finite for all; gradient x - T(x) with the optimal map T, S non-singular.

    With S = L L^T the distance is |m - m*|^2 + |L|^2 + |L*|^2 - 2 (sum of the singular values of L*^T L).

    Parameters
    ----------
    target : Gaussian
        Of full rank where a second variation is asked for.
    """

    target: Gaussian

    def __post_init__(self):
        _one_gaussian("target", self.target)

    def _gaussian_value(self, mean, root):
        return bures_wasserstein(Gaussian.from_root(mean, root), self.target) ** 2 / 2

    def affine_gradient(self, law):
        """x -> x - m* - T (x - m), T = L* U W^T L^{-1} with L*^T L = U diag(s) W^T."""
        root = _full("BuresEnergy", law.root, "its gradient")
        U, _, Wt = np.linalg.svd(self.target.root.T @ root, full_matrices=False)
        T = np.linalg.solve(root.T, (self.target.root @ U @ Wt).T).T
        matrix = np.eye(len(T)) - (T + T.T) / 2
        return AffineMap(matrix, law.mean - self.target.mean - matrix @ law.mean)

    def _gaussian_second(self, mean, root, dm, dL):
        other = _full("BuresEnergy", self.target.root, "its second variation").T
        root = _full("BuresEnergy", root, "its second variation")
        bend = singular_second(ABSOLUTE, other @ root, other @ dL, np.zeros_like(dL))
        return dm @ dm + np.sum(dL**2) - bend


@dataclass(frozen=True, eq=False)
class SinkhornDivergenceEnergy(_AffineGradient):
    """S_eps(., target) on Gaussians, for the cost |x - y|^2 and eps KL: finite for all, singular laws included.

    S_eps = |m - m*|^2 - sum h(s) + 1/2 sum h(s') up to the target's own 1/2 sum h, with s the singular values of
    L^T L*, s' those of L^T L, h(s) = 2 s xi + eps/2 log(1 - xi^2), xi = (sqrt(eps^2 + 16 s^2) - eps) / (4 s): the
    entropic costs of [JMPC20] without their traces, which cancel. Its W_2 descent is the flow of [HL26]; for commuting
    covariances an eigenvalue c with target b obeys c' = 4 (sqrt(c b + k^2) - sqrt(c^2 + k^2)), k = eps / 4.

    Parameters
    ----------
    target : Gaussian
    epsilon : float
        Positive.
    """

    target: Gaussian
    epsilon: float

    def __post_init__(self):
        _one_gaussian("target", self.target)
        object.__setattr__(self, "epsilon", number("epsilon", self.epsilon, above=0))

    @property
    def rates(self):
        """Final exponential rates 2 b / sqrt(b^2 + eps^2 / 16) of its descent along the target's eigenvalues b, rising.

        A rate of zero (b = 0: the target lives on a subspace) is no exponential: c ~ eps / (8 t) [HL26].
        """
        b = np.linalg.eigvalsh(self.target.covariance)
        b = np.where(b > len(b) * np.finfo(float).eps * b[-1], b, 0.0)
        return 2 * b / np.hypot(b, self.epsilon / 4)

    @property
    def _h(self):
        eps = self.epsilon

        def ratio(s):
            return 4 / (eps + np.hypot(eps, 4 * s))

        def value(s):
            xi = s * ratio(s)
            return 2 * s * xi + eps / 2 * np.log1p(-(xi**2))

        return EvenFunction(value, lambda s: 2 * s * ratio(s), lambda s: 2 * eps * ratio(s) / np.hypot(eps, 4 * s))

    def _gaussian_value(self, mean, root):
        h, other = self._h, self.target.root
        own = singular_sum(h, root.T @ root) + singular_sum(h, other.T @ other)
        return np.sum((mean - self.target.mean) ** 2) - singular_sum(h, root.T @ other) + own / 2

    def _conditional(self, root, other):
        """The matrix of x -> E[y | x] for centred laws: L* W diag(xi / s) W^T L*^T with L^T L* = U diag(s) W^T."""
        _, s, Wt = np.linalg.svd(root.T @ other, full_matrices=False)
        side = Wt @ other.T
        return side.T @ ((4 / (self.epsilon + np.hypot(self.epsilon, 4 * s)))[:, None] * side)

    def affine_gradient(self, law):
        """x -> 2 (E_self[y | x] - E_target[y | x])."""
        matrix = 2 * (self._conditional(law.root, law.root) - self._conditional(law.root, self.target.root))
        return AffineMap(matrix, 2 * (law.mean - self.target.mean) - matrix @ law.mean)

    def _gaussian_second(self, mean, root, dm, dL):
        h, other = self._h, self.target.root
        cross = singular_second(h, root.T @ other, dL.T @ other, np.zeros((dL.shape[1], other.shape[1])))
        own = singular_second(h, root.T @ root, dL.T @ root + root.T @ dL, 2 * dL.T @ dL)
        return 2 * dm @ dm - cross + own / 2
