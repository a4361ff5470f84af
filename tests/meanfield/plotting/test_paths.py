"""What plots read off results: the same from a Trajectory, from arrays of a record and from one state."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import meanfield as mf
from meanfield.plotting.paths import covariance_path, gaussian_path, token_path

from .runs import blown_up, gaussian, tokens


def test_a_trajectory_and_its_arrays_give_the_same_tokens():
    run = tokens(3, 2)
    from_run, from_arrays = token_path(run), token_path((run.times, run.arrays))
    assert_array_equal(from_run.tokens, from_arrays.tokens)
    assert_array_equal(from_run.times, from_arrays.times)
    assert from_run.tokens.shape == (4, 3, 2)


def test_positions_are_no_coordinate_and_colour_the_tokens():
    path = token_path(mf.Measure.positioned([0.1, 0.9], [[1.0, 2.0], [3.0, 4.0]]))
    assert path.tokens.shape == (1, 2, 2)
    assert_array_equal(path.positions, [0.1, 0.9])


def test_a_view_is_taken_at_each_time():
    path = token_path(tokens(3, 2), lambda t, mu: mu.moved_to(mu.points * 0 + t))
    assert_array_equal(path.tokens[:, 0, 0], path.times)


def test_a_run_that_ended_early_says_how():
    assert token_path(blown_up("tokens")).ending == "blew up at $t^*$ = 0.2857"  # 1 / (2 M), M = 5.25 / 3
    assert gaussian_path(gaussian(2)).ending == ""


def test_a_gaussian_run_and_its_arrays_give_the_same_covariances():
    run = gaussian(2)
    laws = list(run)
    arrays = run.times, [law.mean for law in laws], [law.covariance for law in laws]
    assert_array_equal(covariance_path(run), [law.covariance for law in gaussian_path(arrays).laws])


@pytest.mark.parametrize(
    ("read", "given", "said"),
    [
        (token_path, gaussian(2), "needs a run of tokens; got a run of Gaussian"),
        (gaussian_path, tokens(3, 2), "needs a run of a Gaussian; got a run of tokens"),
        (token_path, "run", "must be a Trajectory or a pair"),
        (token_path, ([0.0, 1.0], np.zeros((3, 2, 2))), r"shape \(2, n, d\), one cloud a time"),
        (gaussian_path, ([0.0], np.zeros((2, 2)), np.zeros((1, 2, 2))), "one entry a time; got 1, 2 and 1"),
        (gaussian_path, ([0.0], [[0.0]]), r"a triple \(times"),
        (covariance_path, np.eye(2), r"For one matrix use S\[None\]"),
    ],
)
def test_other_results_are_refused_with_the_cure(read, given, said):
    with pytest.raises(ValueError, match=said):
        read(given)
