"""The figure of leaders draws a small record and says what it says."""

import numpy as np

from experiments import leaders as experiment
from figures import leaders
from figures.style import style
from meanfield.sweeps.studies import Study


def test_four_panels_with_the_numbers_of_the_record():
    common = {"n": 9, "d": 2, "box": 5.0, "horizon": 8.0, "outputs": 9}
    cases = [common | {"matrices": kind, "replica": k} for kind in experiment.MATRICES for k in range(2)]
    arrays = [experiment.run(case, np.random.default_rng(k)) for k, case in enumerate(cases)]
    with style():
        figure = leaders.draw(Study("leaders", experiment.CLAIM, True, 0, cases, arrays))
        figure.draw_without_rendering()
    said = figure.get_suptitle()
    for runs in (arrays[:2], arrays[2:]):
        assert f"on {leaders.span(np.array([run['leaders'][-1] for run in runs]))} " in said
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0].endswith(f"identity matrices: {len(np.unique(arrays[0]['leader']))} leaders")
    heights = sum(bar.get_height() for bar in figure.axes[3].patches)
    assert heights == len(cases)


def test_a_range_of_one_number_is_that_number():
    assert leaders.span(np.array([2, 2])) == "2"
    assert leaders.span(np.array([3, 1])) == "1 to 3"
