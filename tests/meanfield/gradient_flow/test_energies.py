"""Energies: values against loops and quadrature, derivatives against differences, domains, overflow, size."""

import numpy as np
import pytest

from meanfield.gradient_flow.energies import (
    BuresEnergy,
    InteractionEnergy,
    LogInteractionEnergy,
    LogNormaliserEnergy,
    NegativeEntropy,
    OutsideDomainError,
    QuadraticEnergy,
    RelativeEntropy,
    SigmoidEnergy,
    SinkhornDivergenceEnergy,
    SinkhornEnergy,
    SphereEnergy,
)
from meanfield.gradient_flow.multihead import MultiHeadEnergy
from meanfield.measures import Gaussian, Measure
from meanfield.parameters import Head
from meanfield.spaces import Sphere
from meanfield.summation.balancing import NotConvergedError
from meanfield.velocity import AffineMap

from . import energy_oracles as oracles

RNG = np.random.default_rng(0)
A = 0.4 * RNG.standard_normal((3, 3))
SYM = (A + A.T) / 2
MU = Measure(RNG.standard_normal((6, 3)) + 0.3, RNG.dirichlet(np.full(6, 2.0)))
ROOT = 0.45 * RNG.standard_normal((3, 3))
LAW = Gaussian(0.5 * RNG.standard_normal(3), ROOT @ ROOT.T)
OTHER = 0.7 * RNG.standard_normal((3, 3))
TARGET = Gaussian(0.5 * RNG.standard_normal(3), OTHER @ OTHER.T)
EYE = np.eye(3)

ON_MEASURES = {
    "interaction": InteractionEnergy(A),
    "interaction, symmetric": InteractionEnergy(SYM),
    "log interaction": LogInteractionEnergy(A),
    "log normaliser": LogNormaliserEnergy(A),
    "quadratic": QuadraticEnergy(SYM),
    "sigmoid": SigmoidEnergy(SYM, bias=0.3),
    "sinkhorn": SinkhornEnergy(A, tolerance=1e-13),
    "sinkhorn, symmetric": SinkhornEnergy(SYM, tolerance=1e-13),
    "two heads": MultiHeadEnergy((Head(A, EYE, EYE), Head(SYM, EYE, EYE))),
}
ON_GAUSSIANS = {
    **{name: energy for name, energy in ON_MEASURES.items() if name != "sigmoid"},
    "entropy": NegativeEntropy(),
    "relative entropy": RelativeEntropy(TARGET),
    "bures": BuresEnergy(TARGET),
    "sinkhorn divergence": SinkhornDivergenceEnergy(TARGET, 0.7),
}
CASES = [pytest.param(energy, MU, id=f"{name} on tokens") for name, energy in ON_MEASURES.items()] + [
    pytest.param(energy, LAW, id=f"{name} on a Gaussian") for name, energy in ON_GAUSSIANS.items()
]


def displacement_of(law, seed):
    """A random displacement of unit size in the form the law takes."""
    shape = law.points.shape if isinstance(law, Measure) else (law.dimension, 1 + law.root.shape[1])
    return 0.3 * np.random.default_rng(seed).standard_normal(shape)


