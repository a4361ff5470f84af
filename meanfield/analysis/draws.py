"""Draws of tokens from a law, nested in n: samplers for mean-field limits, with positions for masked fields."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..checks import finite_array, mass_array, number
from ..measures import Measure


@dataclass(frozen=True)
class UniformBall:
    """The uniform law on a ball about the origin, as a sampler: compactly supported.

    Parameters
    ----------
    d : int
    radius : float
    """

    d: int
    radius: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "d", number("d", self.d, at_least=1, integer=True))
        object.__setattr__(self, "radius", number("radius", self.radius, above=0))

    def __call__(self, n, rng):
        """n independent tokens: a normal direction, and the d-th root of a uniform number for the radius."""
        x = rng.standard_normal((n, self.d))
        lengths = self.radius * rng.random(n) ** (1 / self.d)
        return Measure(x * (lengths / np.linalg.norm(x, axis=1))[:, None])


@dataclass(frozen=True, eq=False)
class AtPositions:
    """A sampler for masked fields: n independent tokens of one law at each of a few positions.

    Parameters
    ----------
    draw : callable
        ``draw(n, rng) -> Measure`` without positions and with equal weights, such as UniformBall(d).
    positions : array_like, shape (m,)
    masses : array_like, shape (m,), optional
        Of the positions; 1/m each by default.
    """

    draw: Callable
    positions: np.ndarray
    masses: np.ndarray = None

    def __post_init__(self):
        positions = finite_array("positions", self.positions, 1)
        m = len(positions)
        masses = np.full(m, 1 / m) if self.masses is None else mass_array("masses", self.masses, m)
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "masses", masses)

    def __call__(self, n, rng):
        """n tokens a position, m n in all."""
        tokens = np.concatenate([self.draw(n, rng).points for _ in self.positions])
        return Measure.positioned(np.repeat(self.positions, n), tokens, np.repeat(self.masses / n, n))


def first_tokens(law, n):
    """The system of the first n tokens of a draw; of a positioned one, the first n at each position.

    Parameters
    ----------
    law : Measure
        With equal weights, at each position if it has any.
    n : int

    Returns
    -------
    Measure

    Raises
    ------
    ValueError
        If a position has fewer than n tokens.
    """
    if not law.has_positions:
        return Measure(law.points[:n])
    _, at, counts = np.unique(law.positions, return_inverse=True, return_counts=True)
    if counts.min() < n:
        raise ValueError(
            f"a positioned draw must have n = {n} tokens at each position; one has {counts.min()}. "
            "Draw with AtPositions(draw, positions), which puts n at each of a few positions."
        )
    order = np.argsort(at, kind="stable")
    rank = np.empty(len(law), dtype=int)
    rank[order] = np.arange(len(law)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = rank < n
    masses = np.bincount(at, law.weights) / n
    return Measure(law.points[kept], masses[at[kept]], has_positions=True)


def drawn(draw, n, rng):
    """``draw(n, rng)``, checked to be a Measure of n tokens or more."""
    law = draw(n, rng)
    if not isinstance(law, Measure) or len(law) < n:
        raise ValueError(
            f"law must be a Gaussian or a function (n, rng) -> Measure of n tokens; it gave {type(law).__name__} "
            f"of {np.size(law, 0) if np.ndim(law) else 0} for n = {n}. For instance law=UniformBall(2)."
        )
    return law
