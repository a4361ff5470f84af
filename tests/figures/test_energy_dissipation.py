"""The figure of energy dissipation says how residuals fall, and for how many."""

import numpy as np
import pytest

from experiments import energy_dissipation as experiment
from figures import energy_dissipation
from figures.style import style
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def drawn():
    kept = ("softmax", "linear moments", *experiment.FAIL)
    cases = [{"pair": name, "n": 4, "steps": [8, 16, 32]} for name in kept]
    study = Study("energy_dissipation", experiment.CLAIM, True, 0, cases, [experiment.run(c, None) for c in cases])
    with style():
        figure = energy_dissipation.draw(study)
        figure.draw_without_rendering()
    return figure, study


def test_the_title_has_the_orders_of_the_gradient_flows_only(drawn):
    figure, study = drawn
    orders = [run["order"] for run in study.arrays[:2]]
    assert figure.get_suptitle().startswith("2 gradient flows")
    assert f"order {min(orders):.1f} to {max(orders):.1f}" in figure.get_suptitle()


def test_panels_show_every_pair(drawn):
    figure, study = drawn
    _, ratios, residuals, quotients = figure.axes
    for run in study.arrays:
        assert any(np.array_equal(line.get_ydata(), run["residual"]) for line in residuals.lines)
        assert any(np.array_equal(line.get_ydata(), run["quotients"]) for line in quotients.lines)
        ratio = run["chain_rule"] / run["metric"]
        assert any(np.array_equal(line.get_ydata(), ratio) for line in ratios.lines)


def test_small_numbers_are_rounded_up_to_a_power_of_ten():
    assert energy_dissipation.scientific(2e-12) == "$10^{-11}$"
