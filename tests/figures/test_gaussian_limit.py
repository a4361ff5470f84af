"""The figure of errors against n fits slopes and says them, with the time and the blow-up it stays away from."""

import numpy as np
import pytest

from experiments import gaussian_limit as experiment
from figures import gaussian_limit as figure
from figures.style import style
from meanfield.plotting.curves import power_law
from tests.figures.studies import study_of, texts


@pytest.fixture(scope="module")
def study():
    sizes = {"softmax": 256, "l2": 128, "sinkhorn": 128}
    return study_of(experiment, [case | {"largest": sizes} for case in experiment.cases(True)[:3]])


def test_slopes_bands_and_times_of_the_record_are_in_the_figure(study):
    with style():
        drawn = figure.draw(study)
        drawn.draw_without_rendering()
    errors = np.stack([run["mean_softmax"] for run in study.arrays])
    slope, _ = power_law(study.arrays[0]["n_softmax"], np.exp(np.log(errors).mean(axis=0)))
    assert f"softmax\nslope {slope:.2f}".replace("-", "\N{MINUS SIGN}") in texts(drawn)
    assert f"{float(study.arrays[0]['blow_up_time']):.3g}" in drawn.get_suptitle()
    assert "3 samples" in drawn.get_suptitle()
    left, right = drawn.axes
    assert len(left.collections) == len(right.collections) == 6, "points and a band for each variant"
