"""The staircase of energy: plateaus at sums of squared masses, the published start, orders of merging, unit speed."""

import numpy as np
import pytest

from meanfield.attention import UnnormalisedAttention
from meanfield.gradient_flow.energies import SphereEnergy
from meanfield.gradient_flow.staircase import UnitSpeedField, published_start, staircase
from meanfield.measures import Measure
from meanfield.parameters import Head
from meanfield.spaces import Sphere


class TestField:
    def test_it_is_unnormalised_attention_at_unit_speed(self):
        beta, space = 3.0, Sphere()
        rng = np.random.default_rng(0)
        mu = Measure(space.retract(rng.standard_normal((6, 3))), rng.dirichlet(np.ones(6)))
        plain = space.tangent(mu.points, UnnormalisedAttention(Head.identity(3, beta))(0.0, mu.points, mu))
        speed = np.sqrt(mu.weights @ np.sum(plain**2, axis=1))
        direction, log_speed = UnitSpeedField(beta).directions(mu)
        assert direction == pytest.approx(plain / speed, abs=1e-13)
        assert log_speed == pytest.approx(np.log(speed) - beta, abs=1e-12)

    def test_it_is_right_where_exponentials_underflow(self):
        # The closest pair pulls alone, however weakly: e^{-4000} is no float64.
        mu = Measure([[1.0, 0.0], [0.0, 1.0], [-np.sqrt(0.75), -0.5]])
        direction, log_speed = UnitSpeedField(4000.0).directions(mu)
        assert log_speed == pytest.approx(-4000 + np.log(np.sqrt(2 / 3) / 3), rel=1e-12)
        assert direction[:2] == pytest.approx(np.sqrt(1.5) * np.array([[0.0, 1.0], [1.0, 0.0]]), abs=1e-12)


class TestStaircase:
    @pytest.mark.parametrize("beta", [500.0, 4000.0])
    def test_the_published_start_climbs_five_steps(self, beta):
        found = staircase(published_start(), beta, samples=30)
        assert found.finished
        # Masses 1/5 each: two, then three or two and two, then four, then all.
        assert found.plateaus == pytest.approx([0.2, 0.28, 0.44, 0.52, 1.0], abs=1e-12)
        # Energy rises along the run (round-off of exponents near beta), and merges take ever longer.
        assert np.diff(found.levels).min() > -1e-11
        assert (np.diff(found.merge_log_times) > 1).all()
        # Before each merge the level stands beta glue^2 = 4e-3 or less under its plateau.
        stages = np.flatnonzero(np.isin(found.arc, found.merge_arcs))
        assert found.levels[stages] == pytest.approx(found.plateaus[1:], rel=5e-3)

    def test_two_tokens_take_the_time_of_their_own_equation(self):
        # theta' = -e^{beta (cos theta - 1)} sin theta for the angle between two tokens of mass 1/2.
        beta, angle, glue = 5.0, 0.8, 1e-3
        found = staircase(Measure([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]), beta, samples=400, glue=glue)
        from scipy.integrate import quad

        end = 2 * np.arcsin(glue / 2)
        exact = quad(lambda a: np.exp(beta * (1 - np.cos(a))) / np.sin(a), end, angle, epsabs=0, limit=200)[0]
        # The trapezoidal rule in 1/|G| on 400 samples, dense towards the merge.
        assert np.exp(found.merge_log_times[0]) == pytest.approx(exact, rel=1e-3)
        # Both tokens move: arc = sqrt(2 (1/2) (angle/2)^2).
        assert found.merge_arcs[0] == pytest.approx((angle - end) / 2, rel=1e-9)

    def test_tokens_that_begin_together_are_one(self):
        x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        assert staircase(Measure(x), 4.0, samples=10).plateaus == pytest.approx([5 / 9, 1.0])

    def test_a_saddle_is_reported(self):
        found = staircase(Measure([[1.0, 0.0], [-1.0, 0.0]]), 2.0)
        assert not found.finished
        assert "no merge" in found.message

    def test_what_does_not_fit_is_refused(self):
        with pytest.raises(ValueError, match="must lie on the sphere"):
            staircase(Measure([[2.0, 0.0]]), 1.0)
        with pytest.raises(ValueError, match="beta must be greater than 0"):
            UnitSpeedField(0.0)

    def test_the_level_counts_the_clusters_of_the_last_state(self):
        found = staircase(published_start(), 500.0, samples=5)
        assert SphereEnergy(500.0).level(found.last) == pytest.approx(1.0)
