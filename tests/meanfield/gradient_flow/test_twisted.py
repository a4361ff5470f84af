"""The gradient structure of attention: two roads to dE/dt, orders by refinement, failing hypotheses, distances."""

import numpy as np
import pytest
from scipy.integrate import quad

from meanfield.analysis.distances import wasserstein
from meanfield.attention import (
    L2Attention,
    LinearAttention,
    MultiHeadAttention,
    SigmoidAttention,
    SinkhornAttention,
    SoftmaxAttention,
    UnnormalisedAttention,
)
from meanfield.gradient_flow.energies import (
    BuresEnergy,
    InteractionEnergy,
    QuadraticEnergy,
    SigmoidEnergy,
    SinkhornDivergenceEnergy,
    SinkhornEnergy,
    SphereEnergy,
)
from meanfield.gradient_flow.multihead import MultiHeadEnergy
from meanfield.gradient_flow.twisted import (
    GradientField,
    HeadsMobility,
    SoftmaxMobility,
    TwistedMetric,
    dissipation,
    gradient_structure,
    mobility_matrix,
    twisted_distance,
    wasserstein_metric,
)
from meanfield.integration import EULER, RK4, Adaptive, Trajectory, simulate
from meanfield.measures import Gaussian, Measure
from meanfield.parameters import Head
from meanfield.spaces import Sphere
from tests.orders import slope

EYE = np.eye(2)
A = np.array([[0.5, 0.2], [0.2, -0.4]])
H = np.array([[1.0, 0.3], [0.3, 0.8]])
TOKENS = Measure(np.random.default_rng(1).standard_normal((7, 2)), np.random.default_rng(2).dirichlet(np.full(7, 3.0)))
LAW = Gaussian([0.3, -0.2], [[0.5, 0.1], [0.1, 0.6]])
TARGET = Gaussian([1.0, 0.0], [[1.0, 0.3], [0.3, 0.4]])
TIMES = np.linspace(0, 0.6, 13)
EXACT = Adaptive(rtol=1e-11, atol=1e-13)


def head(value, matrix=A):
    """The head with logit x^T A y and a value matrix."""
    return Head(matrix, np.eye(len(matrix)), value)


UP, DOWN = head(H @ A), head(-H @ A)
QUALIFY = {
    "softmax climbs": (SoftmaxAttention(UP), InteractionEnergy(UP), 1),
    "softmax descends": (SoftmaxAttention(DOWN), InteractionEnergy(DOWN), -1),
    "unnormalised": (UnnormalisedAttention(UP), InteractionEnergy(UP), 1),
    "sinkhorn, V = A": (SinkhornAttention(head(A)), SinkhornEnergy(A), -1),
    "sinkhorn, V = -A": (SinkhornAttention(head(-A)), SinkhornEnergy(A), 1),
    "linear": (LinearAttention(DOWN), QuadraticEnergy(DOWN), -1),
    "sigmoid": (SigmoidAttention(UP, bias=0.2), SigmoidEnergy(UP, bias=0.2), 1),
    "one head": (MultiHeadAttention((SoftmaxAttention(DOWN),)), MultiHeadEnergy((DOWN,)), -1),
    "bures": (GradientField(BURES := BuresEnergy(TARGET)), BURES, -1),
    "sinkhorn divergence": (GradientField(DIVERGENCE := SinkhornDivergenceEnergy(TARGET, 0.5)), DIVERGENCE, -1),
}
STARTS = {
    **{f"{name}, tokens": (*QUALIFY[name], TOKENS) for name in QUALIFY if name not in ("bures", "sinkhorn divergence")},
    **{f"{name}, Gaussian": (*QUALIFY[name], LAW) for name in QUALIFY if name not in ("unnormalised", "sigmoid")},
}


