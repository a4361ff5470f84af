"""The runner of experiments, on experiments of a few lines."""

import importlib
import sys

import numpy as np
import pytest

from experiments import full_size
from experiments.runner import main
from meanfield.sweeps.studies import load_study

SOURCE = '''
import os

from experiments import full_size

CLAIM = "Numbers are drawn."


def cases(quick):
    return [{"n": n} for n in ((2,) if quick else (2, 3, 4, 5) if full_size() else (2, 3, 4))]


def run(case, rng):
    if case["n"] == FAILS_AT:
        raise FAILURE
    return {"x": FACTOR * rng.standard_normal(case["n"])}
'''


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes (or rewrites) an experiment module; gives its entry for the table of experiments."""
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    (tmp_path / "code").mkdir()
    written = set()

    def write(name, *, factor=1, fails_at=None, failure='ValueError("too many")'):
        text = SOURCE.replace("FACTOR", str(factor)).replace("FAILS_AT", str(fails_at)).replace("FAILURE", failure)
        module = f"meanfield_{name}"
        (tmp_path / "code" / f"{module}.py").write_text(text)
        sys.modules.pop(module, None)
        importlib.invalidate_caches()
        written.add(module)
        return {name: module}

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # rewritten within one second, a cached module would be read
    yield write
    for module in written:
        sys.modules.pop(module, None)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results"


def run(experiments, out, *arguments, jobs=1):
    return main([*arguments, "--out", str(out), "--jobs", str(jobs)], experiments)


def stamps(out):
    """When each kept case was written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "cases").glob("*.npz")}


def test_every_experiment_leaves_one_record_with_claim_cases_and_arrays(write, out, capsys):
    assert run(write("one") | write("two"), out, "--seed", "7") == 0
    study = load_study(out / "one.npz")
    assert (study.name, study.claim, study.quick, study.seed) == ("one", "Numbers are drawn.", False, 7)
    assert study.cases == [{"n": 2}, {"n": 3}, {"n": 4}]
    assert [len(arrays["x"]) for arrays in study.arrays] == [2, 3, 4]
    other = load_study(out / "two.npz")
    assert not np.array_equal(study.arrays[0]["x"], other.arrays[0]["x"]), "experiments must not share random numbers"
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[2:]] == [["one", "3", "0"], ["two", "3", "0"]]


def test_two_workers_give_the_bits_of_one(write, out):
    experiments = write("one")
    assert run(experiments, out / "a") == run(experiments, out / "b", jobs=2) == 0
    for first, second in zip(load_study(out / "a/one.npz").arrays, load_study(out / "b/one.npz").arrays, strict=True):
        np.testing.assert_array_equal(first["x"], second["x"])


def test_finished_cases_are_not_computed_again_unless_asked(write, out):
    experiments = write("one")
    run(experiments, out)
    before = stamps(out)
    assert len(before) == 3
    run(experiments, out)
    assert stamps(out) == before
    run(experiments, out, "--no-resume")
    assert all(stamps(out)[name] > when for name, when in before.items())


def test_a_changed_experiment_is_computed_again_and_only_that_one(write, out):
    run(write("one") | write("two"), out)
    before = stamps(out)
    old = load_study(out / "one.npz")
    run(write("one", factor=10) | {"two": "meanfield_two"}, out)
    for first, second in zip(old.arrays, load_study(out / "one.npz").arrays, strict=True):
        np.testing.assert_array_equal(10 * first["x"], second["x"])
    assert sum(stamps(out)[name] == when for name, when in before.items()) == 3


def test_cases_of_a_quick_run_are_used_by_a_long_one_but_records_do_not_mix(write, out):
    experiments = write("one")
    run(experiments, out)
    before = stamps(out)
    run(experiments, out, "--quick")
    quick = load_study(out / "one.npz")
    assert quick.quick
    assert quick.cases == [{"n": 2}]
    run(experiments, out)
    assert [case["n"] for case in load_study(out / "one.npz").cases] == [2, 3, 4]
    assert stamps(out) == before


def test_full_reaches_the_cases_and_nothing_after(write, out):
    run(write("one"), out, "--full")
    assert [case["n"] for case in load_study(out / "one.npz").cases] == [2, 3, 4, 5]
    assert not full_size()


def test_a_failed_case_is_named_with_its_reason_and_costs_only_itself(write, out, capsys):
    assert run(write("bad", fails_at=3) | write("good"), out) == 1
    study = load_study(out / "bad.npz")
    assert study.cases == [{"n": 2}, {"n": 4}]
    assert [failure["case"] for failure in study.failed] == [{"n": 3}]
    assert len(load_study(out / "good.npz").cases) == 3
    printed = capsys.readouterr()
    assert printed.err.splitlines() == ["bad {'n': 3} failed: ValueError: too many"]
    assert printed.out.splitlines()[2].split()[:3] == ["bad", "2", "1"]


def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(write, out, capsys, monkeypatch):
    experiments = write("one", fails_at='int(os.environ.get("STOP_AT", 0))', failure="KeyboardInterrupt")
    monkeypatch.setenv("STOP_AT", "4")
    assert run(experiments, out) == 130
    before = stamps(out)
    assert len(before) == 2
    assert not (out / "one.npz").exists()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "goes on from there" in printed.err
    monkeypatch.delenv("STOP_AT")
    assert run(experiments, out) == 0
    assert [case["n"] for case in load_study(out / "one.npz").cases] == [2, 3, 4]
    assert before.items() <= stamps(out).items()


def test_wrong_arguments_end_with_status_two_and_a_reason(write, out, capsys):
    experiments = write("one")
    for arguments, said in ((["none"], "there are: one"), (["--seed", "-1"], "--seed must be at least 0")):
        with pytest.raises(SystemExit, match="2"):
            run(experiments, out, *arguments)
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        run(experiments, out, jobs=0)
    assert "--jobs must be at least 1" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        run(experiments, out, "--quick", "--full")
    assert not out.exists()


def test_list_names_the_claims_and_computes_nothing(write, out, capsys):
    assert run(write("one") | write("two"), out, "--list") == 0
    assert capsys.readouterr().out == "one: Numbers are drawn.\ntwo: Numbers are drawn.\n"
    assert not out.exists()


def test_names_select_experiments_and_the_table_can_be_left_to_figures(write, out, capsys):
    assert run(write("one") | write("two"), out, "two", "--no-table") == 0
    assert sorted(path.name for path in out.glob("*.npz")) == ["two.npz"]
    assert capsys.readouterr().out == ""
