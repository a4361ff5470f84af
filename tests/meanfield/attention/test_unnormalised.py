"""Unnormalised attention under the contract: the bare exponential, which may overflow but never warns."""

import numpy as np
import pytest

from meanfield import Head, Measure, UnnormalisedAttention
from tests import oracles
from tests.contracts.attention import UnmaskedContract, loops
from tests.contracts.gaussian import NotGaussianContract


class TestUnnormalised(UnmaskedContract, NotGaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.unnormalised_matrix)

    def field(self, head):
        return UnnormalisedAttention(head)


@pytest.mark.parametrize("d", [1, 2])
def test_an_overflow_is_a_velocity_that_is_not_finite_and_no_warning(d):
    mu = Measure(np.full((2, d), 100.0))
    field = UnnormalisedAttention(Head.identity(d))
    assert not np.isfinite(field(0.0, mu.points, mu)).any()
    assert np.isinf(field.matrix(0.0, mu.points, mu)).all()


def test_logits_of_minus_ten_thousand_weigh_nothing():
    mu = Measure([[100.0]])
    assert UnnormalisedAttention(Head([[1.0]], [[-1.0]], [[1.0]]))(0.0, mu.points, mu).tolist() == [[0.0]]


def test_a_gaussian_tilts_as_the_formula_of_its_docstring_says():
    # V (m + S A x) exp(x^T A^T m + x^T A^T S A x / 2), on a quadrature of the law
    rng = np.random.default_rng(3)
    mean, S = np.array([0.2, -0.3]), np.array([[0.5, 0.1], [0.1, 0.4]])
    head = Head(rng.standard_normal((2, 2)), rng.standard_normal((2, 2)), rng.standard_normal((2, 2)), scale=0.4)
    points, weights = oracles.gaussian_cloud(mean, S, nodes=30)
    x = rng.standard_normal((4, 2))
    mass = np.exp([p @ head.A.T @ mean + p @ head.A.T @ S @ head.A @ p / 2 for p in x])
    wanted = mass[:, None] * (mean + x @ (S @ head.A).T) @ head.value.T
    assert UnnormalisedAttention(head)(0.0, x, Measure(points, weights)) == pytest.approx(wanted, abs=1e-10)
