"""Several heads under the contract: different variants with different heads, masked or not, add up."""

import numpy as np
import pytest

from meanfield import (
    AffinePerceptron,
    Gaussian,
    Head,
    L2Attention,
    MaskedAttention,
    Measure,
    MultiHeadAttention,
    NotGaussianError,
    Schedule,
    SigmoidAttention,
    SoftmaxAttention,
)
from tests import oracles
from tests.contracts.attention import UnmaskedContract, close_to, default_positions, random_head, random_tokens
from tests.contracts.causal import LastBitContract
from tests.contracts.gaussian import GaussianContract


def swapped(head):
    """A second head made from the first in a way that commutes with rotations."""
    return Head(head.key, head.query, head.value.T, scale=0.5 * head.scale)


def partner(head):
    """The swapped head at every time."""
    return Schedule(lambda t: swapped(head.at(t)))


class _SoftmaxAndL2:
    """Softmax with the head beside L2 with its partner."""

    def oracle_matrices(self, x, tokens, weights, head, visible):
        other = swapped(head)
        return np.array([
            oracles.softmax_matrix(x, tokens, weights, head.query, head.key, head.scale, visible),
            oracles.l2_matrix(x, tokens, weights, other.query, other.key, other.scale, visible),
        ])

    def oracle(self, x, tokens, weights, head, visible=None):
        first, second = self.oracle_matrices(x, tokens, weights, head, visible)
        velocities = oracles.velocity(first, tokens, head.value), oracles.velocity(second, tokens, swapped(head).value)
        return oracles.multi_head(velocities)

    def test_the_matrix_is_that_of_the_plain_loops(self):
        head, (tokens, weights) = random_head(41), random_tokens(41)
        positions = default_positions(7)
        mu = self.law(tokens, weights, positions)
        matrices = self.field(head).matrix(0.0, mu.points, mu)
        assert matrices.shape == (2, 7, 7)
        visible = self.visible(positions, positions)
        assert matrices == close_to(self.oracle_matrices(tokens, tokens, weights, head, visible))

    def test_the_matrix_times_the_values_is_the_velocity(self):
        head, (tokens, weights) = random_head(42), random_tokens(42)
        mu, field = self.law(tokens, weights, default_positions(7)), self.field(head)
        first, second = field.matrix(0.0, mu.points, mu)
        wanted = first @ tokens @ head.value.T + second @ tokens @ swapped(head).value.T
        assert self.velocities(field, 0.0, mu.points, mu) == close_to(wanted)


class TestMultiHead(_SoftmaxAndL2, UnmaskedContract, GaussianContract):
    # two heads read both Q and K, so no direction is unread
    test_directions_that_no_query_reads_have_no_velocity_of_their_own = None

    def field(self, head):
        return MultiHeadAttention((SoftmaxAttention(head), L2Attention(partner(head))))

    def gaussian_oracle(self, mean, S, head):
        other = swapped(head)
        first = oracles.softmax_gaussian(mean, S, head.query, head.key, head.value, head.scale)
        second = oracles.l2_gaussian(mean, S, other.query, other.key, other.value, other.scale)
        return first[0] + second[0], first[1] + second[1]


class TestMaskedMultiHead(_SoftmaxAndL2, LastBitContract):
    def field(self, head):
        return MultiHeadAttention(
            (MaskedAttention(SoftmaxAttention(head)), MaskedAttention(L2Attention(partner(head))))
        )

    def first_token(self, head, x):
        return (head.value + swapped(head).value) @ x


def test_one_head_alone_is_that_head():
    head, (tokens, weights) = random_head(1), random_tokens(1)
    mu = Measure(tokens, weights)
    assert np.array_equal(
        MultiHeadAttention([SoftmaxAttention(head)])(0.0, tokens, mu), SoftmaxAttention(head)(0.0, tokens, mu)
    )


def test_one_head_that_keeps_no_gaussian_is_named():
    field = MultiHeadAttention((SoftmaxAttention(Head.identity(2)), SigmoidAttention(Head.identity(2))))
    with pytest.raises(NotGaussianError, match=r"^SigmoidAttention does not keep Gaussians"):
        field.on_gaussian(0.0, Gaussian([0, 0], np.eye(2)))


@pytest.mark.parametrize("fields", [(), (Head.identity(1),)])
def test_no_head_or_no_field_is_refused(fields):
    with pytest.raises(ValueError, match="fields must be a tuple of one or more velocity fields"):
        MultiHeadAttention(fields)


@pytest.mark.parametrize("part", [lambda t, x, mu: x, AffinePerceptron([[1.0]])], ids=["function", "feed-forward"])
def test_a_part_without_an_attention_matrix_is_refused_with_the_way_out(part):
    with pytest.raises(ValueError, match=r"every head must be an attention field.*SumField\(\(attention, field\)\)"):
        MultiHeadAttention((SoftmaxAttention(Head.identity(1)), part))
