"""Linear attention under the contract: the second moment is all it sees."""

import numpy as np
import pytest

from meanfield import Gaussian, Head, LinearAttention, Measure
from tests import oracles
from tests.contracts.attention import UnmaskedContract, close_to, formulas, loops, random_head, random_tokens
from tests.contracts.gaussian import GaussianContract


class TestLinear(UnmaskedContract, GaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.linear_matrix)
    gaussian_oracle = formulas(oracles.linear_gaussian)

    def field(self, head):
        return LinearAttention(head)


def test_any_law_with_one_second_moment_gives_one_field():
    head, (tokens, weights) = random_head(1), random_tokens(1)
    mu = Measure(tokens, weights)
    law = Gaussian(mu.mean, mu.covariance)
    x = np.random.default_rng(1).standard_normal((5, 3))
    assert LinearAttention(head).on_gaussian(0.0, law)(x) == close_to(LinearAttention(head)(0.0, x, mu))


def test_a_centred_gaussian_has_the_covariance_field_of_softmax():
    head, S = random_head(2, d=2), np.array([[1.0, 0.3], [0.3, 0.5]])
    B = LinearAttention(head).on_gaussian(0.0, Gaussian([0, 0], S)).matrix
    wanted = oracles.softmax_gaussian(np.zeros(2), S, head.query, head.key, head.value, head.scale)[1]
    growth = B @ S + S @ B.T
    assert growth == close_to(wanted)


def test_large_tokens_do_not_overflow():
    mu = Measure([[1e100]])
    assert LinearAttention(Head.identity(1))(0.0, mu.points, mu)[0, 0] == pytest.approx(1e300, rel=1e-15)
