"""The near-linear sum meets the accuracy that is asked for, whatever the spread, and says when it cannot be had."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.summation import exact, select
from meanfield.summation.separable import TRADES, Plan, plan_separable, separable_sums


def cloud(n, k, reach, seed):
    """Points with |q||k| up to the reach, values, biases of a few units."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, size=(n, k))
    points *= np.sqrt(reach) / np.linalg.norm(points, axis=1).max()
    return points, rng.normal(size=(n, 3)), 2 * rng.normal(size=n)


@pytest.mark.parametrize("accuracy", [1e-6, 1e-10, 1e-13])
@pytest.mark.parametrize(("k", "reach"), [(1, 4), (1, 200), (2, 4), (2, 30), (3, 3), (3, 12)])
def test_a_separable_sum_meets_its_accuracy(k, reach, accuracy):
    keys, values, bias = cloud(900, k, reach, seed=k)
    queries = cloud(300, k, reach, seed=10 + k)[0]
    means, log_normaliser = select.softmax_mean(
        queries, keys, values, bias, summation="separable", accuracy=accuracy
    )
    expected, expected_log = exact.softmax_mean(queries, keys, values, bias)
    # Round-off of logits of size reach stands below the interpolation error at every accuracy offered.
    allowed = accuracy + 1e-15 * (10 + reach)
    np.testing.assert_allclose(log_normaliser, expected_log, rtol=0, atol=allowed)
    spread = np.abs(values - values[0]).max()
    np.testing.assert_allclose(means, expected, rtol=0, atol=2 * allowed * spread)


@pytest.mark.parametrize(("met", "nodes", "tau"), TRADES)
def test_each_trade_keeps_its_promise_on_one_pair_of_boxes(met, nodes, tau):
    # One box on each side, reach exactly tau: the hardest box pair there is.
    x = np.linspace(-np.sqrt(tau), np.sqrt(tau), 101)[:, None]
    plan = Plan(nodes, (1,), (1,), met, 0.0)
    sums, shift = separable_sums(x, x, np.ones((101, 1)), np.zeros(101), plan)
    expected = np.exp(x @ x.T).sum(axis=1)
    assert shift == 0
    assert np.abs(sums[:, 0] / expected - 1).max() <= met + 1e-14


def test_the_cheaper_sum_is_chosen_and_the_choice_does_not_change_the_numbers():
    for n, reach, better in ((400, 4, "exact"), (6000, 4, "separable"), (6000, 280, "exact")):
        keys, values, bias = cloud(n, 3, reach, seed=3)
        chosen = select.softmax_mean(keys[:2000], keys, values, bias)
        forced = exact.softmax_mean(keys[:2000], keys, values, bias)
        same_bits = np.array_equal(chosen[0], forced[0])
        assert same_bits == (better == "exact")
        np.testing.assert_allclose(chosen[0], forced[0], rtol=0, atol=1e-9)


def test_a_cloud_far_from_the_origin_and_padding_change_nothing():
    keys, values, bias = cloud(800, 2, 10, seed=4)
    bias[:50] = -np.inf
    keys[:50] = 1e6
    near = select.softmax_mean(keys[50:], keys, values, bias, summation="separable")
    expected = exact.softmax_mean(keys[50:], keys[50:], values[50:], bias[50:])
    np.testing.assert_allclose(near[0], expected[0], atol=1e-9)
    far = select.softmax_mean(keys[50:], keys + np.array([1e5, -3e5]), values, bias, summation="separable")
    # A shift of the keys cancels; rounding 1e5 costs its own 1e-11 in each key.
    np.testing.assert_allclose(far[0], expected[0], atol=1e-9)


@pytest.mark.parametrize("name", ["softmax", "l2", "sinkhorn", "unnormalised"])
def test_every_exponential_field_agrees_by_both_sums(name):
    rng = np.random.default_rng(5)
    mu = mf.Measure(rng.uniform(-1.5, 1.5, size=(700, 2)))
    head = mf.Head(np.eye(2), [[0.9, 0.3], [-0.2, 1.1]], np.eye(2))
    fast = mf.make_attention(name, head, summation="separable")(0.0, mu.points, mu)
    slow = mf.make_attention(name, head, summation="exact")(0.0, mu.points, mu)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-9 * np.abs(slow).max())


def test_a_grid_that_would_not_fit_has_no_plan():
    keys, _, bias = cloud(500, 3, 290, seed=6)
    assert plan_separable(keys, keys, bias, 4, 1e-10) is None


def test_what_cannot_be_separated_is_refused_with_the_way_out():
    keys, values, bias = cloud(50, 3, 4, seed=7)
    wide = np.column_stack([keys, keys])
    with pytest.raises(ValueError, match="dimension at most 3 and no mask; got dimension 6"):
        select.softmax_mean(wide, wide, values, bias, summation="separable")
    with pytest.raises(ValueError, match="and a mask"):
        select.softmax_mean(keys, keys, values, bias, causal=np.arange(50), summation="separable")
    with pytest.raises(ValueError, match=r"needs a spread .* and a grid of at most 2e.07 entries"):
        select.softmax_mean(100 * keys, 100 * keys, values, bias, summation="separable")
    with pytest.raises(ValueError, match="its kernel is no exponential"):
        mf.SigmoidAttention(mf.Head.identity(2), summation="separable")
    with pytest.raises(ValueError, match="summation must be one of auto, exact, separable"):
        mf.SoftmaxAttention(mf.Head.identity(2), summation="fast")
