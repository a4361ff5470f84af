"""Energies of the exponential interaction e^{x^T A^T y}: plain, in logarithms, and by its normaliser."""

from dataclasses import dataclass, field

import numpy as np

from ..measures import Gaussian
from .base import Energy, fitting, interaction_matrix, massive, symmetric
from .pairs import log_pairs_of_gaussian, log_pairs_of_measure, log_sums, row_moments, tilted


@dataclass(frozen=True, eq=False)
class InteractionEnergy(Energy):
    """E(mu) = 1/2 ∬ e^{x^T A^T y} dmu(x) dmu(y) [CACP25].

    For symmetric A the first variation is the softmax normaliser Z_mu(x) and its gradient Z A E[y | x], so softmax
    attention with V = H A is H / Z times it. On N(m, S) the energy is e^{...} det(I - S A S A)^{-1/2} / 2, finite
    where |S^{1/2} A S^{1/2}| < 1. Values beyond float64 are infinite: `LogInteractionEnergy` is not.

    Parameters
    ----------
    A : array_like, shape (d, d), or Head
        Of the logit; a Head gives scale K^T Q. It need not be symmetric.
    """

    A: np.ndarray

    #: E is this many times 1/2 ∬ e^{x^T A^T y}.
    factor = 1.0

    def __post_init__(self):
        object.__setattr__(self, "A", interaction_matrix(self.A))

    def _sides(self):
        """The logits seen from x: x^T A^T y and x^T A y, with their shares; one side where they agree."""
        return [(self.A, 1.0)] if symmetric(self.A) else [(self.A, 0.5), (self.A.T, 0.5)]

    def log_value(self, law):
        """log E(law), finite also where E is not representable."""
        if isinstance(law, Gaussian):
            fitting(self.A, law.dimension)
            logarithm = tilted(law.mean, law.root, self.A).value
        else:
            logarithm = self._log_pairs(massive(law))
        return float(logarithm + np.log(self.factor / 2))

    def _log_pairs(self, mu):
        fitting(self.A, mu.dimension)
        return np.logaddexp.reduce(mu.log_weights + log_sums(mu.points, self.A, mu.points, mu.log_weights)[1])

    def _scaled(self, log_pairs):
        """E from log of twice the plain energy, infinite on overflow."""
        with np.errstate(over="ignore"):
            return self.factor / 2 * np.exp(log_pairs)

    def _measure_value(self, mu):
        return self._scaled(self._log_pairs(mu))

    def _measure_variation(self, mu, x):
        fitting(self.A, mu.dimension)
        with np.errstate(over="ignore"):
            logs = [(share, log_sums(x, A, mu.points, mu.log_weights)[1]) for A, share in self._sides()]
            return self.factor * sum(share * np.exp(log) for share, log in logs)

    def _measure_gradient(self, mu, x):
        fitting(self.A, mu.dimension)
        total = np.zeros_like(x)
        for A, share in self._sides():
            means, logs = log_sums(x, A, mu.points, mu.log_weights, mu.points)
            with np.errstate(over="ignore"):
                total += (share * np.exp(logs))[:, None] * (means @ A)
        return self.factor * total

    def _measure_second(self, mu, u):
        fitting(self.A, mu.dimension)
        pairs = log_pairs_of_measure(mu, self.A, u)
        return self._scaled(pairs.value) * (pairs.second + pairs.first**2)

    def _gaussian_value(self, mean, root):
        fitting(self.A, len(mean))
        return self._scaled(tilted(mean, root, self.A).value)

    def _gaussian_rows(self, mean, root, x):
        """(share, log Z(x), its gradient) of each side: log Z = x^T A^T m + |L^T A x|^2 / 2."""
        fitting(self.A, len(mean))
        for A, share in self._sides():
            pulled = x @ A.T @ root
            yield share, x @ A.T @ mean + np.einsum("ij,ij->i", pulled, pulled) / 2, (mean + pulled @ root.T) @ A

    def _gaussian_variation(self, mean, root, x):
        with np.errstate(over="ignore"):
            return self.factor * sum(share * np.exp(log) for share, log, _ in self._gaussian_rows(mean, root, x))

    def _gaussian_gradient(self, mean, root, x):
        rows = self._gaussian_rows(mean, root, x)
        with np.errstate(over="ignore"):
            return self.factor * sum((share * np.exp(log))[:, None] * slope for share, log, slope in rows)

    def _gaussian_first(self, mean, root, dm, dL):
        fitting(self.A, len(mean))
        pairs = log_pairs_of_gaussian(mean, root, self.A, dm, dL)
        return self._scaled(pairs.value) * pairs.first

    def _gaussian_second(self, mean, root, dm, dL):
        fitting(self.A, len(mean))
        pairs = log_pairs_of_gaussian(mean, root, self.A, dm, dL)
        return self._scaled(pairs.value) * (pairs.second + pairs.first**2)


