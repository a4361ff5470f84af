"""Masked attention under the causal contract: no leak, masks of the user's own, rows that see nothing."""

import numpy as np
import pytest

from meanfield import (
    Head,
    L2Attention,
    LinearAttention,
    MaskedAttention,
    Measure,
    MultiHeadAttention,
    SigmoidAttention,
    SoftmaxAttention,
    UnnormalisedAttention,
)
from tests import oracles
from tests.contracts.attention import close_to, loops, random_head, random_tokens
from tests.contracts.causal import CausalContract, LastBitContract
from tests.contracts.gaussian import NotGaussianContract


class TestMaskedSoftmax(LastBitContract, NotGaussianContract):
    oracle_matrix = loops(oracles.softmax_matrix)

    def field(self, head):
        return MaskedAttention(SoftmaxAttention(head))


class TestMaskedL2(LastBitContract, NotGaussianContract):
    oracle_matrix = loops(oracles.l2_matrix)

    def field(self, head):
        return MaskedAttention(L2Attention(head))


class TestMaskedSigmoid(CausalContract, NotGaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.sigmoid_matrix, bias=0.5)

    def field(self, head):
        return MaskedAttention(SigmoidAttention(head, bias=0.5))


class TestMaskedLinear(CausalContract, NotGaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.linear_matrix)

    def field(self, head):
        return MaskedAttention(LinearAttention(head))


class TestMaskedUnnormalised(CausalContract, NotGaussianContract):
    normalised = False
    oracle_matrix = loops(oracles.unnormalised_matrix)

    def field(self, head):
        return MaskedAttention(UnnormalisedAttention(head))


class TestSlidingWindow(CausalContract, NotGaussianContract):
    oracle_matrix = loops(oracles.softmax_matrix)
    # a window has a width: positions count by more than their order
    test_positions_count_only_by_their_order = None

    def visible(self, positions, key_positions):
        return np.array([[bool(r <= s and s - r < 0.35) for r in key_positions] for s in positions])

    def field(self, head):
        return MaskedAttention(SoftmaxAttention(head), visible=lambda s, r: (r <= s) & (s - r < 0.35))


INNER = [SoftmaxAttention, L2Attention, SigmoidAttention, LinearAttention, UnnormalisedAttention]


def ordered(tokens, weights=None, positions=None):
    tokens = np.asarray(tokens, float).reshape(len(tokens), -1)
    positions = np.arange(len(tokens)) / len(tokens) if positions is None else positions
    return Measure.positioned(positions, tokens, weights)


