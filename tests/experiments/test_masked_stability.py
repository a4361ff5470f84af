"""The experiment on the attention sink: what is disturbed, how fast it grows, and which factor bounds it."""

import numpy as np
import pytest

from experiments import masked_stability

CASE = {"n": 6, "replicas": 1, "horizon": 0.3}


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("mass", [0.0, 0.1, 1.0])
def test_ratios_and_quotients_stay_below_both_bounds(p, mass):
    found = masked_stability.run(CASE | {"mass": mass, "p": p}, np.random.default_rng(0))
    assert np.isnan(found["ratios"][0]) == (mass == 0)
    known = found["ratios"][~np.isnan(found["ratios"])]
    assert (np.log(known) <= found["log_bound"]).all()
    assert found["log_bound"] <= found["log_sink_bound"] * (1 + 1e-9)
    allowed = found["in_law"] * found["mask_factor"] + 0.05  # in_point is |A| R^2 = 0.004
    assert np.nanmax(found["quotients"]) <= allowed
    assert found["sink_factor"] == (np.inf if mass == 0 else pytest.approx(1 / mass))


def test_the_sink_alone_attains_the_factor_of_all_masses_in_d_1():
    found = masked_stability.run(CASE | {"mass": 0.1, "p": 1}, np.random.default_rng(1))
    # exactly so for A = 0; the logits here are 0.004
    assert found["quotients"][0] == pytest.approx(found["mask_factor"], rel=0.02)


def test_the_worst_disturbance_of_averages_is_their_eigenvector():
    weights = np.array([0.2, 0.4, 0.4])
    sink, worst, _ = masked_stability.disturbances(weights, np.random.default_rng(0))
    assert sink.tolist() == [1.0, 0.0, 0.0]
    averaging = np.tril(np.ones((3, 3))) * weights
    averaging /= averaging.sum(axis=1, keepdims=True)

    def rate(D):
        return (weights * D) @ averaging @ D / (weights @ D**2)

    others = np.random.default_rng(1).standard_normal((200, 3))
    assert all(rate(D) <= rate(worst) + 1e-12 for D in others)
