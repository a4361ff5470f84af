"""Telling a pole from mere growth, and where the pole is, from the accepted steps of a run."""

from itertools import pairwise

import numpy as np

#: How far the gap must have shrunk below an earlier scale before growth is called a pole.
SHRINKAGE = 1e6
#: How many scales time may advance for the shrinking to count.
REACH = 4
#: Steps in a row with a falling gap, and steps at all, before anything is said.
FALLING, ENOUGH = 8, 12
#: Least order of a pole. y' alone goes to infinity, at a finite y, where the order measured so falls to zero.
LEAST_ORDER = 1e-4
#: Spacings of the time below which a gap leaves no order to be measured; only a pole gets there.
UNRESOLVED = 1e4
#: Decades of remaining time over which the size must follow a power law for a spiral pole, and how closely.
DECADES, CORRELATION = 6, -0.99


class PoleWatch:
    """Watches ``gap = |y|^2 / <y, y'>`` on accepted steps: at a pole of order p it is (t* - t) / p.

    Exponential growth has a constant gap, growth like a power of t a rising one; only a pole has a gap that falls to
    zero while time hardly moves. A step with gap g is taken for a pole when some earlier step at time t_i, with scale
    E = min(gap_i, t_i), has E >= 1e6 g and t - t_i <= 4 E, the last 8 gaps fall, and there were at least 12 steps; p,
    measured over one decade of the gap, must not have fallen to zero, as it does where y' is infinite and y is not.
    The history is forgotten whenever y shrinks.

    A spiral pole, where y turns while it grows and shrinks for part of each turn, escapes that rule. It runs the step
    size down to round-off, and is then told by the size growing like a power of the time left (`at_collapse`).
    """

    def __init__(self):
        self.sizes = []
        self._forget()

    def _forget(self):
        self.times, self.gaps = [], []
        # Scales E with the time t_i + 4 E until which they count; only those that no other one outdoes.
        self.scales = []
        self.confirmed = False

    def step(self, t, y, rate):
        """Note an accepted step at time t since the start of the run."""
        size = np.abs(y).max(initial=0.0)
        self.sizes.append((t, size))
        growth = np.vdot(y / size, rate / size) if size > 0 else 0.0
        if not growth > 0:
            self._forget()
            return
        gap = float(np.vdot(y / size, y / size) / growth)
        self.times.append(t)
        self.gaps.append(gap)
        scale = min(gap, t)
        until = t + REACH * scale
        self.scales = [(e, u) for e, u in self.scales if u >= t and (e > scale or u > until)]
        if not any(e >= scale and u >= until for e, u in self.scales):
            self.scales.append((scale, until))
        falling = len(self.gaps) >= ENOUGH and all(a > b for a, b in pairwise(self.gaps[-FALLING - 1 :]))
        shrunk = falling and max(e for e, _ in self.scales) >= SHRINKAGE * gap
        self.confirmed = shrunk and (self._order() >= LEAST_ORDER or gap <= UNRESOLVED * np.spacing(t))

    def _order(self):
        """Order of the pole: minus the slope of time over gap, by a secant over one decade of the gap."""
        t, gap = self.times[-1], self.gaps[-1]
        # Some earlier gap was a million times larger.
        earlier = next(i for i in range(len(self.gaps) - 2, -1, -1) if self.gaps[i] >= 10 * gap)
        return (t - self.times[earlier]) / (self.gaps[earlier] - gap)

    def estimate(self):
        """t* since the start of the run: the gap extrapolated to zero."""
        return self.times[-1] + self.gaps[-1] * self._order()

    def at_collapse(self, end):
        """t* = ``end`` if the steps collapsed there by a spiral pole, else None.

        The size must have grown like a power of end - t over six decades of it; a jump in the field, or a tolerance
        that round-off cannot meet, leaves the size where it was.
        """
        times, sizes = np.array(self.sizes).T if self.sizes else np.zeros((2, 0))
        left = end - times
        kept = (left > 1e3 * np.spacing(end)) & (sizes > 0)
        if not kept.any():
            return None
        logs = np.log(left[kept]), np.log(sizes[kept])
        spans = np.ptp(logs[0]) >= DECADES * np.log(10) and np.ptp(logs[1]) >= 1
        return end if spans and np.corrcoef(*logs)[0, 1] <= CORRELATION else None
