"""Sweeps: the same bits for any jobs, order and subset; a failed or killed case loses itself only."""

import os
import signal
import threading

import numpy as np
import pytest

from meanfield.sweeps import SweepError, run_cases
from meanfield.sweeps.parallel import _checked_jobs

GRID = [{"beta": beta, "replica": replica} for beta in (1.0, 4.0) for replica in range(3)]


def contract(case, rng):
    """Some softmax layers on drawn tokens, with matrix products large enough for BLAS to use its threads."""
    start = rng.normal(size=(200, 60))
    x = start
    for _ in range(3):
        kernel = np.exp(case["beta"] * (x @ x.T - 100) / 100)
        x = x + 0.1 * kernel @ x / kernel.sum(axis=1, keepdims=True)
    return {"start": start, "end": x}


def fragile(case, rng):
    if case["replica"] == "raises":
        raise ValueError("the user's kernel broke")
    if case["replica"] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return contract(case, rng)


def same_bits(one, two):
    assert one.case == two.case
    assert list(one.arrays) == list(two.arrays)
    return all(one.arrays[name].tobytes() == two.arrays[name].tobytes() for name in one.arrays)


@pytest.fixture(scope="module")
def serial():
    return run_cases(contract, GRID)


def test_results_are_bit_identical_for_any_jobs_order_and_subset(serial):
    np.random.seed(3)  # noqa: NPY002 (the global state is what must not move)
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    parallel = run_cases(contract, GRID[::-1], jobs=2)
    subset = run_cases(contract, [GRID[4], GRID[1]])
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002
    assert [result.status for result in serial + parallel + subset] == ["done"] * 14
    assert all(map(same_bits, serial, parallel[::-1]))
    assert same_bits(serial[4], subset[0])
    assert same_bits(serial[1], subset[1])
    assert len({result.arrays["start"].tobytes() for result in serial}) == 6


def test_another_seed_draws_other_numbers(serial):
    (other,) = run_cases(contract, GRID[:1], seed=1)
    assert not np.isin(other.arrays["start"], serial[0].arrays["start"]).any()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_failed_and_a_killed_case_lose_only_themselves_and_raise_after_saving(serial, tmp_path):
    raises, killed = {"beta": 1.0, "replica": "raises"}, {"beta": 1.0, "replica": "killed"}
    cases = [*GRID[:2], raises, killed, *GRID[2:]]
    with pytest.raises(SweepError, match=r"(?s)2 of 8 cases failed; the first is .*the user's kernel broke") as caught:
        run_cases(fragile, cases, jobs=2, store=tmp_path, on_error="raise")
    results = caught.value.results
    assert all(map(same_bits, serial, results[:2] + results[4:]))
    assert [result.status for result in results[2:4]] == ["failed", "failed"]
    assert [result.case for result in results[2:4]] == [raises, killed]
    assert "ValueError: the user's kernel broke" in results[2].message
    assert results[3].message == "worker killed, signal 9, perhaps memory"
    assert len(list(tmp_path.glob("*.npz"))) == 6
    assert len(list(tmp_path.glob("*.failed.json"))) == 2


def test_a_local_function_may_change_its_arrays_in_workers_and_here_and_ours_stay(serial):
    x0 = np.random.default_rng(0).normal(size=(400, 400))
    before = x0.tobytes()

    def task(case, rng):
        x0[:] = np.exp(x0)
        return {"sum": x0.sum(axis=0) + case["k"]}

    cases = [{"k": k} for k in range(3)]
    here, there = (run_cases(task, cases, jobs=jobs) for jobs in (1, 2))
    assert all(map(same_bits, here, there))
    assert [result.status for result in there] == ["done"] * 3
    assert x0.tobytes() == before


def test_a_task_that_cannot_travel_is_refused_before_anything_starts(tmp_path):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="task must be picklable"):
        run_cases(lambda case, rng: {"x": lock.locked()}, GRID, jobs=2, store=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_results_are_fresh_and_a_case_is_not_the_callers(serial):
    assert serial[0].case == GRID[0]
    assert serial[0].case is not GRID[0]


@pytest.mark.parametrize(
    ("cases", "options", "said"),
    [
        ([{"a": 1}, {"b": 1}, {"a": 1.0}], {}, r'cases\[0\] and cases\[2\] are both.*Add a "replica" key'),
        ({"a": 1}, {}, r"list of dicts; got one dict. Write \[case\]"),
        ([{"a": np.nan}], {}, r"cases\[0\]\['a'\] must be finite"),
        ([], {"jobs": 0}, "jobs .* must be at least 1; got 0"),
        ([], {"jobs": 1.5}, "jobs .* whole number"),
        ([], {"seed": -1}, "seed must be a whole number"),
        ([], {"on_error": "ignore"}, "on_error must be one of 'record', 'raise'; got 'ignore'"),
        ([], {"backend": "threads"}, "backend must be one of loky, dask, ray"),
        ([], {"progress": "yes"}, "progress must be None"),
    ],
)
def test_bad_arguments_are_refused_with_the_cure(cases, options, said):
    with pytest.raises(ValueError, match=said):
        run_cases(contract, cases, **options)


def test_no_cases_give_no_results():
    assert run_cases(contract, [], jobs=2) == []


def test_every_core_is_meant_by_none_and_minus_one():
    assert _checked_jobs(None) == _checked_jobs(-1) >= 1


def test_progress_is_told_of_every_case_loaded_ones_too(tmp_path):
    calls = []
    cases = [{"k": k} for k in range(4)]
    for number in (2, 4):
        run_cases(lambda case, rng: {}, cases[:number], store=tmp_path, progress=lambda *call: calls.append(call))
    assert calls == [(1, 2), (2, 2), (1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("progress", "terminal", "shown"), [(None, True, True), (None, False, False), (False, True, False)]
)
def test_a_bar_with_rate_is_shown_on_a_terminal_only(monkeypatch, capsys, progress, terminal, shown):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    run_cases(lambda case, rng: {}, [{"k": 1}, {"k": 2}], progress=progress)
    said = capsys.readouterr().err
    assert ("2/2" in said and "case/s" in said) == shown
    assert shown or not said
