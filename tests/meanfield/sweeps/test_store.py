"""A store gives back what is whole and its own, and names the rest."""

import json
import os
import pickle

import numpy as np
import pytest

from meanfield.sweeps.cases import CaseResult, Status
from meanfield.sweeps.parallel import run_cases
from meanfield.sweeps.records import save_record
from meanfield.sweeps.store import Store, slug
from tests.meanfield.sweeps.test_records import Bomb

CASES = [{"k": k} for k in range(4)]


def draw(case, rng):
    return {"x": rng.normal(size=3), "nan": np.nan}


def refuse(case, rng):
    raise AssertionError("computed again")


def test_finished_cases_are_loaded_bit_for_bit_and_their_files_not_touched(tmp_path):
    first = run_cases(draw, CASES, store=tmp_path / "new", seed=7)
    files = sorted((tmp_path / "new").iterdir())
    before = [file.stat().st_mtime_ns for file in files]
    again = run_cases(refuse, CASES[::-1], store=tmp_path / "new", seed=7)
    assert [file.stat().st_mtime_ns for file in files] == before
    assert len(files) == 4
    for one, two in zip(first, again[::-1], strict=True):
        assert (one.status, two.status) == ("done", "loaded")
        assert one.arrays["x"].tobytes() == two.arrays["x"].tobytes()
        assert one.seconds == two.seconds


def test_another_seed_is_kept_beside_and_resume_false_computes_again(tmp_path):
    run_cases(draw, CASES, store=tmp_path, seed=0)
    assert {r.status for r in run_cases(draw, CASES, store=tmp_path, seed=1)} == {Status.DONE}
    assert len(os.listdir(tmp_path)) == 8
    assert {r.status for r in run_cases(draw, CASES, store=tmp_path, seed=0, resume=False)} == {Status.DONE}


@pytest.mark.parametrize("kind", ["truncated", "hostile", "foreign", "another case"])
def test_what_is_not_whole_and_ours_is_named_and_computed_again(tmp_path, kind):
    expected = run_cases(draw, CASES[:1], store=tmp_path)[0].arrays["x"]
    path, mark = Store(tmp_path, 0).path(CASES[0]), tmp_path / "executed"
    if kind == "truncated":
        path.write_bytes(path.read_bytes()[:-30])
    elif kind == "hostile":
        path.write_bytes(pickle.dumps(Bomb(mark)))
    elif kind == "foreign":
        save_record(path, {"x": np.zeros(3)}, {})
    else:
        run_cases(draw, CASES[1:2], store=tmp_path)
        os.replace(Store(tmp_path, 0).path(CASES[1]), path)
    with pytest.warns(UserWarning, match=rf"{path.name}.*The case is computed again"):
        result = run_cases(draw, CASES[:1], store=tmp_path)[0]
    assert (result.status, result.arrays["x"].tobytes()) == ("done", expected.tobytes())
    assert run_cases(refuse, CASES[:1], store=tmp_path)[0].status == "loaded"
    assert not mark.exists()


def test_a_file_that_a_dead_writer_left_half_written_is_swept(tmp_path):
    path = Store(tmp_path, 0).path(CASES[0])
    half = tmp_path / f".{path.name}.host.1.0123abcd.tmp"
    half.write_bytes(b"half")
    os.utime(half, (0, 0))
    assert run_cases(draw, CASES[:1], store=tmp_path)[0].status == "done"
    assert os.listdir(tmp_path) == [path.name]


def test_a_failure_leaves_a_note_that_the_next_success_removes(tmp_path):
    failed = run_cases(refuse, CASES[:1], store=tmp_path)[0]
    (note,) = tmp_path.iterdir()
    content = json.loads(note.read_text())
    assert note.name.endswith(".failed.json")
    assert content["parameters"] == {"k": 0}
    assert content["message"] == failed.message
    assert "AssertionError: computed again" in content["message"]
    assert run_cases(draw, CASES[:1], store=tmp_path)[0].status == "done"
    assert [file.suffix for file in tmp_path.iterdir()] == [".npz"]


def test_a_store_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(ValueError, match="store must be a folder"):
        run_cases(draw, CASES, store=tmp_path / "a")


def test_file_names_are_readable_safe_and_short(tmp_path):
    assert slug({"n": 64, "beta": 0.5, "law": "cube"}) == "beta=0.5_law=cube_n=64"
    assert slug({"../x": "/etc/ü", "l": [1, 2]}) == "x=etcu00fc_l=12"
    assert slug({}) == "case"
    assert len(Store(tmp_path, 0).path({"a": "b" * 999}).name) < 100


def test_a_store_saves_what_it_is_given(tmp_path):
    store = Store(tmp_path, 3)
    store.save(CaseResult({"a": (1, 2)}, Status.DONE, {"x": np.ones(2)}, "", 1.5))
    assert store.load({"a": [1, 2]}).seconds == 1.5
    assert Store(tmp_path, 4).load({"a": [1, 2]}) is None
