"""The record of a whole experiment: there and back, and the choice of cases."""

import numpy as np
import pytest

from meanfield.sweeps.records import save_record
from meanfield.sweeps.studies import Study, load_study, save_study, table


@pytest.fixture
def study():
    softmax, l2 = {"name": "softmax", "beta": 1.0, "box": [0, 1]}, {"name": "l2", "beta": 1}
    cases = [softmax, {"name": "softmax", "beta": 0.1}, l2]
    arrays = [{"x": np.arange(k + 1.0), "a.b": np.array(k)} for k in range(3)]
    return Study("tiny", "It is so.", True, 3, cases, arrays, [{"case": {"beta": 9}, "message": "no"}], 1.5)


def test_a_study_comes_back_as_it_was_saved(study, tmp_path):
    save_study(tmp_path / "tiny.npz", study)
    again = load_study(tmp_path / "tiny.npz")
    for name in ("name", "claim", "quick", "seed", "cases", "failed", "seconds"):
        assert getattr(again, name) == getattr(study, name)
    for ours, theirs in zip(study.arrays, again.arrays, strict=True):
        assert list(ours) == list(theirs)
        for name, array in ours.items():
            np.testing.assert_array_equal(array, theirs[name])


def test_select_gives_the_arrays_of_matching_cases_in_order(study):
    assert [len(arrays["x"]) for arrays in study.select(name="softmax")] == [1, 2]
    assert [len(arrays["x"]) for arrays in study.select(beta=1)] == [1, 3]
    assert [len(arrays["x"]) for arrays in study.select(box=(0, 1))] == [1]
    assert len(study.select()) == 3


def test_select_refuses_to_leave_a_silent_hole(study):
    with pytest.raises(ValueError, match=r"no case with \{'name': 'sinkhorn'\}; its cases have .*'l2', 'softmax'"):
        study.select(name="sinkhorn")
    with pytest.raises(ValueError, match="no case with"):
        study.select(depth=1)


def test_a_study_needs_arrays_for_each_case():
    with pytest.raises(ValueError, match="got 1 cases and 0 sets"):
        Study("tiny", "", False, 0, [{}], [])


def test_another_record_is_refused(tmp_path):
    save_record(tmp_path / "other.npz", {"x": [1]}, {"what": "else"})
    with pytest.raises(ValueError, match="must be the record of an experiment"):
        load_study(tmp_path / "other.npz")


def test_a_table_lines_up_and_sets_numbers_to_the_right():
    text = table(("name", "n", "s"), [("a", 5, 1.25), ("longer", 123, 10.0)])
    assert text == "name      n     s\n------  ---  ----\na         5   1.2\nlonger  123  10.0"
