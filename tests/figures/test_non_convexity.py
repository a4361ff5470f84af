"""The figure of non-convexity: its title and panels come from the record."""

import numpy as np
import pytest

from experiments import non_convexity as experiment
from figures import non_convexity
from figures.style import style
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def drawn():
    cases = [
        case | {key: 5 for key in ("places", "points", "draws") if key in case}
        for case in experiment.cases(True)
        if case.get("energy") != "sinkhorn"
    ]
    arrays = [experiment.run(case, np.random.default_rng(k)) for k, case in enumerate(cases)]
    study = Study("non_convexity", experiment.CLAIM, True, 0, cases, arrays)
    with style():
        figure = non_convexity.draw(study)
        figure.draw_without_rendering()
    return figure, study


def test_the_title_counts_the_laws_that_bend_down(drawn):
    figure, study = drawn
    tokens = study.select(kind="search", metric="twisted")[0]["tokens"]
    assert f"{100 * np.mean(tokens < 0):.0f} % of 5 random laws" in figure.get_suptitle()


def test_panels_show_every_energy(drawn):
    figure, study = drawn
    _, bend, along, found = figure.axes
    assert np.array_equal(bend.lines[1].get_ydata(), study.select(kind="dirac")[0]["general"])
    second = [run["second"] for case, run in zip(study.cases, study.arrays, strict=True) if case["kind"] == "geodesic"]
    assert all(any(np.array_equal(line.get_ydata(), values) for line in along.lines) for values in second)
    assert "3 of 5 bend down" in along.get_title(loc="left")
    assert [text.get_text() for text in found.get_yticklabels()][-1] == "interaction, twisted"


@pytest.mark.parametrize(("value", "said"), [(0.0, "0"), (3e-15, "$10^{-14}$")])
def test_errors_are_said_as_powers_of_ten(value, said):
    assert non_convexity.scientific(value) == said