class TestDissipation:
    @pytest.mark.parametrize(("field", "energy", "sign", "start"), STARTS.values(), ids=STARTS)
    def test_both_roads_agree_and_the_identity_holds(self, field, energy, sign, start):
        run = simulate(field, start, TIMES, scheme=EXACT)
        found = dissipation(field, energy, run)
        # The roads share no sum but the kernel; balancing to 1e-10 is what Sinkhorn knows.
        assert found.gap < 1e-9
        # A quintic spline through 13 times.
        assert found.largest_residual < 1e-6
        assert found.sign == sign
        assert found.monotone

    @pytest.mark.parametrize("kind", [SoftmaxAttention, UnnormalisedAttention])
    def test_attention_climbs_its_energy_on_the_sphere(self, kind):
        space = Sphere()
        start = Measure(space.retract(np.random.default_rng(0).standard_normal((9, 3))))
        field = kind(Head.identity(3, 2.0))
        found = dissipation(field, SphereEnergy(2.0), simulate(field, start, TIMES, space=space, scheme=EXACT))
        assert found.gap < 1e-12
        assert found.largest_residual < 1e-6
        assert found.sign == 1
        assert found.monotone

    def test_the_mobility_is_the_softmax_normaliser(self):
        x = np.array([[0.4, -0.8]])
        tokens = list(zip(TOKENS.points, TOKENS.weights, strict=True))
        Z, other = (sum(w * np.exp(x[0] @ B @ y) for y, w in tokens) for B in (A, EYE))
        assert TwistedMetric(H, SoftmaxMobility(A)).mobility_at(TOKENS, x) == pytest.approx([Z], rel=1e-13)
        harmonic = 2 / (1 / Z + 1 / other)
        assert TwistedMetric(H, HeadsMobility((A, EYE))).mobility_at(TOKENS, x) == pytest.approx([harmonic], rel=1e-13)

    def test_a_wrong_sign_or_matrix_would_be_seen(self):
        # V = H A with H far from the metric's: chain rule and the metric of another H differ.
        run = simulate(SoftmaxAttention(UP), TOKENS, TIMES)
        y = run.flow.rate(0.0, TOKENS.points)
        chain = InteractionEnergy(UP).derivative(TOKENS, y)
        right = TwistedMetric(H, SoftmaxMobility(A)).squared_norm(TOKENS, y)
        assert chain == pytest.approx(right, rel=1e-13)
        for matrix, mobility in ((EYE, A), (H, 0 * A), (H, -A)):
            wrong = TwistedMetric(matrix, SoftmaxMobility(mobility))
            assert abs(wrong.squared_norm(TOKENS, y) / chain - 1) > 0.01

    def test_the_metric_on_a_gaussian_is_its_quadrature(self):
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        rule = Measure.normalised(0.3 + 0.7 * nodes[:, None], weights)
        law, metric = Gaussian([0.3], [[0.49]]), TwistedMetric([[0.8]], SoftmaxMobility([[-0.9]]))
        wanted = metric.squared_norm(rule, 0.4 + 1.3 * nodes[:, None])
        assert metric.squared_norm(law, [[0.4, 1.3]]) == pytest.approx(wanted, rel=1e-10)

    @pytest.mark.parametrize(("scheme", "order"), [(EULER, 1), (RK4, 4)])
    def test_the_residual_of_a_fixed_step_falls_with_the_order_of_the_scheme(self, scheme, order):
        field, energy = SoftmaxAttention(UP), InteractionEnergy(UP)
        steps = [0.1 / 2**k for k in range(4)]
        residuals = []
        for dt in steps:
            run = simulate(field, TOKENS, np.arange(round(0.8 / dt) + 1) * dt, scheme=scheme, dt=dt)
            residuals.append(abs(dissipation(field, energy, run).residual[-1]))
        assert slope(steps, residuals) == pytest.approx(order, abs=0.35)

    def test_difference_quotients_meet_the_chain_rule_with_order_two(self):
        field, energy = SoftmaxAttention(DOWN), InteractionEnergy(DOWN)
        errors, steps = [], [0.1, 0.05, 0.025]
        for dt in steps:
            found = dissipation(field, energy, simulate(field, LAW, np.arange(round(0.6 / dt) + 1) * dt, scheme=EXACT))
            times, quotients = found.difference_quotients()
            errors.append(np.abs(quotients - np.interp(times, found.times, found.chain_rule)).max())
        assert slope(steps, errors) == pytest.approx(2, abs=0.3)

    def test_several_heads_are_no_gradient_flow_under_the_published_mobility(self):
        # Claimed in the literature, measured here: exact for one head, not for three.
        rng = np.random.default_rng(5)
        matrices = rng.standard_normal((3, 3, 3))
        heads = tuple(Head(np.eye(3), D + D.T, -(D + D.T) / 3) for D in matrices)
        field, energy = MultiHeadAttention(tuple(SoftmaxAttention(one) for one in heads)), MultiHeadEnergy(heads)
        start = Measure(Sphere().retract(rng.standard_normal((8, 3))))
        found = dissipation(field, energy, simulate(field, start, TIMES / 3, space=Sphere(), scheme=EXACT))
        assert found.gap > 0.05
        assert found.relative_gaps.max() <= found.gap * np.abs(found.metric).max() / np.abs(found.metric).min()
        assert found.largest_residual > 0.05
        assert found.largest_chain_residual < 1e-5

    def test_two_equal_heads_are_one(self):
        half = head(-H @ A / 2)
        field = MultiHeadAttention((SoftmaxAttention(half), SoftmaxAttention(half)))
        found = dissipation(field, MultiHeadEnergy((half, half)), simulate(field, TOKENS, TIMES, scheme=EXACT))
        assert found.gap < 1e-12
        assert found.largest_residual < 1e-6

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((SoftmaxAttention(UP), InteractionEnergy(UP), "run"), "must be a run of particles or of a Gaussian"),
            ((SoftmaxAttention(UP), None, simulate(SoftmaxAttention(UP), LAW, [0, 0.1])), "energy must be an Energy"),
            (
                (SoftmaxAttention(UP), InteractionEnergy(UP), simulate(SoftmaxAttention(UP), LAW, [0.0])),
                "two or more output times",
            ),
        ],
    )
    def test_what_is_no_run_is_refused(self, arguments, said):
        with pytest.raises(ValueError, match=said):
            dissipation(*arguments)

    def test_layers_of_a_model_are_measured_like_any_run(self):
        run = Trajectory.from_hidden_states([TOKENS.points, TOKENS.points * 1.1], weights=TOKENS.weights)
        found = dissipation(SoftmaxAttention(UP), InteractionEnergy(UP), run)
        assert found.gap < 1e-12
        assert found.largest_residual > 0.1