# --- no leak -----------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention])
def test_a_later_token_of_a_huge_score_does_not_leak(variant):
    field = MaskedAttention(variant(Head.identity(1)))
    two, three = ordered([10.0, 5000.0]), ordered([10.0, 5000.0, 7.0])
    found = field(0.0, two.points, two)[:, 1]
    assert found.tolist() == [10.0, 5000.0]
    assert field(0.0, three.points, three)[:2, 1].tolist() == [10.0, 5000.0]
    assert field.matrix(0.0, two.points, two)[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("variant", INNER)
def test_a_later_token_is_unfelt_by_any_kernel_at_equal_masses(variant):
    # appending padding and moving it about: masses of the others are the same
    head, (tokens, _) = random_head(1), random_tokens(1)
    weights = np.append(np.full(6, 1 / 6), 0.0)
    field = MaskedAttention(variant(head))
    short = ordered(tokens[:6])
    long = ordered(tokens, weights, np.append(np.arange(6) / 6, 2.0))
    assert field(0.0, long.points, long)[:6, 1:] == close_to(field(0.0, short.points, short)[:, 1:], 1e-14)


def test_tied_positions_see_each_other():
    mu = ordered([1.0, 3.0, 100.0], positions=[0.5, 0.5, 0.9])
    zero = Head(np.zeros((1, 1)), np.ones((1, 1)), np.eye(1))
    assert MaskedAttention(SoftmaxAttention(zero))(0.0, mu.points, mu)[:2, 1] == pytest.approx([2.0, 2.0], abs=1e-15)


@pytest.mark.parametrize("variant", INNER)
@pytest.mark.parametrize("n", [1, 17, 300])
def test_the_default_mask_and_the_same_mask_written_out_agree(variant, n):
    rng = np.random.default_rng(n)
    mu = ordered(rng.standard_normal((n, 2)), positions=rng.integers(0, 40, n) / 40)
    head = random_head(2, d=2)
    default = MaskedAttention(variant(head))(0.0, mu.points, mu)
    written = MaskedAttention(variant(head), visible=lambda s, r: r <= s)(0.0, mu.points, mu)
    assert written == close_to(default)


def test_a_mask_that_shows_everything_is_no_mask():
    head, (tokens, weights) = random_head(3), random_tokens(3)
    mu = ordered(tokens, weights)
    everything = MaskedAttention(SoftmaxAttention(head), visible=lambda s, r: np.ones(np.broadcast(s, r).shape, bool))
    wanted = SoftmaxAttention(head)(0.0, tokens, Measure(tokens, weights))
    assert everything(0.0, mu.points, mu)[:, 1:] == close_to(wanted)


# --- rows that see nothing ---------------------------------------------------------------------


ROWS = np.array([[True, True, False], [False, False, False], [True, True, True]])


def rows_of(s, r):
    """The mask ROWS for tokens at positions 0, 1, 2."""
    return ROWS[s.astype(int), r.astype(int)]


def test_a_row_that_may_attend_to_nothing_stands_still():
    mu = ordered([1.0, 2.0, 3.0], positions=[0, 1, 2])
    zero = Head(np.zeros((1, 1)), np.ones((1, 1)), np.eye(1))
    field = MaskedAttention(SoftmaxAttention(zero), visible=rows_of)
    assert field(0.0, mu.points, mu)[:, 1] == pytest.approx([1.5, 0, 2], abs=1e-15)
    assert field.matrix(0.0, mu.points, mu)[1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("variant", INNER)
def test_a_row_that_may_attend_to_nothing_stands_still_under_every_kernel(variant):
    head, (tokens, weights) = random_head(4), random_tokens(4, n=3)
    mu = ordered(tokens + 5.0, weights, positions=[0, 1, 2])
    field = MaskedAttention(variant(head), visible=rows_of)
    assert field(0.0, mu.points, mu)[1].tolist() == [0.0] * 4
    assert np.isfinite(field(0.0, mu.points, mu)).all()
    assert not field.matrix(0.0, mu.points, mu)[1].any()


def test_a_row_whose_only_visible_token_has_no_mass_stands_still():
    mu = ordered([4.0, 2.0], weights=[0.0, 1.0], positions=[0, 1])
    field = MaskedAttention(SoftmaxAttention(Head.identity(1)))
    assert field(0.0, mu.points, mu)[:, 1].tolist() == [0.0, 2.0]


# --- doors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "visible",
    [lambda s, r: 1.0 * (r <= s), lambda s, r: np.ones(3, bool), lambda s, r: True],
    ids=["numbers", "one row", "one value"],
)
@pytest.mark.parametrize("question", ["velocity", "matrix"])
def test_a_mask_that_is_no_boolean_matrix_is_refused_with_the_cure(visible, question):
    mu = ordered([1.0, 2.0, 3.0])
    field = MaskedAttention(SoftmaxAttention(Head.identity(1)), visible=visible)
    with pytest.raises(ValueError, match=r"must return booleans of shape \(3, 3\).*with & and \|"):
        field(0.0, mu.points, mu) if question == "velocity" else field.matrix(0.0, mu.points, mu)


def test_a_mask_must_be_callable():
    with pytest.raises(ValueError, match=r"visible must be callable, \(s, r\) -> bool array; got ndarray"):
        MaskedAttention(SoftmaxAttention(Head.identity(1)), visible=ROWS)


@pytest.mark.parametrize("inner", [lambda t, x, mu: x, MultiHeadAttention((SoftmaxAttention(Head.identity(1)),))])
def test_what_has_no_kernel_to_mask_is_refused_with_the_way_out(inner):
    with pytest.raises(ValueError, match=r"inner must be an attention field.*mask each: MultiHeadAttention"):
        MaskedAttention(inner)


def test_the_head_of_a_masked_field_is_that_of_the_field():
    head = Head.identity(1)
    assert MaskedAttention(SoftmaxAttention(head)).head is head


def test_a_mask_of_keys_or_of_queries_alone_is_taken():
    mu = Measure.positioned([0.0, 0.5, 1.0], [[1.0], [2.0], [6.0]])
    head = Head([[0.0]], [[1.0]], [[1.0]])
    keys = MaskedAttention(SoftmaxAttention(head), visible=lambda s, r: r <= 0.5)
    queries = MaskedAttention(SoftmaxAttention(head), visible=lambda s, r: s <= 0.5)
    assert keys(0.0, mu.points, mu)[:, 1] == pytest.approx([1.5, 1.5, 1.5], rel=1e-15)
    assert queries(0.0, mu.points, mu)[:, 1] == pytest.approx([3, 3, 0], rel=1e-15)
    assert keys.matrix(0.0, mu.points, mu) == pytest.approx(np.tile([0.5, 0.5, 0], (3, 1)), rel=1e-15)
