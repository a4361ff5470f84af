"""L2 attention under the contract, and its cases with known values."""

import numpy as np
import pytest

from meanfield import Gaussian, Head, L2Attention, Measure, NotGaussianError
from tests import oracles
from tests.contracts.attention import UnmaskedContract, close_to, formulas, loops, random_head, random_tokens
from tests.contracts.gaussian import GaussianContract


class TestL2(UnmaskedContract, GaussianContract):
    oracle_matrix = loops(oracles.l2_matrix)
    gaussian_oracle = formulas(oracles.l2_gaussian)

    def field(self, head):
        return L2Attention(head)


def test_a_cloud_at_one_hundred_million_sees_differences_only():
    # weights 1 / (1 + e^{-1}) and e^{-1} / (1 + e^{-1}); adding 1e8 back rounds to 1.5e-8
    mu = Measure([[1e8], [1e8 + 1]])
    field = L2Attention(Head.identity(1))
    far = np.exp(-1) / (1 + np.exp(-1))
    assert field(0.0, mu.points, mu)[:, 0] - 1e8 == pytest.approx([far, 1 - far], abs=1e-7)
    assert field.matrix(0.0, mu.points, mu) == close_to([[1 - far, far], [far, 1 - far]], 1e-15)


@pytest.mark.parametrize("outlier", [0.0, 3e8])
def test_one_token_far_from_the_others_costs_them_nothing(outlier):
    mu = Measure([[outlier], [1e8], [1e8 + 1]])
    far = np.exp(-1) / (1 + np.exp(-1))
    field = L2Attention(Head.identity(1))
    assert field(0.0, mu.points, mu)[1:, 0] - 1e8 == pytest.approx([far, 1 - far], abs=1e-7)
    assert field.matrix(0.0, mu.points, mu)[1:, 1:] == close_to([[1 - far, far], [far, 1 - far]], 1e-15)


@pytest.mark.parametrize("shift", [1e3, 1e6])
def test_with_equal_query_and_key_a_shift_of_everything_changes_no_weight(shift):
    rng = np.random.default_rng(1)
    tokens = rng.standard_normal((8, 2))
    Q = rng.standard_normal((2, 2))
    field = L2Attention(Head(Q, Q, np.eye(2)))
    near, far = Measure(tokens), Measure(tokens + shift)
    # the shifted tokens are rounded to shift * 1e-16, and the logits with them
    assert field.matrix(0.0, far.points, far) == close_to(field.matrix(0.0, near.points, near), 1e-14 * shift)


def test_distances_of_a_hundred_leave_each_token_itself_exactly():
    mu = Measure([[100.0], [-100.0]])
    assert L2Attention(Head.identity(1))(0.0, mu.points, mu)[:, 0].tolist() == [100.0, -100.0]


def test_two_identical_tokens_move_together():
    mu = Measure([[1.0, 2.0], [1.0, 2.0]])
    assert L2Attention(Head.identity(2))(0.0, mu.points, mu).tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_the_kernel_has_no_half_and_the_scale_stands_before_the_square():
    mu = Measure([[0.0], [1.0]])
    field = L2Attention(Head.identity(1, 0.3))
    assert field(0.0, np.zeros((1, 1)), mu)[0, 0] == pytest.approx(np.exp(-0.3) / (1 + np.exp(-0.3)), abs=1e-15)


def test_a_query_far_from_every_key_sees_the_nearest():
    mu = Measure([[0.0], [1.0]])
    assert L2Attention(Head.identity(1))(0.0, np.array([[1e6]]), mu).tolist() == [[1.0]]


def test_a_negative_scale_repels_and_is_the_plain_loops_too():
    head, (tokens, weights) = random_head(3, scale=-0.2), random_tokens(3)
    matrix = oracles.l2_matrix(tokens, tokens, weights, head.query, head.key, head.scale)
    found = L2Attention(head)(0.0, tokens, Measure(tokens, weights))
    assert found == close_to(oracles.velocity(matrix, tokens, head.value))


def test_a_negative_scale_keeps_the_formula_while_the_kernel_can_be_integrated():
    mean, S, head = np.array([0.2, -0.1]), np.diag([0.5, 0.3]), Head(np.eye(2), np.eye(2), np.eye(2), scale=-0.4)
    map_ = L2Attention(head).on_gaussian(0.0, Gaussian(mean, S))
    points, weights = oracles.gaussian_cloud(mean, S, nodes=40)
    x = np.array([[0.3, -0.2], [0.0, 0.4]])
    assert map_(x) == pytest.approx(L2Attention(head)(0.0, x, Measure(points, weights)), abs=1e-7)


def test_a_kernel_that_outgrows_the_law_has_no_gaussian_form():
    head = Head.identity(2, -1.0)
    with pytest.raises(NotGaussianError, match=r"^L2Attention does not keep .*scale is negative.*law\.sample"):
        L2Attention(head).on_gaussian(0.0, Gaussian([0, 0], np.eye(2)))


def test_with_equal_query_and_key_the_mean_of_a_gaussian_moves_by_the_values_alone():
    rng = np.random.default_rng(4)
    Q, V = rng.standard_normal((2, 2)), rng.standard_normal((2, 2))
    mean = np.array([1.0, -2.0])
    map_ = L2Attention(Head(Q, Q, V)).on_gaussian(0.0, Gaussian(mean, [[1.0, 0.3], [0.3, 0.5]]))
    assert map_.offset + map_.matrix @ mean == close_to(V @ mean)


def test_a_small_covariance_grows_twice_as_fast_as_under_softmax():
    head, S = random_head(5, d=2), 1e-6 * np.array([[1.0, 0.3], [0.3, 0.5]])
    _, softmax = oracles.softmax_gaussian(np.zeros(2), S, head.query, head.key, head.value, head.scale)
    B = L2Attention(head).on_gaussian(0.0, Gaussian([0, 0], S)).matrix
    # the correction is of relative size S G
    growth = B @ S + S @ B.T
    assert growth == pytest.approx(2 * softmax, rel=1e-4, abs=1e-17)
