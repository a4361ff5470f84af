"""Many cases at once: `run_cases` gives the same bits whatever jobs, order or subset, and loses nothing it finished."""

import contextlib
import sys

from ..checks import number
from .backends import make_backend
from .cases import canonical_json, checked_seed, pack_task, plain_case
from .store import Store

__all__ = ["ON_ERROR", "SweepError", "run_cases"]


class SweepError(RuntimeError):
    """Some cases failed and ``on_error="raise"``; ``.results`` has the results of all of them."""

    def __init__(self, message, results=()):
        super().__init__(message)
        self.results = list(results)


def run_cases(
    task,
    cases,
    *,
    jobs=1,
    seed=0,
    store=None,
    resume=True,
    on_error="record",
    progress=None,
    backend="loky",
):
    """Run ``task(case, rng)`` for every case, several at a time.

    Each case has its own generator, a child of SeedSequence(seed) keyed by the case's parameters, and runs with one
    BLAS thread on fresh copies of the task and the case: results are bit-identical for any ``jobs``, order and subset.

    Parameters
    ----------
    task : callable (case, rng) -> dict of str to array_like
        Lambdas and local functions too; what they close over arrives as a copy. The key of a result is its case and
        the seed: whatever else the task depends on must not change while a store is in use.
    cases : list of dict
        Parameters: None, booleans, finite numbers, strings, lists, tuples and dicts of these. No two are equal.
    jobs : int or None
        Cases at a time; None or -1 for every core. With 1 they run in this process, which a killed case then ends.
    seed : int
        Seed of the sweep.
    store : str or Path, optional
        Folder that gets one record a case as soon as the case is finished.
    resume : bool
        Take finished cases from the store instead of computing them again.
    on_error : {"record", "raise"}
        Whether failed cases are results like others, or end the call with SweepError once all else is done and saved.
    progress : None, bool or callable (done, total)
        None shows a bar when stderr is a terminal; a callable is called once a case.
    backend : str
        "loky" (processes of this machine), "dask", "ray", or "dask:ADDRESS" and "ray:ADDRESS".

    Returns
    -------
    list of CaseResult
        In the order of ``cases``. A task that raises, or whose worker is killed, loses its own case only: status
        FAILED, with the traceback or the signal in ``message``.

    Raises
    ------
    ValueError
        If an argument cannot be used or two cases are equal.
    TypeError
        If the task cannot travel to a worker; nothing has been started then.
    KeyboardInterrupt
        On Ctrl-C; finished cases are in the store, and no worker is left.
    """
    cases = _distinct_cases(cases)
    seed = checked_seed(seed)
    jobs = _checked_jobs(jobs)
    finish = _registered("on_error", on_error, ON_ERROR)
    manager = make_backend(backend, min(jobs, max(len(cases), 1)))
    packed = pack_task(task)
    keep = None if store is None else Store(store, seed)
    results = {}
    if keep is not None and resume:
        loaded = {index: keep.load(case) for index, case in enumerate(cases)}
        results = {index: result for index, result in loaded.items() if result is not None}
    work = {index: (packed, case, seed) for index, case in enumerate(cases) if index not in results}
    with _progress(progress, len(cases), len(results)) as tick:
        if work:
            with manager as stream, contextlib.closing(stream(work)) as finished:
                for index, result in finished:
                    results[index] = result
                    if keep is not None:
                        keep.save(result)
                    tick()
    return finish([results[index] for index in range(len(cases))])


def _distinct_cases(cases):
    """Fresh plain copies of the cases; ValueError when two are equal."""
    if isinstance(cases, dict | str):
        raise ValueError(f"cases must be a list of dicts; got one {type(cases).__name__}. Write [case].")
    plain, seen = [], {}
    for index, case in enumerate(cases):
        case = plain_case(case, f"cases[{index}]")
        first = seen.setdefault(canonical_json(case), index)
        if first != index:
            raise ValueError(
                f"cases must differ, as the parameters key the random numbers; cases[{first}] and cases[{index}] are "
                f'both {case}. Add a "replica" key: 0, 1, 2, ...'
            )
        plain.append(case)
    return plain


def _checked_jobs(jobs):
    """The number of cases at a time, every core for None or -1."""
    if jobs is None or jobs == -1:
        from joblib import cpu_count

        return cpu_count()
    return number("jobs (-1 or None for every core)", jobs, at_least=1, integer=True)


def _registered(name, value, registry):
    """The entry of a registry, or a ValueError that lists the names."""
    if value not in registry:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, registry))}; got {value!r}. Pick one of these.")
    return registry[value]


def _return_results(results):
    return results


def _raise_failures(results):
    """The results, or SweepError with the first failed case and its traceback."""
    failed = [result for result in results if result.failed]
    if failed:
        first = failed[0]
        raise SweepError(
            f"{len(failed)} of {len(results)} cases failed; the first is {first.case}:\n{first.message}\n"
            'All results are in the attribute .results; use on_error="record" to go on with those that are done.',
            results,
        )
    return results


#: What is done with failed cases at the end.
ON_ERROR = {"record": _return_results, "raise": _raise_failures}


@contextlib.contextmanager
def _progress(progress, total, loaded):
    """Yields ``tick()``, to be called once for each case that finishes; those loaded count as finished at the start."""
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    if callable(progress):
        done = iter(range(1, total + 1))

        def tick():
            progress(next(done), total)

        for _ in range(loaded):
            tick()
        yield tick
    elif progress is True:
        from tqdm import tqdm

        with tqdm(total=total, initial=loaded, unit="case", file=sys.stderr) as bar:
            yield bar.update
    elif progress is False:
        yield lambda: None
    else:
        raise ValueError(
            f"progress must be None, a boolean or a callable (done, total); got {progress!r}. Leave it out."
        )
