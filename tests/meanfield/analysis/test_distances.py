"""W_p and its relatives: closed forms, other solvers, metric axioms, scales, and refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.analysis import transport
from meanfield.analysis.distances import (
    NotConvergedError,
    bures_wasserstein,
    conditional_wasserstein,
    entropic_cost,
    gaussian_to_samples,
    optimal_coupling,
    sinkhorn_divergence,
    sliced_wasserstein,
    squared_wasserstein,
    wasserstein,
)
from meanfield.measures import Gaussian, Measure
from meanfield.spaces import Euclidean, Positioned, Sphere
from meanfield.summation import balancing

#: A handful of roundings.
EXACT = 1e-13


def rng(seed=0):
    return np.random.default_rng(seed)


def cloud(n, d, seed, weighted=False):
    generator = rng(seed)
    points = generator.standard_normal((n, d))
    return Measure.normalised(points, generator.random(n) + 0.01) if weighted else Measure(points)


def brute_force(x, y, p):
    """W_p of equal-weight clouds by trying every permutation."""
    orders = itertools.permutations(range(len(x)))
    costs = [sum(np.linalg.norm(a - y[j]) ** p for a, j in zip(x, order, strict=True)) for order in orders]
    return (min(costs) / len(x)) ** (1 / p)


def cdf_distance(mu, nu):
    """W_1 on the line as the integral of |F - G|."""
    x, y = mu.points[:, 0], nu.points[:, 0]
    grid = np.sort(np.concatenate([x, y]))
    gaps = [abs(mu.weights[x <= s].sum() - nu.weights[y <= s].sum()) for s in grid[:-1]]
    return float(np.dot(gaps, np.diff(grid)))


class TestClosedForms:
    @pytest.mark.parametrize("p", [1, 2, 3, 2.5, 50])
    def test_two_diracs_are_their_distance_apart_at_every_order(self, p):
        assert wasserstein(Measure([[0.0]]), Measure([[3.0]]), p) == 3
        assert wasserstein(Measure([[0.0, 0.0]]), Measure([[1.0, 2.0]]), p) == pytest.approx(np.sqrt(5), rel=EXACT)

    def test_the_squared_value_has_its_own_name(self):
        assert squared_wasserstein(Measure([[0.0]]), Measure([[3.0]])) == 9

    @pytest.mark.parametrize("d", [1, 2, 5])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_a_translation_moves_everything_by_its_length(self, d, weighted, p):
        mu = cloud(30, d, 1, weighted)
        shift = rng(2).standard_normal(d)
        nu = Measure(mu.points + shift, mu.weights)
        assert wasserstein(mu, nu, p) == pytest.approx(np.linalg.norm(shift), rel=1e-7)

    def test_on_the_line_it_is_the_area_between_distribution_functions(self):
        mu, nu = cloud(40, 1, 3, True), cloud(57, 1, 4, True)
        assert wasserstein(mu, nu, 1) == pytest.approx(cdf_distance(mu, nu), rel=EXACT)

    def test_the_published_weighted_line_in_any_order(self):
        places, a, b = np.array([[0.0], [1.0], [3.0]]), np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
        for s, r in itertools.product(itertools.permutations(range(3)), repeat=2):
            mu, nu = Measure(places[list(s)], a[list(s)]), Measure(places[list(r)], b[list(r)])
            assert wasserstein(mu, nu, 1) == pytest.approx(0.9, rel=EXACT)

    @pytest.mark.parametrize("p", [1, 2, 3])
    @pytest.mark.parametrize("d", [1, 2, 3])
    def test_it_is_the_best_permutation(self, p, d):
        x, y = rng(5).standard_normal((2, 6, d))
        assert wasserstein(Measure(x), Measure(y), p) == pytest.approx(brute_force(x, y, p), rel=1e-12)

    def test_a_linear_image_by_a_positive_matrix_is_optimally_coupled(self):
        # x -> A x is the gradient of a convex function, so W_2^2 is the mean of |x - A x|^2.
        mu = cloud(300, 2, 6)
        image = mu.points @ np.array([[2.0, 0.3], [0.3, 0.5]])
        expected = np.sqrt(((mu.points - image) ** 2).sum(axis=1).mean())
        assert wasserstein(mu, Measure(image)) == pytest.approx(expected, rel=1e-12)

    def test_from_one_token_all_mass_goes_everywhere(self):
        nu = cloud(9, 3, 7, True)
        expected = np.sqrt(nu.weights @ (nu.points**2).sum(axis=1))
        assert wasserstein(Measure(np.zeros((1, 3))), nu) == pytest.approx(expected, rel=EXACT)

    def test_on_the_sphere_the_ground_distance_is_geodesic(self):
        north, south = Measure([[0.0, 0.0, 2.0]]), Measure([[0.0, 0.0, -2.0]])
        assert wasserstein(north, south, 1, space=Sphere(2.0)) == pytest.approx(2 * np.pi, rel=EXACT)
        angles = np.linspace(0, 2 * np.pi, 7)[:-1]
        ring = np.column_stack([np.cos(angles), np.sin(angles)])
        turned = np.column_stack([np.cos(angles + 0.2), np.sin(angles + 0.2)])
        for p in (1, 2, 3):
            assert wasserstein(Measure(ring), Measure(turned), p, space=Sphere()) == pytest.approx(0.2, rel=1e-12)


class TestRoutes:
    """The solvers agree with one another, so the choice between them is a matter of speed only."""

    @pytest.mark.parametrize("p", [1, 2, 3])
    @pytest.mark.parametrize("d", [2, 7])
    def test_assignment_and_network_simplex_agree(self, p, d, monkeypatch):
        mu, nu = cloud(60, d, 8), cloud(60, d, 9)
        by_assignment = wasserstein(mu, nu, p)
        monkeypatch.setattr(transport, "SMALL", 0)
        monkeypatch.setattr(transport, "NEAR_SHARE", 2.0)
        assert wasserstein(mu, nu, p) == pytest.approx(by_assignment, rel=1e-10)

    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_sorting_and_network_simplex_agree_on_a_line_in_the_plane(self, p):
        mu, nu = cloud(40, 1, 10, True), cloud(31, 1, 11, True)
        direction = np.array([[0.6, 0.8]])
        plane = [Measure(m.points @ direction, m.weights) for m in (mu, nu)]
        assert wasserstein(*plane, p) == pytest.approx(wasserstein(mu, nu, p), rel=1e-10)

    def test_near_clouds_are_told_from_far_ones(self):
        x = rng(12).standard_normal((300, 2))
        near = np.abs(x[:, None] - x[None] - 1e-3).sum(axis=2)
        assert transport._near(near)
        assert not transport._near(np.abs(x[:, None] - (x + 9)[None]).sum(axis=2))

    def test_alignment_equalises_moments_and_keeps_the_cost_up_to_separate_terms(self):
        mu, nu = cloud(50, 3, 13, True), cloud(40, 3, 14, True)
        nu = Measure(nu.points * [0.2, 1, 5] + 7, nu.weights)
        x, y = transport.aligned(mu.points, mu.weights, nu.points, nu.weights)
        np.testing.assert_allclose((x.T * mu.weights) @ x, (y.T * nu.weights) @ y, atol=1e-12)
        cross = (mu.points - mu.mean) @ (nu.points - nu.mean).T
        np.testing.assert_allclose(x @ y.T, cross, atol=1e-12 * np.abs(cross).max())

    def test_the_coupling_has_both_marginals_and_the_cost(self):
        mu, nu = cloud(20, 2, 15, True), cloud(13, 2, 16, True)
        mu = Measure(mu.points, np.where(np.arange(20) == 4, 0, mu.weights) / (1 - mu.weights[4]))
        plan = optimal_coupling(mu, nu, 3).matrix
        np.testing.assert_allclose(plan.sum(axis=1), mu.weights, atol=1e-14)
        np.testing.assert_allclose(plan.sum(axis=0), nu.weights, atol=1e-14)
        costs = np.linalg.norm(mu.points[:, None] - nu.points[None], axis=2) ** 3
        assert (plan * costs).sum() ** (1 / 3) == pytest.approx(wasserstein(mu, nu, 3), rel=1e-12)

    def test_a_space_of_ones_own_is_only_asked_for_distances(self):
        class Manhattan:
            def check(self, x):
                pass

            def distance(self, x, y):
                return np.abs(x - y).sum(axis=-1)

        mu, nu = Measure(np.zeros((1, 2))), Measure([[1.0, 2.0]])
        assert wasserstein(mu, nu, 1, space=Manhattan()) == 3


class TestAxioms:
    masses = st.lists(st.integers(1, 5), min_size=1, max_size=5)

    def draw(self, data, d):
        masses = np.array(data.draw(self.masses), float)
        shape = (len(masses), d)
        flat = data.draw(st.lists(st.integers(-8, 8), min_size=shape[0] * d, max_size=shape[0] * d))
        return Measure.normalised(np.reshape(np.array(flat, float), shape) / 4, masses)

    @settings(max_examples=40, deadline=None)
    @given(data=st.data(), d=st.integers(1, 3), p=st.sampled_from([1, 2, 3]))
    def test_a_metric_on_weighted_clouds(self, data, d, p):
        mu, nu, rho = (self.draw(data, d) for _ in range(3))
        there = wasserstein(mu, nu, p)
        # With p = 3 a mass of 1e-16 is worth a distance of 1e-5: compare at the p-th root of round-off.
        noise = 20 * 1e-15 ** (1 / p)
        assert there >= 0
        assert there == pytest.approx(wasserstein(nu, mu, p), abs=noise)
        assert wasserstein(mu, mu, p) == pytest.approx(0, abs=noise)
        assert there <= wasserstein(mu, rho, p) + wasserstein(rho, nu, p) + noise
        assert wasserstein(mu, nu, 1) <= there + noise

    @pytest.mark.parametrize("d", [1, 2, 4])
    def test_a_shuffled_cloud_is_the_same_cloud(self, d):
        mu = cloud(250, d, 17)
        order = rng(18).permutation(250)
        assert wasserstein(mu, Measure(mu.points[order])) == 0

    @pytest.mark.parametrize("d", [1, 2])
    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_weighted_duplicates_equal_merged_atoms(self, d, p):
        tokens = rng(19).standard_normal((7, d))
        counts = np.array([1, 2, 3, 1, 5, 2, 1])
        many, merged = Measure(np.repeat(tokens, counts, axis=0)), Measure(tokens, counts / counts.sum())
        assert wasserstein(many, merged, p) == 0

    @pytest.mark.parametrize("d", [1, 2])
    def test_padding_does_not_count(self, d):
        mu, nu = cloud(6, d, 20, True), cloud(5, d, 21)
        padded = Measure(np.vstack([np.full((2, d), 1e6), mu.points]), np.concatenate([[0, 0], mu.weights]))
        for distance in (wasserstein, squared_wasserstein):
            assert distance(padded, nu) == pytest.approx(distance(mu, nu), rel=1e-14)
        bare = sinkhorn_divergence(mu, nu, epsilon=1)
        assert sinkhorn_divergence(padded, nu, epsilon=1) == pytest.approx(bare, rel=1e-12)


class TestScales:
    @pytest.mark.parametrize("d", [1, 2])
    def test_a_cloud_far_from_the_origin_is_right(self, d):
        tokens = 1e8 + np.array([[0.0], [1.0]]) @ np.eye(1, d)
        shift = 0.5 * np.eye(1, d)
        mu, nu = Measure(tokens), Measure(tokens + shift)
        assert wasserstein(mu, nu) == pytest.approx(0.5, abs=1e-15)
        slanted = np.array([[0.6, 0.8]])[:, :d]
        expected = 0.5 * slanted[0, 0] / np.linalg.norm(slanted)
        assert sliced_wasserstein(mu, nu, directions=slanted) == pytest.approx(expected, abs=1e-15)
        assert sinkhorn_divergence(mu, nu, epsilon=0.1) == pytest.approx(0.25, abs=1e-12)

    @pytest.mark.parametrize("size", [1e-300, 1e-170, 1e170, 1e300])
    @pytest.mark.parametrize("p", [1, 2, 5])
    def test_it_scales_with_the_points_over_all_floats(self, size, p):
        mu, nu = cloud(5, 2, 22), cloud(5, 2, 23)
        scaled = wasserstein(Measure(mu.points * size), Measure(nu.points * size), p)
        assert scaled == pytest.approx(size * wasserstein(mu, nu, p), rel=1e-12, abs=0)

    def test_hopeless_ranges_are_errors(self):
        huge = Measure([[-1.7e308], [1.7e308]])
        with pytest.raises(ValueError, match=r"must fit a float.*Rescale"):
            wasserstein(huge, Measure(-0.9 * huge.points[:1]))
        with pytest.raises(ValueError, match=r"squared distance must fit a float"):
            squared_wasserstein(Measure([[0.0]]), Measure([[1e200]]))
        points = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
        with pytest.raises(ValueError, match=r"must not underflow.*Lower p"):
            wasserstein(Measure(points), Measure(points + np.array([0.01, 0])), 400)

    def test_large_cost_matrices_are_refused_with_the_way_out(self):
        with pytest.raises(ValueError, match=r"max_pairs = 20 entries; got 5 x 6 = 30.*sliced_wasserstein"):
            wasserstein(cloud(5, 2, 0), cloud(6, 2, 1), max_pairs=20)
        assert wasserstein(cloud(5, 1, 0), cloud(6, 1, 1), max_pairs=20) > 0  # sorting needs no matrix

    def test_the_simplex_that_meets_its_limit_is_an_error(self):
        with pytest.raises(NotConvergedError, match=r"max_pivots = 2 on 30 x 31.*of the largest cost") as info:
            wasserstein(cloud(30, 2, 0), cloud(31, 2, 1), max_pivots=2)
        assert info.value.miss > 0

    def test_its_error_is_the_one_that_the_loop_of_a_run_knows(self):
        assert NotConvergedError is balancing.NotConvergedError


class TestRefusals:
    @pytest.mark.parametrize("distance", [wasserstein, squared_wasserstein, optimal_coupling, sliced_wasserstein])
    def test_only_plain_measures_of_one_dimension_are_taken(self, distance):
        mu = cloud(3, 2, 0)
        with pytest.raises(ValueError, match=r"needs two Measures; nu is of type ndarray. Use Measure\(points"):
            distance(mu, mu.points)
        with pytest.raises(ValueError, match=r"mu is of type Gaussian. Use bures_wasserstein"):
            distance(Gaussian([0, 0], np.eye(2)), mu)
        with pytest.raises(ValueError, match=r"same dimension; got 2 and 3"):
            distance(mu, cloud(3, 3, 0))
        with pytest.raises(ValueError, match=r"conditional_wasserstein.*Measure\(nu.tokens, nu.weights\)"):
            distance(mu, Measure.positioned([0, 0.5], np.zeros((2, 2))))
        with pytest.raises(ValueError, match=r"tokens of mu must be finite"):
            distance(mu.moved_to(mu.points * np.nan), mu)

    def test_order_space_and_weights_are_checked(self):
        mu = cloud(3, 2, 0)
        with pytest.raises(ValueError, match=r"p must be at least 1; got 0.5"):
            wasserstein(mu, mu, 0.5)
        with pytest.raises(ValueError, match=r"must lie on the sphere"):
            wasserstein(mu, mu, space=Sphere())
        with pytest.raises(ValueError, match=r"Pass its base space"):
            wasserstein(mu, mu, space=Positioned(Euclidean()))

    def test_float32_weights_are_as_good_as_uniform(self):
        tokens = rng(24).standard_normal((1000, 1))
        rounded = Measure(tokens, np.full(1000, np.float32(1 / 1000)))
        assert wasserstein(rounded, Measure(tokens)) == pytest.approx(0, abs=1e-6)


class TestConditional:
    def test_it_is_the_p_mean_over_positions(self):
        generator = rng(25)
        positions = np.array([0, 0, 0, 0.5, 0.5, 1])
        mu_weights, nu_weights = np.array([0.1, 0.2, 0.1, 0.2, 0.1, 0.3]), np.array([0.3, 0.05, 0.05, 0.1, 0.2, 0.3])
        x, y = generator.standard_normal((2, 6, 2))
        order = generator.permutation(6)
        for p in (1, 2, 3):
            total = 0.0
            for s in (0, 0.5, 1):
                here = positions == s
                theta = mu_weights[here].sum()
                parts = (Measure(z[here], w[here] / theta) for z, w in ((x, mu_weights), (y, nu_weights)))
                total += theta * wasserstein(*parts, p) ** p
            mu = Measure.positioned(positions, x, mu_weights)
            nu = Measure.positioned(positions[order], y[order], nu_weights[order])
            assert conditional_wasserstein(mu, nu, p) == pytest.approx(total ** (1 / p), rel=1e-12)
            alone = wasserstein(Measure(x, mu_weights), Measure(y, nu_weights), p)
            assert conditional_wasserstein(mu, nu, p) >= alone

    def test_tokens_at_different_positions_are_not_exchanged(self):
        mu = Measure.positioned([0, 0.5], [[0.0], [1.0]])
        nu = Measure.positioned([0.5, 0], [[0.0], [1.0]])
        assert conditional_wasserstein(mu, nu) == 1
        assert wasserstein(Measure(mu.tokens), Measure(nu.tokens)) == 0

    def test_on_the_sphere_it_uses_arcs(self):
        mu, nu = Measure.positioned([0], [[1.0, 0.0]]), Measure.positioned([0], [[0.0, 1.0]])
        for space in (Sphere(), Positioned(Sphere())):
            assert conditional_wasserstein(mu, nu, space=space) == pytest.approx(np.pi / 2, rel=EXACT)

    def test_padding_may_sit_anywhere(self):
        mu = Measure.positioned([0, 0.5, 0.7], [[0.0], [1.0], [5.0]], [0.5, 0.5, 0])
        nu = Measure.positioned([0, 0.5], [[0.0], [2.0]])
        assert conditional_wasserstein(mu, nu) == pytest.approx(np.sqrt(0.5), rel=EXACT)

    def test_other_position_marginals_are_refused(self):
        mu = Measure.positioned([0, 0.5], [[0.0], [1.0]])
        with pytest.raises(ValueError, match=r"same positions; 2 occur in one only, the first being 0.5"):
            conditional_wasserstein(mu, Measure.positioned([0, 0.6], [[0.0], [1.0]]))
        with pytest.raises(ValueError, match=r"same mass at every position; at 0 they have 0.5 and 0.6"):
            conditional_wasserstein(mu, Measure.positioned([0, 0.5], [[0.0], [1.0]], [0.6, 0.4]))
        with pytest.raises(ValueError, match=r"mu has no positions. Use Measure.positioned"):
            conditional_wasserstein(Measure(mu.points), mu)


class TestSliced:
    @pytest.mark.parametrize(("n", "m", "weighted"), [(40, 40, False), (40, 25, False), (40, 25, True)])
    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_it_is_the_p_mean_of_the_line_distances(self, n, m, weighted, p):
        mu, nu = cloud(n, 3, 26, weighted), cloud(m, 3, 27, weighted)
        directions = rng(28).standard_normal((5, 3))
        lines = []
        for u in directions / np.linalg.norm(directions, axis=1, keepdims=True):
            seen = (Measure(m.points @ u[:, None], m.weights) for m in (mu, nu))
            lines.append(wasserstein(*seen, p))
        expected = np.mean(np.power(lines, p)) ** (1 / p)
        assert sliced_wasserstein(mu, nu, p, directions=directions) == pytest.approx(expected, rel=1e-12)
        assert sliced_wasserstein(mu, nu, p, directions=7 * directions) == pytest.approx(expected, rel=1e-12)

    def test_a_translation_is_seen_from_the_mean_angle(self):
        mu = cloud(20, 2, 29)
        angles = np.pi * np.arange(4) / 4
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
        shifted = Measure(mu.points + np.array([3.0, 4.0]))
        assert sliced_wasserstein(mu, shifted, directions=directions) == pytest.approx(5 / np.sqrt(2), rel=1e-12)

    def test_in_one_dimension_it_is_the_distance_itself(self):
        mu, nu = cloud(20, 1, 30), cloud(30, 1, 31, True)
        assert sliced_wasserstein(mu, nu) == pytest.approx(wasserstein(mu, nu), rel=1e-12)

    def test_drawn_directions_are_reproducible_and_bounded_by_the_distance(self):
        mu, nu = cloud(50, 4, 32), cloud(50, 4, 33)
        value = sliced_wasserstein(mu, nu, directions=20, rng=rng(34))
        assert value == sliced_wasserstein(mu, nu, directions=20, rng=rng(34))
        assert 0 < value <= wasserstein(mu, nu)

    def test_blocks_do_not_change_the_value(self, monkeypatch):
        mu, nu = cloud(50, 4, 32), cloud(50, 4, 33)
        directions = rng(35).standard_normal((13, 4))
        whole = sliced_wasserstein(mu, nu, directions=directions)
        monkeypatch.setattr("meanfield.analysis.distances.BLOCK", 300)
        assert sliced_wasserstein(mu, nu, directions=directions) == pytest.approx(whole, rel=1e-14)

    def test_directions_are_checked(self):
        mu = cloud(3, 2, 0)
        with pytest.raises(ValueError, match=r"drawn from a generator.*rng="):
            sliced_wasserstein(mu, mu, directions=5)
        with pytest.raises(ValueError, match=r"shape \(L, 2\).*got shape \(4, 3\)"):
            sliced_wasserstein(mu, mu, directions=np.ones((4, 3)))
        with pytest.raises(ValueError, match=r"must not be zero; row 1"):
            sliced_wasserstein(mu, mu, directions=[[1.0, 0], [0, 0]])


class TestBures:
    def test_singular_covariances_give_real_distances(self):
        u = np.array([3, 4]) / 5
        full, half = Gaussian([0, 0], np.outer(u, u)), Gaussian([0, 0], np.outer(u, u) / 2)
        assert bures_wasserstein(full, half) == pytest.approx(1 - np.sqrt(0.5), rel=1e-12)
        across = bures_wasserstein(Gaussian([0, 0], np.diag([1.0, 0])), Gaussian([0, 0], np.diag([0, 1.0])))
        assert across == pytest.approx(np.sqrt(2), rel=1e-12)
        assert bures_wasserstein(full, full) <= 1e-15
        assert isinstance(across, float)

    def test_commuting_covariances_differ_by_their_roots(self):
        first, second = Gaussian([0, 0, 0], np.diag([1.0, 4, 9])), Gaussian([1, 2, 2], np.diag([4.0, 1, 0]))
        assert bures_wasserstein(first, second) == pytest.approx(np.sqrt(9 + 1 + 1 + 9), rel=1e-12)

    def test_it_is_the_trace_formula(self):
        roots = rng(36).standard_normal((2, 4, 4))
        first, second = (Gaussian(np.zeros(4), L @ L.T) for L in roots)
        values = np.linalg.eigvals(first.covariance @ second.covariance).real
        squared = np.trace(first.covariance + second.covariance) - 2 * np.sqrt(values).sum()
        assert bures_wasserstein(first, second) == pytest.approx(np.sqrt(squared), rel=1e-10)
        assert bures_wasserstein(second, first) == pytest.approx(np.sqrt(squared), rel=1e-10)

    def test_a_dirac_is_the_root_of_the_second_moment_away(self):
        dirac = Gaussian([0, 0], np.zeros((2, 2)))
        assert bures_wasserstein(dirac, Gaussian([3, 0], np.eye(2))) == pytest.approx(np.sqrt(11), rel=1e-12)
        assert bures_wasserstein(dirac, dirac) == 0

    def test_close_laws_are_told_apart_to_round_off(self):
        law, wider = Gaussian([0, 0], np.eye(2)), Gaussian([0, 0], (1 + 1e-10) ** 2 * np.eye(2))
        assert bures_wasserstein(law, wider) == pytest.approx(1e-10 * np.sqrt(2), rel=1e-5)

    def test_other_things_are_refused(self):
        with pytest.raises(ValueError, match=r"second to be one Gaussian; got Measure"):
            bures_wasserstein(Gaussian([0], [[1]]), cloud(2, 1, 0))
        with pytest.raises(ValueError, match=r"same dimension; got 1 and 2"):
            bures_wasserstein(Gaussian([0], [[1]]), Gaussian([0, 0], np.eye(2)))


class TestGaussianToSamples:
    def test_on_the_line_it_is_exact(self):
        # The Gaussian as 200,000 equal quantiles: their own W_2 to it is below 5e-3 (the tails), and far less
        # of it is left in the difference.
        from scipy.special import ndtri

        mu = cloud(12, 1, 37, True)
        law = Gaussian([0.4], [[2.25]])
        quantiles = 0.4 + 1.5 * ndtri((np.arange(200_000) + 0.5) / 200_000)
        assert gaussian_to_samples(law, mu) == pytest.approx(wasserstein(Measure(quantiles[:, None]), mu), abs=1e-3)

    def test_the_best_two_points_are_at_the_known_distance(self):
        # Two halves of N(0, 1) have means +-sqrt(2/pi), and what is left is the variance 1 - 2/pi.
        best = Measure(np.sqrt(2 / np.pi) * np.array([[-1.0], [1.0]]))
        assert gaussian_to_samples(Gaussian([0], [[1]]), best) == pytest.approx(np.sqrt(1 - 2 / np.pi), rel=1e-12)

    def test_above_it_is_the_bound_by_moments(self):
        mu = cloud(30, 3, 38, True)
        law = Gaussian([1, 2, 3], np.diag([1.0, 2, 0]))
        moments = bures_wasserstein(law, Gaussian(mu.mean, mu.covariance))
        assert gaussian_to_samples(law, mu) == pytest.approx(moments, rel=1e-12)
        assert moments <= wasserstein(law.sample(400, rng(39)), mu) + 0.2  # sampling error of 400 draws

    def test_few_tokens_and_diracs_work(self):
        assert gaussian_to_samples(Gaussian([0], [[0]]), Measure([[3.0]])) == 3
        plane = Gaussian([0, 0], np.eye(2))
        assert gaussian_to_samples(plane, Measure([[3.0, 0]])) == pytest.approx(np.sqrt(11), rel=1e-12)

    def test_other_things_are_refused(self):
        with pytest.raises(ValueError, match=r"law to be one Gaussian; got Measure"):
            gaussian_to_samples(cloud(2, 1, 0), cloud(2, 1, 0))
        with pytest.raises(ValueError, match=r"same dimension; got 1 and 2"):
            gaussian_to_samples(Gaussian([0], [[1]]), cloud(2, 2, 0))


class TestEntropic:
    @pytest.mark.parametrize("epsilon", [1e-3, 0.05, 1, 100])
    def test_the_divergence_vanishes_exactly_at_equality_and_the_cost_does_not(self, epsilon):
        mu, nu = cloud(15, 2, 40, True), cloud(15, 2, 41)
        order = rng(42).permutation(15)
        shuffled = Measure(mu.points[order], mu.weights[order])
        # Second order in the tolerance: (1e-9)^2 over the spectral gap of the sweep, here down to 1e-7.
        assert sinkhorn_divergence(mu, shuffled, epsilon=epsilon) == pytest.approx(0, abs=1e-11 * max(1, epsilon))
        assert entropic_cost(mu, mu, epsilon=epsilon) > 1e-4
        assert sinkhorn_divergence(mu, nu, epsilon=epsilon) > 1e-2
        swapped = sinkhorn_divergence(nu, mu, epsilon=epsilon)
        assert swapped == pytest.approx(sinkhorn_divergence(mu, nu, epsilon=epsilon), rel=1e-9)

    def test_small_epsilon_gives_the_squared_distance(self):
        mu, nu = cloud(20, 2, 43, True), cloud(25, 2, 44)
        exact = squared_wasserstein(mu, nu)
        errors = [abs(sinkhorn_divergence(mu, nu, epsilon=epsilon) - exact) for epsilon in (1e-1, 1e-2, 1e-3)]
        assert errors[0] > errors[1] > errors[2]
        assert errors[2] < 3e-3 * exact  # at most epsilon times the entropy of 45 atoms

    def test_large_epsilon_gives_the_squared_shift_of_the_means(self):
        mu, nu = cloud(20, 2, 43, True), cloud(25, 2, 44)
        shift = ((mu.mean - nu.mean) ** 2).sum()
        assert sinkhorn_divergence(mu, nu, epsilon=1e6) == pytest.approx(shift, rel=1e-4)

    def test_two_tokens_by_hand(self):
        # Plan [[q, 1/2 - q], [1/2 - q, q]] between {0, 1} and itself: its odds are q / (1/2 - q) = exp(1 / epsilon).
        epsilon = 0.7
        q = 0.5 / (1 + np.exp(-1 / epsilon))
        r = 0.5 - q
        expected = 2 * r + epsilon * (2 * q * np.log(4 * q) + 2 * r * np.log(4 * r))
        mu = Measure([[0.0], [1.0]])
        assert entropic_cost(mu, mu, epsilon=epsilon) == pytest.approx(expected, rel=1e-12)

    def test_it_is_the_formula_of_two_gaussians(self):
        # OT_eps(N(0,a), N(0,b)) = a + b - 2c - (eps/2) log(1 - c^2/(ab)), c = sqrt(ab + eps^2/16) - eps/4.
        # Gauss-Hermite nodes carry the Gaussians to well below the tolerance while epsilon is of the size of a, b.
        epsilon, a, b = 2.0, 1.0, 0.49
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        keep = weights > 1e-14 * weights.sum()
        laws = [Measure.normalised(s * nodes[keep, None], weights[keep]) for s in (np.sqrt(a), np.sqrt(b))]

        def cost(a, b):
            c = np.sqrt(a * b + epsilon**2 / 16) - epsilon / 4
            return a + b - 2 * c - epsilon / 2 * np.log(1 - c**2 / (a * b))

        assert entropic_cost(*laws, epsilon=epsilon) == pytest.approx(cost(a, b), rel=1e-7)
        debiased = cost(a, b) - (cost(a, a) + cost(b, b)) / 2
        assert sinkhorn_divergence(*laws, epsilon=epsilon) == pytest.approx(debiased, rel=1e-6)

    def test_large_plans_are_solved_without_newton_and_agree(self, monkeypatch):
        mu, nu = cloud(30, 2, 45), cloud(20, 2, 46, True)
        by_newton = entropic_cost(mu, nu, epsilon=0.2)
        monkeypatch.setattr("meanfield.summation.annealing.NEWTON_PAIRS", 0)
        assert entropic_cost(mu, nu, epsilon=0.2) == pytest.approx(by_newton, rel=1e-11)

    def test_missed_marginals_are_an_error_that_says_by_how_much(self):
        mu, nu = cloud(30, 2, 45), cloud(20, 2, 46, True)
        message = r"missed the marginals by a factor exp\(\d.*max_iterations = 4"
        with pytest.raises(NotConvergedError, match=message) as info:
            sinkhorn_divergence(mu, nu, epsilon=0.01, max_iterations=4)
        assert info.value.miss > 1e-3

    def test_bad_epsilons_are_refused(self):
        mu, nu = cloud(3, 2, 0), cloud(3, 2, 1)
        with pytest.raises(ValueError, match=r"epsilon must be greater than 0"):
            sinkhorn_divergence(mu, nu, epsilon=0)
        with pytest.raises(ValueError, match=r"1e-08 times the squared diameter.*use wasserstein"):
            sinkhorn_divergence(mu, nu, epsilon=1e-12)
        with pytest.raises(ValueError, match=r"conditional_wasserstein"):
            entropic_cost(mu, Measure.positioned([0], [[1.0, 2.0]]), epsilon=1)
