"""Limits of contracting flows and flows of rank one, against integration and the formula with a basis of the kernel."""


import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.gaussian import closed_forms as cf
from meanfield.measures import Gaussian
from meanfield.parameters import Head

from . import ode_oracles as ode

SEEDS = st.integers(0, 2**32 - 1)
# The oracle integrates at rtol 1e-11 over O(1) times; near poles it loses a factor 1 / (1 - t/t*) <= 10.
TOLERANCE = {"rtol": 1e-8, "atol": 1e-9}


def random_law(rng, d, rank=None):
    return Gaussian(*ode.random_moments(rng, d, rank))


def packed(law):
    return np.column_stack([law.mean, law.covariance])

@given(SEEDS, st.integers(2, 5))
@settings(max_examples=20, deadline=None)
def test_limit_is_what_the_solution_tends_to(seed, d):
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, d + 1)
    law = random_law(rng, d, rank=rng.integers(1, d + 1))
    query = rng.standard_normal((rows, d))
    head = Head(query, -query, 0.5 * np.eye(d))
    limit = cf.softmax_limit(head, law)
    np.testing.assert_allclose(limit, cf.tied_limit(head, law), atol=1e-9)
    # The distance to the limit is at most 1 / (2 v t lambda) with lambda the least positive eigenvalue of Q^T Q.
    least = np.linalg.svd(query)[1].min() ** 2
    distance = np.linalg.norm(cf.softmax_solution(head, law).covariance(1e12) - limit, 2)
    assert distance <= 1e-11 / least * np.linalg.cond(query) ** 2 + 1e-9
    expected_rank = max(0, law.root.shape[1] - rows)
    assert np.linalg.matrix_rank(limit, tol=1e-9) == expected_rank


def test_limit_of_the_published_line_figure():
    q = np.array([[0.40632, 0.91373]])
    normal = np.array([0.91373, -0.40632]) / np.hypot(0.40632, 0.91373)
    limit = cf.softmax_limit(Head(q, -q, np.eye(2)), Gaussian([0, 0], np.eye(2) / 2))
    np.testing.assert_allclose(limit, np.outer(normal, normal) / 2, atol=1e-15)


def test_limit_is_the_kernel_formula_for_regular_starts():
    rng = np.random.default_rng(8)
    law = random_law(rng, 4)
    query = rng.standard_normal((2, 4))
    z = np.linalg.svd(query)[2][2:].T
    formula = z @ np.linalg.inv(z.T @ np.linalg.inv(law.covariance) @ z) @ z.T
    np.testing.assert_allclose(cf.softmax_limit(Head(query, -query, np.eye(4)), law), formula, rtol=1e-9, atol=1e-11)


def test_limit_keeps_its_rank_for_starts_of_very_unequal_axes():
    turn = np.linalg.qr(np.random.default_rng(6).standard_normal((3, 3)))[0]
    law = Gaussian(np.zeros(3), (turn * [1.0, 1e-6, 1e-12]) @ turn.T)
    query = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 1.0]])
    root = np.linalg.svd(cf.softmax_limit(Head(query, -query, np.eye(3)), law))
    # The eigenvalue 1e-12 of the start itself carries a relative round-off of 1e-4, and decides the size of the limit.
    z = np.cross(*query) / np.linalg.norm(np.cross(*query))
    size = 1 / sum((z @ turn) ** 2 / [1.0, 1e-6, 1e-12])
    assert root[1][0] == pytest.approx(size, rel=1e-3)
    np.testing.assert_allclose(np.abs(root[0][:, 0] @ z), 1, rtol=1e-9)
    assert root[1][1] < 1e-9 * size


def test_softmax_l2_and_sinkhorn_share_the_limit_of_tied_heads():
    law = Gaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 0.5]])
    query = np.array([[1.0, 0.5]])
    head = Head(query, -2 * query, np.eye(2))
    limit = cf.tied_limit(head, law)
    a = ode.matrix_a(query, -2 * query, 1.0)
    times = [0.0, 1e3]
    def l2_rate(y):
        return ode.l2_moments(y, query, -2 * query, np.eye(2), 1.0)

    l2 = ode.solve(l2_rate, packed(law), times, "Radau", rtol=1e-7)
    root = np.linalg.cholesky(law.covariance)
    sinkhorn = ode.solve(lambda y: ode.sinkhorn_root_rate(y, np.eye(2), a), root, times, rtol=1e-7)[-1]
    # Sigma(t) approaches its limit like 1 / (2 |A| t).
    np.testing.assert_allclose(l2[-1][:, 1:], limit, atol=1e-3)
    np.testing.assert_allclose(sinkhorn @ sinkhorn.T, limit, atol=1e-3)


def test_limits_refuse_growing_and_untied_heads():
    law = Gaussian([0, 0], np.eye(2))
    with pytest.raises(ValueError, match=r"needs V A \+ A\^T V\^T <= 0; got eigenvalue 2"):
        cf.softmax_limit(Head.identity(2), law)
    with pytest.raises(ValueError, match="needs K = -c Q with c > 0"):
        cf.tied_limit(Head.identity(2), law)
    with pytest.raises(ValueError, match="needs V = v I"):
        cf.tied_limit(Head(np.eye(2), -np.eye(2), [[1, 0], [0, 2]]), law)


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_rank_one_solution_agrees_with_integration(seed, d):
    rng = np.random.default_rng(seed)
    query, key = rng.standard_normal((2, d, d))
    w = rng.standard_normal(d)
    solution = cf.rank_one_solution(Head(query, key, -1.3 * np.eye(d)), w)
    times = ode.times_before(solution.blow_up_time)
    a = ode.matrix_a(query, key, 1.0)
    expected = ode.solve(lambda y: (y @ a @ y) * -1.3 * y, w, times)
    np.testing.assert_allclose(solution.root(times), expected, **TOLERANCE)


def test_rank_one_solution_on_an_eigenvector_and_its_refusals():
    head = Head(np.eye(2), np.eye(2), [[2.0, 1.0], [0.0, 1.0]])
    assert cf.rank_one_solution(head, [0.5, 0.0]).blow_up_time == pytest.approx(1 / (2 * 2 * 0.25), rel=1e-15)
    with pytest.raises(ValueError, match="needs V w = v w"):
        cf.rank_one_solution(head, [0.5, 0.5])
    with pytest.raises(ValueError, match=r"root must have shape \(2,\)"):
        cf.rank_one_solution(head, [0.5])
    isotropic = cf.rank_one_solution(Head([[0.0, 1.0], [-1.0, 0.0]], np.eye(2), np.eye(2)), [3.0, 4.0])
    np.testing.assert_array_equal(isotropic.root(1e9), [3.0, 4.0])