@dataclass(frozen=True, eq=False)
class LogInteractionEnergy(Energy):
    """F(mu) = log ∬ e^{x^T A^T y} dmu dmu = log(2 E): the interaction energy normalised by itself.

    Its gradient is that of E divided by E, so it has the same steepest paths at another pace, and no overflow.

    Parameters
    ----------
    A : array_like, shape (d, d), or Head
    """

    A: np.ndarray
    _plain: InteractionEnergy = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "_plain", InteractionEnergy(self.A))
        object.__setattr__(self, "A", self._plain.A)

    def _measure_value(self, mu):
        return self._plain._log_pairs(mu)

    def _measure_variation(self, mu, x):
        logs = [(share, log_sums(x, A, mu.points, mu.log_weights)[1]) for A, share in self._plain._sides()]
        total = self._plain._log_pairs(mu)
        return 2 * sum(share * np.exp(log - total) for share, log in logs)

    def _measure_gradient(self, mu, x):
        total, gradient = self._plain._log_pairs(mu), np.zeros_like(x)
        for A, share in self._plain._sides():
            means, logs = log_sums(x, A, mu.points, mu.log_weights, mu.points)
            gradient += (2 * share * np.exp(logs - total))[:, None] * (means @ A)
        return gradient

    def _measure_second(self, mu, u):
        fitting(self.A, mu.dimension)
        return log_pairs_of_measure(mu, self.A, u).second

    def _gaussian_value(self, mean, root):
        fitting(self.A, len(mean))
        return tilted(mean, root, self.A).value

    def _gaussian_variation(self, mean, root, x):
        total = self._gaussian_value(mean, root)
        return 2 * sum(share * np.exp(log - total) for share, log, _ in self._plain._gaussian_rows(mean, root, x))

    def _gaussian_gradient(self, mean, root, x):
        total = self._gaussian_value(mean, root)
        rows = self._plain._gaussian_rows(mean, root, x)
        return 2 * sum((share * np.exp(log - total))[:, None] * slope for share, log, slope in rows)

    def _gaussian_first(self, mean, root, dm, dL):
        fitting(self.A, len(mean))
        return log_pairs_of_gaussian(mean, root, self.A, dm, dL).first

    def _gaussian_second(self, mean, root, dm, dL):
        fitting(self.A, len(mean))
        return log_pairs_of_gaussian(mean, root, self.A, dm, dL).second


