"""Telling a pole from mere growth, and where the pole is, from the accepted steps of a run."""

import numpy as np

#: How far the gap must have shrunk below an earlier scale before growth is called a pole.
SHRINKAGE = 1e6
#: Steps in a row with a falling gap, and steps at all, before anything is said.
FALLING, ENOUGH = 8, 12


class PoleWatch:
    """Watches ``gap = |y|^2 / <y, y'>`` on accepted steps: at a pole of order p it is (t* - t) / p.

    Exponential growth has a constant gap, growth like a power of t a rising one; only a pole has a gap that falls to
    zero while time hardly moves. A step with gap g is taken for a pole when some earlier step at time t_i, with scale
    E = min(gap_i, t_i), has E >= 1e6 g and t - t_i <= 4 E, the last 8 gaps fall, and there were at least 12 steps.
    The history is forgotten whenever y shrinks.
    """

    def __init__(self):
        self.times, self.gaps = [], []
        self.confirmed = False

    def step(self, t, y, rate):
        """Note an accepted step at time t since the start of the run."""
        size = np.abs(y).max(initial=0.0)
        growth = np.vdot(y / size, rate / size) if size > 0 else 0.0
        if not growth > 0:
            self.times, self.gaps = [], []
            self.confirmed = False
            return
        self.times.append(t)
        self.gaps.append(float(np.vdot(y / size, y / size) / growth))
        recent = self.gaps[-FALLING - 1 :]
        falling = len(self.gaps) >= ENOUGH and all(a > b for a, b in zip(recent, recent[1:], strict=False))
        self.confirmed = falling and self._has_collapsed(t)

    def _has_collapsed(self, t):
        times = np.array(self.times)
        scales = np.minimum(self.gaps, times)
        near = t - times <= 4 * scales
        if not near.all():
            # Steps out of reach now stay out of reach; the last ones serve the extrapolation.
            near[-4 * ENOUGH :] = True
            self.times = list(times[near])
            self.gaps = list(np.array(self.gaps)[near])
        return bool(((scales >= SHRINKAGE * self.gaps[-1]) & (t - times <= 4 * scales)).any())

    def estimate(self):
        """t* since the start of the run: the gap extrapolated to zero by a secant over one decade of it."""
        t, gap = self.times[-1], self.gaps[-1]
        earlier = next(
            (i for i in range(len(self.gaps) - 2, -1, -1) if self.gaps[i] >= 10 * gap), 0
        )
        if self.gaps[earlier] <= gap:
            return t + gap
        return t + gap * (t - self.times[earlier]) / (self.gaps[earlier] - gap)
