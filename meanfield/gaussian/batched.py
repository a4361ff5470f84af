"""The batched integrator: Dormand-Prince 8(5,3) on many Gaussians, each with its own step size.

Every loop is over steps, none over instances. Instances that end leave the batch, so they cost nothing more.
"""

from dataclasses import replace

import numpy as np
from scipy.integrate import DOP853

from ..flows import GaussianFlow
from ..integration.integrate import integrate
from ..integration.poles import ENOUGH, FALLING, LEAST_ORDER, REACH, SHRINKAGE, UNRESOLVED
from ..integration.trajectory import Outcome
from ..measures import Gaussian
from ..parameters import Head
from ..velocity import SumField, affine_on_gaussian

#: Steps that the pole watch of each instance remembers; a pole takes about forty from scale to scale / 1e6.
REMEMBERED = 96
#: Largest entry of [m | L] whose square still has room in float64.
LARGEST = 1e150


def narrowed(field, indices):
    """The field with the heads of some instances only; heads that all share are left alone."""
    if isinstance(field, SumField):
        return replace(field, fields=tuple(narrowed(part, indices) for part in field.fields))
    head = getattr(field, "head", None)
    if isinstance(head, Head) and head.query.ndim > 2:
        return replace(field, head=head.take(indices))
    return field


