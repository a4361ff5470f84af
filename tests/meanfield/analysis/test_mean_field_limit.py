"""The mean-field limit: rates of sampling, references, nested draws, distances by size, outcomes, refusals."""

import numpy as np
import pytest

from meanfield.analysis.distances import conditional_wasserstein, gaussian_to_samples, wasserstein
from meanfield.analysis.mean_field_limit import (
    AtPositions,
    UniformBall,
    first_tokens,
    mean_field_limit,
    sampling_rate,
)
from meanfield.attention import (
    ATTENTION,
    LinearAttention,
    MaskedAttention,
    SigmoidAttention,
    SoftmaxAttention,
    make_attention,
)
from meanfield.integration import RK4, Outcome, simulate
from meanfield.measures import Gaussian, Measure
from meanfield.parameters import Head
from meanfield.spaces import Sphere

LAYERS = {"scheme": RK4, "dt": 0.25}
LINE = Head([[0.5]], [[1.0]], [[0.5]])

#: Midpoints of 300 equal parts of [-1, 1]: within 2 / 300 of the uniform law in every W_p.
GRID = Measure(((np.arange(300) + 0.5) / 150 - 1)[:, None])


def still(t, x, mu):
    """A field under which nothing moves: errors are those of sampling."""
    return np.zeros_like(x)


class TestRates:
    def test_nothing_moving_keeps_the_sampling_error_at_its_rate(self):
        found = mean_field_limit(still, UniformBall(1), [16, 64, 256], [0.0], seeds=100, reference=GRID)
        slope, half = found.slope()
        assert found.rate == -0.5
        assert abs(slope[0] + 0.5) < 1.5 * half[0]
        assert half[0] < 0.06
        # E W_2^2 of a uniform sample on [-1, 1] is 4 / (6 n) for large n (Brownian bridge); one draw scatters by 0.85
        squares = (found.errors[:, 2, 0] ** 2).mean()
        assert squares == pytest.approx(4 / (6 * 256), rel=4 * 0.085)

    @pytest.mark.parametrize("name", ATTENTION)
    def test_every_variant_keeps_the_rate_from_a_compact_start(self, name):
        field = make_attention(name, LINE)
        found = mean_field_limit(field, UniformBall(1), [8, 32, 128], [0.0, 1.0], seeds=6, reference=GRID, **LAYERS)
        start, end = found.slopes.T
        # nested tokens: the same draws at both times, so the slopes differ by far less than they scatter
        assert np.abs(end - start).max() < 0.12
        assert abs(found.slopes.mean() + 0.5) < 0.15
        assert {outcome for seed in found.outcomes for outcome in seed} == {Outcome.FINISHED}

    def test_masked_tokens_converge_in_the_conditional_distance(self):
        field, law = MaskedAttention(SoftmaxAttention(LINE)), AtPositions(UniformBall(1), [0.0, 1.0], [0.2, 0.8])
        reference = Measure.positioned(
            np.repeat([0.0, 1.0], 100), np.tile(GRID.points[1::3], (2, 1)), np.repeat([0.2, 0.8], 100) / 100
        )
        found = mean_field_limit(field, law, [8, 32, 96], [0.0, 1.0], seeds=5, reference=reference, **LAYERS)
        assert found.distance == "conditional"
        assert abs(found.slopes.mean() + 0.5) < 0.15
        start = first_tokens(law(96, np.random.default_rng(3)), 32)
        run, truth = (simulate(field, each, [0.0, 1.0], **LAYERS) for each in (start, reference))
        assert found.errors[3, 1, 1] == pytest.approx(conditional_wasserstein(run[1], truth[1]), rel=1e-12)

    def test_the_rate_of_sampling_by_dimension(self):
        assert [sampling_rate(d) for d in (1, 2, 3, 5)] == [-0.5, -0.5, -1 / 3, -0.2]
        assert sampling_rate(5, sliced=True) == -0.5
        found = mean_field_limit(
            still, UniformBall(3), [10, 30, 90], [0.0], seeds=3, reference=1200, space=Sphere(), **LAYERS
        )
        assert found.rate == -0.5  # two dimensions
        assert found.distance == "exact"
        assert abs(found.slopes.mean() + 0.5) < 0.2
        solid = mean_field_limit(still, UniformBall(3), [10, 30, 90], [0.0], seeds=3, reference=1200)
        assert abs(solid.slopes.mean() + 1 / 3) < 0.1


