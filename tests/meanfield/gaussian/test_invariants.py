"""Invariants and monotone quantities, along flows integrated by SciPy and against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.attention import L2Attention, LinearAttention, SinkhornAttention, SoftmaxAttention
from meanfield.gaussian import invariants as inv
from meanfield.measures import Gaussian
from meanfield.parameters import Head
from meanfield.velocity import affine_on_gaussian

from . import ode_oracles as ode

SEEDS = st.integers(0, 2**32 - 1)


def flow(field, law, times):
    """Laws along a Gaussian flow, by SciPy on [m | L]: m' = c + B m, L' = B L."""
    start = np.column_stack([law.mean, law.root])

    def rate(y):
        affine = affine_on_gaussian(field, 0.0, Gaussian.from_root(y[:, 0], y[:, 1:]))
        moved = affine.matrix @ y
        moved[:, 0] += affine.offset
        return moved

    return [Gaussian.from_root(y[:, 0], y[:, 1:]) for y in ode.solve(rate, start, times, rtol=1e-10)]


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention, SinkhornAttention, LinearAttention])
@given(SEEDS, st.booleans())
@settings(max_examples=5, deadline=None)
def test_kernel_invariant_is_constant_for_any_value(variant, seed, singular):
    rng = np.random.default_rng(seed)
    query, key = 0.4 * rng.standard_normal((2, 2, 4))
    head = Head(query, key, rng.standard_normal((4, 4)))
    root = rng.standard_normal((4, 3 if singular else 5)) / 2
    if singular:
        root[:, 0] = inv.kernel_of_query(head)[:, 0]
    start = Gaussian(np.zeros(4), root @ root.T)
    directions = inv.frozen_directions(head, start)
    assert directions.shape[1] == (1 if singular else 2)
    # |B| <= 2 |V| |A| |Sigma| here, so that a pole is at least this far away.
    end = 0.2 / (np.linalg.norm(head.value, 2) * np.linalg.norm(head.A, 2) * np.linalg.norm(start.covariance, 2))
    first, *later = (
        inv.kernel_invariant(head, law, directions=directions) for law in flow(variant(head), start, [0, end / 2, end])
    )
    for value in later:
        np.testing.assert_allclose(value, first, rtol=1e-7, atol=1e-8 * np.abs(first).max())


def test_kernel_invariant_is_the_formula_and_refuses_infinite_ones():
    head = Head([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]], np.eye(3))
    law = Gaussian(np.zeros(3), np.diag([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(inv.kernel_invariant(head, law))), [0.25, 0.5], rtol=1e-14)
    flat = Gaussian(np.zeros(3), np.diag([1.0, 2.0, 0.0]))
    with pytest.raises(ValueError, match="must lie in the range of the covariance"):
        inv.kernel_invariant(head, flat)
    with pytest.raises(ValueError, match="must lie in ker Q"):
        inv.kernel_invariant(head, law, directions=[[1.0], [0.0], [0.0]])
    only = inv.frozen_directions(head, flat)
    np.testing.assert_allclose(np.abs(only), [[0], [1], [0]], atol=1e-14)
    assert inv.frozen_directions(head, Gaussian(np.zeros(3), np.zeros((3, 3)))).shape == (3, 0)


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_rates_of_log_determinant_and_lyapunov_function_are_derivatives(seed, d):
    rng = np.random.default_rng(seed)
    mean, covariance = ode.random_moments(rng, d)
    law = Gaussian(mean, covariance + 0.1 * np.eye(d))
    root = rng.standard_normal((d, d))
    head = Head(*rng.standard_normal((2, d, d)), root @ root.T + 0.1 * np.eye(d))
    matrix = SoftmaxAttention(head).on_gaussian(0.0, law).matrix
    rate = matrix @ law.covariance
    h = 1e-5 / (1 + np.abs(rate).max() / np.linalg.eigvalsh(law.covariance)[0])

    def moved(step):
        return Gaussian(law.mean, law.covariance + step * (rate + rate.T))

    for quantity, derivative in (
        (inv.log_determinant, inv.log_determinant_rate(head, law)),
        (lambda state: inv.lyapunov(head, state), inv.lyapunov_rate(head, law)),
    ):
        difference = (quantity(moved(h)) - quantity(moved(-h))) / (2 * h)
        # Central differences: h^2 of truncation and eps / h of round-off.
        scale = 1 + np.abs(quantity(law)) + np.abs(derivative)
        assert difference == pytest.approx(derivative, abs=1e-4 * scale + 1e-15 * scale / h)
    assert inv.log_determinant_rate(head, law) == pytest.approx(2 * np.trace(matrix), rel=1e-9, abs=1e-9)


def test_quantities_state_their_conditions():
    flat = Gaussian([0, 0], np.diag([1.0, 0.0]))
    with pytest.raises(ValueError, match="log det needs a regular covariance; got rank 1"):
        inv.log_determinant(flat)
    with pytest.raises(ValueError, match="needs V symmetric positive definite"):
        inv.lyapunov(Head(np.eye(2), np.eye(2), [[0, 1], [1, 0]]), flat)
    assert inv.lyapunov(Head.identity(2), flat) == 1.0
