"""The figure of the L2 pole and its regular neighbours, on a small record."""

import numpy as np
import pytest

from experiments.l2_blow_up import CLAIM, run
from figures.l2_blow_up import draw
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def study():
    regular = {"part": "regular", "start": "sheet", "epsilons": [0.1, 1.0], "levels": [1e2, 1e3], "outputs": 9}
    cases = [{"part": "deficient", "start": "sheet", "outputs": 9}, regular]
    return Study("l2_blow_up", CLAIM, True, 0, cases, [run(case, None) for case in cases])


def test_title_and_marks_come_from_the_record(study):
    figure = draw(study)
    assert "$t^*$ = 3.0000 (proved: 3)" in figure.get_suptitle()
    assert "$\\varepsilon^{2.000}$" in figure.get_suptitle()
    right = figure.axes[1]
    marks = [line.get_ydata() for line in right.lines if line.get_linestyle() == "None"]
    np.testing.assert_array_equal(np.stack(marks, axis=1), study.arrays[1]["passages"])