class TestValues:
    @pytest.mark.parametrize(
        ("energy", "oracle", "matrix"),
        [
            (ON_MEASURES["interaction"], oracles.interaction, A),
            (ON_MEASURES["log interaction"], oracles.log_interaction, A),
            (ON_MEASURES["log normaliser"], oracles.log_normaliser, A),
            (ON_MEASURES["quadratic"], oracles.quadratic, SYM),
            (ON_MEASURES["sigmoid"], oracles.sigmoid, SYM),
            (ON_MEASURES["sinkhorn"], oracles.sinkhorn, A),
            (ON_MEASURES["sinkhorn, symmetric"], oracles.sinkhorn, SYM),
        ],
    )
    def test_a_measure_has_the_value_of_plain_loops(self, energy, oracle, matrix):
        assert energy.value(MU) == pytest.approx(oracle(MU.points, MU.weights, matrix), rel=1e-11)

    def test_heads_are_averaged(self):
        wanted = (InteractionEnergy(A).value(MU) + InteractionEnergy(SYM).value(MU)) / 2
        assert ON_MEASURES["two heads"].value(MU) == pytest.approx(wanted, rel=1e-13)

    @pytest.mark.parametrize("a", [-0.7, 0.6])
    def test_a_gaussian_on_the_line_has_the_value_of_quadrature(self, a):
        # 80 nodes integrate these Gaussian-like integrands to round-off.
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        x, w = 0.4 + 0.8 * nodes, weights / weights.sum()
        law = Gaussian([0.4], [[0.64]])
        for kind, oracle in ((InteractionEnergy, oracles.interaction), (LogNormaliserEnergy, oracles.log_normaliser)):
            energy = kind([[a]])
            assert energy.value(law) == pytest.approx(oracle(x[:, None], w, np.array([[a]])), rel=1e-9)
            z = np.array([[0.3], [-1.1]])
            rule = Measure.normalised(x[:, None], w)
            assert energy.first_variation(law, z) == pytest.approx(energy.first_variation(rule, z), rel=1e-9)
            assert energy.gradient(law, z) == pytest.approx(energy.gradient(rule, z), rel=1e-9)

    def test_a_centred_gaussian_has_the_determinant_formula(self):
        law = Gaussian(np.zeros(3), LAW.covariance)
        S = LAW.covariance
        wanted = np.linalg.det(EYE - S @ SYM @ S @ SYM) ** -0.5 / 2
        assert InteractionEnergy(SYM).value(law) == pytest.approx(wanted, rel=1e-12)

    def test_sinkhorn_on_a_gaussian_is_the_limit_of_its_quadrature(self):
        # The Gauss rule is a measure whose moments are the Gaussian's: 40 nodes give ten digits.
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        rule, law = Measure.normalised(0.3 + 0.7 * nodes[:, None], weights), Gaussian([0.3], [[0.49]])
        energy, z = SinkhornEnergy([[0.8]], tolerance=1e-12), np.array([[0.2], [1.5]])
        assert energy.value(law) == pytest.approx(energy.value(rule), rel=1e-9)
        assert energy.first_variation(law, z) == pytest.approx(energy.first_variation(rule, z), abs=1e-8)
        assert energy.gradient(law, z) == pytest.approx(energy.gradient(rule, z), abs=1e-8)

    def test_functionals_of_gaussians_vanish_at_their_target_only(self):
        for energy in (RelativeEntropy(TARGET), BuresEnergy(TARGET), SinkhornDivergenceEnergy(TARGET, 0.7)):
            # A distance of square roots: round-off of the roots, squared for Bures.
            assert energy.value(TARGET) == pytest.approx(0, abs=1e-13)
            assert energy.gradient(TARGET, EYE) == pytest.approx(np.zeros((3, 3)), abs=1e-12)
            assert energy.value(LAW) > 0.01

    def test_the_entropy_of_the_standard_normal_is_known(self):
        assert NegativeEntropy().value(Gaussian(np.zeros(2), np.eye(2))) == pytest.approx(-np.log(2 * np.pi * np.e))

    def test_the_sinkhorn_divergence_of_gaussians_is_that_of_their_quadrature(self):
        from meanfield.analysis.distances import sinkhorn_divergence

        nodes, weights = np.polynomial.hermite_e.hermegauss(30)
        rules = [Measure.normalised(m + s * nodes[:, None], weights) for m, s in ((0.2, 0.9), (-0.5, 0.6))]
        laws = [Gaussian([0.2], [[0.81]]), Gaussian([-0.5], [[0.36]])]
        wanted = sinkhorn_divergence(*rules, epsilon=0.9, tolerance=1e-10)
        assert SinkhornDivergenceEnergy(laws[1], 0.9).value(laws[0]) == pytest.approx(wanted, rel=1e-7)


