"""The figure of ranks shows the counts of the record and says what became of the other runs."""

import numpy as np
import pytest

from experiments import rank_histograms as experiment
from figures import rank_histograms as figure
from figures.style import style
from meanfield.sweeps.studies import Study
from tests.figures.studies import texts


@pytest.fixture(scope="module")
def study():
    """A record of made-up counts for every panel: runs of the experiment itself would take ten seconds."""
    cases, rng = experiment.cases(True), np.random.default_rng(0)
    return Study("rank_histograms", experiment.CLAIM, True, 0, cases, [made_up(case, rng) for case in cases])


def made_up(case, rng):
    d = case["d"]
    names = ["published", "accurate", "dropped"] + (["limit"] if case["value"] == "identity" else [])
    status = rng.integers(0, 3, size=12)
    attempts = np.column_stack([np.arange(12), np.arange(12), status, np.where(status == 0, 1, -1)])
    counts = {name: rng.integers(0, 30, size=d + 1) for name in names}
    exact = {"exact_rank": np.array(d - d // 2), "exact_status": np.zeros(12, int), "followed": np.arange(12)}
    return counts | exact | {"attempts": attempts}


def test_bars_are_the_counts_and_each_panel_marks_the_exact_rank(study):
    with style():
        drawn = figure.draw(study)
        drawn.draw_without_rendering()
    panels = drawn.axes
    assert len(panels) == 12
    arrays = study.select(variant="softmax", value="identity", d=4)[0]
    heights = [[bar.get_height() for bar in bars] for bars in panels[1].containers]
    assert heights == [list(arrays[key]) for key in ("published", "accurate", "limit")]
    assert [panel.lines[0].get_xdata()[0] for panel in panels[:3]] == [2, 2, 3]
    assert len(panels[3].containers) == 2, "random V has no closed form"


def test_failures_are_counted_in_the_title_and_named_in_their_panels(study):
    with style():
        drawn = figure.draw(study)
    status = [run["attempts"][:, 2] for run in study.arrays]
    failed = sum(int((one != 0).sum()) for one in status)
    assert f"{failed} published runs" in drawn.get_suptitle()
    diverged = sum(int((one == 1).sum()) for one in status)
    assert sum(int(word.split()[0]) for word in texts(drawn).split("\n") if word.endswith(" diverge")) == diverged
