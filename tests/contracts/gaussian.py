"""What a field says of a Gaussian: the right affine map, or by name that it keeps none."""

import numpy as np
import pytest

from meanfield import Gaussian, Head, Measure, NotGaussianError, Schedule
from tests import oracles
from tests.contracts.attention import close_to, random_head


class NotGaussianContract:
    """A field that does not keep Gaussians says so by name and names the way out."""

    def test_a_gaussian_is_refused_by_name_with_the_way_out(self):
        field = self.field(random_head(21))
        law = Gaussian(np.zeros(3), np.eye(3))
        name = type(field).__name__
        with pytest.raises(NotGaussianError, match=rf"^{name} does not keep Gaussians.*law\.sample\(n, rng\)"):
            field.on_gaussian(0.0, law)


class GaussianContract:
    """The affine map on a Gaussian: by covariance formulas, on a quadrature cloud, and on a sample."""

    #: Tokens of the sample in the test of two roads.
    sample_size = 4000

    def gaussian_oracle(self, mean, S, head):
        """(mean', S') by the formulas of tests.oracles."""
        raise NotImplementedError

    def check_rates(self, mean, S, head):
        """Compare mean' = c + B mean and S' = B S + S B^T with the oracle."""
        mean, S = np.asarray(mean, float), np.asarray(S, float)
        wanted_mean, wanted_S = self.gaussian_oracle(mean, S, head)
        map_ = self.field(head).on_gaussian(0.0, Gaussian(mean, S))
        assert map_.offset + map_.matrix @ mean == close_to(wanted_mean)
        assert map_.matrix @ S + S @ map_.matrix.T == close_to(wanted_S)

    @pytest.mark.parametrize("seed", range(4))
    def test_mean_and_covariance_move_as_the_formulas_say(self, seed):
        root = np.random.default_rng(seed).standard_normal((3, 3))
        self.check_rates([0.3, -0.5, 1.0], root @ root.T / 3, random_head(seed))

    def test_a_covariance_of_lower_rank_is_no_special_case(self):
        root = np.random.default_rng(30).standard_normal((3, 2))
        self.check_rates([0.3, -0.5, 1.0], root @ root.T, random_head(30))

    def test_a_logit_matrix_of_lower_rank_is_no_special_case(self):
        self.check_rates([0.3, -0.5], [[1.0, 0.4], [0.4, 2.0]], random_head(31, d=2, k=1))

    def test_a_logit_matrix_of_zero_is_no_special_case(self):
        zero = np.zeros((1, 2))
        self.check_rates([0.3, -0.5], [[1.0, 0.4], [0.4, 2.0]], Head(zero, zero, [[1.0, 2.0], [3.0, 4.0]]))

    def test_covariance_and_logits_of_lower_rank_together_are_no_special_case(self):
        root = np.random.default_rng(32).standard_normal((3, 2))
        self.check_rates([0.0, 1.0, 0.0], root @ root.T, random_head(32, k=1))

    def test_a_point_mass_moves_like_one_token(self):
        head, mean = random_head(33), np.array([0.2, -0.4, 0.6])
        map_ = self.field(head).on_gaussian(0.0, Gaussian(mean, np.zeros((3, 3))))
        mu = Measure(mean[None, :])
        assert map_(mean[None, :]) == close_to(self.field(head)(0.0, mu.points, mu))

    @pytest.mark.parametrize("root", [[[0.6, 0.0], [0.3, 0.5]], [[0.7], [-0.4]]])
    def test_the_map_is_the_velocity_on_a_quadrature_of_the_law_at_any_point(self, root):
        # Gauss-Hermite integrates these kernels to about 1e-10 with 30 nodes an axis at logits of size one
        mean, S = np.array([0.4, -0.2]), np.array(root) @ np.transpose(root)
        head = random_head(34, d=2, scale=0.4)
        points, weights = oracles.gaussian_cloud(mean, S, nodes=30)
        x = np.array([[0.0, 0.0], [1.0, 0.5], [-0.7, 0.9], [0.3, -1.2]])
        found = self.field(head)(0.0, x, Measure(points, weights))
        assert self.field(head).on_gaussian(0.0, Gaussian(mean, S))(x) == pytest.approx(found, abs=1e-9)

    def test_the_map_is_the_velocity_on_a_large_sample_up_to_one_over_root_n(self):
        # each component is a mean of values with standard deviation about one: five standard errors
        mean, S = np.array([0.4, -0.2]), np.array([[0.8, 0.3], [0.3, 0.5]])
        head = random_head(35, d=2, scale=0.3)
        sample = Gaussian(mean, S).sample(self.sample_size, np.random.default_rng(35))
        x = np.array([[0.0, 0.0], [0.5, 0.5], [-0.7, 0.2]])
        difference = self.field(head)(0.0, x, sample) - self.field(head).on_gaussian(0.0, Gaussian(mean, S))(x)
        assert np.abs(difference).max() < 5 * np.linalg.norm(head.value, 2) / np.sqrt(self.sample_size)

    def test_many_laws_at_once_move_like_each_alone(self):
        rng = np.random.default_rng(36)
        means, roots, head = rng.standard_normal((4, 3)), rng.standard_normal((4, 3, 2)), random_head(36)
        together = self.field(head).on_gaussian(0.0, Gaussian.from_root(means, roots))
        for k in range(4):
            alone = self.field(head).on_gaussian(0.0, Gaussian.from_root(means[k], roots[k]))
            assert together.matrix[k] == close_to(alone.matrix)
            assert together.offset[k] == close_to(alone.offset)

    def test_the_head_is_read_at_the_time_of_the_call(self):
        law = Gaussian([0.1, 0.2, 0.3], np.diag([1.0, 0.5, 0.2]))
        moving = self.field(Schedule(lambda t: random_head(37, scale=0.2 + t))).on_gaussian(0.5, law)
        still = self.field(random_head(37, scale=0.7)).on_gaussian(0.0, law)
        assert moving.matrix == close_to(still.matrix, 1e-15)
        assert moving.offset == close_to(still.offset, 1e-15)

    def test_directions_that_no_query_reads_have_no_velocity_of_their_own(self):
        # B Z = 0 for Z spanning ker Q: the source of the invariant Z^T Sigma^{-1} Z
        head = random_head(38)
        null = np.linalg.svd(head.query)[2][-1]
        map_ = self.field(head).on_gaussian(0.0, Gaussian([0.1, 0.2, 0.3], np.diag([1.0, 0.5, 0.2])))
        assert map_.matrix @ null == close_to(np.zeros(3))
