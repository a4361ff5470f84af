"""The one loop: drives any flow with any scheme over the output times and leaves a trajectory, whatever happens."""

import time
from dataclasses import replace

import numpy as np

from ..checks import number, time_array
from ..flows import SplitFlow
from ..summation.balancing import NotConvergedError
from .adaptive import Adaptive, StepFailure, Stepper
from .events import EventWatch, check_events
from .poles import PoleWatch
from .progress import progress_of
from .trajectory import Moment, Outcome, Statistics, Trajectory

#: Evaluations after which an adaptive run stops, unless the caller says otherwise.
MAX_EVALUATIONS = 100_000


class _LimitMet(Exception):
    """A limit on evaluations or seconds, raised inside a rate and caught by the loop."""


def integrate(
    flow,
    times,
    *,
    scheme=None,
    dt=None,
    events=(),
    max_evaluations=None,
    max_seconds=None,
    progress=None,
):
    """Integrate a flow from its start over the output times.

    Parameters
    ----------
    flow : ParticleFlow, GaussianFlow or SplitFlow
    times : array_like, shape (k,)
        Strictly increasing; the first is the start.
    scheme : Adaptive or fixed-step scheme
        Adaptive() by default.
    dt : float, optional
        Largest step of a fixed-step scheme: each interval between output times is cut into the fewest equal steps
        that are not longer (up to round-off, so that 0.3 / 0.1 is three steps).
    events : Event, function, or a list of them
    max_evaluations : int, optional
        Default 100,000 for an adaptive scheme, none for a fixed step.
    max_seconds : float, optional
    progress : None, False or callable
        None shows a bar after a second when stderr is a terminal; a callable is given the fraction done.

    Returns
    -------
    Trajectory
        Failures of the mathematics are outcomes, never exceptions; a fixed-step run is never BLEW_UP (a step is a
        layer, not the ODE) but may end NOT_FINITE.

    Raises
    ------
    ValueError
        On bad input, which includes a field that returns a wrong shape.
    """
    run = _Run(flow, times, scheme, dt, check_events(events), max_evaluations, max_seconds)
    with progress_of(progress) as run.report, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return run.go()


