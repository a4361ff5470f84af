"""Events: scalar functions of time and state whose zero crossings are located inside steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
        1 counts only crossings from below, -1 only from above, 0 both. A zero at the start is no crossing, and nothing
        is said across a stretch where the function is NaN.
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
        value = self.function(t, state)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"an event's function must return one number, (t, state) -> float; at t = {t:.10g} it gave {value!r}."
            ) from error


class EventWatch:
    """What one run remembers of its events: the last sign of each and the times found so far.

    Parameters
    ----------
    events : tuple of Event
    start : float
        Time at the start of the run; ``s`` below is measured from there.
    """

    def __init__(self, events, start):
        self.events, self.start = events, start
        self.signs = []
        self.times = [[] for _ in events]

    def begin(self, state):
        """Note the signs at the start; a zero leaves no sign."""
        self.signs = [_sign(event.value(self.start, state)) for event in self.events]

    def step(self, before, after, state_at):
        """Look through the step from s = before to after; returns s of the first terminal event in it, or None.

        Parameters
        ----------
        before, after : float
        state_at : callable
            ``state_at(s) -> state`` inside the step; at ``before`` the very state that ended the step before.
        """
        if not self.events:
            return None
        grid = before + (after - before) * np.arange(1, SAMPLES + 1) / SAMPLES
        grid[-1] = after
        states = [state_at(s) for s in grid]
        found = [
            (root, index)
            for index in range(len(self.events))
            for root in self._roots(index, before, list(zip(grid, states, strict=True)), state_at)
        ]
        for root, index in sorted(found):
            self.times[index].append(self.start + root)
            if self.events[index].terminal:
                return root
        return None

    def _roots(self, index, before, samples, state_at):
        event, roots = self.events[index], []

        def value(s):
            return event.value(self.start + s, state_at(s))

        for s, state in samples:
            sign = _sign(event.value(self.start + s, state))
            if sign == 0:
                continue
            if self.signs[index] * sign < 0 and event.direction in (0, sign):
                roots.append(_crossing(value, before, s, self.signs[index]))
            self.signs[index] = sign
            before = s
        return roots


def _sign(value):
    """-1, 0 or 1; NaN for NaN, which makes no product negative."""
    return float(np.sign(value))


def _crossing(value, before, after, sign_before):
    """Where the value changes its sign between two samples; NaN in between counts as the sign before."""
    from scipy.optimize import brentq

    def valued(s):
        found = value(s)
        return sign_before if np.isnan(found) else found

    # A jump or a root of high order can take brentq as many as the square of bisection's steps.
    return brentq(valued, before, after, xtol=4 * np.spacing(max(abs(before), abs(after))), maxiter=10_000)


def check_events(events):
    """A tuple of events from one event, a list, or bare functions."""
    if isinstance(events, Event) or callable(events):
        events = (events,)
    if not isinstance(events, tuple | list):
        raise ValueError(f"events must be an Event, a function (t, state) -> float, or a list of them; got {events!r}.")
    return tuple(event if isinstance(event, Event) else Event(event) for event in events)
