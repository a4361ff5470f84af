"""Ranks of attention in a small run: tolerances do not matter, and the drift is the published one."""

import numpy as np
from scipy.linalg import expm

import meanfield as mf
from experiments import low_rank_attention

CASE = {"n": 10, "d": 20, "horizon": 24.0, "published_horizon": 11.0, "outputs": 25, "replica": 0}


def test_the_ranks_do_not_depend_on_the_tolerance_and_fall(monkeypatch):
    """Up to T = 24, where logits are e^48 times the first ones; the cases' docstring says so."""
    records = []
    for tolerance in (1e-5, 1e-8):
        monkeypatch.setattr(low_rank_attention, "TOLERANCE", tolerance)
        records.append(low_rank_attention.run(CASE, np.random.default_rng(4)))
    loose, tight = records
    np.testing.assert_array_equal(loose["ranks"], tight["ranks"])
    assert loose["ranks"][0] == 10
    assert 1 <= loose["ranks"][-1] < 10
    assert 1 <= loose["drift_ranks"][-1] <= 2  # rows on the largest or the smallest phi_1 coordinate
    assert loose["drift_times"][-1] == 11 * loose["leading_eigenvalue"]
    assert loose["matrices"].shape == (4, 10, 10)
    assert (np.abs(loose["matrices"].sum(axis=2) - 1) < 1e-12).all()
    assert loose["effective_ranks"][-1] <= loose["ranks"][-1] + 1e-9


def test_the_drift_is_the_motion_by_v_alone():
    rng = np.random.default_rng(1)
    value = np.cov(rng.normal(size=(6, 9)))
    value /= np.linalg.eigvalsh(value)[-1]
    start = mf.Measure(rng.uniform(-1, 1, (7, 6)))
    times = np.array([0.5, 2.0, 3.0])
    found = low_rank_attention.drift(value, start, times)
    field = mf.SoftmaxAttention(mf.Head.identity(6))
    for k, t in enumerate(times):
        moved = mf.Measure(start.points @ expm(t * value))
        singular = np.linalg.svd(field.matrix(0.0, moved.points, moved), compute_uv=False)
        assert found["drift_ranks"][k] == (singular > low_rank_attention.RELATIVE * singular[0]).sum()
        shares = singular[singular > 0] / singular.sum()
        expected = np.exp(-(shares * np.log(shares)).sum())
        np.testing.assert_allclose(found["drift_effective_ranks"][k], expected, rtol=1e-9)


def test_the_usual_cases_are_the_published_size():
    case = low_rank_attention.cases(False)[0]
    assert (case["n"], case["d"], case["published_horizon"]) == (40, 80, 11.0)
