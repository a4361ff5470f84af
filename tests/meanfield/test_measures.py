"""Measure and Gaussian: what they accept, what they refuse and the moments they give."""

import numpy as np
import pytest

from meanfield.measures import Gaussian, Measure

PAIR = [[0.0], [1.0]]


# --- weights that are no probability ---------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        ([0.75, 0.75], r"weights must sum to 1; got sum 1\.5"),
        ([], r"weights must have shape \(2,\).*got shape \(0,\), sum 0"),
        ([1.5, -0.5], r"weights must not be negative; got -0\.5 at index 1 \(sum 1\)"),
        ([0, 0], r"weights must sum to 1; got sum 0"),
        ([np.nan, 1], r"weights must be finite; got nan at index \(0,\)"),
        ([[0.5, 0.5]], r"weights must have shape \(2,\)"),
        ([0.5, 0.5, 0.0], r"weights must have shape \(2,\)"),
    ],
)
def test_weights_that_are_no_probability_are_refused_with_what_was_found(weights, found):
    with pytest.raises(ValueError, match=found):
        Measure(PAIR, weights)


def test_the_refusal_names_the_opt_in_way_to_scale_masses():
    with pytest.raises(ValueError, match=r"Measure\.normalised\(points, masses\)"):
        Measure(PAIR, [0.75, 0.75])
    assert Measure.normalised(PAIR, [0.75, 0.25 * 9]).weights == pytest.approx([0.25, 0.75], abs=1e-16)


@pytest.mark.parametrize("masses", [[0, 0], [2, -1]])
def test_masses_that_cannot_be_scaled_are_refused(masses):
    with pytest.raises(ValueError, match="masses must not be negative and not all zero"):
        Measure.normalised(PAIR, masses)


def test_a_thousand_single_precision_weights_count_as_uniform():
    weights = np.full(1000, np.float32(1 / 1000))
    assert abs(weights.astype(float).sum() - 1) > 1e-9  # this is what other libraries refuse
    measure = Measure(np.arange(1000.0)[:, None], weights)
    assert measure.weights == pytest.approx(np.full(1000, 1e-3), rel=1e-6)
    assert measure.weights.sum() == pytest.approx(1, abs=1e-15 * 10)


# --- points ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [[1.0, 2.0], np.zeros((0, 2)), np.zeros((2, 0)), np.zeros((2, 2, 2)), 3.0])
def test_points_without_rows_are_refused_with_the_cure(points):
    with pytest.raises(ValueError, match=r"points must have shape \(n, d\).*x\[None, :\].*x\[:, None\]"):
        Measure(points)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_finite_are_refused_with_their_place(bad):
    with pytest.raises(ValueError, match=r"points must be finite; got .* at index \(1, 0\)"):
        Measure([[0.0], [bad]])


@pytest.mark.parametrize("points", [[["a"], ["b"]], [[1 + 1j], [0]], [[1.0], [1.0, 2.0]], None])
def test_points_that_are_no_real_numbers_are_refused(points):
    with pytest.raises(ValueError, match="points must be an array of real numbers"):
        Measure(points)


def test_integer_points_become_floats():
    assert Measure([[1], [2]]).points.dtype == np.float64


