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
    """The solver cannot step on. ``finite`` tells whether every rate it was given since the last step was finite."""

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
    """

    def __init__(self, scheme, rate, y, end):
        self.scheme, self.rate, self.end = scheme, rate, end
        size = np.abs(y).max(initial=0.0)
        self.atol = scheme.atol * (min(1.0, size) if size > 0 else 1.0)
        self.t, self.y = 0.0, y
        self._finite = True
        self._solver = self._built(None)

    def _watched(self, s, y):
        rate = self.rate(s, y)
        if not np.isfinite(rate).all():
            self._finite = False
        return rate

    def _built(self, first_step):
        """A fresh solver at the present point; scipy's own guess of the first step is taken only when it is usable."""
        from scipy import integrate

        solver_class = getattr(integrate, self.scheme.method)
        options = {"rtol": self.scheme.rtol, "atol": self.atol, "max_step": self.scheme.max_step}
        if first_step is None:
            try:
                solver = solver_class(self._watched, self.t, self.y, self.end, **options)
            except (ValueError, np.linalg.LinAlgError):
                if self._finite:
                    raise
            else:
                if np.isfinite(getattr(solver, "h_abs", 1.0)):
                    return solver
            first_step = 1e-6 * (self.end - self.t)
        while True:
            try:
                self._finite = True
                return solver_class(
                    self._watched, self.t, self.y, self.end, first_step=min(first_step, self.end - self.t), **options
                )
            except (ValueError, np.linalg.LinAlgError):
                # An implicit solver forms a Jacobian when it is built; with finite rates the error is not ours.
                if self._finite:
                    raise
                raise StepFailure(finite=False) from None

    def step(self):
        """Advance by one accepted step to a finite state.

        Raises
        ------
        StepFailure
            When the step size has fallen to round-off; ``t`` and ``y`` are those of the last good step.
        """
        attempt = None
        while True:
            self._finite = True
            try:
                self._solver.step()
            except (ValueError, np.linalg.LinAlgError):
                if self._finite:
                    raise
            failed = self._solver.status == "failed"
            if not failed and self._solver.t > self.t and np.isfinite(self._solver.y).all():
                self.t_before, self.t, self.y = self.t, self._solver.t, self._solver.y
                return
            if failed and self.scheme.method in ("DOP853", "RK45", "RK23"):
                raise StepFailure(self._finite)
            # Implicit solvers and LSODA do not shrink past a non-finite rate by themselves: start again, smaller.
            reached = self._solver.t - self.t
            if failed and self._finite and attempt is not None:
                raise StepFailure(finite=True)
            attempt = min(attempt or np.inf, reached if reached > 0 else np.inf, self.end - self.t) / 8
            if attempt < 64 * np.spacing(max(self.t, np.finfo(float).tiny)):
                raise StepFailure(finite=False)
            self._solver = self._built(attempt)

    def rate_here(self):
        """The rate at the present point, from the solver where it has it."""
        stored = getattr(self._solver, "f", None)
        return self.rate(self.t, self.y) if stored is None else stored

    def interpolant(self):
        """The dense output of the last step, a function of s."""
        return self._solver.dense_output()
