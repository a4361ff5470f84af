"""The figure of low-rank attention draws a small record and says what it says."""

import numpy as np

from experiments import low_rank_attention as experiment
from figures import low_rank_attention
from figures.style import style
from meanfield.sweeps.studies import Study


def test_matrices_ranks_and_singular_values_with_the_numbers_of_the_record():
    common = {"n": 5, "d": 6, "horizon": 12.0, "published_horizon": 11.0, "outputs": 13}
    cases = [common | {"replica": k} for k in range(2)]
    arrays = [experiment.run(case, np.random.default_rng(k)) for k, case in enumerate(cases)]
    with style():
        figure = low_rank_attention.draw(Study("low_rank_attention", experiment.CLAIM, True, 0, cases, arrays))
        figure.draw_without_rendering()
    ends = sorted(int(run["ranks"][-1]) for run in arrays)
    assert f"from rank {arrays[0]['ranks'][0]} to {low_rank_attention.span(ends)} by" in figure.get_suptitle()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0].endswith(f"$t$ = 0.0, rank {arrays[0]['ranks'][0]}")
    assert titles[3].endswith(f"$t$ = 12.0, rank {arrays[0]['ranks'][-1]}")


def test_a_range_of_one_number_is_that_number():
    assert low_rank_attention.span([2, 2]) == "2"
    assert low_rank_attention.span([3, 2, 8]) == "between 2 and 8"
