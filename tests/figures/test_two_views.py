"""The static figure of the two views says what its record says."""

import numpy as np
import pytest

from experiments import two_views as experiment
from figures import two_views
from figures.style import style
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def study():
    flow = {"part": "flow", "variant": "softmax", "beta": 1.0, "sign": 1.0, "outputs": 16}
    cases = [{"part": "toy"}, flow]
    arrays = [experiment.run(case, np.random.default_rng(0)) for case in cases]
    return Study("two_views", experiment.CLAIM, True, 0, cases, arrays)


def test_the_title_has_the_zero_the_control_and_the_pole(study):
    with style():
        figure = two_views.draw(study)
        figure.draw_without_rendering()
    said = figure.get_suptitle()
    assert "changes earlier tokens by 0 (" in said
    assert f"{study.arrays[1]['gaussian_blow_up']:.3f}" in said
    assert [axes.get_title(loc="left")[5:6] for axes in figure.axes[:4]] == list("abcd")
    assert "bank" in [text.get_text() for text in figure.axes[0].texts]


def test_a_single_changed_bit_would_show(study):
    layer = dict(study.arrays[0])
    layer["edited_07"] = layer["edited_07"].copy()
    layer["edited_07"][1, 0, 3, 2] += 1e-15
    assert two_views.largest_earlier_change(study.arrays[0]) == 0
    assert two_views.largest_earlier_change(layer) > 0
