"""Where the cases of a sweep run: in this process, in worker processes (loky), on dask or on ray.

A backend is a context manager ``backend(jobs, address)`` that yields ``stream(work)``, where ``work`` maps an index to
the arguments of `run_case`, and ``stream`` gives (index, CaseResult) as the cases finish.
"""

import contextlib
import os
import re
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from .cases import CaseResult, Status, run_case

#: Set before a worker imports NumPy, for the libraries that read their thread count once.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}


def serial_stream(work):
    """Run the cases here, one after another."""
    for index, arguments in work.items():
        yield index, run_case(*arguments)


@contextlib.contextmanager
def loky_backend(jobs, address=""):
    """Worker processes of this machine, or this very process for ``jobs=1``."""
    if address:
        raise ValueError(f"backend 'loky' takes no address; got {address!r}. Use backend='loky'.")
    if jobs == 1:
        yield serial_stream
        return
    lanes = Lanes(jobs)
    # loky warns where the system has neither psutil nor pgrep; it then kills the worker itself, which is enough here.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Failed to kill subprocesses")
        try:
            yield lanes.stream
        except BaseException:
            lanes.close(kill=True)
            raise
        lanes.close(kill=False)


class Lanes:
    """Several loky executors with one worker each and one case at a time.

    A pool of several workers breaks as a whole when one of them is killed, and does not say in which case. Here the
    death of a worker is the end of exactly the case it was at; its lane goes on with a new worker.
    """

    def __init__(self, jobs):
        self.jobs = jobs
        self.executors = []

    def stream(self, work):
        """Give (index, CaseResult) as the cases finish, ``jobs`` of them at a time."""
        waiting, running = deque(work.items()), {}

        def start(executor):
            if waiting:
                index, arguments = waiting.popleft()
                executor = executor or self._new_executor()
                running[executor.submit(run_case, *arguments)] = (executor, index, arguments, time.perf_counter())

        for _ in range(self.jobs):
            start(None)
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                executor, index, arguments, since = running.pop(future)
                error = future.exception()
                if error is None:
                    result = future.result()
                else:
                    self.executors.remove(executor)
                    executor.shutdown(wait=True, kill_workers=True)
                    executor = None
                    message = _obituary(error)
                    result = CaseResult(arguments[1], Status.FAILED, {}, message, time.perf_counter() - since)
                # The lane is busy again before the caller saves this result.
                start(executor)
                yield index, result

    def close(self, *, kill):
        """End every worker, at once or after a handshake; returns when they are gone."""
        executors, self.executors = self.executors, []
        if executors:
            with ThreadPoolExecutor(len(executors)) as threads:
                list(threads.map(lambda executor: executor.shutdown(wait=True, kill_workers=kill), executors))

    def _new_executor(self):
        from joblib.externals.loky import ProcessPoolExecutor

        executor = ProcessPoolExecutor(
            max_workers=1, initializer=_prepare_worker, initargs=(os.getpid(),), env=dict(ONE_THREAD)
        )
        self.executors.append(executor)
        return executor


def _prepare_worker(parent):
    """Leave Ctrl-C to the parent, and end when the parent is gone (killed, it cannot end its workers itself)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _obituary(error):
    """How a worker ended, in words, from loky's error."""
    codes = [int(code) for code in re.findall(r"\((-?\d+)\)", str(error))]
    if codes and codes[0] < 0:
        return f"worker killed, signal {-codes[0]}, perhaps memory"
    if codes:
        return f"worker ended, exit code {codes[0]}"
    return "no result came back\n" + "".join(traceback.format_exception(error))


@contextlib.contextmanager
def dask_backend(jobs, address=""):
    """A dask cluster: the scheduler at ``address`` or, without one, ``jobs`` single-threaded processes here."""
    try:
        from dask import config
        from dask.distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError("backend 'dask' needs the packages dask and distributed: pip install distributed.") from error
    with contextlib.ExitStack() as stack:
        if not address:
            # One case a worker, and a death blamed at once: else dask sends a deadly case, and its neighbours, round.
            blame = {"distributed.scheduler.worker-saturation": 1.0, "distributed.scheduler.allowed-failures": 0}
            stack.enter_context(config.set(blame))
            cluster = LocalCluster(n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None)
            address = stack.enter_context(cluster)
        client = stack.enter_context(Client(address))
        yield lambda work: dask_stream(client, jobs, work)


def dask_stream(client, jobs, work):
    """Give (index, CaseResult) as the cases finish, through dask's own futures.

    They tell which case a killed worker was at; joblib's dask backend gives up the whole call, or waits for ever.
    A scheduler at an address tries such a case on other workers first, as it was set up to do.
    """
    from dask.distributed import as_completed

    waiting, running, finished = deque(work.items()), {}, as_completed()

    def start():
        if waiting:
            index, arguments = waiting.popleft()
            future = client.submit(run_case, *arguments, pure=False)
            running[future.key] = (index, arguments[1])
            finished.add(future)

    for _ in range(jobs):
        start()
    for future in finished:
        index, case = running.pop(future.key)
        start()
        error = future.exception()
        if error is None:
            yield index, future.result()
        else:
            message = f"worker killed, perhaps memory\n{type(error).__name__}: {error}"
            yield index, CaseResult(case, Status.FAILED, {}, message)


@contextlib.contextmanager
def ray_backend(jobs, address=""):
    """A ray cluster: the one at ``address`` or, without one, ``jobs`` processes here."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise ImportError("backend 'ray' needs the package ray: pip install ray.") from error
    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address) if address else ray.init(num_cpus=jobs, include_dashboard=False)
    register_ray()
    try:
        yield lambda work: joblib_stream("ray", jobs, work)
    finally:
        if ours:
            ray.shutdown()


def joblib_stream(name, jobs, work):
    """Give (index, CaseResult) through a registered joblib backend, as a list where it cannot give them one by one.

    When the cluster loses a worker, what came in is kept and the unfinished cases are run again one at a time, so that
    only the case that ends its worker is lost.
    """
    left = dict(work)
    try:
        for index, result in _joblib_results(name, jobs, left.copy()):
            del left[index]
            yield index, result
        return
    # Each cluster has its own errors for a lost worker; a task's own exception never gets here.
    except Exception:
        if not left:
            raise
    for index, arguments in left.items():
        try:
            yield from _joblib_results(name, jobs, {index: arguments})
        except Exception:
            message = "worker killed, perhaps memory\n" + traceback.format_exc()
            yield index, CaseResult(arguments[1], Status.FAILED, {}, message)


def _joblib_results(name, jobs, work):
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend=name, n_jobs=jobs):
        try:
            pool = Parallel(return_as="generator_unordered", batch_size=1)
        except ValueError:
            pool = Parallel(return_as="list", batch_size=1)
        yield from pool(delayed(_numbered)(index, *arguments) for index, arguments in work.items())


def _numbered(index, *arguments):
    return index, run_case(*arguments)


#: name -> backend. "dask:ADDRESS" and "ray:ADDRESS" reach a running cluster.
BACKENDS = {"loky": loky_backend, "dask": dask_backend, "ray": ray_backend}


def make_backend(name, jobs):
    """The context manager of a backend called ``NAME`` or ``NAME:ADDRESS``."""
    kind, _, address = str(name).partition(":")
    if kind not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, or NAME:ADDRESS; got {name!r}. Use 'loky'.")
    return BACKENDS[kind](jobs, address)