def test_the_callers_arrays_are_copied_and_never_locked():
    points, weights = np.array(PAIR), np.array([0.25, 0.75])
    measure = Measure(points, weights)
    points[0, 0] = 9.0
    weights[:] = 0.5
    assert measure.points[0, 0] == 0.0
    assert measure.weights.tolist() == [0.25, 0.75]
    for array in (measure.points, measure.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_moments_divide_by_the_total_mass():
    measure = Measure([[0.0, 0.0], [4.0, 2.0]], [0.75, 0.25])
    assert measure.mean == pytest.approx([1.0, 0.5], abs=1e-15)
    assert measure.covariance == pytest.approx(np.array([[3.0, 1.5], [1.5, 0.75]]), abs=1e-15)


def test_moments_of_one_token_are_itself_and_zero():
    measure = Measure([[2.0]])
    assert measure.mean.tolist() == [2.0]
    assert measure.covariance.tolist() == [[0.0]]


def test_the_covariance_of_a_far_cloud_is_right():
    # 1e8 squared would lose every digit of a variance of 1/4; centring first does not
    assert Measure([[1e8], [1e8 + 1]]).covariance[0, 0] == 0.25


def test_padding_counts_in_no_moment():
    padded = Measure([[0.0], [1.0], [77.0]], [0.5, 0.5, 0.0])
    assert padded.mean.tolist() == [0.5]
    assert padded.covariance.tolist() == [[0.25]]
    assert padded.log_weights[2] == -np.inf


def test_a_measure_reads_as_its_points_and_has_a_length():
    measure = Measure(PAIR)
    assert np.array_equal(np.asarray(measure), PAIR)
    assert np.asarray(measure, dtype=np.float32).dtype == np.float32
    assert len(measure) == 2
    assert measure.dimension == 1


def test_moving_keeps_masses_and_leaves_the_first_measure_alone():
    measure = Measure(PAIR, [0.25, 0.75])
    log_weights = measure.log_weights
    moved = measure.moved_to(np.array([[5.0], [6.0]]))
    assert moved.points[:, 0].tolist() == [5.0, 6.0]
    assert moved.weights is measure.weights
    assert moved.log_weights is log_weights
    assert measure.points[:, 0].tolist() == [0.0, 1.0]
    assert not moved.has_positions


def test_moving_checks_nothing_so_that_a_blow_up_inside_a_run_raises_nothing():
    assert np.isinf(Measure(PAIR).moved_to(np.array([[np.inf], [1.0]])).points[0, 0])


# --- positions ------------------------------------------------------------------------------------


def test_a_positioned_measure_keeps_positions_beside_its_tokens():
    measure = Measure.positioned([0.0, 0.5, 0.5], [[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]])
    assert measure.has_positions
    assert measure.points.shape == (3, 3)
    assert measure.positions.tolist() == [0.0, 0.5, 0.5]
    assert measure.tokens.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]]
    assert measure.dimension == 2
    assert measure.mean == pytest.approx([3.0, 5.0], abs=1e-15)
    assert measure.covariance.shape == (2, 2)


def test_the_flag_of_positions_travels_with_a_move():
    measure = Measure.positioned([0.0, 1.0], PAIR)
    moved = measure.moved_to(measure.points + 1)
    assert moved.has_positions
    assert moved.tokens[:, 0].tolist() == [1.0, 2.0]


def test_asking_a_plain_measure_for_positions_names_the_cure():
    with pytest.raises(ValueError, match=r"has no positions.*Measure\.positioned\(positions, tokens\)"):
        _ = Measure(PAIR).positions


def test_positions_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"positions must have shape \(2,\), one a token; got shape \(3,\)"):
        Measure.positioned([0, 1, 2], PAIR)


def test_a_positioned_measure_needs_a_token_beside_the_position():
    with pytest.raises(ValueError, match=r"rows \[s \| x\] of length 2 or more"):
        Measure([[0.0], [1.0]], has_positions=True)


# --- Gaussian -------------------------------------------------------------------------------------


def test_a_root_of_a_regular_law_gives_the_covariance_back():
    S = np.array([[2.0, 0.5], [0.5, 1.0]])
    root = Gaussian([0, 0], S).root
    assert root.shape == (2, 2)
    assert root @ root.T == pytest.approx(S, abs=1e-15 * 8)


def test_a_singular_law_keeps_its_rank_in_the_root():
    u = np.array([3.0, 4.0]) / 5
    law = Gaussian([1, 2], np.outer(u, u))
    assert law.root.shape == (2, 1)
    assert np.abs(law.root[:, 0]) == pytest.approx([0.6, 0.8], abs=1e-15)


def test_a_point_mass_has_an_empty_root_and_draws_its_mean():
    law = Gaussian([1.0, 2.0], np.zeros((2, 2)))
    assert law.root.shape == (2, 0)
    assert law.sample(3, np.random.default_rng(0)).points.tolist() == [[1.0, 2.0]] * 3


def test_draws_of_a_singular_law_stay_on_its_support():
    u = np.array([3.0, 4.0]) / 5
    points = Gaussian([1, 2], np.outer(u, u)).sample(50, np.random.default_rng(1)).points
    assert (points - [1, 2]) @ [-0.8, 0.6] == pytest.approx(np.zeros(50), abs=1e-14)


