"""L2 and Sinkhorn attention in one dimension, against integration and against their implicit equations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import wrightomega

from meanfield.gaussian import closed_forms as cf
from meanfield.measures import Gaussian
from meanfield.parameters import Head

from . import ode_oracles as ode


@pytest.mark.parametrize("a", [-1.5, -1e-6, 0.0, 1e-6, 0.4])
@pytest.mark.parametrize("v", [-2.0, 1.0])
@pytest.mark.parametrize("s0", [1e-3, 1.0, 50.0])
def test_scalar_l2_and_sinkhorn_agree_with_integration(a, v, s0):
    # K has two rows, so that g = |k|^2 is not k^2.
    head = Head([[a / 2], [a / 2]], [[1.0], [1.0]], [[v]])
    law = Gaussian([0.8], [[s0]])
    times = np.array([0.0, 1e-4, 0.3, 2.0])
    g = 2.0
    l2 = ode.solve(
        lambda y: [v * (1 + 2 * a * y[1]) / (1 + 2 * g * y[1]) * y[0], 4 * v * a * y[1] ** 2 / (1 + 2 * g * y[1])],
        [0.8, s0], times,
    )
    solution = cf.scalar_l2(head, law)
    np.testing.assert_allclose(solution.mean(times), l2[:, 0], rtol=1e-9)
    np.testing.assert_allclose(solution.variance(times), l2[:, 1], rtol=1e-9)
    sinkhorn = ode.solve(lambda s: 2 * v * ode.scalar_sinkhorn_coupling(s[0], a), [s0], times)
    solution = cf.scalar_sinkhorn(head, law)
    np.testing.assert_allclose(solution.variance(times), sinkhorn[:, 0], rtol=1e-9)
    np.testing.assert_allclose(solution.mean(times), 0.8 * np.exp(v * times), rtol=1e-15)


@given(
    st.floats(-6, 6), st.floats(-8, 8), st.floats(-12, 12), st.sampled_from([-1.0, 1.0]),
)
@settings(max_examples=200, deadline=None)
def test_scalar_inversions_solve_their_implicit_equations_at_all_scales(log_a, log_s0, log_t, sign):
    a, s0, t = sign * 10**log_a, 10**log_s0, 10**log_t
    law, head = Gaussian([0.0], [[s0]]), Head([[a]], [[1.0]], [[1.0]])
    if abs(a) * t < 100:
        s = float(cf.scalar_l2(head, law).variance(t))
        # Lambert's function solves the same equation; its argument z carries a relative round-off.
        z = 1 / (2 * s0) - math.log(2 * s0) - 2 * a * t
        assert s == pytest.approx(1 / (2 * wrightomega(z)), rel=1e-14 * (10 + abs(z) + 1 / s0))
    if t < 100:
        s = float(cf.scalar_sinkhorn(head, law).variance(t))
        theta, theta0 = math.asinh(2 * abs(a) * s), math.asinh(2 * abs(a) * s0)
        sides = theta + 1 / math.tanh(theta0 / 2), theta0 + 1 / math.tanh(theta / 2) + 2 * sign * t
        assert sides[0] == pytest.approx(sides[1], rel=1e-13)


def test_scalar_tails_follow_their_laws():
    # L2: s ~ e^{2 v q t / k} and 1 / (4 |v a| t); Sinkhorn: s ~ e^{2 v t} and 1 / (2 |v a| t).
    law = Gaussian([0.0], [[1.0]])
    t = 1e12
    contracting = Head([[1.0]], [[-0.5]], [[1.0]])
    assert 2 * t * float(cf.scalar_l2(contracting, law).variance(t)) == pytest.approx(1, rel=1e-9)
    assert t * float(cf.scalar_sinkhorn(contracting, law).variance(t)) == pytest.approx(1, rel=1e-9)
    for solution, rate in (
        (cf.scalar_l2(Head([[1.5]], [[0.5]], [[1.0]]), law), 6.0),
        (cf.scalar_sinkhorn(Head([[1.5]], [[0.5]], [[1.0]]), law), 2.0),
    ):
        early, late = solution.variance([20.0, 30.0])
        assert math.log(late / early) == pytest.approx(10 * rate, rel=1e-12)
        with pytest.raises(OverflowError, match="the variance exceeds the largest float"):
            solution.variance(1e6)


@pytest.mark.parametrize("solver", [cf.scalar_l2, cf.scalar_sinkhorn])
def test_scalar_solutions_of_points_and_of_heads_that_move_nothing(solver):
    point = solver(Head([[1.0]], [[2.0]], [[0.5]]), Gaussian([2.0], [[0.0]]))
    np.testing.assert_array_equal(point.variance([0, 1, 100]), 0.0)
    np.testing.assert_allclose(point.mean(3.0), 2 * math.exp(1.5), rtol=1e-15)
    for head in (Head([[0.0]], [[2.0]], [[1.0]]), Head([[1.0]], [[0.0]], [[1.0]]), Head([[1.0]], [[2.0]], [[0.0]])):
        np.testing.assert_array_equal(solver(head, Gaussian([0.0], [[3.0]])).variance([0, 1, 1e9]), 3.0)
    with pytest.raises(ValueError, match="needs tokens in dimension 1; got 2"):
        solver(Head.identity(2), Gaussian([0, 0], np.eye(2)))
    assert solver(Head.identity(1), Gaussian([1.0], [[1.0]])).at(0.0).covariance == pytest.approx(1.0, rel=1e-15)


def test_scalar_l2_refuses_a_negative_scale():
    with pytest.raises(ValueError, match="needs scale >= 0; got -1"):
        cf.scalar_l2(Head.identity(1, -1.0), Gaussian([0.0], [[1.0]]))


@pytest.mark.parametrize("variance", [1e-300, 1e300])
def test_a_sinkhorn_variance_at_the_end_of_floats_is_solved_without_a_warning(variance):
    solution = cf.scalar_sinkhorn(Head([[2.0]], [[-1.0]], [[1.5]]), Gaussian([1.0], [[variance]]))
    values = solution.variance([0.0, 1.0])
    assert values[0] == variance
    # s' = 2 v a s^2 for small s: nothing moves; s' = 2 v sgn(a) s for large s.
    assert values[1] == pytest.approx(variance if variance < 1 else variance * np.exp(-3), rel=1e-12)
