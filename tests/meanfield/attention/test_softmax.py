"""Softmax attention under the contract, and its cases with known values."""

import numpy as np
import pytest

from meanfield import Gaussian, Head, Measure, SoftmaxAttention
from tests import oracles
from tests.contracts.attention import UnmaskedContract, close_to, formulas, loops
from tests.contracts.gaussian import GaussianContract


class TestSoftmax(UnmaskedContract, GaussianContract):
    oracle_matrix = loops(oracles.softmax_matrix)
    gaussian_oracle = formulas(oracles.softmax_gaussian)

    def field(self, head):
        return SoftmaxAttention(head)


def line(*tokens, weights=None, beta=1.0):
    """Velocities on the line with Q = K = V = 1."""
    mu = Measure(np.array(tokens)[:, None], weights)
    return SoftmaxAttention(Head.identity(1, beta))(0.0, mu.points, mu)[:, 0]


def test_logits_of_ten_thousand_leave_each_token_itself_exactly():
    # the weight ratio e^{-20000} is zero in double precision
    assert line(100.0, -100.0).tolist() == [100.0, -100.0]


def test_logits_of_ten_thousand_give_the_matrix_of_the_identity_exactly():
    mu = Measure([[100.0], [-100.0]])
    matrix = SoftmaxAttention(Head.identity(1)).matrix(0.0, mu.points, mu)
    assert matrix.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("beta", [1e3, 1e5, 1e200])
def test_at_a_low_temperature_every_token_sees_the_farthest_ahead(beta):
    assert line(1.0, 2.0, -3.0, beta=beta).tolist() == [2.0, 2.0, -3.0]


@pytest.mark.parametrize("seed", range(3))
def test_large_logits_are_those_of_the_plain_loops(seed):
    rng = np.random.default_rng(seed)
    tokens, weights = 40 * rng.standard_normal((6, 2)), np.array([1, 2, 3, 4, 5, 6]) / 21
    head = Head(rng.standard_normal((2, 2)), rng.standard_normal((2, 2)), np.eye(2))
    mu = Measure(tokens, weights)
    matrix = oracles.softmax_matrix(tokens, tokens, weights, head.query, head.key, head.scale)
    # logits of 1e4 carry an absolute round-off of 1e-12 each, and with it the weights
    wanted = oracles.velocity(matrix, tokens, head.value)
    assert SoftmaxAttention(head)(0.0, tokens, mu) == close_to(wanted, 1e-11)


def test_two_identical_tokens_move_together():
    mu = Measure([[1.0, 2.0], [1.0, 2.0]])
    assert SoftmaxAttention(Head.identity(2))(0.0, mu.points, mu).tolist() == [[1.0, 2.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("tokens", "weights"),
    [((1.0, 1.0, 2.0), None), ((1.0, 2.0), [2 / 3, 1 / 3]), ((1.0, 2.0, 77.0), [2 / 3, 1 / 3, 0.0])],
)
def test_a_repeated_token_a_heavier_one_and_padding_are_one_law(tokens, weights):
    # (2 + 2e) / (2 + e) and (2 + 2e^2) / (2 + e^2)
    found = dict(zip(tokens, line(*tokens, weights=weights), strict=True))
    assert found[1.0] == pytest.approx((2 + 2 * np.e) / (2 + np.e), abs=1e-14)
    assert found[2.0] == pytest.approx((2 + 2 * np.e**2) / (2 + np.e**2), abs=1e-14)
    assert (found[1.0], found[2.0]) == pytest.approx((1.5761168848, 1.7869860422), abs=1e-10)


def test_a_zero_query_gives_everybody_the_mean():
    mu = Measure([[1.0, 5.0], [3.0, 7.0]], [0.25, 0.75])
    field = SoftmaxAttention(Head(np.zeros((1, 2)), np.ones((1, 2)), np.eye(2)))
    assert field(0.0, mu.points, mu) == close_to([[2.5, 6.5]] * 2, 1e-15)


def test_shifting_all_keys_far_away_changes_only_what_a_shift_must():
    # values move by the shift, and logits by a constant in each row, which cancels
    rng = np.random.default_rng(7)
    tokens = rng.integers(-8, 9, (10, 2)) / 8.0
    head, shift = Head(np.eye(2), np.eye(2), np.eye(2)), np.array([2.0**26, -(2.0**26)])
    x = rng.standard_normal((4, 2))
    near = SoftmaxAttention(head)(0.0, x, Measure(tokens))
    far = SoftmaxAttention(head)(0.0, x, Measure(tokens + shift))
    # adding 2^26 to an answer of size one rounds to 2^-26 = 1.5e-8
    assert far - shift == pytest.approx(near, abs=1.6e-8)


def test_one_step_on_a_far_gaussian_keeps_the_tilt_formula():
    # c + B x = V (m + S A x) whatever the mean
    field = SoftmaxAttention(Head([[2.0]], [[3.0]], [[0.5]]))
    map_ = field.on_gaussian(0.0, Gaussian([1e8], [[4.0]]))
    assert map_.offset.tolist() == [0.5e8]
    assert map_.matrix.tolist() == [[0.5 * 4 * 6]]
