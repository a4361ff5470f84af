"""The comparison of attentions: poles where they must be, entropies in their bounds, the predicted late decay."""

import numpy as np
import pytest

import meanfield as mf
from experiments import compare_attention


@pytest.fixture(scope="module")
def results():
    return {
        (case["regime"], case["variant"]): compare_attention.run(case, None)
        for case in compare_attention.cases(True)
        if case["variant"] != "sinkhorn" or case["regime"] == "growing"
    }


def test_every_variant_of_the_registry_takes_part_in_both_regimes():
    present = {(case["regime"], case["variant"]) for case in compare_attention.cases(True)}
    assert present == {(r, v) for r in compare_attention.REGIMES for v in [*mf.ATTENTION, "masked", "multihead"]}


def test_arrays_are_finite_and_entropies_lie_between_zero_and_log_n(results):
    for run in results.values():
        assert all(np.isfinite(a).all() for name, a in run.items() if "blow_up" not in name and name != "slope")
        if "entropy" in run:
            assert (run["entropy"] >= 0).all()
            assert (run["entropy"] <= 1 + 1e-12).all()
        assert (run["clusters"] >= 1).all()


def test_tokens_blow_up_only_without_normalisation_and_gaussians_by_their_closed_form(results):
    growing = {variant: run for (regime, variant), run in results.items() if regime == "growing"}
    assert {name for name, run in growing.items() if np.isfinite(run["blow_up"])} == {"linear", "unnormalised"}
    laws = {name: run["gaussian_blow_up"] for name, run in growing.items() if "gaussian_times" in run}
    assert {name for name, time in laws.items() if np.isfinite(time)} == {"softmax", "linear"}
    start = mf.Measure(compare_attention.three_groups(24))
    moment = start.covariance + np.outer(start.mean, start.mean)
    # V = I, A = beta I: t* = 1 / (2 beta lambda_max), of the second moment for linear, of the covariance for softmax
    assert laws["softmax"] == pytest.approx(1 / np.linalg.eigvalsh(start.covariance)[-1], rel=1e-5)
    for found in (laws["linear"], growing["linear"]["blow_up"]):
        assert found == pytest.approx(1 / np.linalg.eigvalsh(moment)[-1], rel=1e-5)


@pytest.mark.parametrize(
    ("variant", "constant"),
    [("softmax", 1), ("l2", 2**-0.5), ("sigmoid", 2), ("linear", 1), ("unnormalised", 1), ("multihead", 2**0.5)],
)
def test_contracting_spreads_fall_like_one_over_the_root_of_t_with_the_constant_of_their_linearisation(
    results, variant, constant
):
    run = results["contracting", variant]
    # Sigma' = -2 c Sigma^2 near zero gives spread = sqrt(d / (2 c beta t)); at t = 100 the start still counts for 1/t
    assert run["late_constant"] == pytest.approx(constant, rel=0.03)
    assert run["slope"] == pytest.approx(-0.5, abs=0.04)


def test_the_gaussian_starts_with_the_moments_of_the_tokens_and_the_first_masked_token_is_alone(results):
    for (regime, variant), run in results.items():
        if "gaussian_times" in run:
            assert run["gaussian_spread"][0] == pytest.approx(run["spread"][0], rel=1e-12)
            np.testing.assert_allclose(run["gaussian_means"][0], run["points"][0].mean(axis=0), atol=1e-14)
        if variant == "masked":
            sign = compare_attention.REGIMES[regime][0]
            first = np.exp(sign * run["times"])[:, None] * run["points"][0, 0]
            np.testing.assert_allclose(run["points"][:, 0], first, rtol=1e-5, atol=1e-8)


def test_the_late_slope_of_a_power_law_is_its_exponent():
    times = np.geomspace(0.1, 100, 50)
    assert compare_attention.late_slope(times, 3 * times**-0.7, 100) == pytest.approx(-0.7)
    assert np.isnan(compare_attention.late_slope(times, times, 200))
