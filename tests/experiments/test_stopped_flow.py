"""The exact flow, stopped by the published rules: closed forms, orders, and the other integrator of the package."""

import numpy as np
import pytest

import meanfield as mf
from experiments.published import CONVERGED, DIVERGED, EXHAUSTED, rate_of
from experiments.stopped_flow import (
    covariance_rate,
    differences,
    drift,
    field_of,
    jacobian,
    norm,
    rosenbrock,
    stopped_flow,
)
from meanfield.gaussian.closed_forms import softmax_solution
from meanfield.velocity import affine_on_gaussian

MODELS = [("softmax", 1), ("l2", 1), ("multihead", 2), ("sinkhorn", 1)]


def laws(rng, n, d):
    W = rng.normal(size=(n, d, d))
    return W @ np.swapaxes(W, 1, 2) / d


def model(rng, n, d, *, rows=2, contracting=False):
    Q, K = rng.normal(size=(2, n, rows, d))
    W = rng.normal(size=(n, d, d))
    return (Q, -Q, W @ np.swapaxes(W, 1, 2)) if contracting else (Q, K, W)


@pytest.mark.parametrize(("variant", "heads"), MODELS)
def test_the_package_and_the_published_formulas_are_one_flow(variant, heads):
    rng = np.random.default_rng(3)
    S, matrices = laws(rng, 6, 2), model(rng, 6, 2)
    field = field_of(variant, *matrices, heads)
    found = covariance_rate(field, S)
    package = affine_on_gaussian(field, 0.0, mf.Gaussian.from_root(np.zeros((6, 2)), np.linalg.cholesky(S))).matrix
    np.testing.assert_allclose(drift(field, S), package, rtol=1e-9, atol=1e-12)
    published = rate_of(variant, *(np.moveaxis(m, 0, -1) for m in matrices), heads)(np.moveaxis(S, 0, -1))
    np.testing.assert_allclose(found, np.moveaxis(published, -1, 0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("variant", "heads"), MODELS[:3])
def test_the_written_jacobian_is_the_derivative(variant, heads):
    """Central differences of step 1e-6 are right to about 1e-9."""
    rng = np.random.default_rng(5)
    S, field = laws(rng, 4, 4), field_of(variant, *model(rng, 4, 4), heads)
    triangle = np.tril_indices(4)
    numeric = differences(field, S, triangle)
    written = jacobian(field, S, drift(field, S), triangle)
    np.testing.assert_allclose(written, numeric, atol=1e-7 * np.abs(numeric).max())


def test_the_method_has_order_four():
    rng = np.random.default_rng(2)
    S, field = laws(rng, 3, 3), field_of("l2", *model(rng, 3, 3))
    ends = []
    for steps in (8, 16, 512):
        moved, h = S, np.full(3, 0.5 / steps)
        for _ in range(steps):
            moved, _ = rosenbrock(field, moved, drift(field, moved), h)
        ends.append(moved)
    order = np.log2(norm(ends[0] - ends[2]) / norm(ends[1] - ends[2]))
    np.testing.assert_allclose(order, 4, atol=0.3)


def test_a_stop_at_an_equilibrium_is_where_the_closed_form_says():
    """V = I: Sigma^{-1} is linear in time; the error of a run is about ten times that of its steps."""
    rng = np.random.default_rng(8)
    Q, K, _ = model(rng, 20, 3, rows=1, contracting=True)
    V = np.broadcast_to(np.eye(3), (20, 3, 3))
    S = laws(rng, 20, 3)
    field = field_of("softmax", Q, K, V)
    runs = stopped_flow(field, S, low=1e-4, high=np.inf, end=1e8)
    assert (runs.status == CONVERGED).all()
    np.testing.assert_allclose(norm(covariance_rate(field, runs.final)), 1e-4, rtol=1e-5)
    for q, start, t, final in zip(Q, S, runs.times, runs.final, strict=True):
        head = mf.Head(q, -q, np.eye(3), scale=3**-0.5)
        exact = softmax_solution(head, mf.Gaussian(np.zeros(3), start)).covariance(t)
        np.testing.assert_allclose(final, exact, atol=1e-5 * np.abs(exact).max())


def test_a_trace_is_stopped_on_its_way_to_a_pole_and_the_end_is_the_end():
    head = mf.Head(np.eye(2), np.eye(2), np.eye(2))
    S = np.stack([np.eye(2), 1e-3 * np.eye(2)])
    runs = stopped_flow(mf.SoftmaxAttention(head), S, low=1e-8, high=1e3, end=0.6)
    assert list(runs.status) == [DIVERGED, EXHAUSTED]
    # Sigma = I / (1 - 2 t): the trace is 1,000 when 1 - 2 t = 2 / 1,000.
    np.testing.assert_allclose(runs.times, [0.499, 0.6], rtol=1e-6)
    np.testing.assert_allclose(runs.final[0], 500 * np.eye(2), rtol=1e-5)
    np.testing.assert_allclose(runs.final[1], 1e-3 * np.eye(2) / (1 - 1.2e-3), rtol=1e-6)


def test_a_stiff_run_agrees_with_an_implicit_method_of_scipy():
    """Random V creeps along a slow manifold; explicit methods take ten times as many steps here."""
    rng = np.random.default_rng(1)
    Q, K, V = model(rng, 1, 3, rows=1, contracting=True)
    S, V = laws(rng, 1, 3), 4 * V
    runs = stopped_flow(field_of("softmax", Q, K, V), S, low=1e-12, high=np.inf, end=500.0)
    one = mf.SoftmaxAttention(mf.Head(Q[0] / np.sqrt(3), K[0], V[0]))
    exact = mf.simulate(
        one, mf.Gaussian(np.zeros(3), S[0]), [0, 500.0], scheme=mf.Adaptive("LSODA", rtol=1e-9), progress=False
    )
    np.testing.assert_allclose(runs.final[0], exact.last.state.covariance, atol=1e-5 * np.abs(S).max())


def test_a_start_at_rest_stops_at_once():
    runs = stopped_flow(mf.SoftmaxAttention(mf.Head.identity(2)), np.zeros((1, 2, 2)), low=1e-4, high=1e3, end=9.0)
    assert (runs.status[0], runs.times[0]) == (CONVERGED, 0)
