"""Moving heads: their equations, their statistics, the explicit time part, and the identity for one head."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from meanfield.gradient_flow.moving_heads import OscillatingHeads, SampledHeads, oscillating_heads, ou_heads
from meanfield.gradient_flow.multihead import MultiHeadEnergy
from meanfield.gradient_flow.twisted import dissipation
from meanfield.integration import RK4, simulate
from meanfield.measures import Gaussian, Measure
from meanfield.parameters import Head, Schedule
from meanfield.spaces import Sphere
from tests.orders import slope

SPHERE = Sphere()
START = Measure(SPHERE.retract(np.random.default_rng(0).standard_normal((6, 3))))
LAW = Gaussian([0.1, 0.2, 0.0], np.diag([0.1, 0.12, 0.05]))


class TestPaths:
    def test_oscillating_heads_solve_their_equation(self):
        heads = oscillating_heads(3, np.random.default_rng(1))

        def force(t):
            phi = 2 * np.pi / 3
            diagonal = np.diag(2 + 1.5 * np.cos(t + phi + 2 * np.pi / 3 * np.arange(3)))
            off = np.zeros((3, 3))
            off[0, 1] = off[1, 2] = np.sin(2 * t)
            off[0, 2] = np.sin(t)
            return diagonal + off + off.T

        run = solve_ivp(
            lambda t, y: force(t).ravel() - y, [0, 2], heads.matrix(1, 0.0).ravel(), rtol=1e-10, atol=1e-12
        )
        assert heads.matrix(1, 2.0).ravel() == pytest.approx(run.y[:, -1], abs=1e-8)
        assert heads.rate(1, 0.7) == pytest.approx(force(0.7) - heads.matrix(1, 0.7), abs=1e-14)

    def test_a_noisy_path_has_the_stationary_variances(self):
        matrices = ou_heads(2000, 5.0, np.random.default_rng(2), d=2, dt=1.0).matrices[-1] - np.eye(2)
        # 2,000 independent paths: a variance is right to 5 sqrt(2 / 2000).
        assert np.var(matrices[:, 0, 0]) == pytest.approx(1.0, abs=0.16)
        assert np.var(matrices[:, 0, 1]) == pytest.approx(0.5, abs=0.08)
        assert np.abs(matrices.mean(axis=0)).max() < 0.12

    def test_sampled_heads_are_straight_between_their_samples(self):
        heads = SampledHeads([[[[0.0]]], [[[2.0]]], [[[1.0]]]], 0.5)
        assert [heads.matrix(0, t)[0, 0] for t in (0.0, 0.25, 0.5, 0.75, 1.0)] == [0.0, 1.0, 2.0, 1.5, 1.0]
        assert [heads.rate(0, t)[0, 0] for t in (0.0, 0.5, 1.0)] == [4.0, -2.0, -2.0]
        with pytest.raises(ValueError, match=r"t must lie in \[0, 1\]"):
            heads.matrix(0, 1.2)

    def test_matrices_that_are_not_symmetric_are_refused(self):
        wrong = np.zeros((2, 1, 2, 2))
        wrong[0, 0, 0, 1] = 1.0
        with pytest.raises(ValueError, match="symmetric in their last two axes"):
            SampledHeads(wrong, 0.1)
        with pytest.raises(ValueError, match=r"shape \(K \+ 1, H, d, d\)"):
            SampledHeads(np.zeros((1, 1, 2, 2)), 0.1)
        with pytest.raises(ValueError, match="swing must hold symmetric matrices"):
            OscillatingHeads(*(np.zeros((1, 2, 2)),) * 2, wrong[0], *(np.zeros((1, 2, 2)),) * 2)


class TestEnergy:
    @pytest.mark.parametrize("law", [START, LAW], ids=["tokens", "Gaussian"])
    def test_the_explicit_part_is_the_derivative_in_time(self, law):
        energy = oscillating_heads(2, np.random.default_rng(3)).energy()
        h = 1e-4
        wanted = (energy.at(0.3 + h).value(law) - energy.at(0.3 - h).value(law)) / (2 * h)
        assert energy.time_derivative(0.3, law) == pytest.approx(wanted, rel=1e-6)
        assert energy.at(0.3).time_derivative(0.3, law) == 0

    @pytest.mark.parametrize("law", [START, LAW], ids=["tokens", "Gaussian"])
    def test_heads_need_not_be_symmetric(self, law):
        A, rate = 0.4 * np.random.default_rng(8).standard_normal((2, 3, 3))
        eye = np.eye(3)
        moving = Schedule(lambda t: Head(A + t * rate, eye, eye))
        energy = MultiHeadEnergy((moving,), rates=lambda t: rate[None])
        wanted = (energy.at(1e-4).value(law) - energy.at(-1e-4).value(law)) / 2e-4
        assert energy.time_derivative(0.0, law) == pytest.approx(wanted, rel=1e-6)

    def test_the_ito_term_is_the_mean_effect_of_noise(self):
        rng = np.random.default_rng(4)
        D, dt = np.diag([0.5, -0.3, 0.8]), 1e-3
        eye = np.eye(3)
        Z = rng.standard_normal((4000, 3, 3))
        noise = np.sqrt(2 * dt) * (Z + np.swapaxes(Z, 1, 2)) / 2
        still = MultiHeadEnergy((Head(D, eye, eye),))
        # Antithetic pairs cancel the martingale part; what is left is dt times the Ito term, to 1 / sqrt(4000).
        many = [MultiHeadEnergy((Head(D + s * one, eye, eye),)).value(START) for one in noise[:400] for s in (1, -1)]
        drift = (np.mean(many) - still.value(START)) / dt
        assert drift == pytest.approx(still.ito_rate(START, 2.0), rel=0.1)

    def test_moving_heads_are_read_at_a_time(self):
        energy = MultiHeadEnergy((Schedule(lambda t: Head.identity(3, 1 + t)),))
        with pytest.raises(ValueError, match="heads of this energy move in time"):
            energy.value(START)
        with pytest.raises(ValueError, match="needs their rates"):
            energy.time_derivative(0.0, START)
        with pytest.raises(ValueError, match=r"one matrix a head, \(1, d, d\)"):
            MultiHeadEnergy(energy.heads, rates=lambda t: np.zeros((2, 3, 3))).time_derivative(0.0, START)
        assert energy.at(1.0).value(START) == MultiHeadEnergy((Head.identity(3, 2.0),)).value(START)


class TestIdentity:
    def test_one_oscillating_head_keeps_it_with_order_two(self):
        heads = oscillating_heads(1, np.random.default_rng(5))
        steps, residuals = [0.05, 0.025, 0.0125], []
        for dt in steps:
            run = simulate(heads.field(), START, np.arange(round(0.3 / dt) + 1) * dt, space=SPHERE, scheme=RK4, dt=dt)
            found = dissipation(heads.field(), heads.energy(), run)
            assert found.gap < 1e-12
            residuals.append(np.abs(found.residual).max())
        assert slope(steps, residuals) == pytest.approx(2, abs=0.3)

    def test_one_noisy_head_keeps_it_pathwise(self):
        heads = ou_heads(1, 0.3, np.random.default_rng(6))
        run = simulate(heads.field(), START, np.arange(61) * 5e-3, space=SPHERE, scheme=RK4, dt=5e-3)
        found = dissipation(heads.field(), heads.energy(), run, degree=1)
        assert found.gap < 1e-12
        # The trapezoidal rule along straight pieces of length 5e-3.
        assert found.largest_residual < 2e-2

    def test_several_heads_do_not_keep_it(self):
        heads = oscillating_heads(4, np.random.default_rng(7))
        run = simulate(heads.field(), START, np.arange(21) * 0.01, space=SPHERE, scheme=RK4, dt=0.01)
        found = dissipation(heads.field(), heads.energy(), run)
        assert found.gap > 0.1
        assert found.largest_chain_residual < 1e-2
