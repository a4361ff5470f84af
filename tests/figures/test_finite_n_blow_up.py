"""The figure of tokens beside their Gaussian, on a small record."""

import numpy as np
import pytest

from experiments.finite_n_blow_up import CLAIM, run
from figures.finite_n_blow_up import draw
from meanfield.sweeps.studies import Study


@pytest.fixture(scope="module")
def study():
    common = {"value": 1.0, "logit": 1.0, "variance": 1.0, "horizon": 1.5, "outputs": 31}
    cases = [common | {"n": n, "replica": k} for n in (20, 100) for k in range(2)]
    arrays = [run(case, np.random.default_rng([case["n"], case["replica"]])) for case in cases]
    return Study("finite_n_blow_up", CLAIM, True, 0, cases, arrays)


def test_title_says_the_variances_at_the_pole(study):
    title = draw(study).get_suptitle()
    few, many = (np.mean([one["at_pole"] for one in study.select(n=n)]) for n in (20, 100))
    assert "blows up at $t^*$ = 0.5; its 100 tokens do not" in title
    assert f"{many:.2g},\nhardly more than the {few:.2g} of 20 tokens" in title


def test_the_pole_stays_out_of_the_frame_and_the_tokens_in_it(study):
    axes = draw(study).axes[0]
    gaussian = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert np.isfinite(gaussian.get_ydata()).all()
    assert axes.get_ylim()[1] > max(one["covariance"][-1] for one in study.arrays) / 1.5
