"""Softmax and linear attention with V = v I, against integration and the numbers printed in the cases."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.gaussian import closed_forms as cf
from meanfield.measures import Gaussian, Measure
from meanfield.parameters import Head, Schedule

from . import ode_oracles as ode

SEEDS = st.integers(0, 2**32 - 1)
# The oracle integrates at rtol 1e-11 over O(1) times; near poles it loses a factor 1 / (1 - t/t*) <= 10.
TOLERANCE = {"rtol": 1e-8, "atol": 1e-9}


def random_law(rng, d, rank=None):
    return Gaussian(*ode.random_moments(rng, d, rank))


def packed(law):
    return np.column_stack([law.mean, law.covariance])

def test_case_a12_variance_and_mean_of_one_dimensional_softmax():
    solution = cf.softmax_solution(Head.identity(1), Gaussian([1.0], [[1.0]]))
    times = [0, 0.25, 0.49]
    assert solution.blow_up_time == 0.5
    np.testing.assert_allclose(solution.covariance(times)[:, 0, 0], [1, 2, 50], rtol=1e-13)
    np.testing.assert_allclose(solution.mean(times)[:, 0], [1, 1.8158861587, 11.5422186817], rtol=1e-11)
    with pytest.raises(ValueError, match=r"t\* = 0\.5; got 0\.6"):
        solution.covariance([0, 0.6])


def test_case_a11_exactly_singular_covariance_halves():
    u = np.array([3, 4]) / 5
    law = Gaussian(np.zeros(2), np.outer(u, u))
    solution = cf.softmax_solution(Head(np.eye(2), np.eye(2), np.eye(2), scale=-0.5), law)
    covariance = solution.covariance(1.0)
    np.testing.assert_allclose(covariance, [[0.18, 0.24], [0.24, 0.32]], rtol=1e-14)
    assert np.linalg.eigvalsh(covariance)[0] >= -1e-15
    assert solution.blow_up_time == math.inf


def test_published_blow_up_figure_has_its_pole_at_0_70234():
    query, key = ode.blow_up_draw()
    head = Head(query, key, np.eye(2), scale=1 / math.sqrt(2))
    twice = math.sqrt(2) * (head.A + head.A.T)
    np.testing.assert_allclose(twice, [[0.49235, 1.08150], [1.08150, 3.69625]], atol=5e-6)
    solution = cf.softmax_solution(head, Gaussian(np.zeros(2), np.eye(2) / 2))
    assert solution.blow_up_time == pytest.approx(0.70234, abs=5e-6)


@given(SEEDS, st.integers(1, 4), st.sampled_from([-0.7, 0.0, 1.0, 2.0]))
@settings(max_examples=15, deadline=None)
def test_softmax_solution_agrees_with_integration(seed, d, v):
    rng = np.random.default_rng(seed)
    law = random_law(rng, d, rank=rng.integers(1, d + 1))
    query = rng.standard_normal((d, d)) / d
    head = Head(query, query, v * np.eye(d), scale=0.7)
    solution = cf.softmax_solution(head, law)
    times = ode.times_before(solution.blow_up_time)
    a = ode.matrix_a(query, query, 0.7)
    expected = ode.solve(lambda y: ode.softmax_moments(y, v * np.eye(d), a), packed(law), times)
    np.testing.assert_allclose(solution.covariance(times), expected[..., 1:], **TOLERANCE)
    np.testing.assert_allclose(solution.mean(times), expected[..., 0], **TOLERANCE)
    if math.isfinite(solution.blow_up_time):
        with pytest.raises(ValueError, match=r"smaller than the blow-up time t\*"):
            solution.covariance(solution.blow_up_time)


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_softmax_covariance_needs_no_symmetry_of_a_but_the_mean_does(seed, d):
    rng = np.random.default_rng(seed)
    law = random_law(rng, d + 1)
    query, key = rng.standard_normal((2, d, d + 1)) / d
    head = Head(query, key, np.eye(d + 1))
    solution = cf.softmax_solution(head, law)
    times = ode.times_before(solution.blow_up_time)
    a = ode.matrix_a(query, key, 1.0)
    expected = ode.solve(lambda y: ode.softmax_moments(y, np.eye(d + 1), a), packed(law), times)
    np.testing.assert_allclose(solution.covariance(times), expected[..., 1:], **TOLERANCE)
    with pytest.raises(ValueError, match="only for symmetric V A"):
        solution.mean(times)


def test_softmax_solution_holds_for_commuting_values_too():
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    def make(*values):
        return turn @ np.diag(values) @ turn.T

    law = Gaussian([1.0, -1.0, 0.5], make(0.5, 1.0, 0.2))
    value, a = make(1.0, -2.0, 0.3), make(-0.4, 0.2, 0.9)
    solution = cf.softmax_solution(Head(a, np.eye(3), value), law)
    times = ode.times_before(solution.blow_up_time)
    expected = ode.solve(lambda y: ode.softmax_moments(y, value, a), packed(law), times)
    np.testing.assert_allclose(solution.covariance(times), expected[..., 1:], **TOLERANCE)
    np.testing.assert_allclose(solution.mean(times), expected[..., 0], **TOLERANCE)


def test_rotating_values_commute_with_a_round_law_and_a_round_form():
    value = np.array([[0.5, -2.0], [2.0, 0.5]])
    a = np.linalg.inv(value) @ np.array([[0.3, 1.0], [-1.0, 0.3]])
    law = Gaussian([0.0, 0.0], 0.7 * np.eye(2))
    solution = cf.softmax_solution(Head(a, np.eye(2), value), law)
    times = ode.times_before(solution.blow_up_time)
    expected = ode.solve(lambda y: ode.softmax_moments(y, value, a), packed(law), times)
    np.testing.assert_allclose(solution.covariance(times), expected[..., 1:], **TOLERANCE)


def test_values_that_do_not_commute_are_refused():
    head = Head(np.eye(2), np.eye(2), [[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="commutator with the start has norm"):
        cf.softmax_solution(head, Gaussian([0, 0], [[1.0, 0.5], [0.5, 1.0]]))
    mixing = Head([[0.0, 1.0], [1.0, 0.0]], np.eye(2), [[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="commutator with V A"):
        cf.softmax_solution(mixing, Gaussian([0, 0], np.eye(2)))


def test_an_antisymmetric_form_moves_nothing_and_never_blows_up():
    # K^T Q is antisymmetric up to round-off only: the round-off must not become a pole at 1e16.
    rng = np.random.default_rng(0)
    key = rng.standard_normal((4, 4))
    skew = rng.standard_normal((4, 4))
    head = Head(np.linalg.solve(key.T, skew - skew.T), key, np.eye(4))
    law = random_law(rng, 4)
    solution = cf.softmax_solution(head, law)
    assert solution.blow_up_time == math.inf
    np.testing.assert_allclose(solution.covariance(1e8), law.covariance, rtol=1e-12, atol=1e-13)


def test_times_keep_their_shape_and_zero_is_the_start():
    law = random_law(np.random.default_rng(1), 3)
    solution = cf.softmax_solution(Head.identity(3, -1.0), law)
    assert solution.covariance(np.zeros((2, 5))).shape == (2, 5, 3, 3)
    assert solution.mean(np.zeros((2, 5))).shape == (2, 5, 3)
    np.testing.assert_allclose(solution.covariance(0.0), law.covariance, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(solution.at(0.0).mean, law.mean, rtol=1e-15)


def test_doors_of_closed_forms():
    head, law = Head.identity(2), Gaussian([0, 0], np.eye(2))
    with pytest.raises(ValueError, match=r"one constant Head; got Schedule\. Freeze a schedule"):
        cf.softmax_solution(Schedule(lambda t: head), law)
    with pytest.raises(ValueError, match=r"got a batch of shape \(3,\)"):
        cf.softmax_solution(Head(*[np.stack([np.eye(2)] * 3)] * 3), law)
    with pytest.raises(ValueError, match="law must have dimension 2 like the head; got 1"):
        cf.softmax_solution(head, Gaussian([0], [[1]]))
    with pytest.raises(ValueError, match="must be one Gaussian"):
        cf.softmax_solution(head, np.eye(2))
    with pytest.raises(ValueError, match="times must not be negative"):
        cf.softmax_solution(head, law).covariance([-1.0])
    with pytest.raises(OverflowError, match="the mean exceeds the largest float"):
        cf.softmax_solution(Head.identity(1, -1.0), Gaussian([1.0], [[1.0]])).mean(1e3)


@given(SEEDS, st.integers(1, 4), st.integers(1, 8))
@settings(max_examples=15, deadline=None)
def test_linear_attention_on_few_or_many_tokens_agrees_with_integration(seed, d, n):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n))
    cloud = Measure(rng.standard_normal((n, d)), weights)
    query = rng.standard_normal((d, d)) / d
    solution = cf.linear_solution(Head(query, query, 1.5 * np.eye(d), scale=0.6), cloud)
    times = ode.times_before(solution.blow_up_time)
    a = ode.matrix_a(query, query, 0.6)

    def rate(x):
        moment = sum(w * np.outer(y, y) for w, y in zip(weights, x, strict=True))
        return np.array([1.5 * moment @ a @ y for y in x])

    tokens = ode.solve(rate, cloud.points, times)
    moments = np.einsum("n,tni,tnj->tij", weights, tokens, tokens)
    np.testing.assert_allclose(solution.second_moment(times), moments, **TOLERANCE)
    moved = np.einsum("tij,nj->tni", solution.flow_map(times), cloud.points)
    np.testing.assert_allclose(moved, tokens, **TOLERANCE)


def test_linear_attention_on_a_gaussian_moves_mean_and_covariance_by_one_map():
    law = random_law(np.random.default_rng(5), 3)
    head = Head.identity(3, 0.4)
    solution = cf.linear_solution(head, law)
    times = ode.times_before(solution.blow_up_time)

    def rate(y):
        b = (y[:, 1:] + np.outer(y[:, 0], y[:, 0])) @ (0.4 * np.eye(3))
        return np.column_stack([b @ y[:, 0], b @ y[:, 1:] + y[:, 1:] @ b.T])

    expected = ode.solve(rate, packed(law), times)
    maps = solution.flow_map(times)
    np.testing.assert_allclose(maps @ law.mean, expected[..., 0], **TOLERANCE)
    np.testing.assert_allclose(maps @ law.covariance @ maps.swapaxes(1, 2), expected[..., 1:], **TOLERANCE)


def test_linear_attention_refuses_laws_of_another_dimension():
    with pytest.raises(ValueError, match="law must have dimension 3 like the head; got 2"):
        cf.linear_solution(Head.identity(3), Measure(np.eye(2)))
