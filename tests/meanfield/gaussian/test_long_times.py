"""Decay to singular limits over nine decades of time: the limit's null space is there, and nothing turns indefinite."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.gaussian.closed_forms import tied_limit


@pytest.mark.parametrize(
    ("variant", "method"),
    [
        (mf.SoftmaxAttention, "DOP853"),
        (mf.SoftmaxAttention, "LSODA"),
        (mf.L2Attention, "DOP853"),
        (mf.SinkhornAttention, "DOP853"),
    ],
)
def test_the_null_space_of_the_limit_is_reached(variant, method):
    rng = np.random.default_rng(1)
    query, root = rng.normal(size=(2, 4)), rng.normal(size=(4, 4))
    head, law = mf.Head(query, -query, np.eye(4)), mf.Gaussian(np.zeros(4), root @ root.T)
    run = mf.simulate(variant(head), law, [0, 1e4, 1e9], scheme=mf.Adaptive(method))
    assert run.outcome is mf.Outcome.FINISHED
    end, limit = run[-1].covariance, tied_limit(head, law)
    # What is left beside the limit is 1e-9; a run at rtol 1e-8 owes its closed form 1e-6 (measured: up to 2.4e-7, L2).
    np.testing.assert_allclose(end, limit, rtol=0, atol=1e-6 * np.abs(limit).max())
    ours, theirs = (np.linalg.eigh(matrix)[1][:, 2:] for matrix in (end, limit))
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, rtol=0, atol=1e-6)
    for state in run:
        assert np.linalg.eigvalsh(state.covariance)[0] >= -1e-15 * np.abs(state.covariance).max()
        assert np.linalg.matrix_rank(state.root) == 4


def test_radau_reaches_it_too():
    head, law = mf.Head([[1.0, -1.0]], [[-1.0, 1.0]], np.eye(2)), mf.Gaussian([0, 0], [[2.0, 0.5], [0.5, 1.0]])
    run = mf.simulate(mf.SoftmaxAttention(head), law, [0, 1e4, 1e6], scheme=mf.Adaptive("Radau"))
    # Sigma -> z z^T / (z^T Sigma0^{-1} z) with z = (1, 1) / sqrt 2, up to 1 / (4 t).
    inverse = np.linalg.inv(law.covariance)
    np.testing.assert_allclose(run[-1].covariance, np.ones((2, 2)) / inverse.sum(), rtol=0, atol=1e-6)
