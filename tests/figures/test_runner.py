"""The runner of figures, on records and figure modules of a few lines."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from figures.__main__ import main
from meanfield.sweeps.studies import Study, save_study

ROOT = Path(__file__).parents[2]

PLAIN = '''
from figures.style import look, new_figure

def draw(study):
    figure = new_figure()
    axes = figure.add_subplot()
    for arrays in study.select(name="softmax"):
        axes.plot(arrays["x"], **look("softmax"))
    axes.set_title(study.claim)
    return figure
'''
SEVERAL = PLAIN.replace("return figure", 'return {"left": figure, "right": figure}')
BROKEN = "def draw(study):\n    raise KeyError('no such array')\n"


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """The table of figures ``plain``, ``several`` and ``broken``, with a record for each."""
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    (tmp_path / "code").mkdir()
    names = {}
    for name, text in (("plain", PLAIN), ("several", SEVERAL), ("broken", BROKEN)):
        (tmp_path / "code" / f"meanfield_figure_{name}.py").write_text(text)
        names[name] = f"meanfield_figure_{name}"
        record(tmp_path, name)
    importlib.invalidate_caches()
    yield names
    for module in names.values():
        sys.modules.pop(module, None)


def record(folder, name, cases=({"name": "softmax"},)):
    study = Study(name, "A line.", True, 0, list(cases), [{"x": np.arange(3.0)} for _ in cases], [], 2.0)
    save_study(folder / "results" / f"{name}.npz", study)


def run(figures, folder, *names):
    return main([*names, "--results", str(folder / "results"), "--out", str(folder / "out")], figures)


def files(folder):
    return sorted(path.name for path in (folder / "out").glob("*"))


def test_a_figure_or_a_dict_of_them_becomes_pdf_and_png_and_a_row(figures, tmp_path, capsys):
    assert run(figures, tmp_path, "plain", "several") == 0
    stems = ("plain", "several_left", "several_right")
    assert files(tmp_path) == sorted(f"{stem}.{kind}" for stem in stems for kind in ("pdf", "png"))
    assert not [path for path in (tmp_path / "out").glob("*.pdf") if b"/Type3" in path.read_bytes()]
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[:4], row[5:]) for row in rows] == [
        (["plain", "1", "0", "2.0"], ["plain"]),
        (["several", "1", "0", "2.0"], ["several_left", "several_right"]),
    ]


def test_a_broken_figure_is_named_and_costs_the_others_nothing(figures, tmp_path, capsys):
    assert run(figures, tmp_path, "broken", "plain") == 1
    assert files(tmp_path) == ["plain.pdf", "plain.png"]
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.splitlines()[-1] == "broken: KeyError: 'no such array'"


def test_without_names_what_has_a_record_is_drawn(figures, tmp_path):
    (tmp_path / "results" / "broken.npz").unlink()
    (tmp_path / "results" / "several.npz").unlink()
    assert run(figures, tmp_path) == 0
    assert files(tmp_path) == ["plain.pdf", "plain.png"]


def test_a_missing_damaged_or_empty_record_is_named_with_the_cure(figures, tmp_path, capsys):
    (tmp_path / "results" / "plain.npz").unlink()
    (tmp_path / "results" / "several.npz").write_bytes(b"PK nonsense")
    record(tmp_path, "broken", cases=())
    assert run(figures, tmp_path, "plain", "several", "broken") == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("run: python -m experiments plain")
    assert "Delete it and compute it again" in said[1]
    assert said[2].endswith("so there is nothing to draw")
    assert files(tmp_path) == []


def test_an_unknown_name_ends_with_status_two(figures, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(figures, tmp_path, "nothing")
    assert "no figure is called nothing; there are: plain, several, broken" in capsys.readouterr().err


FRESH = '''
import sys
import matplotlib
before = matplotlib.rcParams.copy()
from figures.__main__ import main
from figures.style import new_figure, save_figure
assert main(["plain", "--results", sys.argv[1], "--out", sys.argv[2]], {"plain": "meanfield_figure_plain"}) == 0
for k in range(30):
    figure = new_figure()
    axes = figure.add_subplot()
    axes.set_axis_off()  # text is what takes the time
    axes.plot([0, 1])
    save_figure(figure, sys.argv[2] + "/many")
assert matplotlib.rcParams == before
assert dict.__getitem__(matplotlib.rcParams, "backend").lower() == "tkagg"
assert not [name for name in ("matplotlib.pyplot", "tkinter", "_tkinter") if name in sys.modules]
'''


def test_no_display_is_needed_no_window_opened_and_no_setting_touched(figures, tmp_path):
    """In a fresh process told to use a window: without pyplot no figure can stay open."""
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    environment |= {"MPLBACKEND": "TkAgg", "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path / "code")])}
    command = [sys.executable, "-W", "error", "-c", FRESH, str(tmp_path / "results"), str(tmp_path / "out")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == ["many.pdf", "many.png", "plain.pdf", "plain.png"]
