"""Stability of two solutions: no ratio above the bound, estimates that are what they say, masks, spheres, outcomes."""

import numpy as np
import pytest

from meanfield.analysis.distances import conditional_wasserstein, wasserstein
from meanfield.analysis.lipschitz import sink_factor
from meanfield.analysis.stability import local_lipschitz, stability
from meanfield.attention import (
    ATTENTION,
    KernelAttention,
    LinearAttention,
    MaskedAttention,
    MultiHeadAttention,
    SinkhornAttention,
    SoftmaxAttention,
    make_attention,
)
from meanfield.integration import RK4, Outcome
from meanfield.measures import Measure
from meanfield.parameters import Head
from meanfield.perceptron import AffinePerceptron
from meanfield.spaces import Euclidean, Positioned, Sphere
from tests.contracts.attention import random_head

#: Steps of 1/4 with slopes of size one: RK4 is right to 1e-3 on tokens and, smooth as it is, on ratios.
RUN = {"scheme": RK4, "dt": 0.25, "max_columns": 0}
SLACK = 1 + 1e-3


def two_laws(rng, n, d, size, *, far):
    """Tokens of unequal weight, and the same moved a little or drawn anew."""
    x = rng.uniform(-size, size, (n, d))
    y = rng.uniform(-size, size, (n, d)) if far else x + 0.02 * size * rng.standard_normal((n, d))
    return x, y, rng.dirichlet(np.full(n, 2.0))


def gentle_head(seed, d):
    """Logits of size one and less, so that the bounds are finite for some time."""
    head = random_head(seed, d=d, k=d)
    return Head(*(matrix / np.linalg.norm(matrix, 2) for matrix in (head.query, head.key, head.value)), scale=0.6)


class TestTheBound:
    @pytest.mark.parametrize("space", [Euclidean(), Sphere(0.9)], ids=["plane", "sphere"])
    @pytest.mark.parametrize("name", [*ATTENTION, "multihead"])
    def test_no_random_instance_exceeds_it(self, name, space):
        count = 6 if name == "sinkhorn" else 20
        for seed in range(count):
            rng = np.random.default_rng(seed)
            d = 2 if isinstance(space, Sphere) else 1 + seed % 3
            field = self.field(name, seed, d)
            x, y, weights = two_laws(rng, 4, d, 0.6, far=seed % 2)
            mu, nu = (Measure(space.retract(points), weights) for points in (x, y))
            p = (1, 2, 3)[seed % 3]
            run = stability(field, mu, nu, [0.0, 0.25, 0.5], p, space=space, **RUN)
            assert run.finished
            assert (run.ratios <= run.bound * SLACK).all()
            assert np.isfinite(run.log_bound[1])

    @pytest.mark.parametrize("space", [Euclidean(), Sphere(0.9)], ids=["plane", "sphere"])
    @pytest.mark.parametrize("name", ["softmax", "l2", "sigmoid", "linear", "unnormalised"])
    def test_no_random_masked_instance_exceeds_it(self, name, space):
        for seed in range(12):
            rng = np.random.default_rng(100 + seed)
            field = MaskedAttention(self.field(name, seed, 2))
            x, y, weights = two_laws(rng, 5, 2, 0.6, far=seed % 2)
            places = np.array([0.0, 0.2, 0.2, 0.5, 1.0])
            mu, nu = (Measure.positioned(places, space.retract(points), weights) for points in (x, y))
            p = (1, 2, 3)[seed % 3]
            run = stability(field, mu, nu, [0.0, 0.25, 0.5], p, space=space, **RUN)
            assert (run.ratios <= run.bound * SLACK).all()
            assert np.isfinite(run.log_bound[1])

    def test_a_sink_alone_gives_a_larger_bound_than_all_masses(self):
        field, places = MaskedAttention(SoftmaxAttention(gentle_head(0, 1))), np.arange(4)
        mu, nu = (Measure.positioned(places, np.full((4, 1), x), [0.1, 0.3, 0.3, 0.3]) for x in (0.3, 0.4))
        all_masses, sink = (stability(field, mu, nu, [0.0, 0.5], mask_factor=h) for h in (None, sink_factor))
        assert sink.log_bound[1] > all_masses.log_bound[1]
        assert sink.lipschitz.parameters["mask factor"] == pytest.approx(10)

    def field(self, name, seed, d):
        if name == "multihead":
            return MultiHeadAttention((SoftmaxAttention(gentle_head(seed, d)), LinearAttention(gentle_head(-~seed, d))))
        return make_attention(name, gentle_head(seed, d))

    def test_a_field_without_a_derivation_has_none_and_the_reason(self):
        field = KernelAttention(Head.identity(1), np.tanh)
        run = stability(field, Measure([[0.3]]), Measure([[0.4]]), [0.0, 1.0])
        assert run.bound is None
        assert run.log_bound is None
        assert run.lipschitz is None
        assert "KernelAttention: its kernel is not one of" in run.reason
        assert run.ratios[1] > 0

    def test_it_says_which_bound_from_which_derivation_with_which_numbers(self):
        mu, nu = Measure([[3.0, 4.0], [0.0, 1.0]]), Measure([[3.0, 3.0], [0.0, 1.0]])
        run = stability(SoftmaxAttention(Head.identity(2, 0.01)), mu, nu, [0.0, 0.1])
        assert run.lipschitz.name == "softmax"
        assert "max f / int f dmu" in run.lipschitz.derivation
        assert run.lipschitz.parameters == {"|V|": 1.0, "|A|": pytest.approx(0.01)}
        assert run.radius == 5.0
        assert run.reason == ""