class BatchedRun:
    """The run: results for all instances, and the batch of those still running."""

    def __init__(self, field, means, roots, times, scheme, max_evaluations, stop_trace):
        b = len(means)
        self.stop_trace = stop_trace
        self.field, self.times, self.scheme, self.max_evaluations = field, times, scheme, max_evaluations
        self.outputs = times - times[0]
        y = np.concatenate([means[:, :, None], roots], axis=2)
        self.shape = y.shape[1:]
        self.arrays = np.full((b, len(times), *self.shape), np.nan)
        self.arrays[:, 0] = y
        self.reached = np.zeros((b, len(times)), dtype=bool)
        self.reached[:, 0] = True
        self.outcomes, self.messages = np.full(b, None, dtype=object), np.full(b, "", dtype=object)
        self.running_still = np.ones(b, dtype=bool)
        self.blow_up_times = np.full(b, np.inf)
        self.last_times, self.last_arrays = np.zeros(b), y.copy()
        self.evaluations, self.steps = np.zeros(b, dtype=int), np.zeros(b, dtype=int)
        # The batch: everything below is per running instance and narrowed together.
        self.ids = np.arange(b)
        self.running = field
        self.t, self.y = np.zeros(b), y.reshape(b, -1)
        size = np.abs(self.y).max(axis=1)
        self.atol = scheme.atol * np.where(size > 0, np.minimum(size, 1.0), 1.0)
        self.next = np.ones(b, dtype=int)
        self.poles = _PoleWatches(b)

    def go(self):
        """Run every instance to its end; returns what `EnsembleTrajectory` holds, by name."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if len(self.outputs) == 1:
                self._end(np.ones(len(self.ids), bool), Outcome.FINISHED, "one output time: nothing to integrate")
            else:
                self.f = self.rate(self.running, self.t, self.y)
                self.evaluations += 1
                wild = ~np.isfinite(self.f).all(axis=1)
                self._end(wild, Outcome.NOT_FINITE, "the velocity at the start is not finite.")
                self._narrow()
                self.h = self._first_steps()
                self.rejected = np.zeros(len(self.ids), dtype=bool)
                while len(self.ids):
                    self._step()
                self._settle()
        return {
            "arrays": self.arrays,
            "reached": self.reached,
            "outcomes": self.outcomes,
            "messages": self.messages,
            "blow_up_times": self.blow_up_times,
            "last_times": self.times[0] + self.last_times,
            "last_arrays": self.last_arrays,
            "evaluations": self.evaluations,
            "steps": self.steps,
        }

    def rate(self, field, t, y):
        """[c + B m | B L] for each instance, flat; NaN where y has left the range of float64."""
        y = y.reshape(len(y), *self.shape)
        wild = ~(np.abs(y).max(axis=(1, 2)) < LARGEST)
        if wild.any():
            y = np.where(wild[:, None, None], 0.0, y)
        affine = affine_on_gaussian(field, self.times[0] + t, Gaussian.from_root(y[..., 0], y[..., 1:]))
        rate = affine.matrix @ y
        rate[..., 0] += affine.offset
        if wild.any():
            rate[wild] = np.nan
        return rate.reshape(len(y), -1)

    def _first_steps(self):
        """Hairer's first guess of the step, instance by instance."""
        scale = self.atol[:, None] + np.abs(self.y) * self.scheme.rtol
        d0, d1 = _rms(self.y / scale), _rms(self.f / scale)
        end = self.outputs[-1]
        h0 = np.minimum(np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / np.where(d1 > 0, d1, 1.0)), end)
        f1 = self.rate(self.running, self.t + h0, self.y + h0[:, None] * self.f)
        self.evaluations[self.ids] += 1
        d2 = _rms((f1 - self.f) / scale) / h0
        steepest = np.maximum(d1, d2)
        h1 = np.where(steepest <= 1e-15, np.maximum(1e-6, h0 * 1e-3), (0.01 / steepest) ** (1 / 8))
        guess = np.minimum(np.minimum(100 * h0, h1), np.minimum(end, self.scheme.max_step))
        return np.where(np.isfinite(guess) & (guess > 0), guess, 1e-6 * end)

    def _step(self):
        """Try one step of every running instance, each with its own size."""
        end = self.outputs[-1]
        h = np.minimum(self.h, end - self.t)
        t_new = np.where(h >= end - self.t, end, self.t + h)
        stages, y_new, f_new = self._stages(h)
        error = self._error(stages, y_new, h)
        self.evaluations[self.ids] += DOP853.n_stages
        good = (error < 1) & np.isfinite(f_new).all(axis=1)
        factor = 0.9 * np.where(error > 0, error, 1e-16) ** (-1 / 8)
        factor = np.clip(np.where(np.isfinite(factor), factor, 0.2), 0.2, 10.0)
        factor = np.where(good & self.rejected, np.minimum(factor, 1.0), factor)
        factor = np.where(good | (error >= 1), factor, 0.2)
        if good.any():
            self._save_inside(good, t_new, h, y_new, stages)
        self.t, self.y, self.f = (
            np.where(good, t_new, self.t),
            np.where(good[:, None], y_new, self.y),
            np.where(good[:, None], f_new, self.f),
        )
        self.steps[self.ids] += good
        self.h, self.rejected = np.minimum(h * factor, self.scheme.max_step), ~good
        self._judge(good, np.isfinite(error))

    def _stages(self, h):
        y, n = self.y, DOP853.n_stages
        stages = np.empty((n + 1, *y.shape))
        stages[0] = self.f
        for s in range(1, n):
            slope = np.tensordot(DOP853.A[s, :s], stages[:s], 1)
            stages[s] = self.rate(self.running, self.t + DOP853.C[s] * h, y + h[:, None] * slope)
        y_new = y + h[:, None] * np.tensordot(DOP853.B, stages[:n], 1)
        stages[n] = self.rate(self.running, self.t + h, y_new)
        return stages, y_new, stages[n]

    def _error(self, stages, y_new, h):
        """The 5th and 3rd order estimates combined as in DOP853, one number an instance."""
        scale = self.atol[:, None] + np.maximum(np.abs(self.y), np.abs(y_new)) * self.scheme.rtol
        fifth = ((np.tensordot(DOP853.E5, stages, 1) / scale) ** 2).sum(axis=1)
        third = ((np.tensordot(DOP853.E3, stages, 1) / scale) ** 2).sum(axis=1)
        combined = np.sqrt((fifth + 0.01 * third) * scale.shape[1])
        return np.where(fifth == 0, 0.0, h * fifth / np.where(combined > 0, combined, 1.0))

    def _save_inside(self, good, t_new, h, y_new, stages):
        """Save the outputs that lie in accepted steps: at the end as it is, inside by the dense output."""
        inside = good & (self.outputs[self.next] < t_new)
        if inside.any():
            dense = self._dense(np.flatnonzero(inside), h, y_new, stages)
            while inside.any():
                rows = np.flatnonzero(inside)
                theta = (self.outputs[self.next[rows]] - self.t[rows]) / h[rows]
                self._save(rows, dense(rows, theta))
                inside[rows] = (self.next[rows] < len(self.outputs)) & (
                    self.outputs[np.minimum(self.next[rows], len(self.outputs) - 1)] < t_new[rows]
                )
        at_end = np.flatnonzero(good & (self.next < len(self.outputs)))
        at_end = at_end[self.outputs[self.next[at_end]] == t_new[at_end]]
        self._save(at_end, y_new[at_end])

    def _save(self, rows, y):
        ids, k = self.ids[rows], self.next[rows]
        self.arrays[ids, k] = y.reshape(len(rows), *self.shape)
        self.reached[ids, k] = True
        self.next[rows] += 1

    def _dense(self, rows, h, y_new, stages):
        """The 7th order interpolant of DOP853 for some rows, as a function of (rows, theta)."""
        field, t, y, step = narrowed(self.running, rows), self.t[rows], self.y[rows], h[rows, None]
        n = DOP853.n_stages
        K = np.concatenate([stages[:, rows], np.empty((3, *y.shape))])
        for s, (a, c) in enumerate(zip(DOP853.A_EXTRA, DOP853.C_EXTRA, strict=True), start=n + 1):
            K[s] = self.rate(field, t + c * step[:, 0], y + step * np.tensordot(a[:s], K[:s], 1))
        self.evaluations[self.ids[rows]] += 3
        delta = y_new[rows] - y
        F = np.concatenate(
            [
                [delta, step * K[0] - delta, 2 * delta - step * (stages[n, rows] + K[0])],
                step * np.tensordot(DOP853.D, K, 1),
            ]
        )
        place = np.empty(len(self.t), dtype=int)
        place[rows] = np.arange(len(rows))

        def at(some, theta):
            coefficients, x = F[:, place[some]], theta[:, None]
            value = np.zeros_like(coefficients[0])
            for i, coefficient in enumerate(reversed(coefficients)):
                value = (value + coefficient) * (x if i % 2 == 0 else 1 - x)
            return value + y[place[some]]

        return at

    def _judge(self, good, finite):
        """End the instances that are done, at a pole, stuck or over the limit, and drop them from the batch."""
        d = self.shape[0]
        y, f = (array.reshape(-1, d, d + 1)[:, :, 1:].reshape(len(array), -1) for array in (self.y, self.f))
        confirmed = self.poles.step(good, self.t, y, f)
        ended = np.zeros(len(self.ids), dtype=bool)
        ended |= self._end(self.t >= self.outputs[-1], Outcome.FINISHED, "")
        if confirmed.any():
            pole = self.poles.estimates(confirmed)
            beyond = confirmed & ~ended & (self.outputs[np.minimum(self.next, len(self.outputs) - 1)] >= pole)
            self.blow_up_times[self.ids[beyond]] = self.times[0] + pole[beyond]
            ended |= self._end(beyond, Outcome.BLEW_UP, "blow-up; the next output time lies beyond it.")
        large = ~ended & good & ((y**2).sum(axis=1) > self.stop_trace)
        ended |= self._end(large, Outcome.STOPPED, f"the trace of the covariance passed {self.stop_trace:g}.")
        stuck = ~ended & (self.h < 10 * np.spacing(np.maximum(self.t, np.finfo(float).tiny)))
        ended |= self._end(stuck & ~finite, Outcome.NOT_FINITE, "the velocity stopped being finite.")
        ended |= self._end(stuck & finite, Outcome.STALLED, "the step size fell to round-off without signs of a pole.")
        spent = ~ended & (self.evaluations[self.ids] + DOP853.n_stages > self.max_evaluations)
        ended |= self._end(spent, Outcome.LIMIT, f"max_evaluations = {self.max_evaluations} was met.")
        if ended.any():
            self._narrow()

    def _end(self, which, outcome, message):
        if which.any():
            ids = self.ids[which]
            self.outcomes[ids], self.messages[ids], self.running_still[ids] = outcome, message, False
            self.last_times[ids] = self.t[which]
            self.last_arrays[ids] = self.y[which].reshape(-1, *self.shape)
        return which

    def _settle(self):
        """Run the few instances whose steps collapsed once more, alone: a spiral pole needs its whole history."""
        for i in np.flatnonzero(self.outcomes == Outcome.STALLED):
            start = Gaussian.from_root(self.arrays[i, 0, :, 0], self.arrays[i, 0, :, 1:])
            flow = GaussianFlow(narrowed(self.field, i), start)
            run = integrate(flow, self.times, scheme=self.scheme, progress=False)
            k = len(run)
            self.arrays[i], self.reached[i] = np.nan, False
            self.arrays[i, :k], self.reached[i, :k] = run.arrays, True
            self.outcomes[i], self.messages[i] = run.outcome, run.message
            self.blow_up_times[i] = np.inf if run.blow_up_time is None else run.blow_up_time
            self.last_times[i] = run.last.time - self.times[0]
            self.last_arrays[i] = np.column_stack([run.last.state.mean, run.last.state.root])
            self.evaluations[i] += run.statistics.evaluations
            self.steps[i] += run.statistics.steps

    def _narrow(self):
        """Keep only instances that still run."""
        keep = np.flatnonzero(self.running_still[self.ids])
        for name in ("ids", "t", "y", "f", "h", "atol", "next", "rejected"):
            if hasattr(self, name):
                setattr(self, name, getattr(self, name)[keep])
        self.poles.narrow(keep)
        self.running = narrowed(self.running, keep)


