"""The figures of clustering draw a quick record, and say what it says."""

import numpy as np
import pytest

from experiments import clustering as experiment
from figures import clustering
from figures.style import style
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def drawn():
    cases = [case | {"n": 8, "outputs": 21} for case in experiment.cases(True)]
    cases.append(cases[0] | {"horizon": 40.0, "outputs": 81})
    arrays = [experiment.run(case, np.random.default_rng(2)) for case in cases]
    with style():
        return clustering.draw(Study("clustering", experiment.CLAIM, True, 0, cases, arrays)), arrays


def test_polytopes_hyperplanes_and_matrices_are_drawn_with_numbers_of_the_record(drawn):
    figures, arrays = drawn
    assert list(figures) == ["polytopes", "hyperplanes", "matrices"]
    largest = max((run["hull_growth"] / run["diameter"]).max() for run in arrays[:2])
    assert clustering.scientific(largest) in figures["polytopes"].get_suptitle()
    titles = [axes.get_title(loc="left") for axes in figures["polytopes"].axes]
    assert any(f"{len(arrays[0]['vertices'])} vertices" in title for title in titles)
    assert f"{len(arrays[2]['levels'])} of at most 3 values" in figures["hyperplanes"].get_suptitle()
    lasting = next(axes for axes in figures["matrices"].axes if "precision" in axes.get_title(loc="left"))
    assert f"{arrays[3]['boolean'][1]:.0f}" in lasting.texts[0].get_text()


def test_everything_can_be_laid_out(drawn):
    with style():
        for figure in drawn[0].values():
            figure.draw_without_rendering()


@pytest.mark.parametrize(("value", "said"), [(0.0, "0"), (1e-10, r"$10^{-10}$"), (9e-11, r"9$\times 10^{-11}$")])
def test_small_numbers_are_written_as_powers_of_ten(value, said):
    assert clustering.scientific(value) == said
