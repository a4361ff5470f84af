"""Metastability: long plateaus of a number, a cluster count or an energy, that a run comes to and leaves again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..checks import finite_array, number, time_array
from ..integration.trajectory import Outcome
from ..spaces import Euclidean, Sphere
from ..verdict import Verdict
from .clustering import cluster_count


class Plateau(NamedTuple):
    """A stretch of output times on which a number keeps its level; ``ended`` if it was seen to leave it."""

    start: float
    end: float
    level: float
    ended: bool

    @property
    def duration(self):
        """From start to end, in the time of the run."""
        return self.end - self.start


def plain_clock(times):
    """Time as it is."""
    return times


def plateaus(times, values, shortest, *, tolerance=0.0, clock=plain_clock):
    """The longest stretches on which values stay within ``tolerance`` of one another.

    The longest stretch is taken first, then the longest on either side of it, and so on.

    Parameters
    ----------
    times, values : array_like, shape (k,)
        Finite; times increase.
    shortest : float
        The least duration of a plateau, above 0.
    tolerance : float
        Largest minus smallest value on a plateau; 0 for counts.
    clock : callable
        ``clock(times) -> (k,)`` increasing: durations are measured on it. np.log10 is the clock of lifetimes that grow
        by factors (then leave out t = 0).

    Returns
    -------
    tuple of Plateau
        In the order of time, with the median of the values as level.
    """
    times, values = time_array("times", times), finite_array("values", values, 1)
    if len(values) != len(times):
        raise ValueError(f"values must be one a time; got {len(values)} values at {len(times)} times.")
    shortest = number("shortest", shortest, above=0)
    tolerance = number("tolerance", tolerance, at_least=0)
    ticks = np.asarray(clock(times), dtype=float)
    if ticks.shape != times.shape or not np.isfinite(ticks).all() or (np.diff(ticks) <= 0).any():
        raise ValueError(
            f"clock must turn the {len(times)} times into finite increasing numbers; got {ticks.tolist()[:3]}... "
            "A logarithmic clock needs times above 0."
        )
    found, open_stretches = [], [(0, len(times))]
    while open_stretches:
        low, high = open_stretches.pop()
        first, last = _longest(ticks[low:high], values[low:high], tolerance)
        first, last = low + first, low + last
        if ticks[last] - ticks[first] >= shortest:
            found.append((first, last))
            open_stretches += [part for part in ((low, first), (last + 1, high)) if part[1] - part[0] > 1]
    return tuple(
        Plateau(float(times[a]), float(times[b]), float(np.median(values[a : b + 1])), b < len(times) - 1)
        for a, b in sorted(found)
    )


def _longest(ticks, values, tolerance):
    """Ends (first, last) of the longest stretch with a range of at most the tolerance; the earliest of equals."""
    best, first, low, high = (0, 0), 0, values[0], values[0]
    for last, value in enumerate(values):
        low, high = min(low, value), max(high, value)
        if high - low > tolerance:
            first += int(np.flatnonzero(np.abs(values[first:last] - value) > tolerance)[-1]) + 1
            low, high = values[first : last + 1].min(), values[first : last + 1].max()
        if ticks[last] - ticks[first] > ticks[best[1]] - ticks[best[0]]:
            best = first, last
    return best


@dataclass(frozen=True)
class ClusterCount:
    """The number of clusters at a moment, ``(t, measure) -> int``, for detectors that watch a number.

    Parameters
    ----------
    gap : float
        Tokens at most this far apart belong together.
    space : Euclidean or Sphere
    view : callable, optional
        ``view(t, measure) -> measure``: the coordinates to look in.
    """

    gap: float
    space: Euclidean | Sphere = field(default=Euclidean(), kw_only=True)
    view: Callable | None = field(default=None, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "gap", number("gap", self.gap, above=0))

    def __call__(self, t, measure):
        """The count."""
        seen = measure if self.view is None else self.view(t, measure)
        return cluster_count(seen, self.gap, space=self.space)


@dataclass(frozen=True)
class MetastabilityDetector:
    """Says whether a run rests at some level of a number, and leaves it, before it comes to its last one [GKPR24].

    Parameters
    ----------
    observable : callable
        ``observable(t, state) -> float``: `ClusterCount` (gap), an energy, or your own.
    shortest : float
        The least duration of a plateau.
    tolerance : float
        Largest minus smallest value on one plateau; 0 for counts.
    clock : callable
        Durations are measured on it, see `plateaus`.

    Notes
    -----
    Called with a trajectory it returns a `Verdict` of kind "metastability": True if a plateau was left again (``time``
    is the start of the first such), False if the run came to its end without one, None if it broke off before. The
    plateau that lasts up to the end is no evidence: nobody knows whether it is stable. The evidence holds all
    ``plateaus``, the ``values`` and the ``times``.
    """

    observable: Callable
    shortest: float
    tolerance: float = field(default=0.0, kw_only=True)
    clock: Callable = field(default=plain_clock, kw_only=True)

    def __post_init__(self):
        if not callable(self.observable):
            raise ValueError(
                f"observable must be callable, (t, state) -> float; got {type(self.observable).__name__}. "
                "For clusters use ClusterCount(gap)."
            )
        object.__setattr__(self, "shortest", number("shortest", self.shortest, above=0))
        object.__setattr__(self, "tolerance", number("tolerance", self.tolerance, at_least=0))

    def __call__(self, trajectory):
        """Judge a trajectory."""
        values = np.array([self.observable(t, state) for t, state in trajectory.items()], dtype=float)
        found = plateaus(trajectory.times, values, self.shortest, tolerance=self.tolerance, clock=self.clock)
        left = [plateau for plateau in found if plateau.ended]
        happened = True if left else False if trajectory.outcome is Outcome.FINISHED else None
        levels = ", ".join(f"{one.level:g} from t = {one.start:g} to {one.end:g}" for one in found) or "no plateau"
        evidence = {
            "times": trajectory.times,
            "values": values,
            "plateaus": found,
            "outcome": trajectory.outcome.name,
            "reason": levels,
        }
        return Verdict("metastability", happened, left[0].start if left else None, evidence)