class _Run:
    """The state of one run. Times inside are measured from the start, so that t0 = 1e9 costs and gives the same."""

    def __init__(self, flow, times, scheme, dt, events, max_evaluations, max_seconds):
        self.times = time_array("times", times)
        self.scheme = Adaptive() if scheme is None else scheme
        self.adaptive = isinstance(self.scheme, Adaptive)
        if not self.adaptive and not callable(self.scheme):
            raise ValueError(f"scheme must be Adaptive(...) or a fixed-step scheme such as RK4; got {scheme!r}.")
        if self.adaptive and dt is not None:
            raise ValueError("dt belongs to fixed-step schemes; use Adaptive(max_step=...) to limit adaptive steps.")
        if not self.adaptive and dt is None:
            raise ValueError(f"{self.scheme!r} has a fixed step and needs dt; pass dt=0.1, or use Adaptive().")
        self.dt = None if dt is None else number("dt", dt, above=0)
        if self.adaptive and not flow.smooth:
            raise ValueError(
                "a split flow with projections is not an ODE, so Adaptive cannot drive it. "
                "Use scheme=LieTrotter() or Strang() with dt."
            )
        if max_evaluations is not None:
            max_evaluations = number("max_evaluations", max_evaluations, at_least=1, integer=True)
        elif self.adaptive:
            max_evaluations = MAX_EVALUATIONS
        self.max_evaluations = max_evaluations
        self.max_seconds = None if max_seconds is None else number("max_seconds", max_seconds, above=0)
        self.flow = flow.for_run()
        self.source = flow
        self.start = self.times[0]
        self.outputs = self.times - self.start
        self.watch = EventWatch(events)
        self.evaluations = self.steps = 0
        self.began = time.monotonic()
        self.saved = []
        self.report = None

    def go(self):
        """Run to the end, whatever that is."""
        self.y = self.flow.pack(self.flow.start)
        self.s = 0.0
        self.saved.append(self.y)
        self.watch.begin(self.start, self.flow.state(self.y))
        try:
            if len(self.outputs) == 1:
                return self._ended(Outcome.FINISHED, "one output time: nothing to integrate")
            return self._adaptive() if self.adaptive else self._fixed()
        except NotConvergedError as error:
            return self._ended(Outcome.NOT_CONVERGED, f"at t = {self.start + self.s:.10g}: {error}")
        except _LimitMet as limit:
            return self._ended(Outcome.LIMIT, str(limit))

    def rate(self, s, y):
        """The flow's rate, counted against the limits."""
        self._count(1)
        return self.flow.rate(self.start + s, y)

    def _count(self, evaluations):
        self.evaluations += evaluations
        if self.max_evaluations is not None and self.evaluations > self.max_evaluations:
            raise _LimitMet(
                f"max_evaluations = {self.max_evaluations} was met at t = {self.start + self.s:.10g} of "
                f"{self.times[-1]:.10g}, after {self.steps} steps."
            )
        spent = time.monotonic() - self.began
        if self.max_seconds is not None and spent > self.max_seconds:
            raise _LimitMet(
                f"max_seconds = {self.max_seconds:g} was met at t = {self.start + self.s:.10g} of "
                f"{self.times[-1]:.10g}, after {self.evaluations} evaluations in {spent:.3g} s."
            )

    def _adaptive(self):
        shape, flow = self.y.shape, self.flow

        def flat_rate(s, y):
            try:
                return np.ravel(self.rate(s, flow.retract(y.reshape(shape))))
            except np.linalg.LinAlgError:
                return np.full(y.size, np.nan)

        if not np.isfinite(flat_rate(0.0, self.y.ravel())).all():
            return self._ended(Outcome.NOT_FINITE, f"the velocity at the start, t = {self.start:.10g}, is not finite.")
        poles = PoleWatch()
        try:
            stepper = Stepper(self.scheme, flat_rate, self.y.ravel(), self.outputs[-1])
            while self.s < self.outputs[-1]:
                stepper.step()
                self.steps += 1
                stopped = self._accepted(stepper, shape)
                if stopped is not None:
                    return self._ended(Outcome.STOPPED, f"terminal event at t = {self.start + stopped:.10g}.")
                here = flow.growing(self.y)
                poles.step(self.s, here, flow.growing(stepper.rate_here().reshape(shape)))
                if poles.confirmed and len(self.saved) < len(self.outputs):
                    pole = poles.estimate()
                    if self.outputs[len(self.saved)] >= pole:
                        return self._blew_up(pole)
        except StepFailure as failure:
            return self._stuck(failure, poles)
        return self._ended(Outcome.FINISHED, "")

    def _accepted(self, stepper, shape):
        """Save what lies in the last step and look for events; returns the time of a terminal event, or None."""
        flow, before, after = self.flow, self.s, stepper.t
        end = flow.retract(stepper.y.reshape(shape))
        needs_inside = self.watch.events or self.outputs[len(self.saved)] < after
        inside = stepper.interpolant() if needs_inside else None

        def y_at(s):
            return end if s == after else flow.retract(inside(s).reshape(shape))

        return self._look_through(before, after, y_at)

    def _look_through(self, before, after, y_at):
        stopped = self.watch.step(
            self.start + before, self.start + after, lambda t: self.flow.state(y_at(min(max(t - self.start, before), after)))
        )
        until = after if stopped is None else stopped - self.start
        while len(self.saved) < len(self.outputs) and self.outputs[len(self.saved)] <= until:
            self.saved.append(y_at(self.outputs[len(self.saved)]))
        self.s, self.y = until, y_at(until)
        if self.report is not None:
            self.report(until / self.outputs[-1])
        return None if stopped is None else until

    def _blew_up(self, pole):
        return self._ended(
            Outcome.BLEW_UP,
            f"blow-up at t* = {self.start + pole:.10g}; the next output time lies beyond it.",
            blow_up_time=self.start + pole,
        )

    def _stuck(self, failure, poles):
        if poles.confirmed:
            return self._blew_up(poles.estimate())
        if not failure.finite:
            return self._ended(
                Outcome.NOT_FINITE, f"the velocity stopped being finite just after t = {self.start + self.s:.10g}."
            )
        return self._ended(
            Outcome.STALLED,
            f"the step size fell to round-off at t = {self.start + self.s:.10g} without signs of a pole; "
            "the field may be discontinuous there, or rtol too small.",
        )

    def _fixed(self):
        flow = _counted(self.flow, self._count)
        for k in range(1, len(self.outputs)):
            left, right = self.outputs[k - 1], self.outputs[k]
            count = _steps(right - left, self.dt)
            for j in range(count):
                before = left + (right - left) * j / count
                after = right if j == count - 1 else left + (right - left) * (j + 1) / count
                y = self.scheme(flow, self.start + before, self.y, (right - left) / count)
                self.steps += 1
                if not np.isfinite(y).all():
                    return self._ended(
                        Outcome.NOT_FINITE, f"the step from t = {self.start + before:.10g} overflowed or gave NaN."
                    )
                stopped = self._look_through(before, after, _between(self, before, after, self.y, y))
                if stopped is not None:
                    return self._ended(Outcome.STOPPED, f"terminal event at t = {self.start + stopped:.10g}.")
        return self._ended(Outcome.FINISHED, "")

    def _ended(self, outcome, message, blow_up_time=None):
        reached = len(self.saved)
        return Trajectory(
            self.times[:reached],
            np.stack(self.saved),
            self.source,
            outcome,
            message,
            Moment(float(self.start + self.s), self.source.state(self.y)),
            None if blow_up_time is None else float(blow_up_time),
            [np.array(times) for times in self.watch.times],
            Statistics(self.evaluations, self.steps, time.monotonic() - self.began),
        )


class _Counted:
    """A flow as a fixed-step scheme sees it: every rate goes through the run's counter."""

    def __init__(self, flow, count):
        self._flow, self._count = flow, count

    def rate(self, t, y):
        self._count(1)
        return self._flow.rate(t, y)

    def __getattr__(self, name):
        return getattr(self._flow, name)


def _counted(flow, count):
    if isinstance(flow, SplitFlow):
        return replace(flow, parts=tuple(_counted(part, count) for part in flow.parts))
    return _Counted(flow, count)


def _steps(span, dt):
    """The fewest equal steps of at most dt that fill the span, up to round-off."""
    ratio = span / dt
    nearest = max(round(ratio), 1)
    return nearest if abs(ratio - nearest) <= 1e-9 * nearest else int(np.ceil(ratio))


def _between(run, before, after, y0, y1):
    """States inside a fixed step: cubic Hermite on smooth flows, linear otherwise; made only when asked."""
    rates = []

    def y_at(s):
        if s >= after:
            return y1
        if s <= before:
            return y0
        z = (s - before) / (after - before)
        straight = (1 - z) * y0 + z * y1
        if not run.flow.smooth:
            return straight
        if not rates:
            rates.extend([run.rate(before, y0), run.rate(after, y1)])
        span = after - before
        bend = z * (z - 1) * ((1 - 2 * z) * (y1 - y0) + (z - 1) * span * rates[0] + z * span * rates[1])
        return run.flow.retract(straight + bend)

    return y_at
