"""The figure of moving heads: exponents of the title are fitted to the record."""

import numpy as np
import pytest

from experiments import heads_over_time as experiment
from figures import heads_over_time
from figures.style import style
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def drawn():
    cases = [
        case | ({"n": 6, "horizon": 0.5} if case["kind"] == "decay" else {"n": 4, "steps": [2, 4, 8]})
        for case in experiment.cases(True)
        if case["heads"] < 16 and case.get("draw", 0) == 0
    ]
    arrays = [experiment.run(case, np.random.default_rng(k)) for k, case in enumerate(cases)]
    study = Study("heads_over_time", experiment.CLAIM, True, 0, cases, arrays)
    with style():
        figure = heads_over_time.draw(study)
        figure.draw_without_rendering()
    return figure, study


def test_the_title_has_the_exponents_of_both_motions(drawn):
    figure, study = drawn
    for motion in experiment.MOTIONS:
        late = [study.select(kind="decay", motion=motion, heads=count)[0]["late"] for count in (1, 4)]
        exponent = np.log(late[1] / late[0]) / np.log(4)
        assert f"$b$ = {heads_over_time.signed(exponent)}" in figure.get_suptitle()


def test_panels_show_the_record(drawn):
    figure, study = drawn
    over_time, _, gaps, refinement = figure.axes
    run = study.select(kind="decay", motion="noise", heads=4)[0]
    assert any(np.array_equal(line.get_ydata(), run["dissipation"]) for line in over_time.lines)
    assert len(gaps.lines) == 2
    for case, arrays in zip(study.cases, study.arrays, strict=True):
        if case["kind"] == "identity":
            assert any(np.array_equal(line.get_ydata(), arrays["residual"]) for line in refinement.lines)


@pytest.mark.parametrize(("value", "said"), [(-0.5, "\N{MINUS SIGN}0.50"), (0.0, "0.00")])
def test_exponents_have_a_proper_sign(value, said):
    assert heads_over_time.signed(value) == said


def test_round_off_is_written_in_powers_of_ten():
    assert heads_over_time.scientific(8.2e-16) == r"8$\times 10^{-16}$"