class TestDerivatives:
    # Fourth-order differences with h = 4e-3 on functions of size one are right to 1e-8 at worst.
    @pytest.mark.parametrize(("energy", "law"), CASES)
    def test_both_derivatives_along_a_displacement_are_those_of_the_value(self, energy, law):
        u = displacement_of(law, 5)
        first, second = oracles.differences(lambda s: energy.value(oracles.moved(law, u, s)))
        assert energy.derivative(law, u) == pytest.approx(first, abs=1e-7 * max(1, abs(first)))
        assert energy.second_variation(law, u) == pytest.approx(second, abs=3e-6 * max(1, abs(second)))

    @pytest.mark.parametrize(("energy", "law"), CASES)
    def test_the_gradient_is_that_of_the_first_variation(self, energy, law):
        x = np.random.default_rng(2).standard_normal((2, 3))
        wanted = oracles.slopes(lambda z: energy.first_variation(law, z), x)
        assert energy.gradient(law, x) == pytest.approx(wanted, abs=1e-8 * max(1, np.abs(wanted).max()))

    @pytest.mark.parametrize("energy", ON_MEASURES.values(), ids=ON_MEASURES)
    def test_the_first_variation_is_the_derivative_in_mass(self, energy):
        shift = MU.weights * np.array([1, -1, 0.5, 0.2, -0.3, 0.4])
        shift -= shift.mean()
        slope, _ = oracles.differences(lambda s: energy.value(Measure(MU.points, MU.weights + s * shift)))
        assert energy.first_variation(MU, MU.points) @ shift == pytest.approx(slope, abs=1e-8)

    @pytest.mark.parametrize("energy", ON_GAUSSIANS.values(), ids=ON_GAUSSIANS)
    def test_an_affine_displacement_is_its_array(self, energy):
        B, c = displacement_of(LAW, 3)[:, 1:], np.array([0.1, -0.2, 0.3])
        array = np.column_stack([c + B @ LAW.mean, B @ LAW.root])
        for method in (energy.derivative, energy.second_variation):
            assert method(LAW, AffineMap(B, c)) == pytest.approx(method(LAW, array), rel=1e-12)

    @pytest.mark.parametrize("name", ["sinkhorn", "entropy", "relative entropy", "bures", "sinkhorn divergence"])
    def test_affine_gradients_are_the_gradients(self, name):
        energy = ON_GAUSSIANS[name]
        assert energy.affine_gradient(LAW)(EYE) == pytest.approx(energy.gradient(LAW, EYE), abs=1e-12)

    def test_the_entropic_flow_of_one_eigenvalue_is_the_sheets(self):
        # c' = 4 (sqrt(c b + k^2) - sqrt(c^2 + k^2)) from the velocity -(2 B c).
        b, c, eps = 0.7, 1.9, 0.5
        affine = SinkhornDivergenceEnergy(Gaussian([0.0], [[b]]), eps).affine_gradient(Gaussian([0.0], [[c]]))
        k = eps / 4
        assert -2 * affine.matrix[0, 0] * c == pytest.approx(4 * (np.sqrt(c * b + k**2) - np.sqrt(c**2 + k**2)))

    def test_entropies_and_distances_are_convex_where_theory_says_so(self):
        for seed in range(5):
            u = displacement_of(LAW, seed)
            B = u[:, 1:] + u[:, 1:].T
            along = AffineMap(B, u[:, 0])
            assert NegativeEntropy().second_variation(LAW, along) >= 0
            assert RelativeEntropy(TARGET).second_variation(LAW, along) >= 0


