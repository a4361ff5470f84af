"""Geodesics and curvature: ends and lengths, convexity where it is known, and where it fails with its exact value."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from meanfield.analysis.distances import bures_wasserstein, wasserstein
from meanfield.gradient_flow.energies import InteractionEnergy, LogNormaliserEnergy, NegativeEntropy, SigmoidEnergy
from meanfield.gradient_flow.geodesics import (
    dirac_curvature,
    displacement_geodesic,
    energy_along,
    lowest_curvature,
    search_non_convexity,
    twisted_acceleration,
)
from meanfield.gradient_flow.twisted import HeadsMobility, SoftmaxMobility, TwistedMetric, twisted_distance
from meanfield.measures import Gaussian, Measure

RNG = np.random.default_rng(3)
MU = Measure(RNG.standard_normal((5, 2)), RNG.dirichlet(np.full(5, 2.0)))
NU = Measure(RNG.standard_normal((7, 2)) + 1)
FIRST = Gaussian([0.0, 0.2], [[1.0, 0.3], [0.3, 0.5]])
SECOND = Gaussian([1.0, -0.5], [[0.4, -0.2], [-0.2, 0.9]])
REPEL = InteractionEnergy([[-1.0]])
TWIST = TwistedMetric([[-1.0]], SoftmaxMobility([[-1.0]]))


class TestGeodesics:
    @pytest.mark.parametrize(
        ("first", "second", "distance"),
        [
            (MU, NU, wasserstein),
            (FIRST, SECOND, bures_wasserstein),
            (FIRST, Gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 0.0]]), bures_wasserstein),
        ],
        ids=["clouds", "Gaussians", "onto a line"],
    )
    def test_they_join_their_ends_at_constant_speed(self, first, second, distance):
        geodesic = displacement_geodesic(first, second)
        assert geodesic.length == pytest.approx(distance(first, second), rel=1e-10)
        assert distance(geodesic.at(0), first) == pytest.approx(0, abs=1e-7)
        assert distance(geodesic.at(1), second) == pytest.approx(0, abs=1e-7)
        assert distance(geodesic.at(0.2), geodesic.at(0.7)) == pytest.approx(0.5 * geodesic.length, rel=1e-8)

    def test_energies_along_them_have_the_derivatives_of_their_values(self):
        for first, second in ((MU, NU), (FIRST, SECOND)):
            along = energy_along(LogNormaliserEnergy([[0.3, 0.1], [0.0, -0.4]]), displacement_geodesic(first, second))
            h = along.s[1]
            # Central differences of step 1/40 on a function of size one.
            assert along.first[1:-1] == pytest.approx((along.values[2:] - along.values[:-2]) / (2 * h), abs=3e-3)
            seconds = (along.values[2:] - 2 * along.values[1:-1] + along.values[:-2]) / h**2
            assert along.second[1:-1] == pytest.approx(seconds, abs=1e-2)

    def test_the_entropy_is_convex_and_the_repulsion_is_not(self):
        assert energy_along(NegativeEntropy(), displacement_geodesic(FIRST, SECOND)).convex
        across = displacement_geodesic(Measure([[-1.0]]), Measure([[1.0]]))
        along = energy_along(REPEL, across)
        # E(delta_x) = e^{-x^2} / 2, E'' = (2 x^2 - 1) e^{-x^2}, lowest at 0; length 2 from s = 0 to 1.
        assert along.lowest == pytest.approx(-1.0, rel=1e-12)
        assert along.where == 0.5
        assert not along.convex
        assert along.chord_gap == pytest.approx(0.5 - np.exp(-1) / 2, rel=1e-12)

    def test_gaussians_break_convexity_too(self):
        across = displacement_geodesic(Gaussian([-0.8], [[0.1]]), Gaussian([0.8], [[0.1]]))
        along = energy_along(REPEL, across)
        assert along.lowest < -0.9
        assert along.chord_gap > 0.2

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda: displacement_geodesic(MU, FIRST), "two Measures or two Gaussians; got Measure and Gaussian"),
            (lambda: displacement_geodesic(FIRST, Gaussian([0.0], [[1.0]])), "one dimension; got 2 and 1"),
            (lambda: energy_along(REPEL, displacement_geodesic(MU, NU), [0.0]), "two or more parameters"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, call, said):
        with pytest.raises(ValueError, match=said):
            call()


class TestCurvature:
    @pytest.mark.parametrize("x", [0.0, 0.3, 0.9, 1.0, 1.5])
    def test_on_diracs_it_is_x_squared_minus_one(self, x):
        # V = I, A = -I: the theorem of non-convexity, exactly.
        assert dirac_curvature([[-1.0]], [[-1.0]], [x]) == pytest.approx(x**2 - 1, abs=1e-14)
        found = lowest_curvature(REPEL, Measure([[x]]), metric=TWIST)
        assert found.value == pytest.approx(x**2 - 1, abs=1e-14)
        assert found.convex == (x >= 1)
        assert TWIST.squared_norm(found.law, found.displacement) == pytest.approx(1, rel=1e-12)

    def test_the_dirac_formula_holds_for_any_matrices(self):
        H, A, x = -np.array([[1.0, 0.4], [0.4, 0.8]]), np.array([[-1.0, 0.3], [0.3, 0.2]]), np.array([0.3, -0.7])
        found = lowest_curvature(InteractionEnergy(A), Measure(x[None]), metric=TwistedMetric(H, SoftmaxMobility(A)))
        assert dirac_curvature(H, A, x) == pytest.approx(found.value, rel=1e-12)

    def test_geodesics_of_the_twisted_metric_keep_their_speed_and_are_shortest(self):
        A, H = np.array([[-1.0, 0.3], [0.3, 0.2]]), np.array([[1.0, 0.4], [0.4, 0.8]])
        metric = TwistedMetric(-H, SoftmaxMobility(A))
        mu, v = Measure(MU.points[:3]), np.random.default_rng(0).standard_normal((3, 2))

        def rhs(s, y):
            x, speed = y.reshape(2, 3, 2)
            return np.concatenate([speed, twisted_acceleration(metric, Measure(x), speed)]).ravel()

        y = np.concatenate([mu.points, v]).ravel()
        end, speed = solve_ivp(rhs, [0, 0.5], y, rtol=1e-10, atol=1e-12).y[:, -1].reshape(2, 3, 2)
        norm = metric.squared_norm(mu, v)
        assert metric.squared_norm(Measure(end), speed) == pytest.approx(norm, rel=1e-8)
        found = twisted_distance(mu, Measure(end), metric, segments=(8, 16))
        assert found.extrapolated == pytest.approx(0.5 * np.sqrt(norm), rel=1e-4)
        assert found.straight > found.extrapolated * 1.001

    def test_a_search_finds_and_certifies_non_convexity(self):
        energy = InteractionEnergy(-np.eye(2))
        found = search_non_convexity(energy, np.random.default_rng(0), dimension=2, draws=4, spread=0.7)
        for best in (found.measure, found.gaussian):
            assert best.value < -0.3
            again = energy.second_variation(best.law, best.displacement)
            assert again == pytest.approx(best.value, rel=1e-8)
        assert found.lowest.value == min(found.measure_values.min(), found.gaussian_values.min())
        assert len(found.gaussian_values) + found.outside == 4

    def test_a_search_finds_none_where_there_is_none(self):
        entropy = lowest_curvature(NegativeEntropy(), FIRST)
        # B -> tr(B^2) against tr(B S B): zero along translations.
        assert entropy.value == pytest.approx(0, abs=1e-12)
        assert entropy.convex
        found = search_non_convexity(SigmoidEnergy(0.1 * np.eye(1)), RNG, dimension=1, draws=2, gaussian_draws=0)
        assert found.gaussian is None

    def test_gaussians_outside_the_domain_are_counted(self):
        rng = np.random.default_rng(1)
        found = search_non_convexity(InteractionEnergy(-np.eye(1)), rng, dimension=1, draws=3, spread=20)
        assert found.outside == 3
        assert found.gaussian is None

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda: dirac_curvature(np.eye(2), [[1.0, 1.0], [0.0, 1.0]], [0.0, 0.0]), "A must be symmetric"),
            (lambda: lowest_curvature(NegativeEntropy(), FIRST, metric=TWIST), "leave the Gaussians"),
            (lambda: lowest_curvature(REPEL, Measure(np.arange(61.0)[:, None])), "61 directions is too large"),
            (lambda: lowest_curvature(REPEL, Gaussian([0.0], [[0.0]])), "must have full rank; got rank 0"),
            (
                lambda: twisted_acceleration(TwistedMetric(np.eye(1), HeadsMobility(([[1.0]],))), MU, MU.points),
                "softmax one of symmetric A",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused(self, call, said):
        with pytest.raises(ValueError, match=said):
            call()
