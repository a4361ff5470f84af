"""Summaries are strict: NaN is empty, scalars come from arrays of size one, nothing overwrites a parameter."""

import csv
import json
import os

import numpy as np
import pytest

from meanfield.sweeps.cases import CaseResult, Status
from meanfield.sweeps.summary import summary_rows, write_summary

RESULTS = [
    CaseResult(
        {"beta": 2, "shape": (1, 2), "status": "warm"},
        Status.DONE,
        {"t": np.array([0.7]), "rank": np.array(3), "ok": np.array(True), "beta": np.array(5.0), "path": np.zeros(4)},
        "",
        0.25,
    ),
    CaseResult({"beta": 3}, Status.LOADED, {"t": np.array(np.nan), "rank": np.array(np.inf), "z": np.array(1j)}),
    CaseResult({"beta": 4}, Status.FAILED, {}, "Traceback:\n  deep\nValueError: no\n"),
]


def test_rows_hold_parameters_scalars_and_status():
    done, loaded, failed = summary_rows(RESULTS)
    assert done == {
        **{"beta": 2, "shape": (1, 2), "status": "warm", "t": 0.7, "rank": 3, "ok": True, "result.beta": 5.0},
        **{"result.status": "done", "seconds": 0.25, "message": ""},
    }
    assert (loaded["t"], loaded["rank"], loaded["z"], loaded["status"]) == (None, None, "1j", "loaded")
    assert (failed["status"], failed["message"]) == ("failed", "ValueError: no")


def test_json_is_strict(tmp_path):
    def refuse(word):
        raise AssertionError(word)

    path = write_summary(tmp_path / "a.json", RESULTS)
    rows = json.loads(path.read_text(), parse_constant=refuse)
    assert [row["beta"] for row in rows] == [2, 3, 4]
    assert rows[1]["t"] is None
    assert os.listdir(tmp_path) == ["a.json"]


def test_csv_has_every_column_and_empty_cells_for_nan(tmp_path):
    path = write_summary(tmp_path / "a.csv", RESULTS)
    with open(path, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["t"] for row in rows] == ["0.7", "", ""]
    assert rows[0]["shape"] == "[1, 2]"
    assert rows[2]["message"] == "ValueError: no"


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in one of \.csv, \.json; got 'a\.xlsx'"):
        write_summary(tmp_path / "a.xlsx", RESULTS)
