"""The Sinkhorn-divergence flow of Gaussians with commuting covariances, against integration and its first integral."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.gaussian import closed_forms as cf
from meanfield.measures import Gaussian

from . import ode_oracles as ode


def scalar_flow(c, b, epsilon):
    return cf.sinkhorn_divergence_flow(Gaussian([0.0], [[c]]), Gaussian([0.0], [[b]]), epsilon)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(
    ("c", "b"), [(0.01, 1.0), (1.0, 0.01), (3.0, 0.0), (0.0, 2.0), (1.0, 1.0), (1e3, 1e-6), (1.0, 1 + 1e-9)]
)
def test_eigenvalues_agree_with_integration(c, b, epsilon):
    times = np.array([0.0, 1e-3, 0.1, 1.0, 5.0])
    expected = ode.solve(lambda y: [ode.divergence_rate(y[0], b, epsilon)], [c], times, atol=1e-14)
    # The printed rate cancels near equality: about 1e-16 (c + eps) a unit of time.
    np.testing.assert_allclose(
        scalar_flow(c, b, epsilon).eigenvalues(times)[:, 0], expected[:, 0], rtol=1e-8, atol=1e-13 * (1 + epsilon)
    )


@given(st.floats(-4, 4), st.floats(-3, 3), st.floats(-2, 2), st.floats(0.01, 30))
@settings(max_examples=40, deadline=None)
def test_flow_keeps_its_first_integral(log_c, log_ratio, log_epsilon, t):
    """4 b t = T(c(t)) - T(c0) with the antiderivative T that partial fractions give."""
    b, epsilon = 1.0, 10**log_epsilon
    c0 = 10**log_ratio
    kappa, c = epsilon / 4, float(scalar_flow(c0, b, epsilon).eigenvalues(t)[0])
    big = math.hypot(b, kappa)

    def antiderivative(c):
        u, gap = math.sqrt(b * c + kappa * kappa), abs(b - c)
        return (
            kappa * (math.log(b * c) - 2 * math.log(u + kappa) - math.asinh(kappa / c))
            + big * (2 * math.log(big + u) - math.log(b * gap) + math.asinh((b * c + kappa * kappa) / (kappa * gap)))
            - b * math.asinh(c / kappa)
        )

    if min(abs(c - b), abs(c0 - b)) > 1e-4:
        # |c - b| > 1e-4 leaves 12 digits of the gap in the logarithm.
        assert antiderivative(c) - antiderivative(c0) == pytest.approx(4 * b * t, rel=1e-9, abs=1e-9 * (1 + big))


def test_rates_at_both_ends():
    epsilon = 2.0
    flow = scalar_flow(1.0 + 1e-5, 1.0, epsilon)
    early, late = flow.eigenvalues([1.0, 2.0])[:, 0] - 1
    assert math.log(early / late) == pytest.approx(2 / math.sqrt(1 + epsilon**2 / 16), rel=1e-5)
    small = scalar_flow(1e-9, 0.3, epsilon).eigenvalues([0.0, 1.0])[:, 0]
    assert math.log(small[1] / small[0]) == pytest.approx(8 * 0.3 / epsilon, rel=1e-6)
    # A target without mass in this direction is approached like eps / (8 t).
    assert scalar_flow(5.0, 0.0, epsilon).eigenvalues(1e6)[0] * 8e6 / epsilon == pytest.approx(1, rel=1e-5)
    np.testing.assert_array_equal(scalar_flow(0.0, 1.0, epsilon).eigenvalues([0.0, 1.0, 1e6]), 0.0)


def test_flow_of_matrices_keeps_common_axes_even_where_eigenvalues_coincide():
    rng = np.random.default_rng(2)
    axes = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    start, goal = np.array([1.0, 1.0, 0.5, 0.0]), np.array([2.0, 0.0, 0.5, 0.3])
    source = Gaussian(rng.standard_normal(4), (axes * start) @ axes.T)
    target = Gaussian(rng.standard_normal(4), (axes * goal) @ axes.T)
    flow = cf.sinkhorn_divergence_flow(source, target, 0.7)
    times = np.array([[0.0, 0.4], [2.0, 0.1]])
    assert flow.covariance(times).shape == (2, 2, 4, 4)
    one = [float(scalar_flow(c, b, 0.7).eigenvalues(0.4)[0]) for c, b in zip(start, goal, strict=True)]
    np.testing.assert_allclose(flow.covariance(times)[0, 1], (axes * one) @ axes.T, atol=1e-12)
    np.testing.assert_allclose(flow.covariance(0.0), source.covariance, atol=1e-13)
    np.testing.assert_allclose(flow.at(0.5).mean - target.mean, math.exp(-1) * (source.mean - target.mean), rtol=1e-13)


def test_flow_refuses_what_it_cannot_solve():
    law = Gaussian([0, 0], np.diag([1.0, 2.0]))
    with pytest.raises(ValueError, match="only for commuting covariances"):
        cf.sinkhorn_divergence_flow(law, Gaussian([0, 0], [[1.0, 0.5], [0.5, 1.0]]), 1.0)
    with pytest.raises(ValueError, match="epsilon must be greater than 0"):
        cf.sinkhorn_divergence_flow(law, law, 0.0)
    with pytest.raises(ValueError, match="must have one dimension; got 2 and 1"):
        cf.sinkhorn_divergence_flow(law, Gaussian([0], [[1]]), 1.0)
    with pytest.raises(ValueError, match="target must be one Gaussian"):
        cf.sinkhorn_divergence_flow(law, np.eye(2), 1.0)