class TestDomains:
    def test_an_infinite_interaction_names_the_condition(self):
        law = Gaussian([0.0], [[2.0]])
        for energy in (InteractionEnergy([[-0.5]]), LogInteractionEnergy([[0.7]])):
            for call in (lambda e: e.value(law), lambda e: e.derivative(law, [[0.0, 1.0]])):
                with pytest.raises(OutsideDomainError, match=r"\|S\^\(1/2\) A S\^\(1/2\)\| < 1; got 1"):
                    call(energy)
        assert np.isfinite(LogNormaliserEnergy([[-0.5]]).value(law))

    def test_singular_laws_have_no_entropy(self):
        law = Gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 0.0]])
        target = Gaussian([0.0, 0.0], np.eye(2))
        for energy in (NegativeEntropy(), RelativeEntropy(target)):
            with pytest.raises(OutsideDomainError, match=r"non-singular covariance .* got rank 1 in dimension 2"):
                energy.value(law)
        with pytest.raises(OutsideDomainError, match="RelativeEntropy needs a non-singular"):
            RelativeEntropy(law)
        with pytest.raises(OutsideDomainError, match="BuresEnergy needs a non-singular"):
            BuresEnergy(target).affine_gradient(law)
        assert BuresEnergy(target).value(law) == pytest.approx(0.5)
        assert np.isfinite(SinkhornDivergenceEnergy(target, 0.5).value(law))

    def test_singular_laws_are_fine_for_interactions(self):
        thin, flat = Gaussian([0.2, 0.0], [[0.3, 0.0], [0.0, 0.0]]), Gaussian([0.2], [[0.3]])
        matrix = np.array([[0.8, 0.3], [0.3, -5.0]])
        for kind in (InteractionEnergy, LogNormaliserEnergy, SinkhornEnergy):
            assert kind(matrix).value(thin) == pytest.approx(kind([[0.8]]).value(flat), rel=1e-12)

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda: InteractionEnergy(np.ones((2, 3))), "one square matrix"),
            (lambda: InteractionEnergy(A).value(np.zeros((3, 3))), "function of a Measure or a Gaussian; got ndarray"),
            (lambda: InteractionEnergy(A).value(Measure([[1.0]])), "dimension of A, 3; got 1"),
            (lambda: InteractionEnergy(A).value(Gaussian([0.0], [[1.0]])), "dimension of A, 3; got 1"),
            (lambda: InteractionEnergy(A).derivative(MU, np.zeros((2, 3))), "one row a token"),
            (lambda: InteractionEnergy(A).derivative(LAW, np.zeros((3, 3))), r"shape \(3, 4\)"),
            (lambda: SigmoidEnergy(SYM).value(LAW), "no formula on a Gaussian. Use law.sample"),
            (lambda: NegativeEntropy().value(MU), "no formula on a Measure. Use Gaussian"),
            (lambda: InteractionEnergy(A).affine_gradient(LAW), "is not affine"),
            (lambda: QuadraticEnergy(A), "QuadraticEnergy needs a symmetric A"),
            (lambda: SinkhornDivergenceEnergy(TARGET, 0.0), "epsilon must be greater than 0"),
            (lambda: BuresEnergy(MU), "target must be one Gaussian; got Measure"),
            (lambda: SphereEnergy(0.0), "beta must not be zero"),
            (lambda: SphereEnergy(1.0).value(MU), "must lie on the sphere of radius 1"),
            (lambda: InteractionEnergy(A).value(Measure.positioned([0.0], [[1.0]])), "does not read positions"),
            (lambda: MultiHeadEnergy(()), "one or more Heads or Schedules"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, call, said):
        with pytest.raises(ValueError, match=said):
            call()

    def test_a_sinkhorn_that_misses_says_so(self):
        energy = SinkhornEnergy(30 * SYM, max_products=4)
        with pytest.raises(NotConvergedError, match="missed its marginals"):
            energy.value(MU)


