"""The figure of merge trees draws a small record and says what it says."""

import numpy as np

from experiments import merge_trees as experiment
from figures import merge_trees
from figures.style import style
from meanfield.sweeps.studies import Study


def test_six_trees_counts_and_agreement_with_the_numbers_of_the_record():
    cases = [{"n": 5, "d": 3, "beta": 1.0, "horizon": 6.0, "outputs": 13, "replica": k} for k in range(2)]
    arrays = [experiment.run(cases[0], np.random.default_rng(0))] * 2
    with style():
        figure = merge_trees.draw(Study("merge_trees", experiment.CLAIM, True, 0, cases, arrays))
        figure.draw_without_rendering()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert len(titles) == 8
    for name in ("softmax", "linear"):
        spoken = next(title for title in titles if f"  {name}: " in title)
        consensus = float(arrays[0][f"{name}_consensus"])
        left = f"{arrays[0][f'{name}_counts'][-1]} are left"
        assert spoken.endswith(f"{consensus:.3g}" if np.isfinite(consensus) else left)
    assert "each of 2 starts" in figure.get_suptitle()


def test_names_are_listed_in_words():
    assert merge_trees.spelt_list(["l2", "softmax", "linear"]) == "L2, softmax and linear"
    assert merge_trees.spelt_list(["softmax"]) == "softmax"
    assert merge_trees.spelt_list([]) == "none"
