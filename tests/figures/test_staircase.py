"""The figure of the staircase: what its panels show is what the record says."""

import numpy as np
import pytest

from experiments import staircase as experiment
from figures import staircase
from figures.style import style
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def figure_and_study():
    cases = [{"beta": beta, "attention": name} for name in ("unnormalised", "softmax") for beta in (2000,)]
    study = Study("staircase", experiment.CLAIM, True, 0, cases, [experiment.run(case, None) for case in cases])
    with style():
        figure = staircase.draw(study)
        figure.draw_without_rendering()
    return figure, study


def test_the_title_says_how_near_the_merge_law_is(figure_and_study):
    figure, study = figure_and_study
    misses = [np.abs(run["merge_log_times"] - run["predicted_log_times"]).max() for run in study.arrays]
    assert f"within {100 * (10 ** max(misses) - 1):.1f} %" in figure.get_suptitle()


def test_panels_show_levels_tracks_and_every_merge(figure_and_study):
    figure, study = figure_and_study
    in_time, in_length, tracks, merges = figure.axes
    assert all(axes.get_title(loc="left") for axes in figure.axes)
    run = study.select(beta=2000, attention="unnormalised")[0]
    lines = {tuple(line.get_ydata()) for line in in_length.lines}
    assert tuple(run["level"]) in lines
    assert all((level, level) in lines for level in run["plateaus"])
    assert sum(len(line.get_xdata()) > 2 for line in in_time.lines) == 1
    np.testing.assert_array_equal(tracks.lines[0].get_ydata(), run["angles"][:, 0])
    assert {text.get_text() for text in merges.get_legend().get_texts()} == {"unnormalised", "softmax"}


def test_levels_are_named_by_their_clusters():
    assert staircase.clusters(np.array([0.6, 0.4, 0, 0, 0]), 0.52) == "0.52: 3, 2"


def test_one_temperature_has_a_colour():
    assert len(staircase.shade([3000])) == 1
