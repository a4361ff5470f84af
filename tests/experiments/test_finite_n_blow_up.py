"""Tokens beside their Gaussian, up to its pole and past it."""

import numpy as np
import pytest

import meanfield as mf
from experiments import finite_n_blow_up
from experiments.finite_n_blow_up import InterpolatedAttention, departure, run

CASE = {"value": 1.0, "logit": 1.0, "variance": 1.0, "horizon": 1.5, "outputs": 31, "n": 60, "replica": 0}


def test_tokens_stay_finite_and_inside_the_bound_past_the_pole():
    arrays = run(CASE, np.random.default_rng(0))
    assert arrays["pole"] == 0.5
    assert arrays["times"][-1] == 0.75
    assert np.isfinite(arrays["covariance"]).all()
    # rtol 1e-5 of the run
    assert (arrays["radius"] <= arrays["bound"] * (1 + 1e-4)).all()
    assert arrays["covariance"][0] == pytest.approx(1, rel=1e-12)
    before = arrays["times"] < 0.5
    np.testing.assert_allclose(arrays["gaussian"][before], 1 / (1 - 2 * arrays["times"][before]), rtol=1e-12)
    assert np.isinf(arrays["gaussian"][~before]).all()
    assert arrays["at_pole"] == arrays["covariance"][20]
    assert 0 < arrays["departure"] < 0.5


def test_more_tokens_follow_the_gaussian_longer():
    few, many = (
        np.mean([run(CASE | {"n": n}, np.random.default_rng([n, k]))["departure"] for k in range(3)]) for n in (10, 200)
    )
    assert few < many


def test_interpolation_is_exact_to_eight_digits():
    tokens = np.random.default_rng(1).standard_normal((400, 1))
    mu, exact = mf.Measure(1.8 * tokens), mf.SoftmaxAttention(mf.Head.identity(1))
    field = InterpolatedAttention(exact)
    # the field is analytic: 256 points leave 1e-8 of its largest value, which a field off by its width would miss
    np.testing.assert_allclose(field(0.0, mu.points, mu), exact(0.0, mu.points, mu), atol=1e-7)


def test_large_clouds_are_interpolated_and_say_how_well(monkeypatch):
    alone = run(CASE, np.random.default_rng(5))
    monkeypatch.setattr(finite_n_blow_up, "EXACT", 10)
    close = run(CASE, np.random.default_rng(5))
    assert alone["field_error"] < 1e-15  # another block of rows, another last bit
    assert 1e-15 < close["field_error"] < 1e-6
    np.testing.assert_allclose(close["covariance"], alone["covariance"], rtol=1e-5)


def test_the_departure_is_interpolated_where_ten_per_cent_are_passed():
    times, gaussian = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, np.inf])
    assert departure(times, np.array([1.0, 1.6, 3.0]), gaussian) == pytest.approx(0.5)