class TestReferences:
    def test_a_gaussian_that_stays_one_is_its_own_reference(self):
        law, field = Gaussian([0.3], [[0.5]]), SoftmaxAttention(LINE)
        found = mean_field_limit(field, law, [8, 64], [0.0, 0.5], seeds=[7, 9])
        assert found.reference == "the Gaussian"
        moved = simulate(field, law, [0.0, 0.5])
        tokens = simulate(field, law.sample(64, np.random.default_rng(9)), [0.0, 0.5])
        assert found.errors[1, 1, 1] == pytest.approx(gaussian_to_samples(moved[1], tokens[1]), rel=1e-12)

    def test_in_the_plane_it_is_drawn_from_at_each_time(self):
        law, field = Gaussian([0.3, 0.0], np.diag([0.5, 0.1])), SoftmaxAttention(Head.identity(2, 0.5))
        found = mean_field_limit(field, law, [4, 16], [0.0, 0.5], seeds=2, reference=300)
        assert found.reference == "300 draws from the Gaussian at each time"
        assert found.distance == "exact"
        tokens = mean_field_limit(field, law, [4, 16], [0.0, 0.5], seeds=2, reference=law.sample(3000, _generator()))
        # two references of the same law: they differ by their own sampling errors, 300^{-1/2} and less
        np.testing.assert_allclose(found.errors, tokens.errors, atol=0.1)

    def test_a_gaussian_that_does_not_stay_one_is_compared_with_many_tokens(self):
        law = Gaussian([0.0], [[0.5]])
        found = mean_field_limit(SigmoidAttention(LINE), law, [4, 8], [0.0, 0.5], seeds=2, **LAYERS)
        assert found.reference == "128 tokens"
        assert found.distance == "exact"

    def test_large_clouds_in_space_are_sliced_at_every_size_alike(self):
        field = SoftmaxAttention(Head.identity(2))
        options = {"seeds": 4, "reference": 2000, **LAYERS}
        found = mean_field_limit(field, UniformBall(2), [5, 20, 80], [0.0, 0.25], max_pairs=100_000, **options)
        assert found.distance == "sliced"
        assert found.rate == -0.5
        assert abs(found.slopes.mean() + 0.5) < 0.2
        exact = mean_field_limit(field, UniformBall(2), [5, 20], [0.0, 0.25], **options)
        assert exact.distance == "exact"
        assert (found.errors[:, :2] <= exact.errors).all()

    def test_no_system_shares_tokens_with_its_reference(self):
        found = mean_field_limit(still, UniformBall(2), [50, 100], [0.0], seeds=2, reference=101)
        assert found.errors.min() > 0.01


class TestResults:
    def test_seeds_are_common_random_numbers(self):
        sizes, seeds = [4, 16], [5, 6, 7]
        one = mean_field_limit(still, UniformBall(1), sizes, [0.0], seeds=seeds, reference=GRID)
        other = mean_field_limit(SoftmaxAttention(LINE), UniformBall(1), sizes, [0.0, 0.1], seeds=seeds, reference=GRID)
        np.testing.assert_array_equal(one.errors[..., 0], other.errors[..., 0])
        tokens = UniformBall(1)(16, np.random.default_rng(6))
        assert one.errors[1, 0, 0] == pytest.approx(wasserstein(first_tokens(tokens, 4), GRID), rel=1e-12)

    def test_mean_band_and_slope_are_those_of_the_logarithms(self):
        found = mean_field_limit(still, UniformBall(1), [4, 16, 64], [0.0], seeds=5, reference=GRID)
        logs = np.log(found.errors)
        np.testing.assert_allclose(found.mean, np.exp(logs.mean(axis=0)))
        low, high = found.band()
        half = 2.7764451 * logs.std(axis=0, ddof=1) / np.sqrt(5)  # Student's t, 4 degrees of freedom, 97.5 %
        np.testing.assert_allclose(np.log(high / found.mean), half, rtol=1e-6)
        np.testing.assert_allclose(low * high, found.mean**2)
        fitted = np.polyfit(np.log(found.sizes), logs[..., 0].T, 1)[0]
        np.testing.assert_allclose(found.slopes[:, 0], fitted)
        slope, half = found.slope(0.5)
        assert slope[0] == pytest.approx(fitted.mean())
        assert half[0] == pytest.approx(0.7406971 * fitted.std(ddof=1) / np.sqrt(5))

    def test_a_blow_up_leaves_gaps_and_outcomes(self):
        law = UniformBall(1, 2.0)
        reference = Measure([[-0.1], [0.1]])
        field = LinearAttention(Head.identity(1))
        found = mean_field_limit(field, law, [2, 8], [0.0, 5.0], seeds=2, reference=reference)
        assert np.isfinite(found.errors[..., 0]).all()
        assert np.isnan(found.errors[..., 1]).all()
        assert {outcome for seed in found.outcomes for outcome in seed} == {Outcome.BLEW_UP}
        assert np.isnan(found.slopes[:, 1]).all()

    def test_times_after_the_blow_up_of_the_gaussian_are_left_out(self):
        found = mean_field_limit(SoftmaxAttention(Head.identity(1)), Gaussian([0.0], [[1.0]]), [2, 4], [0.0, 0.4, 0.6])
        assert found.times.tolist() == [0.0, 0.4]
        assert found.errors.shape == (8, 2, 2)


class TestRefusals:
    @pytest.mark.parametrize("sizes", [[8], [8, 8], [16, 8], [2.5, 8], [0, 8]])
    def test_sizes_must_increase(self, sizes):
        with pytest.raises(ValueError, match="sizes must be two or more increasing whole numbers"):
            mean_field_limit(still, UniformBall(1), sizes, [0.0])

    def test_what_is_no_law_and_what_is_no_reference(self):
        with pytest.raises(ValueError, match=r"law must be a Gaussian or a function"):
            mean_field_limit(still, lambda n, rng: np.zeros((n, 1)), [2, 4], [0.0])
        with pytest.raises(ValueError, match="reference must be at least 5"):
            mean_field_limit(still, UniformBall(1), [2, 4], [0.0], reference=4)
        with pytest.raises(ValueError, match="seeds must be at least 1"):
            mean_field_limit(still, UniformBall(1), [2, 4], [0.0], seeds=0)

    def test_one_seed_has_no_band(self):
        found = mean_field_limit(still, UniformBall(1), [2, 4], [0.0], seeds=1, reference=GRID)
        assert found.slopes.shape == (1, 1)
        with pytest.raises(ValueError, match="needs two seeds and a level below 1; got 1"):
            found.band()


def _generator():
    return np.random.default_rng(99)
