"""The constants behind the stability bound: never exceeded on a ball, attained where sharp, summed up right."""

import numpy as np
import pytest
from scipy.special import expi

from meanfield.analysis.distances import wasserstein
from meanfield.analysis.lipschitz import (
    RULES,
    NoBoundError,
    lipschitz_bound,
    log_constant,
    norms_of,
    sink_factor,
    visible_factor,
)
from meanfield.attention import (
    ATTENTION,
    KernelAttention,
    LinearAttention,
    MaskedAttention,
    MultiHeadAttention,
    SigmoidAttention,
    SoftmaxAttention,
    make_attention,
)
from meanfield.measures import Measure
from meanfield.parameters import Head, Schedule
from meanfield.perceptron import AffinePerceptron, ReluPerceptron
from meanfield.spaces import Euclidean, Sphere
from meanfield.velocity import SumField
from tests.contracts.attention import random_head

#: Velocities carry round-off, and Sinkhorn's a tolerance of 1e-10; the bounds are not to be passed by more.
NOISE = 1e-8


def in_ball(rng, n, d, radius):
    """n points, half of them at the surface, where the bounds are reached if anywhere."""
    x = rng.standard_normal((n, d))
    share = np.where(rng.random(n) < 0.5, 1.0, rng.random(n))
    return x * (radius * share / np.linalg.norm(x, axis=1))[:, None]


