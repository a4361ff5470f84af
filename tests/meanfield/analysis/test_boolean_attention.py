"""Boolean attention and leaders: matrices made by hand, and the theorem on the line."""

from dataclasses import dataclass

import numpy as np
import pytest

import meanfield as mf
from meanfield.analysis.boolean_attention import BooleanAttentionDetector, attention_shares, followers, leaders


@dataclass(frozen=True)
class Given:
    """A field with a prescribed attention matrix: a function of time."""

    of_time: object

    def matrix(self, t, x, mu):
        return np.array(self.of_time(t), dtype=float)


LINE = mf.Measure([[0.0], [1.0], [2.0]])
BOOLEAN = Given(lambda t: [[0, 1, 0], [0, 1, 0], [0, 0.02, 0.98]])


def test_leaders_are_the_columns_that_rows_lie_on():
    np.testing.assert_allclose(followers(BOOLEAN, 0, LINE), [0, 2 / 3, 1 / 3])
    assert leaders(BOOLEAN, 0, LINE).tolist() == [1, 2]
    assert leaders(BOOLEAN, 0, LINE, share=0.99).tolist() == [1]


def test_rows_are_shares_whatever_their_sums():
    shares, columns = attention_shares(Given(lambda t: [[2, 2, 0], [0, 0, 5], [0, 0, 0]]), 0, LINE)
    np.testing.assert_array_equal(shares, [[[0.5, 0.5, 0], [0, 0, 1], [0, 0, 0]]])
    assert columns.tolist() == [0, 1, 2]


def test_coincident_tokens_are_one_column_within_a_gap():
    twins = mf.Measure([[0.0], [5.0], [5.0]])
    field = mf.SoftmaxAttention(mf.Head.identity(1, beta=10))
    assert leaders(field, 0, twins, share=0.9).tolist() == []
    np.testing.assert_allclose(followers(field, 0, twins, share=0.9, gap=0.1), [0, 2 / 3, 0])
    single = mf.Measure([[0.0], [5.0]], [1 / 3, 2 / 3])
    np.testing.assert_allclose(followers(field, 0, single, share=0.9), [0, 2 / 3])


def test_tokens_without_mass_neither_follow_nor_lead():
    padded = mf.Measure([[-1.0], [1.0], [9.0]], [0.5, 0.5, 0])
    field = mf.SoftmaxAttention(mf.Head.identity(1, beta=10))
    np.testing.assert_allclose(followers(field, 0, padded), [0.5, 0.5, 0])


def test_several_heads_lead_on_average():
    field = mf.MultiHeadAttention(
        [mf.SoftmaxAttention(mf.Head([[1.0]], [[key]], [[1.0]], scale=50)) for key in (1.0, -1.0)]
    )
    two = mf.Measure([[-1.0], [1.0]])
    np.testing.assert_allclose(followers(field, 0, two), [0.5, 0.5])
    assert attention_shares(field, 0, two)[0].shape == (2, 2, 2)


def test_the_detector_says_since_when_all_rows_but_the_allowed_ones_are_boolean():
    field = Given(lambda t: [[0, 1, 0], [0, 1, 0], [0, 0.5**t, 1 - 0.5**t]])
    run = mf.Trajectory.from_hidden_states([LINE.points] * 12)
    verdict = BooleanAttentionDetector(field)(run)
    assert verdict.happened
    assert verdict.time == 10  # the first t with 2^-t <= 1e-3
    np.testing.assert_array_equal(verdict.evidence["undecided"], [0] + [1] * 9 + [0, 0])
    np.testing.assert_array_equal(verdict.evidence["leaders"], [1] * 10 + [2, 2])
    assert verdict.evidence["leaders_at_end"].tolist() == [1, 2]
    assert BooleanAttentionDetector(field, exceptions=1)(run).time == 0
    never = BooleanAttentionDetector(field, tolerance=1e-4)(run)
    assert (never.happened, never.time) == (False, None)


def test_a_row_that_sees_nothing_is_not_undecided():
    field = Given(lambda t: [[0, 0, 0], [0, 1, 0], [0, 1, 0]])
    verdict = BooleanAttentionDetector(field)(mf.Trajectory.from_hidden_states([LINE.points]))
    assert verdict.happened
    assert verdict.evidence["leaders_at_end"].tolist() == [1]


def test_on_the_line_the_two_ends_lead_and_one_row_at_most_is_undecided():
    """Theorem 2.1 of [GLPR23]: V > 0, QK > 0 on the line."""
    start = mf.Measure(np.random.default_rng(5).permutation(np.linspace(-1, 1.1, 9))[:, None])
    field = mf.SoftmaxAttention(mf.Head.identity(1))
    run = mf.simulate(field, start, np.linspace(0, 8, 33), scheme=mf.Adaptive(rtol=1e-10, atol=1e-10))
    verdict = BooleanAttentionDetector(field, exceptions=1)(run)
    assert verdict.happened
    ends = {int(start.points.argmin()), int(start.points.argmax())}
    assert set(verdict.evidence["leaders_at_end"]) == ends
    assert verdict.evidence["undecided"][-1] <= 1


def test_negative_weights_and_gaussians_are_refused():
    linear = mf.LinearAttention(mf.Head.identity(1))
    with pytest.raises(ValueError, match=r"not negative; got -0\.\d+ from LinearAttention"):
        followers(linear, 0, mf.Measure([[-1.0], [1.0]]))
    with pytest.raises(ValueError, match=r"attention rows belong to tokens; got Gaussian"):
        followers(linear, 0, mf.Gaussian([0.0], [[1.0]]))
    with pytest.raises(ValueError, match=r"tolerance must be below 1/2"):
        BooleanAttentionDetector(linear, tolerance=0.5)
