"""The adaptive scheme: scipy's OdeSolver classes, one step at a time, kept from hanging on what is not finite."""

from dataclasses import dataclass

import numpy as np

from ..checks import number

#: scipy's solver classes by name.
METHODS = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")


@dataclass(frozen=True)
class Adaptive:
    """Step-size control by scipy's solvers.

    Parameters
    ----------
    method : str
        DOP853 (default), RK45, RK23, Radau, BDF or LSODA; Radau for stiff decay over long times.
    rtol, atol : float
        Tolerances on points, or on the square root of the covariance. atol is scaled by min(1, max|y(t0)|).
    max_step : float
        Largest step.

    Raises
    ------
    ValueError
        On an unknown method or tolerances out of range.
    """

    method: str = "DOP853"
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: float = np.inf

    def __post_init__(self):
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {self.method!r}.")
        object.__setattr__(self, "rtol", number("rtol", self.rtol, at_least=100 * np.finfo(float).eps))
        object.__setattr__(self, "atol", number("atol", self.atol, above=0))
        if self.max_step != np.inf:
            object.__setattr__(self, "max_step", number("max_step", self.max_step, above=0))


class StepFailure(Exception):
    """The solver cannot step on. ``finite`` tells whether everything it was given since the last step was finite."""

    def __init__(self, finite):
        super().__init__("the step size fell to round-off")
        self.finite = finite


class Stepper:
    """One solver walking from 0 to ``end``; the rate may return anything, a non-finite rate shrinks the step.

    Parameters
    ----------
    scheme : Adaptive
    rate : callable
        ``rate(s, y) -> y'`` on flat arrays.
    y : ndarray
        Flat start with a finite rate.
    end : float
    size : float
        Size of the start, by which atol is scaled when it is below one (and not zero).
    """

    def __init__(self, scheme, rate, y, end, size):
        self.scheme, self.rate, self.end = scheme, rate, end
        scaled = scheme.atol * (min(1.0, size) if size > 0 else 1.0)
        self.atol = max(scaled, np.finfo(float).tiny)
        self.t, self.y = 0.0, y
        self._finite, self._in_rate, self._nearest = True, False, np.inf
        self._solver = self._built(None) or self._restarted(1e-6 * end)

    def _watched(self, s, y):
        self._in_rate = True
        rate = self.rate(s, y)
        self._in_rate = False
        if s > self.t:
            self._nearest = min(self._nearest, s - self.t)
        if not np.isfinite(rate).all():
            self._finite = False
        return rate

    def _built(self, first_step):
        """A fresh solver at the present point, or None if scipy finds no usable first step or no finite Jacobian."""
        from scipy import integrate

        try:
            solver = getattr(integrate, self.scheme.method)(
                self._watched,
                self.t,
                self.y,
                self.end,
                rtol=self.scheme.rtol,
                atol=self.atol,
                max_step=self.scheme.max_step,
                first_step=first_step,
            )
        except ValueError:
            self._raise_if_the_rates()
            return None
        return solver if np.isfinite(getattr(solver, "h_abs", 1.0)) else None

    def _restarted(self, first_step):
        solver = self._built(min(first_step, self.end - self.t))
        if solver is None:
            raise StepFailure(self._finite)
        return solver

    def _raise_if_the_rates(self):
        """Called while handling a ValueError: the rate's is the caller's; scipy's own means the step is too large."""
        if self._in_rate:
            raise

    def step(self):
        """Advance by one accepted step to a finite state.

        Raises
        ------
        StepFailure
            When the step size has fallen to round-off; ``t`` and ``y`` are those of the last good step.
        """
        attempt = None
        self._finite, self._nearest = True, np.inf
        while True:
            try:
                self._solver.step()
            except ValueError:
                self._raise_if_the_rates()
            failed, reached = self._solver.status == "failed", self._solver.t - self.t
            if not failed and reached > 0:
                if np.isfinite(self._solver.y).all():
                    # LSODA oversteps an end that is nearer than its smallest step.
                    self.t, self.y = min(self._solver.t, self.end), self._solver.y
                    return
                self._finite = False
            # LSODA gives up before its step is small, and steps to NaN; the others fail only at round-off, but Radau
            # and BDF raise on a Jacobian that is not finite. Start again, smaller.
            if failed and (self.scheme.method != "LSODA" or (self._finite and attempt is not None)):
                raise StepFailure(self._finite)
            attempt = min(attempt or np.inf, self._nearest, self.end - self.t) / 8
            if attempt < 64 * np.spacing(max(self.t, np.finfo(float).tiny)):
                raise StepFailure(self._finite)
            self._solver = self._restarted(attempt)

    def rate_here(self):
        """The rate at the present point, from the solver where it has it."""
        stored = getattr(self._solver, "f", None)
        return self.rate(self.t, self.y) if stored is None else stored

    def interpolant(self):
        """The dense output of the last step, a function of s."""
        return self._solver.dense_output()