def test_the_moments_of_a_sample_are_those_of_the_law_up_to_one_over_root_n():
    mean, S = np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    n = 40_000
    sample = Gaussian(mean, S).sample(n, np.random.default_rng(2))
    # standard deviations: sqrt(S_ii / n) of a mean, about sqrt(2) S_ii / sqrt(n) of a variance; five of them
    assert np.abs(sample.mean - mean).max() < 5 * np.sqrt(2 / n)
    assert np.abs(sample.covariance - S).max() < 5 * np.sqrt(2) * 2 / np.sqrt(n)


def test_the_same_generator_draws_the_same_sample():
    law = Gaussian([0.0], [[1.0]])
    first, again = (law.sample(5, np.random.default_rng(3)).points for _ in range(2))
    assert np.array_equal(first, again)


def test_a_law_from_its_root_needs_no_factorisation():
    L = np.array([[1.0, 0.0], [2.0, 3.0]])
    law = Gaussian.from_root(np.zeros(2), L)
    assert law.root is L
    assert law.covariance == pytest.approx(L @ L.T, abs=1e-15)


def test_laws_from_roots_may_have_a_batch_axis():
    L = np.random.default_rng(4).standard_normal((5, 3, 2))
    law = Gaussian.from_root(np.zeros((5, 3)), L)
    assert law.dimension == 3
    assert law.covariance[2] == pytest.approx(L[2] @ L[2].T, abs=1e-15 * 16)


@pytest.mark.parametrize(
    ("mean", "covariance", "found"),
    [
        ([[0.0]], [[1.0]], r"mean must have shape \(d,\).*In one dimension write \[a\]"),
        ([], [[1.0]], r"mean must have shape \(d,\)"),
        ([0.0], [[1.0, 0], [0, 1]], r"covariance must be a matrix of shape \(1, 1\)"),
        ([0.0], 1.0, r"covariance must be a matrix of shape \(1, 1\).*In one dimension write \[\[a\]\]"),
        ([0.0], [[[1.0]]], r"covariance must be one matrix.*simulate_ensemble"),
        ([0.0, 0.0], [[1.0, 0.1], [0.2, 1.0]], r"covariance must be symmetric; got a difference of 0\.1"),
        ([0.0, 0.0], [[1.0, 0.0], [0.0, -0.5]], r"positive semi-definite; got eigenvalue -0\.5.*L @ L\.T"),
        ([0.0], [[np.nan]], r"covariance must be finite"),
        ([np.inf], [[1.0]], r"mean must be finite"),
    ],
)
def test_laws_that_are_none_are_refused_with_the_cure(mean, covariance, found):
    with pytest.raises(ValueError, match=found):
        Gaussian(mean, covariance)


@pytest.mark.parametrize("n", [0, -3, 2.5, "many"])
def test_a_sample_size_that_is_no_count_is_refused(n):
    with pytest.raises(ValueError, match="n must be"):
        Gaussian([0.0], [[1.0]]).sample(n, np.random.default_rng(0))


def test_scaling_masses_is_asked_for_and_noted():
    measure = Measure.normalised([[0.0], [1.0]], [3.0, 1.0])
    np.testing.assert_array_equal(measure.weights, [0.75, 0.25])
    assert measure.scaled_from == 4.0
    assert measure.moved_to(measure.points + 1).scaled_from == 4.0
    assert Measure([[0.0]]).scaled_from == 1.0


@pytest.mark.parametrize("n", [2, 5, 6, 7, 10, 49])
def test_tokens_that_coincide_have_no_covariance_at_all(n):
    # The mean of n equal numbers is not that number to the last bit; the covariance must not see that.
    measure = Measure(np.tile([[0.1, 1e8 / 3]], (n, 1)))
    assert not measure.covariance.any()


def test_a_cloud_at_1e12_has_the_covariance_of_its_differences():
    points = 1e12 + np.random.default_rng(0).standard_normal((200, 2))
    # Subtracting 1e12 from these doubles is exact.
    assert Measure(points).covariance == pytest.approx(np.cov((points - 1e12).T, ddof=0), rel=1e-12)


def test_a_covariance_with_room_left_in_floats_is_taken():
    assert Gaussian([0, 0], 1e308 * np.eye(2)).covariance[0, 0] == 1e308
