"""The figure of feed-forward parts, on a small record."""

import numpy as np
import pytest

from experiments.affine_equilibria import CLAIM, run
from figures.affine_equilibria import draw
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def study():
    scalar = {"part": "scalar", "pushes": [0.5, 2.0], "count": 2}
    cases = [scalar | {"side": side} for side in ("stabilising", "destabilising")]
    cases.append({"part": "equilibrium", "drift": "symmetric", "starts": 2, "horizon": 12.0, "outputs": 31})
    cases.append({"part": "threshold", "drift": "symmetric", "grid": 3, "sizes": [0.05, 20.0]})
    arrays = [run(case, np.random.default_rng(k)) for k, case in enumerate(cases)]
    return Study("affine_equilibria", CLAIM, True, 0, cases, arrays)


def test_title_says_how_many_starts_fall_on_the_wrong_side(study):
    assert "0 of 9 starts fall on the wrong side of $P_0 > P_*$" in draw(study).get_suptitle()
    study.arrays[3]["disagreements"] = 2
    assert "2 of 9 starts" in draw(study).get_suptitle()
    study.arrays[3]["disagreements"] = 0


def test_marks_are_the_simulated_times_that_exist(study):
    axes = draw(study).axes[0]
    marks = np.concatenate([line.get_ydata() for line in axes.lines if line.get_linestyle() == "None"])
    both = np.concatenate([study.arrays[0]["simulated"], study.arrays[1]["simulated"][1:]])
    np.testing.assert_allclose(np.sort(marks), np.sort(both[np.isfinite(both)]))
