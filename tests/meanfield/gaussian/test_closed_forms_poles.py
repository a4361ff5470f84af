"""Poles of one-row L2 attention and of one unnormalised token, against integration."""

import math

import numpy as np
import pytest
from scipy.special import exp1

from meanfield.gaussian import closed_forms as cf
from meanfield.measures import Gaussian
from meanfield.parameters import Head

from . import ode_oracles as ode

# The oracle integrates at rtol 1e-11 over O(1) times; near poles it loses a factor 1 / (1 - t/t*) <= 10.
TOLERANCE = {"rtol": 1e-8, "atol": 1e-9}


def random_law(rng, d, rank=None):
    return Gaussian(*ode.random_moments(rng, d, rank))


def packed(law):
    return np.column_stack([law.mean, law.covariance])

def test_l2_counterexample_blows_up_at_three():
    law = Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    head = cf.l2_counterexample_head()
    solution = cf.one_row_l2(head, law)
    assert solution.blow_up_time == 3.0
    times = np.array([0.0, 1.0, 2.9])
    start = packed(law)
    expected = ode.solve(lambda y: ode.l2_moments(y, head.query, head.key, head.value, 1.0), start, times)
    np.testing.assert_allclose(solution.covariance(times), expected[..., 1:], rtol=1e-6)
    with pytest.raises(ValueError, match=r"t\* = 3; got 3"):
        solution.covariance(3.0)


@pytest.mark.parametrize("nu", [-0.8, 0.0, 0.7])
@pytest.mark.parametrize("cross", [True, False])
def test_one_row_l2_agrees_with_integration_for_every_value_matrix_allowed(nu, cross):
    rng = np.random.default_rng(11)
    k, q, third = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    law = random_law(rng, 3)
    if not cross:
        law = Gaussian(law.mean, 0.5 * np.outer(k, k) + 0.3 * np.outer(q, q) + 0.2 * np.outer(third, third))
    value = nu * np.outer(q, q) + 0.9 * np.outer(third, third) + 1.1 * np.outer(third, k)
    head = Head(1.4 * q[None], 0.6 * k[None], value, scale=0.8)
    solution = cf.one_row_l2(head, law)
    times = ode.times_before(solution.blow_up_time)
    expected = ode.solve(lambda y: ode.l2_moments(y, head.query, head.key, value, 0.8), packed(law), times)
    np.testing.assert_allclose(solution.covariance(times), expected[..., 1:], **TOLERANCE)


def test_one_row_l2_refuses_other_heads():
    law = Gaussian([0, 0], np.eye(2))
    with pytest.raises(ValueError, match=r"Q and K of shape \(1, d\)"):
        cf.one_row_l2(Head.identity(2), law)
    with pytest.raises(ValueError, match=r"needs V\^T k = 0 and V\^T q = nu q"):
        cf.one_row_l2(Head([[0.0, 1.0]], [[1.0, 0.0]], np.eye(2)), law)


@pytest.mark.parametrize("v", [-1.2, 0.0, 0.8])
@pytest.mark.parametrize("beta", [-0.9, 0.0, 1e-9, 1.1])
def test_one_unnormalised_token_agrees_with_integration(v, beta):
    x0 = np.array([0.6, -0.7])
    solution = cf.unnormalised_token(Head(np.eye(2), np.eye(2), v * np.eye(2), scale=beta), x0)
    times = ode.times_before(solution.blow_up_time, most=2.0)
    expected = ode.solve(lambda x: v * x * math.exp(beta * x @ x), x0, times)
    np.testing.assert_allclose(solution.token(times), expected, rtol=1e-9)


def test_one_unnormalised_token_blows_up_at_half_the_exponential_integral():
    solution = cf.unnormalised_token(Head.identity(2), [0.6, 0.8])
    assert solution.blow_up_time == exp1(1.0) / 2
    assert solution.blow_up_time == pytest.approx(0.10969196719776, rel=1e-12)
    # Just before the pole |x|^2 is where E_1 has fallen to what is left of it.
    left = 1e-9
    radius = np.sum(solution.token(solution.blow_up_time - left) ** 2)
    assert exp1(radius) == pytest.approx(2 * left, rel=1e-6)
    with pytest.raises(ValueError, match=r"t\* = 0\.1096"):
        solution.token([0.0, 0.2])


def test_one_unnormalised_token_refuses_what_it_cannot_solve():
    with pytest.raises(ValueError, match="needs V x0 = v x0"):
        cf.unnormalised_token(Head(np.eye(2), np.eye(2), [[1, 0], [0, 2]]), [1.0, 1.0])
    with pytest.raises(ValueError, match="at most 700 in size; got 800"):
        cf.unnormalised_token(Head.identity(1), [math.sqrt(800)])
    with pytest.raises(ValueError, match=r"token must have shape \(2,\)"):
        cf.unnormalised_token(Head.identity(2), [1.0])
