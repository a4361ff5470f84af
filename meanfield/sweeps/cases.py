"""One case of a sweep: its key, its random numbers, its run with one BLAS thread, and its result."""

import enum
import hashlib
import json
import operator
import pickle
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import cloudpickle
import numpy as np
from threadpoolctl import threadpool_limits

from .records import checked_arrays, plain

_CURE = (
    "A case is a dict of parameters and serves as the key of its result. Large arrays are no keys: close over them in "
    "the task, or make them there from the case's generator; write infinity as a string."
)


class Status(enum.StrEnum):
    """How a case came to its result."""

    DONE = "done"
    FAILED = "failed"
    LOADED = "loaded"


@dataclass(frozen=True, eq=False)
class CaseResult:
    """What became of one case.

    Parameters
    ----------
    case : dict
        Its parameters.
    status : Status
        DONE, FAILED, or LOADED from the store; compares equal to "done", "failed", "loaded".
    arrays : dict of str to ndarray
        What the task returned; empty when it failed.
    message : str
        Traceback of a failed task, or how its worker ended; else empty.
    seconds : float
        Wall-clock time of the task (of the original run, when loaded).
    """

    case: dict
    status: Status
    arrays: dict
    message: str = ""
    seconds: float = 0.0

    @property
    def failed(self):
        """Whether there are no arrays to use."""
        return self.status is Status.FAILED


def plain_case(case, name="case"):
    """A fresh copy of a case with plain Python values in it; ValueError if it cannot serve as a key."""
    if not isinstance(case, dict):
        raise ValueError(f"{name} must be a dict of parameters; got {type(case).__name__}. {_CURE}")
    return plain(name, case, _CURE)


def canonical_json(value):
    """The JSON text of a plain value: sorted keys, no blanks, tuples as lists, and equal numbers written equally."""
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _canonical(value):
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    # 1 and 1.0 are one parameter; above 2^53 a float stands for many integers and stays itself.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return int(value)
    return value


def checked_seed(seed):
    """The seed as a Python integer, zero or more, of any size."""
    try:
        result = operator.index(seed)
    except TypeError:
        result = -1
    if result < 0 or isinstance(seed, bool | np.bool_):
        raise ValueError(f"seed must be a whole number >= 0; got {seed!r}. Use seed=0, or a drawn one that you record.")
    return result


def case_hash(case, seed):
    """SHA-256 of parameters and seed, 64 hexadecimal digits: the name of the case wherever it is kept."""
    return hashlib.sha256(canonical_json({"case": case, "seed": seed}).encode()).hexdigest()


def case_generator(case, seed):
    """The case's own generator: a child of SeedSequence(seed) keyed by the SHA-256 of the case's parameters.

    Neither jobs nor order nor the other cases of the sweep enter, so a case draws the same numbers in any sweep.
    """
    digest = hashlib.sha256(canonical_json(case).encode()).digest()
    words = np.frombuffer(digest, dtype=">u4")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(int(word) for word in words)))


def pack_task(task):
    """The task as bytes, closures and lambdas included, so that every case can start from an untouched copy.

    Raises
    ------
    TypeError
        If the task is no callable or holds what cannot travel to a worker.
    """
    if not isinstance(task, Callable):
        raise TypeError(f"task must be a function of (case, rng); got {type(task).__name__}. Pass it uncalled.")
    try:
        return cloudpickle.dumps(task)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise TypeError(
            f"task must be picklable, with everything it closes over; {task!r} is not ({error}). "
            "Open files, locks and connections inside the task, or define it at the top of a module."
        ) from error


def run_case(packed, case, seed):
    """Run one case; a failure of the task is a result with its traceback.

    The task gets fresh copies of itself and of the case, so nothing of the caller's is changed and no case sees what
    another one left behind.

    Parameters
    ----------
    packed : bytes
        From `pack_task`.
    case : dict
        From `plain_case`.
    seed : int
        Seed of the sweep.

    Returns
    -------
    CaseResult
    """
    start = time.perf_counter()
    try:
        with threadpool_limits(limits=1):
            task = pickle.loads(packed)
            arrays = checked_arrays(task(plain_case(case), case_generator(case, seed)))
    # The task is the caller's code and may raise anything; KeyboardInterrupt alone must end the sweep.
    except (Exception, SystemExit):
        return CaseResult(case, Status.FAILED, {}, traceback.format_exc(), time.perf_counter() - start)
    return CaseResult(case, Status.DONE, arrays, "", time.perf_counter() - start)
