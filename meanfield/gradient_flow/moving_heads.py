"""Heads that move in time: driven by oscillating forces or by noise, with their fields and energies [2605.18870]."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..attention.multihead import MultiHeadAttention
from ..attention.softmax import SoftmaxAttention
from ..checks import finite_array, number
from ..parameters import Head, Schedule
from .multihead import MultiHeadEnergy


class MovingHeads(ABC):
    """Symmetric logit matrices D_h(t), h < H: A_h = D_h, values V_h = sign D_h / H."""

    @property
    @abstractmethod
    def count(self):
        """Number of heads H."""

    @abstractmethod
    def matrix(self, h, t):
        """D_h(t), shape (d, d)."""

    @abstractmethod
    def rate(self, h, t):
        """D_h'(t), shape (d, d); at a corner the slope to the right."""

    def field(self, *, sign=-1):
        """x -> sign mean_h D_h E_h[y | x], softmax in each head: sign -1 repels (descent), +1 attracts.

        Returns
        -------
        MultiHeadAttention
        """

        def head(h):
            # A field asks for its head several times at one time.
            @lru_cache(maxsize=4)
            def at(t):
                D = self.matrix(h, t)
                return Head(np.eye(len(D)), D, sign * D / self.count)

            return Schedule(at)

        return MultiHeadAttention(tuple(SoftmaxAttention(head(h)) for h in range(self.count)))

    def energy(self):
        """The `MultiHeadEnergy` of these heads, with the rates of its explicit part."""
        heads = tuple(attention.head for attention in self.field().fields)
        return MultiHeadEnergy(heads, rates=lambda t: np.stack([self.rate(h, t) for h in range(self.count)]))


@dataclass(frozen=True, eq=False)
class OscillatingHeads(MovingHeads):
    """D_h' = F_h(t) - D_h with forces F = mean + swing cos(frequency t + phase) entry by entry, solved exactly.

    D(t) = P(t) + e^{-t} (D(0) - P(0)), P = mean + swing (cos + frequency sin)(frequency t + phase) / (1 + frequency^2).

    Parameters
    ----------
    start, mean, swing, frequency, phase : array_like, shape (H, d, d)
        Symmetric in the last two axes.
    """

    start: np.ndarray
    mean: np.ndarray
    swing: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray

    def __post_init__(self):
        shape = np.shape(self.start)
        for name in ("start", "mean", "swing", "frequency", "phase"):
            array = finite_array(name, getattr(self, name), ndim=3)
            if array.shape != shape or shape[1] != shape[2] or (array != np.swapaxes(array, 1, 2)).any():
                raise ValueError(f"{name} must hold symmetric matrices, shape (H, d, d) = {shape}; got {array.shape}.")
            object.__setattr__(self, name, array)

    @property
    def count(self):
        """Number of heads H."""
        return len(self.start)

    def _forced(self, h, t):
        angle, frequency = self.frequency[h] * t + self.phase[h], self.frequency[h]
        return self.mean[h] + self.swing[h] * (np.cos(angle) + frequency * np.sin(angle)) / (1 + frequency**2)

    def matrix(self, h, t):
        """D_h(t), shape (d, d)."""
        return self._forced(h, t) + np.exp(-t) * (self.start[h] - self._forced(h, 0.0))

    def rate(self, h, t):
        """F_h(t) - D_h(t)."""
        force = self.mean[h] + self.swing[h] * np.cos(self.frequency[h] * t + self.phase[h])
        return force - self.matrix(h, t)


