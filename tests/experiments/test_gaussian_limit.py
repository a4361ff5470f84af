"""Tokens against their Gaussian: slopes of about -1/2, samples shared, and time steps that do not show."""

import numpy as np
import pytest

from experiments.gaussian_limit import cases, run
from meanfield.plotting.curves import power_law

VARIANTS = ("softmax", "l2", "sinkhorn")


@pytest.fixture(scope="module")
def replicas():
    largest = {"softmax": 1024, "l2": 256, "sinkhorn": 128}
    return [run(case | {"largest": largest}, np.random.default_rng(case["replica"])) for case in cases(True)]


def test_errors_fall_like_one_over_root_n(replicas):
    """Eight samples of sizes 64 to 1,024: the fitted slope of softmax scatters by about 0.1."""
    for quantity in ("mean_softmax", "covariance_softmax"):
        errors = np.stack([run[quantity] for run in replicas])
        slope, _ = power_law(replicas[0]["n_softmax"], np.sqrt((errors**2).mean(axis=0)))
        assert slope == pytest.approx(-0.5, abs=0.2)


def test_errors_have_the_size_that_sampling_gives_them(replicas):
    """The mean of n tokens errs by 1 / sqrt(n) deviations at the start, and e^t (1 + ...) times that later."""
    for variant in VARIANTS:
        scaled = np.stack([run[f"mean_{variant}"] * np.sqrt(run[f"n_{variant}"]) for run in replicas])
        assert 0.5 < np.sqrt((scaled**2).mean()) < 3


def test_time_steps_are_far_below_the_sampling_errors(replicas):
    for run_ in replicas:
        for variant in VARIANTS:
            smallest = min(run_[f"mean_{variant}"].min(), run_[f"covariance_{variant}"].min())
            assert run_[f"stepping_{variant}"] < max(0.1 * smallest, 2e-4)


def test_the_gaussian_has_not_blown_up_yet(replicas):
    assert replicas[0]["time"] < 0.6 * replicas[0]["blow_up_time"] < np.inf


def test_smaller_clouds_are_part_of_larger_ones_and_variants_share_them(replicas):
    case = cases(True)[0]
    small = run(case | {"largest": {"softmax": 64}}, np.random.default_rng(0))
    # The sample is drawn row by row: more rows begin with the same ones.
    np.testing.assert_array_equal(small["mean_softmax"], replicas[0]["mean_softmax"][:1])
    errors = [[run_[f"mean_{variant}"][0] for run_ in replicas] for variant in ("softmax", "l2", "sinkhorn")]
    assert (np.corrcoef(errors) > 0.5).all()