def random_case(seed):
    """A head, a radius, and two laws in the ball, near or far from each other."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    head = random_head(seed, d=d, k=int(rng.integers(1, 3)), scale=float(rng.choice([-0.5, 0.2, 1.0])))
    radius = float(rng.choice([0.3, 0.8, 1.5]))
    x = in_ball(rng, 5, d, radius)
    y = in_ball(rng, 5, d, radius) if seed % 2 else x + 1e-3 * rng.standard_normal(x.shape)
    y *= min(1.0, radius / np.linalg.norm(y, axis=1).max())
    weights = rng.dirichlet(np.ones(5))
    return head, radius, Measure(x, weights), Measure(y, weights if seed % 3 else None)


class TestConstantsOnABall:
    @pytest.mark.parametrize("name", ATTENTION)
    def test_no_pair_of_points_and_laws_exceeds_them(self, name):
        for seed in range(60):
            head, R, mu, nu = random_case(seed)
            options = {"bias": float(seed % 5 - 2)} if name == "sigmoid" else {}
            field = make_attention(name, head, **options)
            found = lipschitz_bound(field, mu).constants(0.0, R)
            first, other, same = (
                field(0.0, points, law) for points, law in ((mu.points, mu), (nu.points, nu), (mu.points, nu))
            )
            assert np.linalg.norm(first, axis=1).max() <= found.growth * (1 + NOISE)
            in_point = np.linalg.norm(other - same, axis=1) - found.in_point * np.linalg.norm(
                nu.points - mu.points, axis=1
            )
            assert in_point.max() <= NOISE * found.growth
            in_law = np.linalg.norm(first - same, axis=1) - found.in_law * wasserstein(mu, nu, 1)
            assert in_law.max() <= NOISE * found.growth

    def test_softmax_in_the_point_and_linear_in_the_law_are_attained(self):
        head = Head([[1.0]], [[1.0]], [[1.0]], scale=0.7)
        ends, x = Measure([[-2.0], [2.0]]), np.array([[0.0], [1e-5]])
        softmax, linear = SoftmaxAttention(head), LinearAttention(head)
        slope = np.diff(softmax(0.0, x, ends)[:, 0])[0] / 1e-5
        # variance R^2 of half and half at -R and R; the curvature there is zero
        assert slope == pytest.approx(lipschitz_bound(softmax, ends).constants(0.0, 2.0).in_point, rel=1e-6)
        moved = Measure([[2.0 - 1e-5]])
        slope = (linear(0.0, np.array([[2.0]]), Measure([[2.0]])) - linear(0.0, np.array([[2.0]]), moved))[0, 0] / 1e-5
        assert slope == pytest.approx(lipschitz_bound(linear, moved).constants(0.0, 2.0).in_law, rel=1e-5)

    def test_softmax_has_the_remembered_shape_as_an_upper_bound(self):
        norms = norms_of(random_head(0))
        for R in (0.01, 0.3, 1.0, 2.0):
            a = norms.A * R**2
            found = RULES[SoftmaxAttention][0](norms, R)
            assert found.in_point + found.in_law <= norms.V * (1 + 3 * a) * np.exp(2 * a) * (1 + 1e-12)

    def test_a_sigmoid_that_is_shut_needs_less(self):
        head, mu = Head.identity(1), Measure([[1.0]])
        shut, half = (lipschitz_bound(SigmoidAttention(head, bias=b), mu).constants(0.0, 1.0) for b in (-20.0, 0.0))
        assert half.in_point == pytest.approx(0.25)
        assert shut.growth == pytest.approx(1 / (1 + np.exp(19.0)), rel=1e-6)
        assert shut.in_point == pytest.approx(np.exp(-19.0), rel=1e-6)

    def test_heads_and_feed_forward_parts_add_up(self):
        mu = Measure(np.eye(3))
        heads = MultiHeadAttention((SoftmaxAttention(random_head(1)), LinearAttention(random_head(2))))
        parts = [lipschitz_bound(part, mu).constants(0.0, 0.5) for part in heads.fields]
        total = lipschitz_bound(heads, mu)
        assert total.constants(0.0, 0.5) == pytest.approx(np.sum(parts, axis=0))
        assert total.name == "softmax + linear"
        assert total.derivation.startswith("A sum of fields")
        relu = ReluPerceptron(2 * np.eye(3), 3 * np.eye(3), np.ones(3), np.ones(3))
        affine = AffinePerceptron(np.diag([1.0, 2.0, 3.0]), [0.0, 0.0, 4.0])
        found = lipschitz_bound(SumField((relu, affine)), mu).constants(0.0, 1.0)
        assert found == pytest.approx((2 * 3 + 3 * 3**0.5 + 3**0.5 + 3 + 4, 6 + 3, 0.0))

    def test_other_kernels_have_no_bound_and_say_so(self):
        with pytest.raises(NoBoundError, match="no stability bound is derived for KernelAttention: its kernel is not"):
            lipschitz_bound(KernelAttention(Head.identity(1), np.exp), Measure([[1.0]]))

        def my_field(t, x, mu):
            return x

        with pytest.raises(NoBoundError, match="derived for my_field"):
            lipschitz_bound(my_field, Measure([[1.0]]))


class TestMasks:
    def law(self, *masses):
        return Measure.positioned(np.arange(len(masses)), np.zeros((len(masses), 1)), masses)

    def test_the_factor_is_one_where_all_mass_is_at_the_sink_and_never_above_the_sinks(self):
        field = MaskedAttention(SoftmaxAttention(Head.identity(1)))
        assert visible_factor(field, self.law(1.0, 0.0), 1) == 1.0
        assert visible_factor(field, self.law(0.5, 0.25, 0.25), 1) == pytest.approx(1 + 1 / 3 + 1 / 4)
        rng = np.random.default_rng(0)
        for _ in range(50):
            law = self.law(*rng.dirichlet(np.full(6, 0.3)))
            for p in (1, 2, 3):
                h = visible_factor(field, law, p)
                assert h <= (1 - np.log(law.weights[0])) ** (1 / p) * (1 + 1e-12)
                assert h <= sink_factor(field, law, p) * (1 + 1e-12)

    def test_without_a_sink_hardys_constant_remains_for_p_above_one(self):
        field, law = MaskedAttention(SoftmaxAttention(Head.identity(1))), self.law(0.0, *[1 / 400] * 400)
        assert sink_factor(field, law, 2) == np.inf
        assert visible_factor(field, law, 2) == 2.0
        assert visible_factor(field, law, 1) == pytest.approx(sum(1 / k for k in range(1, 401)))
        assert visible_factor(field, law, 4) == pytest.approx(4 / 3)

    def test_the_averages_of_displacements_obey_the_factor(self):
        rng = np.random.default_rng(1)
        windows = (lambda s, r: r <= s), (lambda s, r: (r <= s) & (s - r < 2.5)), (lambda s, r: r < s)
        for window in windows:
            field = MaskedAttention(SoftmaxAttention(Head.identity(1)), visible=window)
            for p in (1, 1.5, 2, 4):
                for _ in range(20):
                    law = self.law(*rng.dirichlet(np.full(8, 0.5)))
                    theta, s = law.weights, law.positions
                    D = rng.exponential(size=8) * (rng.random(8) < 0.5)
                    sees = window(s[:, None], s[None, :])
                    seen = np.maximum(sees @ theta, 1e-300)
                    means = (sees @ (theta * D)) / seen
                    h = visible_factor(field, law, p)
                    assert theta @ means**p <= h**p * (theta @ D**p) * (1 + 1e-9)

    def test_the_causal_mask_in_p_2_never_needs_more_than_two(self):
        """Hardy's inequality by singular values: the averaging operator on L^2(theta), for many theta."""
        rng = np.random.default_rng(2)
        field = MaskedAttention(SoftmaxAttention(Head.identity(1)))
        for k in range(40):
            theta = rng.dirichlet(np.full(30, 0.1 + 0.05 * k))
            theta = np.maximum(theta, 1e-12) / np.maximum(theta, 1e-12).sum()
            root = np.sqrt(theta)
            averaging = np.tril(np.outer(root, root) / np.cumsum(theta)[:, None])
            assert np.linalg.norm(averaging, 2) <= visible_factor(field, self.law(*theta), 2) * (1 + 1e-9)

    def test_kernels_that_do_not_divide_pay_nothing_for_a_mask(self):
        law = self.law(0.01, 0.99)
        for name, field in ((name, make_attention(name, Head.identity(1))) for name in ATTENTION if name != "sinkhorn"):
            masked = lipschitz_bound(MaskedAttention(field), law, 1)
            plain, found = (bound.constants(0.0, 1.0) for bound in (lipschitz_bound(field, law, 1), masked))
            divides = name in ("softmax", "l2")
            assert found.in_law == pytest.approx(plain.in_law * (1 + 0.99 if divides else 1))
            assert found.in_point == plain.in_point
            assert masked.parameters["mask factor"] == pytest.approx(1.99 if divides else 1)


