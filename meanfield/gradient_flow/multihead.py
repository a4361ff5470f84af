"""The energy of several heads, constant or moving in time, with its explicit time part."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..checks import matrix_array, number
from ..measures import Gaussian
from ..parameters import Head
from .base import Energy, fitting, massive
from .interaction import InteractionEnergy
from .pairs import log_sums, tilted


@dataclass(frozen=True, eq=False)
class MultiHeadEnergy(Energy):
    """E_t(mu) = mean over heads h of 1/2 ∬ e^{x^T A_h(t)^T y} dmu dmu.

    Where heads move, dE/dt = (transport) + (explicit part) with the explicit part
    mean_h 1/2 ∬ (x^T A_h'(t)^T y) e^{x^T A_h^T y}: read the energy itself at a time, ``energy.at(t).value(mu)``.

    Parameters
    ----------
    heads : tuple of Head or Schedule
        At least one, of one dimension.
    rates : callable, optional
        ``rates(t) -> (H, d, d)``, the derivatives A_h'(t); needed by `time_derivative` for moving heads only.
    """

    heads: tuple
    rates: Callable[[float], np.ndarray] | None = field(default=None, kw_only=True)

    def __post_init__(self):
        heads = tuple(self.heads)
        if not heads or not all(callable(getattr(head, "at", None)) for head in heads):
            raise ValueError(f"heads must be a tuple of one or more Heads or Schedules; got {self.heads!r}.")
        object.__setattr__(self, "heads", heads)
        constant = all(isinstance(head, Head) for head in heads)
        object.__setattr__(self, "_parts", tuple(InteractionEnergy(head) for head in heads) if constant else None)

    @property
    def parts(self):
        """The interaction energies of constant heads; a ValueError if heads move."""
        if self._parts is None:
            raise ValueError("the heads of this energy move in time. Read it at a time: energy.at(t).value(mu).")
        return self._parts

    def at(self, t):
        """The energy with the heads as they stand at time t."""
        return self if self._parts is not None else MultiHeadEnergy(tuple(head.at(t) for head in self.heads))

    def time_derivative(self, t, law):
        """The explicit part of dE/dt at time t, the law held fixed; zero for constant heads.

        Raises
        ------
        ValueError
            If heads move and no ``rates`` were given.
        """
        if self._parts is not None:
            return 0.0
        if self.rates is None:
            raise ValueError(
                "the explicit time part of moving heads needs their rates. Use MultiHeadEnergy(heads, rates=rates), "
                "rates(t) -> (H, d, d), or moving.energy() of heads from moving_heads."
            )
        parts = self.at(t).parts
        rates = matrix_array("rates(t)", self.rates(t), parts[0].A.shape)
        if rates.shape[:-2] != (len(parts),):
            raise ValueError(f"rates(t) must give one matrix a head, ({len(parts)}, d, d); got shape {rates.shape}.")
        return float(np.mean([_explicit(part.A, rate, law) for part, rate in zip(parts, rates, strict=True)]))

    def ito_rate(self, mu, noise):
        """The Ito term of E when each A_h carries symmetric noise, sqrt(noise) (dZ + dZ^T) / 2: a drift of E.

        noise/8 mean_h ∬ e^{x^T A_h^T y} (|x|^2 |y|^2 + <x, y>^2); on the unit sphere 1 + <x, y>^2 [2605.18870].

        Parameters
        ----------
        mu : Measure
        noise : float
            2 for the published Ornstein-Uhlenbeck heads.
        """
        noise, mu = number("noise", noise, at_least=0), massive(mu)
        x, d = mu.points, mu.dimension
        values = np.concatenate([(x[:, :, None] * x[:, None, :]).reshape(len(x), -1), np.sum(x**2, 1)[:, None]], 1)
        total = 0.0
        for part in self.parts:
            means, logs = log_sums(x, part.A, x, mu.log_weights, values)
            mixed = np.einsum("ij,ijk,ik->i", x, means[:, :-1].reshape(-1, d, d), x)
            total += np.sum(np.exp(mu.log_weights + logs) * (np.sum(x**2, axis=1) * means[:, -1] + mixed))
        return float(noise / 8 * total / len(self.parts))

    def _mean(self, name, *arguments):
        return sum(getattr(part, name)(*arguments) for part in self.parts) / len(self.parts)

    def _measure_value(self, mu):
        return self._mean("_measure_value", mu)

    def _measure_variation(self, mu, x):
        return self._mean("_measure_variation", mu, x)

    def _measure_gradient(self, mu, x):
        return self._mean("_measure_gradient", mu, x)

    def _measure_second(self, mu, u):
        return self._mean("_measure_second", mu, u)

    def _gaussian_value(self, mean, root):
        return self._mean("_gaussian_value", mean, root)

    def _gaussian_variation(self, mean, root, x):
        return self._mean("_gaussian_variation", mean, root, x)

    def _gaussian_gradient(self, mean, root, x):
        return self._mean("_gaussian_gradient", mean, root, x)

    def _gaussian_first(self, mean, root, dm, dL):
        return self._mean("_gaussian_first", mean, root, dm, dL)

    def _gaussian_second(self, mean, root, dm, dL):
        return self._mean("_gaussian_second", mean, root, dm, dL)


def _explicit(A, rate, law):
    """1/2 ∬ (x^T A'^T y) e^{x^T A^T y} for one head."""
    fitting(A, law.dimension)
    if isinstance(law, Gaussian):
        log_total, covariance, p = tilted(law.mean, law.root, A)
        r = law.root.shape[1]
        tilt = covariance @ p
        x, y = law.mean + law.root @ tilt[:r], law.mean + law.root @ tilt[r:]
        pairs = np.outer(x, y) + law.root @ covariance[:r, r:] @ law.root.T
        return np.exp(log_total) / 2 * np.sum(rate.T * pairs)
    mu = massive(law)
    means, logs = log_sums(mu.points, A, mu.points, mu.log_weights, mu.points)
    return np.exp(mu.log_weights + logs) @ np.einsum("ij,ij->i", mu.points @ rate.T, means) / 2
