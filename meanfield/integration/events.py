"""Events: scalar functions of time and state whose zero crossings are located inside steps."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..checks import number

#: Samples of each step's interpolant; two crossings closer than a sixteenth of a step count as none.
SAMPLES = 16


@dataclass(frozen=True)
class Event:
    """A zero crossing to be located.

    Parameters
    ----------
    function : callable
        ``function(t, state) -> float``; the state is a Measure or a Gaussian.
    terminal : bool
        Whether the run stops there (Outcome.STOPPED, with the state of that moment in ``trajectory.last``).
    direction : {0, 1, -1}
        1 counts only crossings from below, -1 only from above, 0 both. A zero at the start is no crossing.
    """

    function: Callable
    terminal: bool = False
    direction: int = 0

    def __post_init__(self):
        if not callable(self.function):
            raise ValueError(f"an event's function must be callable, (t, state) -> float; got {self.function!r}.")
        if self.direction not in (-1, 0, 1):
            raise ValueError(f"an event's direction must be -1, 0 or 1; got {self.direction!r}.")

    def value(self, t, state):
        """The function's value as a float."""
        try:
            return float(self.function(t, state))
        except TypeError as error:
            raise ValueError(f"an event's function must return one number, (t, state) -> float; {error}.") from error


@dataclass(eq=False)
class EventWatch:
    """What one run remembers of its events: the last sign of each and the times found so far."""

    events: tuple
    signs: list = field(default_factory=list)
    times: list = field(default_factory=list)

    def begin(self, t, state):
        """Note the signs at the start; a zero leaves no sign."""
        self.signs = [np.sign(event.value(t, state)) for event in self.events]
        self.times = [[] for _ in self.events]

    def step(self, t0, t1, state_at):
        """Look through one step; returns the time of the first terminal event in it, or None.

        Parameters
        ----------
        t0, t1 : float
        state_at : callable
            ``state_at(t) -> state`` inside the step.
        """
        if not self.events:
            return None
        grid = t0 + (t1 - t0) * np.arange(1, SAMPLES + 1) / SAMPLES
        grid[-1] = t1
        states = [state_at(t) for t in grid]
        found = [
            (root, index)
            for index, event in enumerate(self.events)
            for root in self._roots(index, event, t0, grid, states, state_at)
        ]
        found.sort()
        for root, index in found:
            self.times[index].append(root)
            if self.events[index].terminal:
                return root
        return None

    def _roots(self, index, event, t0, grid, states, state_at):
        roots, before = [], t0
        for t, state in zip(grid, states, strict=True):
            sign = np.sign(event.value(t, state))
            if sign != 0 and np.isfinite(sign):
                if self.signs[index] * sign < 0 and event.direction in (0, sign):
                    roots.append(_crossing(event, before, t, state_at))
                self.signs[index] = sign
                before = t
        return roots


def _crossing(event, before, after, state_at):
    from scipy.optimize import brentq

    return brentq(lambda t: event.value(t, state_at(t)), before, after, xtol=4 * np.spacing(max(abs(before), abs(after))))


def check_events(events):
    """A tuple of events from one event, a list, or bare functions."""
    if isinstance(events, Event) or callable(events):
        events = (events,)
    events = tuple(event if isinstance(event, Event) else Event(event) for event in events)
    for event in events:
        number("direction", event.direction)
    return events
