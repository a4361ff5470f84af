"""Every plot on a machine without a display: no window, no pyplot, no settings changed, fonts a journal takes."""

import os
import subprocess
import sys

import pytest

from meanfield import plotting

from .runs import tokens

SCRIPT = """
import sys
from pathlib import Path
import matplotlib
before = {k: str(dict.__getitem__(matplotlib.rcParams, k)) for k in matplotlib.rcParams}
from meanfield import plotting
import numpy as np
figure = plotting.plot_trajectory(([0.0, 1.0], np.arange(8.0).reshape(2, 2, 2)))
out = Path(sys.argv[1])
figure.savefig(out / "run.pdf")
figure.savefig(out / "run.png")
plotting.animate(([0.0, 1.0], np.arange(8.0).reshape(2, 2, 2)), out / "run.gif", dpi=40)
after = {k: str(dict.__getitem__(matplotlib.rcParams, k)) for k in matplotlib.rcParams}
assert before == after, "settings changed"
loaded = [name for name in sys.modules if name.startswith("matplotlib.pyplot") or name == "tkinter"]
assert not loaded, loaded
import matplotlib.pyplot as plt
for _ in range(30):
    plotting.panel(width=1, height=1).get_figure().savefig(out / "again.png", dpi=20)
assert plt.get_fignums() == []
print("whole")
"""


def test_a_fresh_process_without_display_draws_saves_and_leaves_no_trace(tmp_path):
    settings = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    settings["MPLBACKEND"] = "TkAgg"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, tmp_path],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "whole\n", done.stderr
    pdf = (tmp_path / "run.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf
    assert (tmp_path / "run.png").stat().st_size > 1000


PLOTS = {
    "tokens in space": lambda: plotting.plot_trajectory(tokens(20, 3)),
    "curves": lambda: plotting.plot_observables({"softmax": ([1, 2], [1, 2])}, yscale="log"),
}


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_the_same_result_drawn_twice_gives_the_same_bytes_under_a_source_date(plot, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in ("a.pdf", "b.pdf"):
        plot().savefig(tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("a.pdf", "b.pdf"))
    assert first == second
    assert b"/Type3" not in first, "also where the figure's own savefig is called"


def test_every_public_plot_is_exported_and_takes_axes():
    import inspect

    plots = [getattr(plotting, name) for name in plotting.__all__ if name.startswith("plot_")]
    assert len(plots) >= 11
    for plot in plots:
        parameters = inspect.signature(plot).parameters
        assert parameters["axes"].default is None
        assert all(one.kind is one.KEYWORD_ONLY for one in list(parameters.values())[1:])
