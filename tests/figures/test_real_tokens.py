"""The figures of real_tokens draw a quick record, and say what it says."""

import numpy as np
import pytest

from experiments import real_tokens as experiment
from figures import real_tokens
from figures.style import style
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def study():
    cases = [case | {"sentences": 1, "horizon": 2.0} for case in experiment.cases(True) if case["beta"] < 10]
    arrays = [experiment.run(case, None) for case in cases]
    return Study("real_tokens", experiment.CLAIM, True, 0, cases, arrays)


def test_curves_and_misfits_are_drawn_and_the_best_setting_is_named_with_its_numbers(study):
    with style():
        figures = real_tokens.draw(study)
        for figure in figures.values():
            figure.draw_without_rendering()
    assert list(figures) == ["depth", "misfits"]
    for space, words in real_tokens.SPACES.items():
        case, run = real_tokens.settings(study, space=space)[0]
        line = next(line for line in figures["depth"].get_suptitle().splitlines() if words[3:] in line)
        assert f"$\\beta$ = {case['beta']:g}" in line
        assert f"{run['followed']} of 5" in line
    assert f"of {len(study.cases)} settings" in figures["misfits"].get_suptitle()


@pytest.mark.parametrize(("fitted", "said"), [(0.0, "0 (at rest)"), (0.25, "0.25"), (1.0, "1.00 (limit)")])
def test_a_time_per_layer_at_either_end_of_the_search_is_marked(fitted, said):
    run = {"time_per_layer": fitted, "times": np.array([0.0, 6.0]), "matched": np.zeros((7, 5))}
    assert real_tokens.step(run) == said
