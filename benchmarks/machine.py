"""What the numbers were measured on: threads, clock, library versions, processor and load."""

import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path

#: Read by BLAS, OpenMP, numexpr and numba when they are loaded.
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Distributions whose versions are recorded.
PACKAGES = ("numpy", "scipy", "POT", "numba", "numexpr", "torch", "pykeops", "jax", "jaxlib")


def hold(threads):
    """Let every library that is loaded from now on use that many threads; call it before NumPy is imported."""
    for name in VARIABLES:
        os.environ[name] = str(threads)


def clock_of(threads):
    """The clock for that many threads, and its name.

    One thread is timed by the processor time of the process, all its threads added up: a neighbour that takes the core
    away does not count, and a library that starts more threads than it was told gains nothing. Several threads can
    only be timed by the wall clock.
    """
    return (time.process_time, "processor time") if threads == 1 else (time.perf_counter, "wall clock")


def versions():
    """Version of Python and of each package, "not installed" where there is none."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def description():
    """Processor, cores, load and BLAS as they are now, ready for JSON."""
    from threadpoolctl import threadpool_info

    pools = [
        {"library": pool["internal_api"], "version": pool["version"], "threads": pool["num_threads"]}
        | ({"kernel": pool["architecture"]} if "architecture" in pool else {})
        for pool in threadpool_info()
    ]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "pools": pools,
    }


def _processor():
    """The processor's own name where Linux tells it, and whether it has AVX-512."""
    if not sys.platform.startswith("linux"):
        return platform.processor() or platform.machine()
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    wide = "AVX-512" if "avx512f" in facts.get("flags", "") else "no AVX-512"
    return f"{facts.get('model name', platform.machine())}, {wide}"