class TestHypotheses:
    @pytest.mark.parametrize(
        ("value", "matrix", "said"),
        [
            (EYE, [[1.0, 0.5], [0.0, 1.0]], "needs A symmetric"),
            ([[0.0, 1.0], [-1.0, 0.0]], EYE, r"V A\^\{-1\} must be symmetric"),
            ([[1.0, 0.0], [0.0, -1.0]], EYE, r"V A\^\{-1\} must be definite; got eigenvalues from -1 to 1"),
            (EYE, [[1.0, 0.0], [0.0, 0.0]], "V = H A must have a solution H"),
        ],
    )
    def test_the_one_that_fails_is_named(self, value, matrix, said):
        field = SoftmaxAttention(head(value, matrix=np.array(matrix)))
        with pytest.raises(ValueError, match=said):
            gradient_structure(field, InteractionEnergy(matrix), dimension=2)

    def test_a_field_without_a_structure_is_named(self):
        with pytest.raises(ValueError, match="L2Attention is not known to be a gradient flow of InteractionEnergy"):
            gradient_structure(L2Attention(UP), InteractionEnergy(UP), dimension=2)

    @pytest.mark.parametrize(
        ("field", "energy", "said"),
        [
            (SoftmaxAttention(UP), InteractionEnergy(EYE), "they differ by"),
            (SoftmaxAttention(UP), InteractionEnergy(np.eye(3)), r"shape \(3, 3\), the head"),
            (SigmoidAttention(UP), SigmoidEnergy(UP, bias=1.0), "must have one bias"),
            (MultiHeadAttention((SoftmaxAttention(UP),)), MultiHeadEnergy((UP, UP)), "energy of 2 heads"),
            (GradientField(BURES), DIVERGENCE, "goes with its own energy"),
        ],
    )
    def test_the_energy_must_be_the_fields_own(self, field, energy, said):
        with pytest.raises(ValueError, match=said):
            gradient_structure(field, energy, dimension=2)

    def test_a_sphere_needs_a_scalar(self):
        with pytest.raises(ValueError, match="multiple of the identity"):
            gradient_structure(SoftmaxAttention(UP), InteractionEnergy(UP), dimension=2, space=Sphere())

    def test_a_singular_logit_needs_no_inverse(self):
        # V = H A with A of rank one: the structure holds, though V A^{-1} does not exist.
        thin = np.outer([1.0, 2.0], [1.0, 2.0]) / 5
        found = mobility_matrix([H @ thin], [thin])
        assert found @ thin == pytest.approx(H @ thin, abs=1e-14)
        field = SoftmaxAttention(head(H @ thin, matrix=thin))
        run = simulate(field, TOKENS, TIMES, scheme=EXACT)
        assert dissipation(field, InteractionEnergy(thin), run).gap < 1e-12

    def test_what_it_leaves_open_is_completed_to_a_definite_matrix(self):
        thin = np.diag([1.0, 0.0])
        found = mobility_matrix([np.array([[1.0, 2.0], [2.0, 5.0]]) @ thin], [thin])
        assert found[:, 0] == pytest.approx([1.0, 2.0], abs=1e-14)
        assert np.linalg.eigvalsh(found)[0] > 0.1

    def test_metrics_and_fields_check_themselves(self):
        with pytest.raises(ValueError, match=r"H must be definite; got eigenvalues from -1 to 1"):
            TwistedMetric(np.diag([1.0, -1.0]))
        with pytest.raises(ValueError, match="H must be one symmetric matrix"):
            TwistedMetric([[1.0, 1.0], [0.0, 1.0]])
        with pytest.raises(ValueError, match="an Energy and a sign"):
            GradientField(BURES, 2.0)
        with pytest.raises(ValueError, match="several heads has no closed integral"):
            TwistedMetric(EYE, HeadsMobility((A, A))).squared_norm(LAW, np.ones((2, 3)))


