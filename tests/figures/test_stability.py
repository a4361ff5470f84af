"""The figure on stability, from two variants."""

import numpy as np

from experiments import stability
from figures import stability as figure_module
from tests.figures.studies import study_of, texts


def test_it_draws_and_counts_the_pairs_above_the_bound():
    small = {"n": 3, "horizon": 0.2, "outputs": 3}
    names = ("variant", "space", "replica", "near")
    known = [{name: case[name] for name in names} for case in stability.cases(True)]
    cases = [small | case for case in known if case["variant"] in ("softmax", "masked")]
    study = study_of(stability, cases)
    figure = figure_module.draw(study)
    assert f"0 of {len(cases)} pairs do" in texts(figure)
    assert len(figure.axes) == 4
    study.arrays[0]["ratios"] = np.exp(study.arrays[0]["log_bound"] + 1)
    assert f"1 of {len(cases)} pairs do" in texts(figure_module.draw(study))