@dataclass(frozen=True, eq=False)
class SampledHeads(MovingHeads):
    """Heads given on a grid of times, straight in between: every path of a noise is one of these.

    Parameters
    ----------
    matrices : array_like, shape (K + 1, H, d, d)
        At times 0, dt, ..., K dt; symmetric in the last two axes.
    dt : float
        Fixed-step schemes should step by dt or by a part of it, so that corners fall between steps.
    """

    matrices: np.ndarray
    dt: float

    def __post_init__(self):
        matrices = finite_array("matrices", self.matrices, ndim=4)
        if len(matrices) < 2 or matrices.shape[2] != matrices.shape[3]:
            raise ValueError(f"matrices must have shape (K + 1, H, d, d) with K >= 1; got {matrices.shape}.")
        if np.abs(matrices - np.swapaxes(matrices, 2, 3)).max() > 1e-12 * np.abs(matrices).max():
            raise ValueError("matrices must be symmetric in their last two axes. Use (D + D.T) / 2.")
        object.__setattr__(self, "matrices", matrices)
        object.__setattr__(self, "dt", number("dt", self.dt, above=0))

    @property
    def count(self):
        """Number of heads H."""
        return self.matrices.shape[1]

    def _cell(self, t):
        """The interval of t and the place in it, in steps; a ValueError outside the grid."""
        last = len(self.matrices) - 1
        place = t / self.dt
        if not -1e-9 <= place <= last + 1e-9:
            raise ValueError(f"t must lie in [0, {last * self.dt:g}], where these heads are given; got {t:g}.")
        cell = min(max(int(np.floor(place + 1e-9)), 0), last - 1)
        return cell, place - cell

    def matrix(self, h, t):
        """D_h(t), shape (d, d)."""
        cell, place = self._cell(t)
        before, after = self.matrices[cell, h], self.matrices[cell + 1, h]
        return before + place * (after - before)

    def rate(self, h, t):
        """The slope of the piece that begins at or before t."""
        cell, _ = self._cell(t)
        return (self.matrices[cell + 1, h] - self.matrices[cell, h]) / self.dt


def _draw(count, d, rng):
    """Symmetric matrices Z + Z^T with standard normal Z, shape (count, d, d)."""
    Z = rng.standard_normal((count, d, d))
    return Z + np.swapaxes(Z, 1, 2)


def oscillating_heads(count, rng, *, d=3):
    """`OscillatingHeads` with the published parameters: forces 2 + 1.5 cos(t + phi_h) on the diagonal.

    phi_h = 2 pi h / H, D_h(0) = Z + Z^T. Off the diagonal the forces are sin 2t and sin t in turn (sin 2t, sin t, sin
    2t above the diagonal for d = 3); along the diagonal the phase moves on by 2 pi / d.

    Parameters
    ----------
    count : int
        Number of heads H.
    rng : numpy.random.Generator
    d : int
    """
    count, d = number("count", count, at_least=1, integer=True), number("d", d, at_least=1, integer=True)
    mean, swing, frequency, phase = np.zeros((4, count, d, d))
    heads = 2 * np.pi * np.arange(count) / count
    for i in range(d):
        mean[:, i, i], swing[:, i, i], frequency[:, i, i] = 2.0, 1.5, 1.0
        phase[:, i, i] = heads + 2 * np.pi * i / d
    for k, (i, j) in enumerate(zip(*np.triu_indices(d, 1), strict=True)):
        for a, b in ((i, j), (j, i)):
            swing[:, a, b], frequency[:, a, b], phase[:, a, b] = 1.0, 2.0 - k % 2, -np.pi / 2
    return OscillatingHeads(_draw(count, d, rng), mean, swing, frequency, phase)


def ou_heads(count, end, rng, *, d=3, dt=5e-3):
    """`SampledHeads` along an Ornstein-Uhlenbeck path dD = (I - D) dt + sqrt(2) dW, W = (B + B^T) / 2, D(0) = Z + Z^T.

    Stepped by its exact transition, so the variances (1 on the diagonal, 1/2 off it, once stationary) do not depend
    on dt.

    Parameters
    ----------
    count : int
        Number of heads H.
    end : float
        The path covers [0, end] at least.
    rng : numpy.random.Generator
    d : int
    dt : float
    """
    count, d = number("count", count, at_least=1, integer=True), number("d", d, at_least=1, integer=True)
    dt = number("dt", dt, above=0)
    steps = int(np.ceil(number("end", end, above=0) / dt - 1e-9))
    matrices = np.empty((steps + 1, count, d, d))
    matrices[0] = _draw(count, d, rng)
    keep, spread = np.exp(-dt), np.sqrt(-np.expm1(-2 * dt))
    for k in range(steps):
        matrices[k + 1] = np.eye(d) + keep * (matrices[k] - np.eye(d)) + spread * _draw(count, d, rng) / 2
    return SampledHeads(matrices, dt)