class TestSinkhorn:
    def test_the_covariance_flow_is_a_bures_gradient_flow(self):
        # Velocity = -grad F exactly, for V = A; the identity along a longer run to 1e-6.
        field, energy = SinkhornAttention(head(A)), SinkhornEnergy(A)
        mine, attention = energy.affine_gradient(LAW), field.on_gaussian(0.0, LAW)
        assert -mine.matrix == pytest.approx(attention.matrix, abs=1e-14)
        assert -mine.offset == pytest.approx(attention.offset, abs=1e-14)
        found = dissipation(field, energy, simulate(field, LAW, np.linspace(0, 3, 61), scheme=EXACT))
        assert found.largest_residual < 1e-6

    def test_the_divergence_decays_exponentially_on_the_same_support(self):
        energy = SinkhornDivergenceEnergy(Gaussian([0.0, 0.0], np.diag([1.0, 0.4])), 0.8)
        run = simulate(GradientField(energy), Gaussian([0.0, 0.0], np.diag([1.5, 0.8])), [0.0, 6.0, 8.0], scheme=EXACT)
        gaps = [np.diag(law.covariance) - [1.0, 0.4] for law in run]
        rates = -np.log(gaps[2] / gaps[1]) / 2
        # Linearised: 2 b / sqrt(b^2 + eps^2 / 16), smallest eigenvalue first.
        assert rates[::-1] == pytest.approx(energy.rates, rel=1e-3)

    def test_onto_a_strict_subspace_it_decays_like_one_over_t(self):
        energy = SinkhornDivergenceEnergy(Gaussian([0.0, 0.0], np.diag([1.0, 0.0])), 0.8)
        start = Gaussian([0.0, 0.0], np.diag([1.5, 0.8]))
        # Stiff: the other direction relaxes at rate 2.
        run = simulate(GradientField(energy), start, [0.0, 200.0, 2000.0], scheme=Adaptive("LSODA"))
        assert energy.rates[0] == 0
        tails = [law.covariance[1, 1] * t for law, t in zip(run[1:], run.times[1:], strict=True)]
        # c t -> eps / 8, with a correction of log(t) / t.
        assert tails == pytest.approx([0.1, 0.1], rel=0.02)
        assert abs(tails[1] - 0.1) < abs(tails[0] - 0.1) / 3