@dataclass(frozen=True, eq=False)
class LogNormaliserEnergy(Energy):
    """F(mu) = ∫ log Z_mu dmu with Z_mu(x) = ∫ e^{x^T A^T y} dmu(y): the mean log normaliser of softmax attention.

    On N(m, S) it is m^T A m + (m^T A^T S A m + tr(S A^T S A)) / 2, finite for every Gaussian. Its first variation is
    log Z_mu(x) + ∫ e^{x'^T A^T x} / Z_mu(x') dmu(x').

    Parameters
    ----------
    A : array_like, shape (d, d), or Head
    """

    A: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "A", interaction_matrix(self.A))

    def _measure_value(self, mu):
        fitting(self.A, mu.dimension)
        return mu.weights @ log_sums(mu.points, self.A, mu.points, mu.log_weights)[1]

    def _column_bias(self, mu):
        """The bias log w - log Z of tokens x' in the second part of the first variation."""
        return mu.log_weights - log_sums(mu.points, self.A, mu.points, mu.log_weights)[1]

    def _measure_variation(self, mu, x):
        fitting(self.A, mu.dimension)
        seen = log_sums(x, self.A.T, mu.points, self._column_bias(mu))[1]
        return log_sums(x, self.A, mu.points, mu.log_weights)[1] + np.exp(seen)

    def _measure_gradient(self, mu, x):
        fitting(self.A, mu.dimension)
        sees, _ = log_sums(x, self.A, mu.points, mu.log_weights, mu.points)
        seen, logs = log_sums(x, self.A.T, mu.points, self._column_bias(mu), mu.points)
        return sees @ self.A + np.exp(logs)[:, None] * (seen @ self.A.T)

    def _measure_second(self, mu, u):
        fitting(self.A, mu.dimension)
        rows = row_moments(mu.points, u, self.A, mu.log_weights)
        return mu.weights @ (rows.variance + rows.bend)

    def _gaussian_value(self, mean, root):
        fitting(self.A, len(mean))
        pulled = root.T @ self.A @ np.column_stack([mean, root])
        return mean @ self.A @ mean + np.sum(pulled**2) / 2

    def _gaussian_columns(self, mean, root, x):
        """log of ∫ e^{x'^T A^T x} / Z(x') dmu(x') and the mean of x' under that weight, at points x (m, d).

        1 / Z narrows the law of x' = m + L xi: xi is normal with covariance K = (I + P L L^T P^T)^{-1}, P = L^T A L.
        """
        pulled = root.T @ self.A
        at_mean, at_root = pulled @ mean, pulled @ root
        narrowed = np.eye(root.shape[1]) + at_root.T @ at_root
        b = (x - mean) @ self.A
        tilt = b @ root - at_root.T @ at_mean
        centres = np.linalg.solve(narrowed, tilt.T).T
        logs = b @ mean - at_mean @ at_mean / 2 + np.einsum("ij,ij->i", tilt, centres) / 2
        return logs - np.linalg.slogdet(narrowed)[1] / 2, mean + centres @ root.T

    def _gaussian_variation(self, mean, root, x):
        fitting(self.A, len(mean))
        pulled = x @ self.A.T @ root
        logs, _ = self._gaussian_columns(mean, root, x)
        return x @ self.A.T @ mean + np.einsum("ij,ij->i", pulled, pulled) / 2 + np.exp(logs)

    def _gaussian_gradient(self, mean, root, x):
        fitting(self.A, len(mean))
        logs, seen = self._gaussian_columns(mean, root, x)
        sees = mean + x @ self.A.T @ root @ root.T
        return sees @ self.A + np.exp(logs)[:, None] * (seen @ self.A.T)

    def _gaussian_pulled(self, mean, root, dm, dL):
        """L^T A [m | L] with its first two derivatives along (m', L')."""
        fitting(self.A, len(mean))
        both, moved = self.A @ np.column_stack([mean, root]), self.A @ np.column_stack([dm, dL])
        return root.T @ both, dL.T @ both + root.T @ moved, 2 * dL.T @ moved

    def _gaussian_first(self, mean, root, dm, dL):
        P, P1, _ = self._gaussian_pulled(mean, root, dm, dL)
        return dm @ self.A @ mean + mean @ self.A @ dm + np.sum(P * P1)

    def _gaussian_second(self, mean, root, dm, dL):
        P, P1, P2 = self._gaussian_pulled(mean, root, dm, dL)
        return 2 * dm @ self.A @ dm + np.sum(P1**2) + np.sum(P * P2)