class TestNumbers:
    @pytest.mark.parametrize("name", ["interaction", "log normaliser", "sinkhorn", "sigmoid", "quadratic"])
    def test_tokens_without_mass_change_nothing(self, name):
        energy = ON_MEASURES[name]
        padded = Measure(np.vstack([[[1e6, 0, 0]], MU.points]), np.concatenate([[0.0], MU.weights]))
        u = displacement_of(MU, 1)
        assert energy.value(padded) == pytest.approx(energy.value(MU), rel=1e-13)
        v = np.vstack([[[1.0, 1.0, 1.0]], u])
        assert energy.second_variation(padded, v) == pytest.approx(energy.second_variation(MU, u), rel=1e-10)

    def test_the_logarithm_stands_where_the_energy_overflows(self):
        mu = Measure(30 * MU.points, MU.weights)
        energy = InteractionEnergy(np.eye(3))
        assert energy.value(mu) == np.inf
        longest = np.max(np.sum(mu.points**2, axis=1))
        # The longest token's own pair dominates: log(w^2 e^{|x|^2} / 2).
        i = np.argmax(np.sum(mu.points**2, axis=1))
        assert energy.log_value(mu) == pytest.approx(longest + 2 * np.log(mu.weights[i]) - np.log(2), rel=1e-6)
        assert energy.log_value(LAW_SMALL) == pytest.approx(np.log(energy.value(LAW_SMALL)), rel=1e-12)

    def test_a_hundred_thousand_tokens_in_the_plane_have_the_value_of_their_law(self):
        law = Gaussian([0.2, -0.1], [[0.3, 0.1], [0.1, 0.2]])
        mu = law.sample(100_000, np.random.default_rng(0))
        matrix = np.array([[0.9, 0.2], [0.2, -0.6]])
        # Sampling noise of about 1 / sqrt(n).
        assert InteractionEnergy(matrix).value(mu) == pytest.approx(InteractionEnergy(matrix).value(law), rel=5e-3)
        assert InteractionEnergy(matrix).gradient(mu, np.eye(2)) == pytest.approx(
            InteractionEnergy(matrix).gradient(law, np.eye(2)), abs=0.01
        )


LAW_SMALL = Gaussian(np.zeros(3), 0.1 * np.eye(3))


class TestSphere:
    SPACE = Sphere(1.3)
    ON = Measure(SPACE.retract(MU.points), MU.weights)

    def test_value_and_both_derivatives_run_along_great_circles(self):
        energy = SphereEnergy(2.0, self.SPACE)
        x, u = self.ON.points, self.SPACE.tangent(self.ON.points, displacement_of(self.ON, 4))
        speed = np.linalg.norm(u, axis=1, keepdims=True) / 1.3

        def value(s):
            turned = np.cos(s * speed) * x + np.sin(s * speed) * u / speed
            return energy.value(Measure(turned, self.ON.weights))

        assert energy.value(self.ON) == pytest.approx(oracles.interaction(x, self.ON.weights, 2 * EYE) / 2, rel=1e-12)
        first, second = oracles.differences(value)
        assert energy.derivative(self.ON, u) == pytest.approx(first, rel=1e-7)
        assert energy.second_variation(self.ON, u) == pytest.approx(second, rel=1e-5)

    def test_gradients_are_tangent(self):
        gradient = SphereEnergy(2.0, self.SPACE).gradient(self.ON, self.ON.points)
        assert np.einsum("ij,ij->i", gradient, self.ON.points) == pytest.approx(np.zeros(6), abs=1e-12)

    def test_the_level_of_clusters_is_the_sum_of_their_squared_masses(self):
        # e^{-beta} with beta = 4000 is far below round-off, and e^{beta} far above float64.
        mu = Measure([[1.0, 0], [0, 1.0], [-1.0, 0]], [0.5, 0.3, 0.2])
        assert SphereEnergy(4000.0).level(mu) == pytest.approx(0.25 + 0.09 + 0.04, rel=1e-11)
        assert SphereEnergy(2.0).level(Measure([[0.0, 1.0]])) == pytest.approx(1.0, rel=1e-14)
