"""Whole programs that are killed, interrupted or started without a main guard .

A program's output pipe is held by its workers too, so ``communicate`` returns only when the last of them is gone.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from meanfield.sweeps import run_cases
from meanfield.sweeps.records import remove_stale_temporaries

ROOT = Path(__file__).parents[3]
CASES = [{"k": k} for k in range(8)]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")

KILLED = """
import os, sys, time
from meanfield.sweeps import run_cases
from tests.meanfield.sweeps.test_interruptions import CASES, draw
fsync = os.fsync
os.fsync = lambda handle: (fsync(handle), time.sleep(0.15))  # so that the kill finds a file half-way
run_cases(draw, CASES, jobs=2, store=sys.argv[1])
"""

INTERRUPTED = """
import sys, time
from meanfield.sweeps import run_cases
def task(case, rng):
    time.sleep(case["seconds"])
    return {"x": rng.normal()}
run_cases(task, [{"seconds": s} for s in (0, 0.01, 300, 301)], jobs=2, store=sys.argv[1])
"""

UNGUARDED = """
import multiprocessing, os
print("started")
multiprocessing.set_start_method("spawn")
import numpy as np
from meanfield.sweeps import run_cases
task = lambda case, rng: {"x": np.exp(rng.normal(size=2)), "process": os.getpid()}
cases = [{"k": k} for k in range(3)]
one, two = (run_cases(task, cases, jobs=jobs) for jobs in (1, 2))
print(all(a.arrays["x"].tobytes() == b.arrays["x"].tobytes() for a, b in zip(one, two, strict=True)))
print(os.getpid() not in [int(result.arrays["process"]) for result in two])
"""


def draw(case, rng):
    return {"x": rng.normal(size=5)}


def refuse(case, rng):
    raise AssertionError("computed again")


def program(folder, text):
    """The text as a running program, in a session of its own, with one argument: the folder of its store."""
    script = folder / "program.py"
    script.write_text(text)
    return subprocess.Popen(
        [sys.executable, script, folder / "store"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(condition, process):
    for _ in range(1200):
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"never came about: {process.communicate()}")


def test_a_killed_sweep_leaves_no_worker_and_resumes_to_the_same_bits(tmp_path):
    store = tmp_path / "store"
    with program(tmp_path, KILLED) as process:
        wait_until(lambda: len(list(store.glob("*.npz"))) >= 3 and list(store.glob(".*.tmp")), process)
        process.kill()
        process.communicate(timeout=60)
    kept = {path: path.stat().st_mtime_ns for path in store.glob("*.npz")}
    assert 3 <= len(kept) < 8
    assert list(store.glob(".*.tmp"))
    resumed = run_cases(draw, CASES, store=store)
    whole = run_cases(draw, CASES)
    assert [r.arrays["x"].tobytes() for r in resumed] == [r.arrays["x"].tobytes() for r in whole]
    assert [r.status for r in resumed].count("loaded") == len(kept)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(os.listdir(store)) == 8
    assert remove_stale_temporaries(store) == []


def test_ctrl_c_is_a_keyboard_interrupt_with_finished_cases_kept_and_no_worker_left(tmp_path):
    store = tmp_path / "store"
    with program(tmp_path, INTERRUPTED) as process:
        wait_until(lambda: len(list(store.glob("*.npz"))) == 2, process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
        _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert said.count("Traceback") == 1
    assert len(os.listdir(store)) == 2
    loaded = run_cases(refuse, [{"seconds": 0}, {"seconds": 0.01}], store=store)
    assert [result.status for result in loaded] == ["loaded", "loaded"]


def test_a_script_without_main_guard_under_spawn_runs_lambdas_once_in_workers(tmp_path):
    with program(tmp_path, UNGUARDED) as process:
        said, errors = process.communicate(timeout=120)
    assert said.split() == ["started", "True", "True"]
    assert errors == ""