class TestConstantOfTime:
    def head(self):
        return Head([[0.5]], [[1.0]], [[-0.8]])

    def test_linear_is_the_closed_form_and_ends_at_its_time(self):
        bound = lipschitz_bound(LinearAttention(self.head()), Measure([[1.0]]))
        end = 1 / (2 * 0.8 * 0.5 * 1.5**2)
        times = np.array([3.0, 3.0 + 0.5 * end, 3.0 + 0.99 * end, 3.0 + 1.01 * end, 3.0 + 2 * end])
        log_C, R = log_constant(bound, times, 1.5, Euclidean())
        wanted = -1.5 * np.log(1 - np.array([0.0, 0.5, 0.99]))
        np.testing.assert_allclose(log_C[:3], wanted, rtol=1e-6)  # ACCURACY, a hundred times closer to the pole
        np.testing.assert_allclose(R[:3], 1.5 * np.exp(wanted / 3), rtol=1e-6)
        assert (log_C[3:] == np.inf).all()
        assert (R[3:] == np.inf).all()

    def test_softmax_is_the_exponential_integral(self):
        bound = lipschitz_bound(SoftmaxAttention(self.head()), Measure([[1.0]]))
        times = np.linspace(0.0, 0.8, 4)
        log_C, R = log_constant(bound, times, 1.5, Euclidean())
        u = 0.5 * (1.5 * np.exp(0.8 * times)) ** 2
        primitive = 0.5 * (u + expi(2 * u) + np.exp(2 * u))
        np.testing.assert_allclose(log_C, primitive - primitive[0], rtol=1e-7)
        np.testing.assert_allclose(R, 1.5 * np.exp(0.8 * times), rtol=1e-7)

    def test_on_a_sphere_the_rate_is_constant(self):
        bound = lipschitz_bound(SoftmaxAttention(self.head()), Measure([[1.0]]))
        log_C, R = log_constant(bound, np.array([0.0, 2.0]), 1.5, Sphere(1.5))
        a = 0.5 * 1.5**2
        assert log_C[1] == pytest.approx(2 * 0.8 * (1 + a + (1 + 2 * a) * np.exp(2 * a)), rel=1e-8)
        assert (R == 1.5).all()

    def test_a_schedule_is_read_at_its_times(self):
        fading = Schedule(lambda t: Head([[0.5]], [[1.0]], [[np.exp(-t)]]))
        bound = lipschitz_bound(SigmoidAttention(fading), Measure([[1.0]]))
        steady = lipschitz_bound(SigmoidAttention(Head([[0.5]], [[1.0]], [[1.0]])), Measure([[1.0]]))
        late, _ = log_constant(bound, np.array([1.0, 3.0]), 0.8, Euclidean())
        slow_time = np.exp(-1.0) - np.exp(-3.0)
        same, _ = log_constant(steady, np.array([0.0, slow_time]), 0.8, Euclidean())
        assert late[1] == pytest.approx(same[1], rel=1e-7)

    def test_huge_rates_are_infinite_at_once_and_warn_of_nothing(self):
        bound = lipschitz_bound(SoftmaxAttention(Head.identity(2)), Measure(np.eye(2)))
        log_C, _ = log_constant(bound, np.array([0.0, 0.1, 1.0]), 1e3, Euclidean())
        assert log_C.tolist() == [0.0, np.inf, np.inf]