class TestRatios:
    def test_a_feed_forward_field_stretches_by_its_exponential(self):
        field = AffinePerceptron([[0.7]])
        run = stability(field, Measure([[0.0], [1.0]]), Measure([[0.5], [1.2]]), np.linspace(5.0, 6.0, 5))
        wanted = np.exp(0.7 * (run.times - 5))
        np.testing.assert_allclose(run.ratios, wanted, rtol=1e-7)
        np.testing.assert_allclose(run.gronwall, wanted, rtol=1e-7)
        np.testing.assert_allclose(run.local_estimate, wanted, rtol=1e-7)
        np.testing.assert_allclose(run.bound, wanted, rtol=1e-7)

    def test_they_are_ratios_of_the_right_distance(self):
        rng = np.random.default_rng(3)
        x, y, weights = two_laws(rng, 5, 2, 1.0, far=True)
        field, places = SoftmaxAttention(gentle_head(0, 2)), [0.0, 0.5, 0.5, 1.0, 1.0]
        for p in (1, 2):
            run = stability(field, Measure(x, weights), Measure(y, weights), [0.0, 1.0], p)
            wanted = wasserstein(run.first[1], run.second[1], p) / wasserstein(run.first[0], run.second[0], p)
            assert run.ratios[1] == pytest.approx(wanted)
            mu, nu = Measure.positioned(places, x, weights), Measure.positioned(places, y, weights)
            run = stability(MaskedAttention(field), mu, nu, [0.0, 1.0], p)
            assert run.distances[1] == pytest.approx(conditional_wasserstein(run.first[1], run.second[1], p))

    @pytest.mark.parametrize("space", [Euclidean(), Sphere()], ids=["plane", "sphere"])
    def test_the_quotients_bound_the_growth_of_the_distance(self, space):
        times = np.linspace(0.0, 1.0, 21)
        for seed in range(3):
            rng = np.random.default_rng(seed)
            x, y, weights = two_laws(rng, 4, 2, 1.0, far=seed % 2)
            mu, nu = (Measure(space.retract(points), weights) for points in (x, y))
            run = stability(SoftmaxAttention(gentle_head(seed, 2)), mu, nu, times, space=space, **RUN)
            # the trapezoidal rule on 20 steps misses the integral by less than 1e-3
            assert (run.ratios <= run.gronwall * (1 + 1e-3)).all()
            assert (run.gronwall <= run.bound).all()

    def test_quotients_of_near_laws_are_within_the_local_constant_and_some_direction_attains_it(self):
        rng = np.random.default_rng(4)
        x, _, weights = two_laws(rng, 3, 2, 1.0, far=False)
        field, mu = SoftmaxAttention(random_head(0, d=2)), Measure(x, weights)
        local, best = local_lipschitz(field, 0.0, mu), 0.0
        move = rng.standard_normal(x.shape)
        for _ in range(150):  # random ascent over directions
            trial = move + rng.standard_normal(x.shape) * rng.choice([1.0, 0.1, 0.03])
            nu = Measure(x + 1e-5 * trial / np.linalg.norm(trial), weights)
            quotient = stability(field, mu, nu, [0.0], max_columns=0).quotients[0]
            assert quotient <= local * (1 + 1e-3)
            if quotient > best:
                best, move = quotient, trial / np.linalg.norm(trial)
        assert best >= 0.95 * local

    def test_the_local_constant_of_tokens_on_a_circle_is_that_of_their_angles(self):
        angles = np.array([0.3, 1.1, 2.0])
        field = SoftmaxAttention(Head.identity(2, 1.5))

        def angular(theta):
            law = Measure(np.column_stack([np.cos(theta), np.sin(theta)]))
            return np.einsum("ij,ij->i", field(0.0, law.points, law), np.column_stack([-np.sin(theta), np.cos(theta)]))

        jacobian = np.column_stack([(angular(angles + e) - angular(angles - e)) / 2e-6 for e in 1e-6 * np.eye(3)])
        law = Measure(np.column_stack([np.cos(angles), np.sin(angles)]))
        found = local_lipschitz(field, 0.0, law, space=Sphere())
        assert found == pytest.approx(np.linalg.norm(jacobian, 2), rel=1e-6)

    def test_padding_counts_for_nothing(self):
        field = SoftmaxAttention(random_head(0, d=2))
        x, y = np.array([[0.1, 0.2], [0.5, -0.4]]), np.array([[0.2, 0.2], [0.4, -0.4]])
        padded = [Measure(np.vstack([points, [[30.0, 30.0]]]), [0.5, 0.5, 0.0]) for points in (x, y)]
        bare = stability(field, Measure(x), Measure(y), [0.0, 0.5])
        run = stability(field, *padded, [0.0, 0.5])
        np.testing.assert_allclose(run.ratios, bare.ratios, rtol=1e-7)
        assert run.radius == bare.radius
        np.testing.assert_allclose(run.local_lipschitz, bare.local_lipschitz, rtol=1e-6)


