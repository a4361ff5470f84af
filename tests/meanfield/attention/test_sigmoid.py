"""Sigmoid attention under the contract, with and without its bias."""

import numpy as np
import pytest

from meanfield import Head, Measure, SigmoidAttention
from tests import oracles
from tests.contracts.attention import UnmaskedContract, loops
from tests.contracts.gaussian import NotGaussianContract


class TestSigmoid(UnmaskedContract, NotGaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.sigmoid_matrix)

    def field(self, head):
        return SigmoidAttention(head)


class TestSigmoidWithBias(UnmaskedContract, NotGaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.sigmoid_matrix, bias=-1.5)

    def field(self, head):
        return SigmoidAttention(head, bias=-1.5)


def test_logits_of_ten_thousand_are_a_gate_that_is_open_or_shut():
    mu = Measure([[100.0], [-100.0]])
    # each token sees only itself, with half of the mass
    assert SigmoidAttention(Head.identity(1))(0.0, mu.points, mu)[:, 0].tolist() == [50.0, -50.0]


def test_a_bias_of_minus_log_n_makes_the_sum_start_as_an_average_over_n():
    mu = Measure([[1.0], [3.0]])
    zero = Head(np.zeros((1, 1)), np.ones((1, 1)), np.eye(1))
    assert SigmoidAttention(zero, bias=-np.log(2))(0.0, mu.points, mu)[0, 0] == pytest.approx(2 / 3, abs=1e-15)


@pytest.mark.parametrize("bias", [np.nan, np.inf, "low", [0.0, 1.0]])
def test_a_bias_that_is_no_number_is_refused(bias):
    with pytest.raises(ValueError, match="bias must be"):
        SigmoidAttention(Head.identity(1), bias=bias)
