"""Softmax attention with an affine feed-forward part: the matrix Riccati flow, its equilibrium, poles and fate."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from meanfield.gaussian import closed_forms as cf
from meanfield.measures import Gaussian
from meanfield.parameters import Head

from . import ode_oracles as ode

SEEDS = st.integers(0, 2**32 - 1)


def head_of(a, v=1.0):
    return Head(a, np.eye(len(a)), v * np.eye(len(a)))


def scalar(a, w, s0):
    return Head([[a]], [[1.0]], [[1.0]]), [[w]], Gaussian([0.0], [[s0]])


@given(SEEDS, st.integers(1, 4), st.sampled_from([-0.6, 1.0]))
@settings(max_examples=20, deadline=None)
def test_affine_solution_agrees_with_integration(seed, d, v):
    rng = np.random.default_rng(seed)
    law = Gaussian(*ode.random_moments(rng, d, rank=rng.integers(1, d + 1)))
    a, drift = rng.standard_normal((2, d, d))
    solution = cf.affine_solution(head_of(a, v), drift, law)
    times = ode.times_before(solution.blow_up_time(1.0))
    expected = ode.solve(lambda y: ode.affine_moments(y, v, a, drift), law.covariance, times)
    # The oracle loses a factor of the condition of the flow, here below 1e3.
    np.testing.assert_allclose(solution.covariance(times), expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


def test_affine_solution_is_the_linear_flow_of_the_precision():
    rng = np.random.default_rng(4)
    a, drift = rng.standard_normal((2, 3, 3))
    law = Gaussian(*ode.random_moments(rng, 3))
    solution = cf.affine_solution(head_of(a), drift, law)
    t = 0.8 * min(solution.blow_up_time(10.0), 2.0)
    star = cf.affine_precision(drift, a + a.T)
    np.testing.assert_allclose(star @ drift + drift.T @ star, -(a + a.T), atol=1e-12)
    back = expm(-t * drift)
    precision = back.T @ (np.linalg.inv(law.covariance) - star) @ back + star
    np.testing.assert_allclose(solution.covariance(t), np.linalg.inv(precision), rtol=1e-9)


def test_without_a_feed_forward_part_the_pole_is_the_one_of_softmax_attention():
    query, key = ode.blow_up_draw()
    head = Head(query, key, np.eye(2), scale=1 / math.sqrt(2))
    law = Gaussian([0, 0], np.eye(2) / 2)
    solution = cf.affine_solution(head, np.zeros((2, 2)), law)
    exact = cf.softmax_solution(head, law)
    assert solution.blow_up_time(1.0) == pytest.approx(exact.blow_up_time, rel=1e-13)
    np.testing.assert_allclose(solution.covariance(0.7), exact.covariance(0.7), rtol=1e-12)
    with pytest.raises(ValueError, match=r"blow-up time t\* = 0\.70234\d*; got 2"):
        solution.covariance([0.0, 2.0])


@pytest.mark.parametrize(("a", "w", "s0"), [(0.5, 0.3, 2.0), (0.5, -0.3, 2.0), (2.0, 0.0, 0.1), (0.5, -0.3, 0.61)])
def test_scalar_blow_up_time_with_a_feed_forward_part(a, w, s0):
    expected = 1 / (2 * a * s0) if w == 0 else math.log(1 + w / (a * s0)) / (2 * w)
    head, drift, law = scalar(a, w, s0)
    assert cf.scalar_affine_blow_up_time(head, drift, law) == pytest.approx(expected, rel=1e-13)
    assert cf.affine_solution(head, drift, law).blow_up_time(50.0) == pytest.approx(expected, rel=1e-11)
    # The reciprocal 1/s crosses zero there, found by integrating it: u' = -2 w u - 2 a.
    u = ode.solve(lambda u: -2 * w * u - 2 * a, [1 / s0], [0.0, expected])
    assert abs(u[-1, 0]) < 1e-9 / s0


def test_scalar_flow_below_its_threshold_does_not_blow_up():
    head, drift, law = scalar(0.5, -0.3, 0.59)
    assert cf.scalar_affine_blow_up_time(head, drift, law) == math.inf
    assert cf.affine_solution(head, drift, law).blow_up_time(100.0) == math.inf


def test_the_first_pole_is_found_though_the_precision_becomes_positive_again():
    # W turns the plane, so that a form of two signs first feeds and then starves each direction.
    drift = np.array([[0.0, 4.0], [-4.0, 0.0]])
    a = np.diag([1.0, -1.0])
    law = Gaussian([0.0, 0.0], np.diag([10.0, 0.1]))
    solution = cf.affine_solution(head_of(a), drift, law)
    first = solution.blow_up_time(10.0)

    def lowest(t):
        block = expm(t * np.block([[-drift.T, a + a.T], [np.zeros((2, 2)), drift]]))
        flow = block[2:, 2:]
        return np.linalg.eigvalsh(np.linalg.inv(law.covariance) - flow.T @ block[:2, 2:])[0]

    assert all(lowest(t) > 0 for t in np.linspace(0, first * (1 - 1e-9), 500))
    assert lowest(first * (1 + 1e-9)) < 0
    assert any(lowest(t) > 0 for t in np.linspace(first, 3.0, 500))
    with pytest.raises(ValueError, match=r"t\* = "):
        solution.covariance(2.0)


def test_unstable_drift_and_contracting_attention_reach_the_equilibrium_over_long_times():
    rng = np.random.default_rng(7)
    a = -np.eye(3) + 0.3 * rng.standard_normal((3, 3))
    drift = np.eye(3) + 0.2 * rng.standard_normal((3, 3))
    bias = np.array([1.0, -2.0, 0.5])
    law = Gaussian(*ode.random_moments(rng, 3))
    equilibrium = cf.affine_equilibrium(head_of(a), drift, bias)
    rates = ode.softmax_moments(
        np.column_stack([equilibrium.mean, equilibrium.covariance]), np.eye(3), a, drift=drift, bias=bias
    )
    np.testing.assert_allclose(rates, 0, atol=1e-12)
    pull = np.eye(3) + equilibrium.covariance @ a + drift
    np.testing.assert_allclose(np.linalg.eigvals(pull).real, 1, rtol=1e-10)
    late = cf.affine_solution(head_of(a), drift, law).covariance([1.0, 1e3])[-1]
    np.testing.assert_allclose(late, equilibrium.covariance, rtol=1e-10, atol=1e-12)
    fate = cf.affine_fate(head_of(a), drift, law)
    assert fate.fate is cf.Fate.CONVERGES
    np.testing.assert_allclose(fate.limit, equilibrium.covariance, rtol=1e-12)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_fate_is_never_contradicted_by_the_flow(seed):
    rng = np.random.default_rng(seed)
    shift = rng.choice([-2.0, 0.0, 2.0], size=2)
    a = shift[0] * np.eye(2) + rng.standard_normal((2, 2))
    drift = shift[1] * np.eye(2) + rng.standard_normal((2, 2))
    law = Gaussian(*ode.random_moments(rng, 2))
    solution, fate = cf.affine_solution(head_of(a), drift, law), cf.affine_fate(head_of(a), drift, law)
    pole = solution.blow_up_time(30.0)
    if fate.fate is cf.Fate.BLOWS_UP:
        assert pole == pytest.approx(fate.blow_up_time, rel=1e-9) or fate.blow_up_time > 30
    elif fate.fate is not cf.Fate.UNDECIDED:
        assert pole == math.inf
        slowest = np.abs(np.linalg.eigvals(drift).real).min()
        late = solution.covariance(30.0)
        # Distances fall like e^{-2 t slowest}, times a polynomial and the size of the transient.
        bound = 1e4 * math.exp(-60 * slowest) * (1 + np.abs(law.covariance).max()) ** 2 + 1e-9
        if slowest > 0.2:
            np.testing.assert_allclose(late, fate.limit, atol=bound * max(1.0, np.abs(fate.limit).max()) ** 2)


@pytest.mark.parametrize(
    ("a", "w", "s0", "fate", "late"),
    [
        (1.0, 0.5, 1.0, "BLOWS_UP", None),
        (1.0, -0.5, 1.0, "BLOWS_UP", None),
        (1.0, -0.5, 0.4, "VANISHES", 0.0),
        (1.0, -0.5, 0.5, "STAYS", 0.5),
        (-1.0, 0.5, 2.0, "CONVERGES", 0.5),
        (-1.0, -0.5, 2.0, "VANISHES", 0.0),
        (0.0, -0.5, 2.0, "VANISHES", 0.0),
        (0.0, 0.5, 2.0, "GROWS", None),
        (0.0, 0.0, 2.0, "STAYS", 2.0),
        (1.0, 0.5, 0.0, "STAYS", 0.0),
    ],
)
def test_every_scalar_case_is_decided(a, w, s0, fate, late):
    head, drift, law = scalar(a, w, s0)
    decided = cf.affine_fate(head, drift, law)
    assert decided.fate.name == fate
    if late is not None:
        assert decided.limit[0, 0] == pytest.approx(late, abs=1e-15)
        assert cf.affine_solution(head, drift, law).covariance(60.0)[0, 0] == pytest.approx(late, abs=1e-9)


def test_hurwitz_drift_decides_by_the_stationary_precision():
    drift, a = -np.diag([1.0, 2.0]), np.diag([0.5, 1.0])
    # P* solves P W + W P = -2 A: diag(1/2, 1/2); Sigma0 below or above 2 I decides.
    small, large = Gaussian([0, 0], 1.9 * np.eye(2)), Gaussian([0, 0], np.diag([1.0, 2.1]))
    assert cf.affine_fate(head_of(a), drift, small).fate is cf.Fate.VANISHES
    fate = cf.affine_fate(head_of(a), drift, large)
    assert fate.fate is cf.Fate.BLOWS_UP
    # Second axis alone: w = -2, a = 1, s0 = 2.1.
    assert fate.blow_up_time == pytest.approx(math.log(1 - 2 / 2.1) / -4, rel=1e-9)
    singular = Gaussian([0, 0], np.diag([0.0, 2.1]))
    assert cf.affine_fate(head_of(a), drift, singular).fate is cf.Fate.BLOWS_UP
    assert cf.affine_fate(head_of(a), drift, Gaussian([0, 0], np.zeros((2, 2)))).fate is cf.Fate.STAYS
    mixed = cf.affine_fate(head_of(np.diag([0.5, -1.0])), np.diag([1.0, -1.0]), small)
    assert mixed.fate is cf.Fate.UNDECIDED


def test_a_form_of_two_signs_is_undecided_between_the_two_bounds():
    # The turning drift averages the form away, its positive part alone is not averaged.
    drift, a = np.array([[-0.1, 4.0], [-4.0, -0.1]]), np.diag([1.0, -1.0])
    law = Gaussian([0.0, 0.0], np.eye(2))
    assert cf.affine_fate(head_of(a), drift, law).fate is cf.Fate.UNDECIDED
    assert cf.affine_fate(head_of(a), drift, Gaussian([0.0, 0.0], 0.1 * np.eye(2))).fate is cf.Fate.VANISHES
    assert cf.affine_fate(head_of(a), drift, Gaussian([0.0, 0.0], 10 * np.eye(2))).fate is cf.Fate.BLOWS_UP


def test_affine_doors():
    law = Gaussian([0, 0], np.eye(2))
    with pytest.raises(ValueError, match="needs V = v I"):
        cf.affine_solution(Head(np.eye(2), np.eye(2), np.diag([1.0, 2.0])), np.eye(2), law)
    with pytest.raises(ValueError, match=r"drift must be a matrix of shape \(2, 2\)"):
        cf.affine_solution(Head.identity(2), np.eye(3), law)
    with pytest.raises(ValueError, match=r"eigenvalues .* that add up to zero"):
        cf.affine_precision(np.diag([1.0, -1.0]), np.eye(2))
    with pytest.raises(ValueError, match=r"equilibrium of full rank needs P\* > 0"):
        cf.affine_equilibrium(Head.identity(2), np.eye(2), np.zeros(2))
    with pytest.raises(ValueError, match=r"bias must have shape \(2,\)"):
        cf.affine_equilibrium(Head.identity(2), np.eye(2), np.zeros(3))
    with pytest.raises(ValueError, match="horizon must be greater than 0"):
        cf.affine_solution(Head.identity(2), np.eye(2), law).blow_up_time(0.0)
    with pytest.raises(OverflowError, match="the covariance exceeds the largest float"):
        cf.affine_solution(head_of(np.zeros((1, 1))), [[1.0]], Gaussian([0.0], [[1.0]])).covariance(1e3)