class TestOutcomes:
    def test_a_blow_up_of_one_run_leaves_the_times_before_it(self):
        field = LinearAttention(Head.identity(1))
        mu, nu = Measure([[1.0], [-1.0]]), Measure([[2.0], [-2.0]])  # t* = 1 / (2 M)
        run = stability(field, mu, nu, [0.0, 0.05, 0.1, 0.2, 0.4])
        assert run.outcomes == (Outcome.FINISHED, Outcome.BLEW_UP)
        assert not run.finished
        assert run.times.tolist() == [0.0, 0.05, 0.1]
        x, y = (size / np.sqrt(1 - 2 * size**2 * 0.1) for size in (1.0, 2.0))
        assert run.ratios[2] == pytest.approx(y - x, rel=1e-6)
        assert run.bound[2] == pytest.approx((1 - 2 * 4 * 0.1) ** -1.5, rel=1e-6)

    def test_an_inner_iteration_that_fails_is_an_outcome(self):
        field = SinkhornAttention(Head([[3.0]], [[1.0]], [[1.0]]), max_products=2)
        run = stability(field, Measure([[0.0], [1.0]]), Measure([[0.0], [1.5]]), [0.0, 1.0], max_columns=0)
        assert run.outcomes == (Outcome.NOT_CONVERGED, Outcome.NOT_CONVERGED)
        assert run.times.tolist() == [0.0]
        assert np.isnan(run.quotients).all()

    def test_many_tokens_go_without_the_local_constant(self):
        rng = np.random.default_rng(0)
        mu, nu = (Measure(rng.uniform(-1, 1, (70, 2))) for _ in range(2))
        run = stability(SoftmaxAttention(Head.identity(2)), mu, nu, [0.0, 0.1], scheme=RK4, dt=0.1)
        assert run.local_lipschitz is None
        assert run.local_estimate is None
        assert run.gronwall[1] >= run.ratios[1]


class TestRefusals:
    def test_position_marginals_must_agree(self):
        field = MaskedAttention(SoftmaxAttention(Head.identity(1)))
        mu = Measure.positioned([0.0, 1.0], [[0.0], [1.0]])
        with pytest.raises(ValueError, match="must have the same positions"):
            stability(field, mu, Measure.positioned([0.0, 0.5], [[0.0], [1.0]]), [0.0, 1.0])
        with pytest.raises(ValueError, match="must have the same mass at every position"):
            stability(field, mu, Measure.positioned([0.0, 1.0], [[0.0], [2.0]], [0.4, 0.6]), [0.0, 1.0])

    def test_equal_starts_and_bad_options_are_refused(self):
        field, mu = SoftmaxAttention(Head.identity(1)), Measure([[1.0]])
        with pytest.raises(ValueError, match="mu0 and nu0 must differ"):
            stability(field, mu, mu, [0.0, 1.0])
        with pytest.raises(ValueError, match="p must be at least 1"):
            stability(field, mu, Measure([[2.0]]), [0.0, 1.0], 0.5)
        with pytest.raises(ValueError, match="max_columns must be at least 0"):
            stability(field, mu, Measure([[2.0]]), [0.0, 1.0], max_columns=-1)
        with pytest.raises(ValueError, match="needs two Measures; nu is of type ndarray"):
            stability(field, mu, np.array([[2.0]]), [0.0, 1.0])

    def test_a_positioned_space_is_read_as_its_base(self):
        field = MaskedAttention(SoftmaxAttention(Head.identity(2)))
        mu, nu = (Measure.positioned([0.0, 1.0], x) for x in ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [-1.0, 0.0]]))
        space = Sphere()
        wanted = stability(field, mu, nu, [0.0, 0.5], space=space)
        found = stability(field, mu, nu, [0.0, 0.5], space=Positioned(space))
        np.testing.assert_array_equal(found.ratios, wanted.ratios)
        assert wanted.distances[0] == pytest.approx(np.pi / 2 / np.sqrt(2))
