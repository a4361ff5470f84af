"""Runs: a problem carried out, stopped by Ctrl-C where need be, kept in a record and read back from it."""

import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from ..integration import Moment, Outcome, Statistics, Trajectory, simulate
from ..measures import Gaussian
from ..summation.balancing import NotConvergedError
from ..velocity import affine_on_gaussian, field_for_run
from .problem import Problem, problem_from

#: Outcomes that are no failure of the mathematics.
GOOD = (Outcome.FINISHED, Outcome.STOPPED)

#: What the header of our records says they are.
KINDS_OF_RECORD = ONE, MANY = "simulation", "comparison"


@dataclass(frozen=True, eq=False)
class Run:
    """A problem, its trajectory, and whether Ctrl-C ended it."""

    problem: Problem
    trajectory: Trajectory
    interrupted: bool = False

    @property
    def failed(self):
        """Whether the mathematics failed: blow-up, a limit, no convergence."""
        return self.trajectory.outcome not in GOOD


def carry_out(problem, *, quiet=False):
    """Run a problem; Ctrl-C ends it after the evaluation under way, with everything up to then kept.

    Parameters
    ----------
    problem : Problem
    quiet : bool
        No progress bar.

    Returns
    -------
    Run
    """
    with _watch_for_ctrl_c() as pressed:
        trajectory = simulate(
            _Interruptible(problem.field, pressed),
            problem.start,
            problem.times,
            space=problem.space,
            scheme=problem.scheme,
            dt=problem.dt,
            max_evaluations=problem.max_evaluations,
            max_seconds=problem.max_seconds,
            progress=False if quiet else None,
        )
    interrupted = pressed.is_set()
    if interrupted and trajectory.outcome is Outcome.NOT_CONVERGED:
        message = f"interrupted by Ctrl-C at t = {trajectory.last.time:.6g} of {problem.times[-1]:.6g}."
        trajectory = replace(trajectory, outcome=Outcome.STOPPED, message=message)
    return Run(problem, replace(trajectory, flow=problem.flow()), interrupted)


class _Interrupted(NotConvergedError):
    """Raised by a field once Ctrl-C was pressed: the loop then ends the run and keeps what it has."""


@dataclass(frozen=True)
class _Interruptible:
    """A field that looks for Ctrl-C before each evaluation."""

    field: object
    pressed: threading.Event

    def _look(self):
        if self.pressed.is_set():
            raise _Interrupted("interrupted by Ctrl-C.", np.nan)

    def __call__(self, t, x, mu):
        self._look()
        return self.field(t, x, mu)

    def on_gaussian(self, t, law):
        self._look()
        return affine_on_gaussian(self.field, t, law)

    def for_run(self):
        return replace(self, field=field_for_run(self.field))


@contextmanager
def _watch_for_ctrl_c():
    """An event that the first Ctrl-C sets; the second one interrupts as usual."""
    pressed = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    # Outside the main thread no handler can be set; a job in the background is told to ignore the signal.
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield pressed
        return

    def note(number, frame):
        pressed.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def contents(run):
    """Arrays and header of a record that holds one run."""
    trajectory = run.trajectory
    gaussian = isinstance(run.problem.start, Gaussian)
    arrays = run.problem.arrays() | {"times": trajectory.times}
    last = trajectory.last.state
    if gaussian:
        mean, root = trajectory.arrays[:, :, 0], trajectory.arrays[:, :, 1:]
        with np.errstate(all="ignore"):
            covariance = root @ np.swapaxes(root, 1, 2)
        arrays |= {"mean": mean, "root": root, "covariance": covariance}
        arrays |= {"last_mean": last.mean, "last_root": last.root}
    else:
        arrays |= {"points": trajectory.arrays, "last_points": last.points}
    header = {
        "kind": ONE,
        "parameters": run.problem.parameters(),
        "outcome": trajectory.outcome.name,
        "message": trajectory.message,
        "blow_up_time": trajectory.blow_up_time,
        "last_time": trajectory.last.time,
        "statistics": trajectory.statistics._asdict(),
        "interrupted": run.interrupted,
    }
    return arrays, header


def contents_of_many(runs):
    """Arrays and header of a record that holds several runs; the arrays of each stand under its name."""
    arrays, headers = {}, {}
    for run in runs:
        own, headers[run.problem.name] = contents(run)
        arrays |= {f"{run.problem.name}/{name}": array for name, array in own.items()}
    return arrays, {"kind": MANY, "runs": headers, "order": list(headers)}


def runs_from(record):
    """The runs in a record, in the order in which they were made.

    Raises
    ------
    ValueError
        If the record was not made by this command line, or holds other arrays than its header says.
    """
    kind = record.header.get("kind")
    try:
        if kind == ONE:
            return [_run_from(record.header, record.arrays)]
        if kind == MANY:
            return [
                _run_from(record.header["runs"][name], {key.removeprefix(f"{name}/"): array
                          for key, array in record.arrays.items() if key.startswith(f"{name}/")})
                for name in record.header["order"]
            ]  # fmt: skip
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{record.path} must hold what its header says; {error} is missing or of another kind. Make it again."
        ) from error
    raise ValueError(
        f"{record.path} must be a record of `meanfield simulate`, `gaussian` or `compare`; its kind is {kind!r}. "
        "See what it holds with `meanfield info`; figures of experiments are drawn by `python -m figures`."
    )


def _run_from(header, arrays):
    problem = problem_from(header["parameters"], arrays)
    flow = problem.flow()
    if header["parameters"]["gaussian"]:
        saved = np.concatenate([arrays["mean"][:, :, None], arrays["root"]], axis=2)
        last = Gaussian.from_root(arrays["last_mean"], arrays["last_root"])
    else:
        saved = arrays["points"]
        last = problem.start.moved_to(arrays["last_points"])
    trajectory = Trajectory(
        arrays["times"],
        saved,
        flow,
        Outcome[header["outcome"]],
        header["message"],
        Moment(header["last_time"], last),
        header["blow_up_time"],
        statistics=Statistics(**header["statistics"]),
    )
    return Run(problem, trajectory, header["interrupted"])
