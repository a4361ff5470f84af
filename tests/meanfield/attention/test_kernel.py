"""Kernels of the user's own: a callable of the logits, or one small class."""

from dataclasses import dataclass

import numpy as np
import pytest

from meanfield import (
    Attention,
    Gaussian,
    Head,
    KernelAttention,
    MaskedAttention,
    Measure,
    NormalisedKernelAttention,
    NotGaussianError,
    SoftmaxAttention,
)
from tests import oracles
from tests.contracts.attention import UnmaskedContract, close_to, loops, random_head, random_tokens
from tests.contracts.causal import CausalContract
from tests.contracts.gaussian import NotGaussianContract


class TestKernelOfExp(UnmaskedContract, NotGaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.unnormalised_matrix)

    def field(self, head):
        return KernelAttention(head, np.exp)


class TestNormalisedKernelOfExp(UnmaskedContract, NotGaussianContract):
    oracle_matrix = loops(oracles.softmax_matrix)

    def field(self, head):
        return NormalisedKernelAttention(head, lambda logits: np.exp(logits))


class TestMaskedKernelOfExp(CausalContract, NotGaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.unnormalised_matrix)

    def field(self, head):
        return MaskedAttention(KernelAttention(head, np.exp))


class TestMaskedNormalisedKernelOfExp(CausalContract, NotGaussianContract):
    oracle_matrix = loops(oracles.softmax_matrix)

    def field(self, head):
        return MaskedAttention(NormalisedKernelAttention(head, np.exp))


@dataclass(frozen=True)
class SquaredLogits(Attention):
    """A user's own kernel exp(<Q x, K y>^2): logits of (Qx)(Qx)^T against (Ky)(Ky)^T, normalised like softmax."""

    def pairing(self, t, x, mu):
        head = self.head.at(t)
        queries, keys = np.sqrt(head.scale) * x @ head.query.T, np.sqrt(head.scale) * mu.points @ head.key.T
        return pairs(queries), pairs(keys), mu.log_weights


def pairs(rows):
    """All products of two coordinates."""
    return np.einsum("ni,nj->nij", rows, rows).reshape(len(rows), -1)


def squared_matrix(x, points, weights, Q, K, scale, visible=None):
    """The plain-loop matrix of SquaredLogits."""
    return oracles.normalised_matrix(
        lambda p, y, j: oracles.logit(p, y, Q, K, scale) ** 2, x, points, weights, visible
    )


class TestOwnClass(UnmaskedContract, NotGaussianContract):
    oracle_matrix = loops(squared_matrix)

    def field(self, head):
        return SquaredLogits(head)


class TestMaskedOwnClass(CausalContract, NotGaussianContract):
    oracle_matrix = loops(squared_matrix)

    def field(self, head):
        return MaskedAttention(SquaredLogits(head))


def test_a_kernel_may_work_in_place_without_touching_what_came_in():
    head, (tokens, weights) = random_head(1), random_tokens(1)
    mu = Measure(tokens, weights)
    in_place = KernelAttention(head, lambda logits: np.tanh(logits, out=logits))
    assert in_place(0.0, mu.points, mu) == close_to(KernelAttention(head, np.tanh)(0.0, mu.points, mu), 0)
    assert in_place.matrix(0.0, mu.points, mu) == close_to(KernelAttention(head, np.tanh).matrix(0.0, tokens, mu), 0)
    assert np.array_equal(mu.points, tokens)


@pytest.mark.parametrize("variant", [KernelAttention, NormalisedKernelAttention])
def test_padding_far_away_is_not_weighed_at_all(variant):
    x, padded = np.array([[1.0], [2.0]]), Measure([[1.0], [2.0], [1e4]], [0.5, 0.5, 0.0])
    field = variant(Head.identity(1), np.exp)
    with np.errstate(over="ignore", invalid="ignore"):
        found, matrix = field(0.0, x, padded), field.matrix(0.0, x, padded)
    assert found == close_to(field(0.0, x, Measure(x)))
    assert not matrix[:, 2].any()


def test_a_relu_kernel_whose_weights_are_all_zero_stands_still():
    mu = Measure([[1.0], [2.0]])
    field = NormalisedKernelAttention(Head.identity(1), lambda logits: np.maximum(logits, 0))
    assert field(0.0, np.array([[-1.0], [1.0]]), mu)[:, 0] == pytest.approx([0.0, 5 / 3], abs=1e-15)


@pytest.mark.parametrize("variant", [KernelAttention, NormalisedKernelAttention])
@pytest.mark.parametrize("question", ["velocity", "matrix"])
def test_a_kernel_that_changes_the_shape_is_refused_with_the_cure(variant, question):
    mu = Measure([[1.0], [2.0]])
    field = variant(Head.identity(1), lambda logits: logits.sum(axis=1))
    with pytest.raises(ValueError, match=r"kernel must act elementwise; got shape \(2,\) from logits of shape \(2, "):
        field(0.0, mu.points, mu) if question == "velocity" else field.matrix(0.0, mu.points, mu)


def test_a_kernel_must_be_callable():
    with pytest.raises(ValueError, match=r"kernel must be callable, logits -> weights; got str"):
        KernelAttention(Head.identity(1), "exp")


@pytest.mark.parametrize("head", [np.eye(2), None, lambda t: Head.identity(1)])
def test_what_is_no_head_is_refused_with_the_cure(head):
    with pytest.raises(ValueError, match=r"head must be a Head or a Schedule; got .*Head\.identity\(d, beta\)"):
        SoftmaxAttention(head)


def test_a_batch_of_heads_moves_no_particles():
    batch = Head(np.ones((2, 1, 3)), np.ones((2, 1, 3)), np.ones((2, 3, 3)))
    mu = Measure(np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"one head; got a batch of heads of shape \(2, 1, 3\).*simulate_ensemble"):
        SoftmaxAttention(batch)(0.0, mu.points, mu)


def test_the_abstract_class_is_no_field():
    with pytest.raises(TypeError, match="abstract"):
        Attention(Head.identity(1))


def test_an_own_kernel_is_named_when_a_gaussian_is_asked_of_it():
    with pytest.raises(NotGaussianError, match=r"^SquaredLogits does not keep Gaussians"):
        SquaredLogits(Head.identity(1)).on_gaussian(0.0, Gaussian([0.0], [[1.0]]))
