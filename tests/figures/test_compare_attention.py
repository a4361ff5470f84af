"""The figures of compare_attention draw a quick record, and say what it says."""

import numpy as np
import pytest

from experiments import compare_attention as experiment
from figures import compare_attention
from figures.style import style
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def study():
    cases = [case | {"n": 9, "outputs": 13} for case in experiment.cases(True) if case["variant"] != "sinkhorn"]
    arrays = [experiment.run(case, None) for case in cases]
    return Study("compare_attention", experiment.CLAIM, True, 0, cases, arrays)


def test_panels_name_every_variant_and_say_who_blew_up(study):
    with style():
        figures = compare_attention.draw(study)
        for key in ("growing", "observables"):  # the contracting panels are drawn by the same lines
            figures[key].draw_without_rendering()
    assert list(figures) == ["growing", "contracting", "observables"]
    assert "linear and unnormalised tokens blow up" in figures["growing"].get_suptitle()
    titles = " ".join(axes.get_title(loc="left") for axes in figures["growing"].axes)
    assert all(
        name in titles for name in ("softmax", "L2", "sigmoid", "linear", "unnormalised", "masked", "multi-head")
    )
    time = study.select(variant="unnormalised", regime="growing")[0]["blow_up"]
    notes = [text.get_text() for axes in figures["growing"].axes for text in axes.texts]
    assert f"tokens blow up: {time:.2f}" in notes


@pytest.mark.parametrize(("value", "form", "said"), [(-0.5, ".2f", "\N{MINUS SIGN}0.50"), (3, "+d", "+3")])
def test_numbers_have_a_proper_sign(value, form, said):
    assert compare_attention.signed(value, form) == said


def test_a_title_without_poles_says_no():
    assert compare_attention.blown_up({"l2": {"blow_up": np.nan}}, "blow_up") == "no"