class _PoleWatches:
    """`PoleWatch` for every instance of a batch, with a memory of the last REMEMBERED steps."""

    def __init__(self, b):
        self.times, self.gaps = np.zeros((b, REMEMBERED)), np.full((b, REMEMBERED), np.nan)
        self.count, self.falling = np.zeros(b, dtype=int), np.zeros(b, dtype=int)

    def narrow(self, keep):
        self.times, self.gaps = self.times[keep], self.gaps[keep]
        self.count, self.falling = self.count[keep], self.falling[keep]

    def step(self, good, t, y, f):
        """Note the accepted steps; returns which instances have a confirmed pole."""
        size = np.abs(y).max(axis=1)
        safe = np.where(size > 0, size, 1.0)[:, None]
        growth = np.einsum("ij,ij->i", y / safe, f / safe)
        growing = good & (growth > 0)
        gap = np.einsum("ij,ij->i", y / safe, y / safe) / np.where(growth > 0, growth, 1.0)
        slot = self.count % REMEMBERED
        rows = np.arange(len(t))
        before = self.gaps[rows, slot - 1]
        self.falling = np.where(growing, np.where(gap < before, self.falling + 1, 0), self.falling)
        forgotten = good & ~growing
        self.gaps[forgotten], self.count[forgotten], self.falling[forgotten] = np.nan, 0, 0
        now = np.flatnonzero(growing)
        self.times[now, slot[now]], self.gaps[now, slot[now]] = t[now], gap[now]
        self.count[now] += 1
        confirmed = growing & (self.falling >= FALLING) & (self.count >= ENOUGH)
        ready = np.flatnonzero(confirmed)
        if len(ready):
            scales = np.minimum(self.gaps[ready], self.times[ready])
            near = t[ready, None] - self.times[ready] <= REACH * scales
            confirmed[ready] = ((scales >= SHRINKAGE * gap[ready, None]) & near).any(axis=1)
        return confirmed

    def estimates(self, confirmed):
        """t* of the confirmed instances by the secant over one decade of the gap; inf for others and for no pole."""
        pole = np.full(len(self.count), np.inf)
        for i in np.flatnonzero(confirmed):
            order = (self.count[i] - 1 - np.arange(min(self.count[i], REMEMBERED))) % REMEMBERED
            times, gaps = self.times[i, order], self.gaps[i, order]
            j = int(np.argmax(gaps >= 10 * gaps[0]))
            order_of_pole = (times[0] - times[j]) / (gaps[j] - gaps[0])
            if order_of_pole >= LEAST_ORDER or gaps[0] <= UNRESOLVED * np.spacing(times[0]):
                pole[i] = times[0] + gaps[0] * order_of_pole
        return pole


def _rms(x):
    return np.sqrt(np.mean(x**2, axis=1))
