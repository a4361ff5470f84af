"""The L2 counterexample and its regular neighbours."""

import numpy as np
import pytest

import meanfield as mf
from experiments import l2_blow_up
from experiments.l2_blow_up import exact_covariance, largest, passage_time, regular_head, run, start_law

CASE = {"part": "regular", "start": "sheet", "epsilons": [0.01, 0.1, 1.0], "levels": [1e2, 1e4], "outputs": 5}


def test_the_counterexample_of_the_sheet_blows_up_at_three():
    arrays = run({"part": "deficient", "start": "sheet", "outputs": 5}, None)
    assert arrays["proved_time"] == pytest.approx(3, rel=1e-14)
    assert arrays["blow_up_time"] == pytest.approx(3, rel=1e-6)
    # rtol 1e-8 is magnified by t* / (t* - t) = 1000 at the last output
    np.testing.assert_allclose(arrays["covariances"], arrays["exact"], rtol=3e-5)


@pytest.mark.parametrize("start", list(l2_blow_up.STARTS))
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_exact_covariance_moves_as_the_field_says(start, epsilon):
    law, t, h = start_law(start), 0.4, 1e-5
    np.testing.assert_allclose(exact_covariance(law, epsilon, [0.0])[0], law.covariance, rtol=1e-13)
    before, now, after = exact_covariance(law, epsilon, [t - h, t, t + h])
    B = mf.L2Attention(regular_head(epsilon)).on_gaussian(0.0, mf.Gaussian([0.0, 0.0], now)).matrix
    # central differences: h^2 and round-off / h, both about 1e-10
    np.testing.assert_allclose((after - before) / (2 * h), B @ now + now @ B.T, atol=1e-7)


def test_the_passage_time_is_where_the_largest_eigenvalue_has_the_level():
    law, levels = start_law("wide"), np.array([10.0, 1e3, 1e6])
    for epsilon in (0.01, 1.0):
        times = passage_time(law, epsilon, levels)
        np.testing.assert_allclose(largest(exact_covariance(law, epsilon, times)), levels, rtol=1e-9)


def test_regular_keys_never_blow_up_and_pass_levels_when_they_should():
    arrays = run(CASE, None)
    assert not arrays["blown_up"].any()
    np.testing.assert_allclose(arrays["passages"], arrays["exact_passages"], rtol=1e-6)
    assert (arrays["proved"] <= arrays["passages"]).all()
    assert (np.diff(arrays["passages"], axis=0) > 0).all()
    np.testing.assert_allclose(arrays["slope"], 2, atol=1e-3)
    assert arrays["pole"] == pytest.approx(3, rel=1e-14)
    np.testing.assert_allclose(arrays["curves"][[0, -1]], arrays["exact_passages"][[0, -1]], rtol=1e-9)