class TestDistance:
    @pytest.mark.parametrize("a", [-1.0, 0.5])
    def test_two_diracs_are_as_far_as_their_line_element_says(self, a):
        # On Diracs ds = e^{a x^2 / 2} |dx|.
        metric = TwistedMetric([[a]], SoftmaxMobility([[a]]))
        found = twisted_distance(Measure([[0.2]]), Measure([[1.7]]), metric, segments=(4, 8, 16))
        exact = quad(lambda x: np.exp(a * x * x / 2), 0.2, 1.7)[0] / np.sqrt(abs(a))
        assert found.extrapolated == pytest.approx(exact, rel=3e-5)
        assert found.converged
        assert found.distance < found.straight
        assert slope(1 / found.segments, np.abs(found.distances - exact)) == pytest.approx(2, abs=0.3)

    def test_a_constant_mobility_gives_the_distance_of_wasserstein(self):
        rng = np.random.default_rng(4)
        mu = Measure(rng.standard_normal((30, 2)))
        nu = Measure(rng.standard_normal((20, 2)) + 1, rng.dirichlet(np.ones(20)))
        for metric in (wasserstein_metric(2), TwistedMetric(EYE, SoftmaxMobility(np.zeros((2, 2))))):
            assert twisted_distance(mu, nu, metric).distance == pytest.approx(wasserstein(mu, nu), rel=1e-12)
        stretched = [Measure(law.points / [1.0, 2.0], law.weights) for law in (mu, nu)]
        found = twisted_distance(mu, nu, TwistedMetric(np.diag([1.0, 4.0])))
        assert found.distance == pytest.approx(wasserstein(*stretched), rel=1e-12)

    def test_clouds_bend_their_paths_and_refinement_settles(self):
        rng = np.random.default_rng(6)
        mu, nu = Measure(rng.standard_normal((12, 2)) * 0.7), Measure(rng.standard_normal((12, 2)) * 0.7 + [1.0, 0.0])
        found = twisted_distance(mu, nu, TwistedMetric(-EYE, SoftmaxMobility(-EYE)))
        changes = np.abs(np.diff(found.distances))
        assert found.converged
        assert changes[1] < changes[0] / 3
        assert found.distance < found.straight
        assert found.at(0).points == pytest.approx(found.path[0])
        assert wasserstein(found.at(16), nu) == pytest.approx(0, abs=1e-12)

    def test_the_distance_bounds_what_a_gradient_flow_travels(self):
        # A curve is at least as long as the distance of its ends: length = ∫ sqrt(<<v, v>>) dt.
        field, metric = SoftmaxAttention(DOWN), TwistedMetric(-H, SoftmaxMobility(A))
        run = simulate(field, TOKENS, np.linspace(0, 1, 21))
        speeds = [np.sqrt(metric.squared_norm(law, run.flow.rate(t, law.points))) for t, law in run.items()]
        length = np.trapezoid(speeds, run.times)
        assert twisted_distance(run[0], run[20], metric).distance <= length * (1 + 1e-3)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"metric": TwistedMetric(EYE, HeadsMobility((A,)))}, "softmax or unit mobility"),
            ({"segments": (8, 4)}, "segments must rise"),
            ({"tolerance": 0}, "tolerance must be greater than 0"),
            ({"nu": Measure(1e3 * TOKENS.points), "metric": TwistedMetric(EYE, SoftmaxMobility(EYE))}, "overflows"),
            ({"nu": Measure([[1.0]])}, "dimension of A, 2; got 1"),
            ({"nu": Measure(np.random.default_rng(0).standard_normal((401, 2)))}, "too many"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, options, said):
        arguments = {"mu": TOKENS, "nu": TOKENS, "metric": wasserstein_metric(2), **options}
        with pytest.raises(ValueError, match=said):
            twisted_distance(**arguments)
