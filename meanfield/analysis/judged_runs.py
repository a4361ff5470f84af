"""Many judged runs: one callable, for ``run_cases``, that simulates a case and lets detectors speak."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..verdict import Verdict


@dataclass(frozen=True)
class JudgedRun:
    """The task ``(case, rng) -> dict of arrays`` that runs a case and asks every detector.

    Parameters
    ----------
    simulated : callable
        ``simulated(case, rng) -> Trajectory``.
    judges : mapping of str to callable
        ``judge(trajectory)``: a detector, or anything that gives a number or an array.

    Notes
    -----
    A Verdict becomes ``NAME.happened`` (1, 0, or NaN if undecided) and ``NAME.time`` (NaN if there is none); a result
    with a method ``arrays()``, such as a MergeTree, ``NAME.KEY`` for each of its arrays; the rest ``NAME``. It travels
    to other processes with what it holds: ``run_cases(JudgedRun(simulated, judges), cases, jobs=8)``.
    """

    simulated: Callable
    judges: Mapping[str, Callable]

    def __call__(self, case, rng):
        """The findings on one case."""
        trajectory = self.simulated(case, rng)
        result = {}
        for name, judge in self.judges.items():
            result |= _arrays(name, judge(trajectory))
        return result


def _arrays(name, found):
    """What one judge found, as named arrays."""
    if isinstance(found, Verdict):
        happened = np.nan if found.happened is None else float(found.happened)
        return {f"{name}.happened": happened, f"{name}.time": np.nan if found.time is None else found.time}
    if hasattr(found, "arrays"):
        return {f"{name}.{key}": array for key, array in found.arrays().items()}
    return {name: np.asarray(found)}
