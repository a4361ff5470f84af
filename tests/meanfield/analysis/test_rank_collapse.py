"""Ranks over time of covariances with known eigenvalues and of attention matrices."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.analysis.observables import effective_rank, numerical_rank
from meanfield.analysis.rank_collapse import AttentionSpectrum, RankCollapseDetector, count_above, effective_number

FIELD = mf.SoftmaxAttention(mf.Head([[1.0, 0.3], [0.0, 0.5]], np.eye(2), np.eye(2)))


def cloud(seed=0, n=7):
    return mf.Measure(np.random.default_rng(seed).normal(size=(n, 2)))


def test_ranks_of_a_cloud_that_flattens():
    """Variances 1 and 4^-t: rank 1 at threshold 1e-2 from t = 4 on, effective rank exp of the entropy of the shares."""
    cross = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]) * np.sqrt(2)
    run = mf.Trajectory.from_hidden_states([cross * [1, 0.5**t] for t in range(7)])
    verdict = RankCollapseDetector(1, relative=1e-2)(run)
    assert verdict.time == 4
    np.testing.assert_array_equal(verdict.evidence["ranks"], [2, 2, 2, 2, 1, 1, 1])
    share = 1 / (1 + 4.0 ** -np.arange(7))
    shares = np.stack([share, 1 - share])
    np.testing.assert_allclose(verdict.evidence["effective_ranks"], np.exp(-(shares * np.log(shares)).sum(axis=0)))
    np.testing.assert_allclose(verdict.evidence["effective_ranks"], run.observe(effective_rank))
    assert not RankCollapseDetector(1)(run)


def test_gaussians_and_tokens_are_judged_alike():
    """With V = 1, sym(A) = -diag(2, 0): the first variance is 1 / (1 + 2 t), the other stays."""
    field = mf.SoftmaxAttention(mf.Head([[1.0, 0.0]], [[-1.0, 0.0]], np.eye(2)))
    run = mf.simulate(field, mf.Gaussian(np.zeros(2), np.eye(2)), np.linspace(0, 100, 101))
    verdict = RankCollapseDetector(1, relative=0.1)(run)
    assert verdict.time == 5  # 1 / 11 is the first below 0.1
    np.testing.assert_array_equal(verdict.evidence["ranks"], run.observe(lambda law: numerical_rank(law, relative=0.1)))


def test_the_spectrum_of_attention_is_that_of_its_matrix_for_equal_weights():
    mu = cloud()
    found = AttentionSpectrum(FIELD)(0, mu)
    np.testing.assert_allclose(found, np.linalg.svd(FIELD.matrix(0, mu.points, mu), compute_uv=False))


def test_a_token_split_in_two_and_padding_leave_the_spectrum_of_attention_unchanged():
    mu = cloud()
    points = np.concatenate([mu.points, mu.points[:1], [[5.0, 5.0]]])
    weights = np.array([0.3 / 7] + [1 / 7] * 6 + [0.7 / 7, 0.0])
    split = AttentionSpectrum(FIELD)(0, mf.Measure(points, weights))
    np.testing.assert_allclose(split[:7], AttentionSpectrum(FIELD)(0, mu), rtol=1e-12)  # round-off of an 8 x 8 SVD
    assert split.shape == (8,)
    assert split[7] < 1e-14


def test_attention_that_looks_at_one_token_has_rank_one_and_every_head_counts():
    far = mf.Measure([[1.0], [2.0], [30.0]])
    alike = mf.SoftmaxAttention(mf.Head.identity(1, beta=10))
    itself = mf.L2Attention(mf.Head.identity(1, beta=100))
    run = mf.Trajectory.from_hidden_states([far.points] * 2)
    one = RankCollapseDetector(1, spectrum=AttentionSpectrum(alike))(run)
    assert one.happened
    np.testing.assert_allclose(one.evidence["effective_ranks"], 1)
    heads = RankCollapseDetector(1, spectrum=AttentionSpectrum(mf.MultiHeadAttention([alike, itself])))(run)
    np.testing.assert_array_equal(heads.evidence["ranks"], [[1, 3], [1, 3]])
    assert not heads.happened


def test_a_schedule_is_read_at_the_time_of_each_state():
    field = mf.SoftmaxAttention(mf.Schedule(lambda t: mf.Head.identity(1, beta=10 * t)))
    run = mf.Trajectory.from_hidden_states([np.array([[-1.0], [1.0]])] * 2)
    verdict = RankCollapseDetector(1, spectrum=AttentionSpectrum(field))(run)
    np.testing.assert_array_equal(verdict.evidence["ranks"], [1, 2])
    assert not verdict


def test_consensus_has_rank_zero():
    values = np.zeros((1, 3))
    assert count_above(values).tolist() == [0]
    assert effective_number(values).tolist() == [0]


def test_attention_of_a_gaussian_and_a_spectrum_that_is_none_are_refused():
    with pytest.raises(ValueError, match=r"the attention matrix belongs to tokens; got Gaussian"):
        AttentionSpectrum(FIELD)(0, mf.Gaussian([0.0, 0.0], np.eye(2)))
    with pytest.raises(ValueError, match=r"spectrum must be callable.*got SoftmaxAttention.*AttentionSpectrum"):
        RankCollapseDetector(spectrum=FIELD)
