"""The authors' scheme and draws: their formulas again, one matrix at a time, and the numbers that their seeds give."""

import numpy as np
import pytest

from experiments import published_draws as draws
from experiments.gaussian_covariances import disc_entries
from experiments.published import CONVERGED, DIVERGED, EXHAUSTED, Tracks, clip, projected_euler, rate_of


def one_rate(variant, S, Q, K, V, heads):
    """dS/dt of one covariance with the published scales, the formulas as they are printed."""
    d = len(S)
    if variant == "softmax":
        half = V @ S @ (K.T @ Q / np.sqrt(d)) @ S
    elif variant == "l2":
        half = 2 * V @ S @ np.linalg.inv(np.eye(d) + 2 * K.T @ K @ S) @ (K.T @ Q / np.sqrt(d)) @ S
    else:
        k, half = d // heads, 0
        for h in range(heads):
            rows = slice(k * h, k * (h + 1))
            half = half + np.eye(d)[rows].T @ V[rows] @ S @ (K[rows].T @ Q[rows] / np.sqrt(k)) @ S
    return half + half.T


def random_covariances(rng, n, d):
    W = rng.normal(size=(n, d, d))
    return W @ np.swapaxes(W, 1, 2)


@pytest.mark.parametrize(("variant", "heads"), [("softmax", 1), ("l2", 1), ("multihead", 2), ("multihead", 4)])
@pytest.mark.parametrize("rows", [1, 2])
def test_rates_of_many_are_those_of_one_with_the_published_scales(variant, heads, rows):
    rng = np.random.default_rng(1)
    d, n = 4, 5
    S, V = random_covariances(rng, n, d), rng.normal(size=(n, d, d))
    Q, K = rng.normal(size=(2, n, rows, d))
    kept = np.array([4, 1])
    rate = rate_of(variant, *(np.moveaxis(m, 0, -1) for m in (Q, K, V)), heads).take(kept)
    found = rate(np.moveaxis(S[kept], 0, -1))
    for place, i in enumerate(kept):
        expected = one_rate(variant, S[i], Q[i], K[i], V[i], heads)
        np.testing.assert_allclose(found[..., place], expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def one_run(S, rate, h, low, high, most):
    """The published loop for one start."""
    for iteration in range(most):
        before, slope = S, rate(S)
        values, vectors = np.linalg.eigh(S + h * slope)
        values[values < 0] = 1e-14
        S = vectors @ np.diag(values) @ vectors.T
        if np.linalg.norm(slope) < low:
            return before, CONVERGED, iteration
        if np.trace(S) > high:
            return before, DIVERGED, iteration
    return S, EXHAUSTED, most


def test_the_scheme_ends_each_run_as_a_loop_over_one_start_does():
    """All three ends and clipped steps are among them; 400 steps carry round-off of about 1e-13."""
    rng = np.random.default_rng(4)
    Q = rng.normal(size=(2, 4))
    W = rng.normal(size=(4, 4))
    S, V = random_covariances(rng, 12, 4) * np.geomspace(0.05, 6, 12)[:, None, None], W @ W.T
    runs = projected_euler(
        rate_of("softmax", Q, -Q, V), np.moveaxis(S, 0, -1), step=0.04, low=3e-3, high=1e3, max_iterations=400
    )
    expected = [one_run(one, lambda S: one_rate("softmax", S, Q, -Q, V, 1), 0.04, 3e-3, 1e3, 400) for one in S]
    assert list(runs.status) == [status for _, status, _ in expected]
    assert set(runs.status) == {CONVERGED, DIVERGED, EXHAUSTED}
    assert list(runs.iterations) == [count for *_, count in expected]
    assert runs.clipped > 0
    for found, (final, status, _) in zip(np.moveaxis(runs.final, -1, 0), expected, strict=True):
        if status != DIVERGED:
            np.testing.assert_allclose(found, final, atol=1e-9)


@pytest.mark.parametrize("copies", [1, 10])
def test_a_clip_sets_eigenvalues_below_zero_to_1e_minus_14_and_leaves_others_alone(copies):
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    spectra = np.array([[1, 2, 3], [-0.5, 2, 3], [-0.5, -1, 3]], dtype=float)
    S = np.tile(np.moveaxis((vectors * spectra[:, None, :]) @ vectors.T, 0, -1), copies)
    before = S.copy()
    assert clip(S) == 2 * copies
    np.testing.assert_array_equal(S[..., 0], before[..., 0])
    for k, kept in ((1, [1e-14, 2, 3]), (2, [1e-14, 1e-14, 3])):
        np.testing.assert_allclose(np.linalg.eigvalsh(S[..., k]), kept, atol=1e-14)


def test_draws_have_the_known_numbers_and_leave_the_global_generator_alone():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    Q, K, V = draws.expanding()
    sum_of_both = K.T @ Q + Q.T @ K
    np.testing.assert_allclose(sum_of_both, [[0.49235, 1.08150], [1.08150, 3.69625]], atol=5e-6)
    np.testing.assert_array_equal(V, np.eye(2))
    np.testing.assert_allclose(draws.one_row()[0], [[0.40632, 0.91373]], atol=5e-6)
    for Q, K, _ in (draws.opposite_signs(seed=32), draws.opposite_signs(seed=35, skipped=56)):
        np.testing.assert_allclose(K.T @ Q, [[-0.22809, -1.28386], [-0.56761, -1.06240]], atol=5e-6)
        np.testing.assert_allclose(np.linalg.eigvalsh(K.T @ Q + Q.T @ K), [-3.32126, 0.74028], atol=5e-6)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_draws_come_in_the_order_of_the_published_scripts():
    random = np.random.RandomState(40)
    queries = [random.randn(d // 2, d) for d in np.repeat([3, 4, 5], 100)]
    random = np.random.RandomState(27)
    factors = [random.randn(d, d) for d in np.repeat([3, 4, 5], 100)]
    Q, V = draws.histogram_heads("l2", "random", 4)
    np.testing.assert_array_equal(Q[7], queries[107])
    np.testing.assert_allclose(V[7], factors[107].T @ factors[107], rtol=1e-14)
    random = np.random.RandomState(41)
    starts = [random.randn(4, 4) for _ in range(3)]
    np.testing.assert_allclose(draws.histogram_starts(4)[2], starts[2] @ starts[2].T, rtol=1e-14)
    random = np.random.RandomState(35)
    random.randn(8, 7)
    np.testing.assert_array_equal(draws.opposite_signs(seed=35, skipped=56)[2], random.randn(2, 2))


def test_starts_are_the_points_of_a_square_grid_that_lie_inside_the_cone():
    assert len(draws.grid(10, 0.5)) == 100
    whole = draws.grid(20, 1.0)
    side = np.linspace(-1, 1, 20)
    assert len(whole) == sum(u**2 + w**2 < 1 for u in side for w in side)
    np.testing.assert_allclose(np.trace(whole, axis1=1, axis2=2), 1)
    assert (np.linalg.eigvalsh(whole) > 0).all()
    S = draws.grid(3, 0.5)[1]  # stretch -1/2 first, and then along the tilt
    np.testing.assert_allclose(S, [[0.25, 0.0], [0.0, 0.75]])


def test_tracks_keep_a_state_when_it_has_moved_and_end_at_the_end():
    seen = Tracks(2, 2, coordinates=disc_entries, spacing=0.1, capacity=5)
    turned = [np.array([[1 + s, 0], [0, 1 - s]]) for s in np.linspace(0, 0.9, 10)]
    for state in turned:
        seen(np.array([0, 1]), np.stack([state, 3 * np.eye(2)]))
    final = np.stack([turned[-1], 3 * np.eye(2)])
    tracks = seen.ending_at(final)
    moves = np.abs(np.diff(disc_entries(tracks[0]), axis=0)).max(axis=1)
    assert (moves[:-1] > 0.05).all()
    assert list(seen.count) == [5, 1]
    np.testing.assert_array_equal(tracks[1], np.broadcast_to(final[1], tracks[1].shape))
