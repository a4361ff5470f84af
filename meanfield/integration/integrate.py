"""The one loop: drives any flow with any scheme over the output times and leaves a trajectory, whatever happens."""

import time
import warnings
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ..checks import number, time_array
from ..flows import SplitFlow
from ..summation.balancing import NotConvergedError
from ..velocity import NotGaussianError
from .adaptive import Adaptive, StepFailure, Stepper
from .events import EventWatch, check_events
from .poles import PoleWatch
from .progress import progress_of
from .schemes import RungeKutta
from .trajectory import Moment, Outcome, Statistics, Trajectory

#: What a field raises when its numbers run away: no error of the caller, but a rate that is not finite.
ARITHMETIC = (np.linalg.LinAlgError, OverflowError, ZeroDivisionError, FloatingPointError)

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
    with progress_of(progress) as run.report, _failures_are_results():
        return run.go()


@contextmanager
def _failures_are_results():
    """No floating-point error and no warning of a solver about its own failure: the outcome says it."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="lsoda: ")
        warnings.filterwarnings("ignore", message="Diagonal number .* is exactly zero")
        yield


class _Run:
    """The state of one run. Times inside are measured from the start, so that t0 = 1e9 costs and gives the same."""

    def __init__(self, flow, times, scheme, dt, events, max_evaluations, max_seconds):
        self.times = time_array("times", times)
        self.scheme = Adaptive() if scheme is None else scheme
        self.adaptive = isinstance(self.scheme, Adaptive)
        _check_fit(flow, self.scheme, dt)
        self.dt = None if dt is None else number("dt", dt, above=0)
        if max_evaluations is not None:
            max_evaluations = number("max_evaluations", max_evaluations, at_least=1, integer=True)
        elif self.adaptive:
            max_evaluations = MAX_EVALUATIONS
        self.max_evaluations = max_evaluations
        self.max_seconds = None if max_seconds is None else number("max_seconds", max_seconds, above=0)
        self.source = flow
        self.flow = _guarded(flow.for_run(), self._count)
        self.start = self.times[0]
        self.outputs = self.times - self.start
        self.watch = EventWatch(events, self.start)
        self.evaluations = self.steps = 0
        self.began = time.monotonic()
        self.saved = []
        self.report = None

    def go(self):
        """Run to the end, whatever that is."""
        self.y = self.flow.pack(self.flow.start)
        self.s = 0.0
        self.saved.append(self.y)
        self.watch.begin(self.flow.state(self.y.copy()))
        try:
            if len(self.outputs) == 1:
                return self._ended(Outcome.FINISHED, "one output time: nothing to integrate")
            return self._adaptive() if self.adaptive else self._fixed()
        except NotConvergedError as error:
            return self._ended(Outcome.NOT_CONVERGED, f"at t = {self.start + self.s:.10g}: {error}")
        except _LimitMet as limit:
            return self._ended(Outcome.LIMIT, str(limit))

    def _count(self):
        """Count one evaluation of a field against the limits."""
        if self.evaluations == self.max_evaluations:
            raise _LimitMet(
                f"max_evaluations = {self.max_evaluations} was met at t = {self.start + self.s:.10g} of "
                f"{self.times[-1]:.10g}, after {self.steps} steps."
            )
        self.evaluations += 1
        spent = time.monotonic() - self.began
        if self.max_seconds is not None and spent > self.max_seconds:
            raise _LimitMet(
                f"max_seconds = {self.max_seconds:g} was met at t = {self.start + self.s:.10g} of "
                f"{self.times[-1]:.10g}, after {self.evaluations} evaluations in {spent:.3g} s."
            )

    def _adaptive(self):
        shape, flow = self.y.shape, self.flow

        def flat_rate(s, y):
            return np.ravel(flow.rate(self.start + s, flow.retract(y.reshape(shape))))

        if not np.isfinite(flat_rate(0.0, self.y.ravel())).all():
            return self._ended(Outcome.NOT_FINITE, f"the velocity at the start, t = {self.start:.10g}, is not finite.")
        poles, whole = PoleWatch(), PoleWatch()
        try:
            size = np.abs(flow.growing(self.y)).max(initial=0.0)
            stepper = Stepper(self.scheme, flat_rate, self.y.ravel(), self.outputs[-1], size)
            while self.s < self.outputs[-1]:
                stepper.step()
                stopped = self._accepted(stepper, shape)
                if stopped is not None:
                    return self._stopped(stopped)
                rate = stepper.rate_here().reshape(shape)
                poles.step(self.s, flow.growing(self.y), flow.growing(rate))
                whole.step(self.s, self.y, rate)
                if poles.confirmed and len(self.saved) < len(self.outputs):
                    pole = poles.estimate()
                    if self.outputs[len(self.saved)] >= pole:
                        return self._blew_up(pole)
        except StepFailure as failure:
            return self._stuck(failure, poles, whole)
        return self._ended(Outcome.FINISHED, "")

    def _accepted(self, stepper, shape):
        """Save what lies in the last step and look for events; returns s of a terminal event, or None."""
        flow, before, after, y = self.flow, self.s, stepper.t, self.y
        end = flow.retract(stepper.y.reshape(shape))
        needs_inside = self.watch.events or self.outputs[len(self.saved)] < after
        inside = stepper.interpolant() if needs_inside else None

        def y_at(s):
            if s <= before:
                return y
            return end if s >= after else flow.retract(inside(s).reshape(shape))

        return self._look_through(before, after, y_at)

    def _look_through(self, before, after, y_at):
        self.steps += 1
        # Copies: an event may work in place.
        stopped = self.watch.step(before, after, lambda s: self.flow.state(y_at(s).copy()))
        until = after if stopped is None else stopped
        while len(self.saved) < len(self.outputs) and self.outputs[len(self.saved)] <= until:
            self.saved.append(y_at(self.outputs[len(self.saved)]))
        self.s, self.y = until, y_at(until)
        if self.report is not None:
            self.report(float(until / self.outputs[-1]))
        return stopped

    def _stopped(self, s):
        return self._ended(Outcome.STOPPED, f"terminal event at t = {self.start + s:.10g}.")

    def _blew_up(self, pole):
        return self._ended(
            Outcome.BLEW_UP,
            f"blow-up at t* = {self.start + pole:.10g}; the next output time lies beyond it.",
            blow_up_time=self.start + pole,
        )

    def _stuck(self, failure, poles, whole):
        # What is not watched for growth on the way (the mean of a Gaussian) may have a pole of its own.
        for watch in (poles, whole):
            if watch.confirmed:
                return self._blew_up(watch.estimate())
        if not failure.finite:
            return self._ended(
                Outcome.NOT_FINITE, f"the velocity stopped being finite just after t = {self.start + self.s:.10g}."
            )
        pole = poles.at_collapse(self.s)
        if pole is not None:
            return self._blew_up(pole)
        return self._ended(
            Outcome.STALLED,
            f"the step size fell to round-off at t = {self.start + self.s:.10g} without signs of a pole; "
            "the field may be discontinuous there, or rtol too small.",
        )

    def _fixed(self):
        for left, right in zip(self.outputs, self.outputs[1:], strict=False):
            count = _steps(right - left, self.dt)
            dt = (right - left) / count
            for k in range(count):
                before, after = left + k * dt, right if k == count - 1 else left + (k + 1) * dt
                y = self.scheme(self.flow, self.start + before, self.y, dt)
                if not np.isfinite(y).all():
                    return self._ended(
                        Outcome.NOT_FINITE, f"the step from t = {self.start + before:.10g} overflowed or gave NaN."
                    )
                stopped = self._look_through(before, after, self._between(before, after, self.y, y))
                if stopped is not None:
                    return self._stopped(stopped)
        return self._ended(Outcome.FINISHED, "")

    def _between(self, before, after, y0, y1):
        """States inside a fixed step: cubic Hermite on smooth flows, linear otherwise; rates only if needed."""
        rates, span = [], after - before

        def y_at(s):
            if s <= before:
                return y0
            if s >= after:
                return y1
            z = (s - before) / span
            straight = (1 - z) * y0 + z * y1
            if not self.flow.smooth:
                return straight
            if not rates:
                rates.extend(self.flow.rate(self.start + t, y) for t, y in ((before, y0), (after, y1)))
                if not np.isfinite(rates).all():
                    rates[:] = 2 * [(y1 - y0) / span]
            bend = z * (z - 1) * ((1 - 2 * z) * (y1 - y0) + (z - 1) * span * rates[0] + z * span * rates[1])
            return self.flow.retract(straight + bend)

        return y_at

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


class _Guarded:
    """A flow whose rate is counted, is never asked at a state that is not finite, and is NaN where arithmetic fails.

    A field that has a Gaussian reduction at the start and loses it on the way has left its domain: NaN as well.
    """

    def __init__(self, flow, count):
        self._flow, self._count = flow, count
        self._begun = False

    def rate(self, t, y):
        if not np.isfinite(y).all():
            return np.full_like(y, np.nan)
        self._count()
        try:
            rate = self._flow.rate(t, y)
        except ARITHMETIC:
            return np.full_like(y, np.nan)
        except NotGaussianError:
            if self._begun:
                return np.full_like(y, np.nan)
            raise
        self._begun = True
        return rate

    def __getattr__(self, name):
        return getattr(self._flow, name)


def _guarded(flow, count):
    """Guards around a flow, or around each part of a split one."""
    if isinstance(flow, SplitFlow):
        return replace(flow, parts=tuple(_guarded(part, count) for part in flow.parts))
    return _Guarded(flow, count)


def _check_fit(flow, scheme, dt):
    """Raise a ValueError unless flow, scheme and dt go together."""
    if not hasattr(flow, "rate"):
        raise ValueError(
            f"flow must be a ParticleFlow, GaussianFlow or SplitFlow; got {type(flow).__name__}. "
            "Use simulate(field, start, times) for a field."
        )
    adaptive = isinstance(scheme, Adaptive)
    if not adaptive and (isinstance(scheme, type) or not callable(scheme)):
        raise ValueError(
            "scheme must be Adaptive() or a fixed-step scheme: EULER, HEUN, RK4, LieTrotter() or Strang(); "
            f"got {scheme!r}."
        )
    if adaptive and dt is not None:
        raise ValueError("dt belongs to fixed-step schemes; use Adaptive(max_step=...) to limit adaptive steps.")
    if not adaptive and dt is None:
        raise ValueError(f"{scheme!r} has a fixed step and needs dt; pass dt=0.1, or use Adaptive().")
    if isinstance(scheme, Adaptive | RungeKutta) and not flow.smooth:
        raise ValueError(
            f"a split flow with projections is not an ODE, so {scheme!r} cannot drive it. "
            "Use scheme=LieTrotter() or Strang() with dt."
        )


def _steps(span, dt):
    """The fewest equal steps of at most dt that fill the span, up to round-off."""
    ratio = span / dt
    if not ratio < 2**53:
        raise ValueError(f"dt must be a sensible part of the interval between output times, {span:g}; got {dt:g}.")
    nearest = max(round(ratio), 1)
    return nearest if abs(ratio - nearest) <= 1e-9 * nearest else int(np.ceil(ratio))
