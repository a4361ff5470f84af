"""The race: methods that compute the same thing take turns, so that a busy neighbour slows all of them alike."""

import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: Seconds that one sample lasts at least; shorter calls are repeated within it.
SHORTEST = 2e-3
#: Most repetitions of a call within one sample.
MOST_REPEATS = 1000


@dataclass(frozen=True)
class Method:
    """One way to compute it.

    Parameters
    ----------
    name : str
        What tables and figures call it.
    prepare : callable
        ``prepare() -> call``: imports, converts and compiles off the clock; ``call()`` is timed and gives the answer.
    needs : str, optional
        The module a peer is made of. Where it is not installed, or the peer fails, the table says so and goes on.
    units : float
        Pieces of work in one call (steps, laws): times are given per piece.
    """

    name: str
    prepare: Callable[[], Callable[[], Any]]
    needs: str | None = None
    units: float = 1.0


@dataclass(frozen=True)
class Contest:
    """One case at one size.

    Parameters
    ----------
    case : str
    size : int
        The n of time against n.
    methods : list of Method
        The first is the one that ratios are taken to.
    error : callable
        ``error(answer) -> float`` against a reference that none of the methods made.
    """

    case: str
    size: int
    methods: list[Method]
    error: Callable[[Any], float]


@dataclass(frozen=True)
class Row:
    """What one method did in one contest.

    Parameters
    ----------
    case, size, method
        As in the contest.
    seconds : float
        Median of the samples, per piece of work.
    ratio : float
        ``seconds`` over those of the first method.
    error : float or None
        None where it is not finite.
    samples : list of float
    """

    case: str
    size: int
    method: str
    seconds: float
    ratio: float
    error: float | None
    samples: list[float]


@dataclass
class _Runner:
    """One method in its race: how often it is called for a sample, and what it has taken so far."""

    method: Method
    call: Callable[[], Any]
    error: float | None
    repeats: int = 1
    spent: float = 0.0
    samples: list[float] = field(default_factory=list)

    @classmethod
    def begun(cls, contest, method, share, clock):
        """Prepared and called once: that call gives the answer, and is the only sample if it takes the whole share."""
        call = method.prepare()
        start = clock()
        answer = call()
        seconds = clock() - start
        error = float(contest.error(answer))
        runner = cls(method, call, error if math.isfinite(error) else None)
        if seconds >= share:
            runner.spent = seconds
            runner.samples.append(seconds / method.units)
        return runner

    def sample(self, clock):
        start = clock()
        for _ in range(self.repeats):
            self.call()
        seconds = clock() - start
        self.spent += seconds
        self.samples.append(seconds / self.repeats / self.method.units)
        return seconds

    def calibrate(self, clock):
        """One sample that is kept if it lasted long enough, and otherwise says how many calls the others take."""
        seconds = self.sample(clock)
        if seconds < SHORTEST:
            self.samples.clear()
            self.repeats = min(math.ceil(SHORTEST / max(seconds, 1e-9)), MOST_REPEATS)


def installed(module):
    """Whether a module can be imported, without importing it."""
    return importlib.util.find_spec(module) is not None


def race(contest, *, rounds, share, clock=time.process_time):
    """Run one contest in rounds a, b, c, a, b, c, ...

    Parameters
    ----------
    contest : Contest
    rounds : int
        Samples of each method.
    share : float
        Seconds after which a method sits out further rounds; everyone has at least one sample. A first call that
        takes this long is that sample, all others only warm up.
    clock : callable
        ``clock() -> seconds``.

    Returns
    -------
    rows : list of Row
    missing : dict
        Name of each peer that did not run, and why.
    """
    runners, missing = [], {}
    for method in contest.methods:
        if method.needs is not None and not installed(method.needs):
            missing[method.name] = "not installed"
            continue
        try:
            runners.append(_Runner.begun(contest, method, share, clock))
        except Exception as failure:
            if method.needs is None:
                raise
            missing[method.name] = f"{type(failure).__name__}: {str(failure).strip().splitlines()[0][:100]}"
    for runner in runners:
        if not runner.samples:
            runner.calibrate(clock)
    for _ in range(rounds):
        for runner in runners:
            if not runner.samples or (runner.spent < share and len(runner.samples) < rounds):
                runner.sample(clock)
    medians = [statistics.median(runner.samples) for runner in runners]
    rows = [
        Row(contest.case, contest.size, runner.method.name, median, median / medians[0], runner.error, runner.samples)
        for runner, median in zip(runners, medians, strict=True)
    ]
    return rows, missing


def rows_of(rows, method):
    """The rows of one method, by (case, size)."""
    return {(row.case, row.size): row for row in rows if row.method == method}
