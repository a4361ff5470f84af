"""Exact kernel sums against plain loops: block borders, hidden keys, huge logits, far clouds, memory, last bits."""

import tracemalloc

import numpy as np
import pytest

from meanfield.summation import exact
from meanfield.summation.exact import kernel_sum, project, softmax_mean
from tests import oracles

#: Sums of some tens of terms of size one, centred differently from the oracle's: a few hundred roundings.
ROUND_OFF = 1e-13


def draw(seed, m, n, k=2, p=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k)), rng.standard_normal((n, k)), rng.standard_normal((n, p)), rng.standard_normal(n)


def everything(i, j):
    return True


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 24 entries and tiles of 8 keys, so that a dozen keys cross every border."""
    monkeypatch.setattr(exact, "BLOCK_ENTRIES", 24)
    monkeypatch.setattr(exact, "TILE_KEYS", 8)


@pytest.mark.parametrize("m", [1, 7, 13])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 17, 25])
@pytest.mark.parametrize("stretch", [1.0, 100.0])
def test_full_sums_cross_block_and_tile_borders(small_blocks, m, n, stretch):
    # stretch 100 leaves the range where no maximum is subtracted; logits then carry 1e4 times more round-off
    queries, keys, values, bias = draw(n, m, n)
    means, logs = softmax_mean(stretch * queries, stretch * keys, values, bias)
    wanted, wanted_logs = oracles.softmax_average(stretch * queries, stretch * keys, values, bias, everything)
    assert means == pytest.approx(wanted, abs=ROUND_OFF * stretch**2)
    assert logs == pytest.approx(wanted_logs, rel=ROUND_OFF, abs=ROUND_OFF)


@pytest.mark.parametrize("entries", [exact.BLOCK_ENTRIES])
def test_one_query_more_than_a_block_holds_changes_nothing(entries):
    n = 512
    m = entries // n + 1
    queries, keys, values, bias = draw(1, m, n)
    means, logs = softmax_mean(queries, keys, values, bias)
    rows = [0, m - 2, m - 1]
    wanted, wanted_logs = oracles.softmax_average(queries[rows], keys, values, bias, everything)
    assert means[rows] == pytest.approx(wanted, abs=ROUND_OFF)
    assert logs[rows] == pytest.approx(wanted_logs, abs=ROUND_OFF)


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_one_key_more_than_a_tile_holds_changes_nothing(extra):
    queries, keys, values, bias = draw(2, 2, exact.TILE_KEYS + extra)
    means, logs = softmax_mean(queries, keys, values, bias)
    wanted, wanted_logs = oracles.softmax_average(queries, keys, values, bias, everything)
    assert means == pytest.approx(wanted, abs=ROUND_OFF)
    assert logs == pytest.approx(wanted_logs, abs=ROUND_OFF)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 70])
def test_causal_sums_take_the_first_keys_only(n):
    queries, keys, values, bias = draw(3, n, n)
    causal = np.random.default_rng(n).integers(0, n + 1, n)
    means, logs = softmax_mean(queries, keys, values, bias, causal=causal)
    wanted, wanted_logs = oracles.softmax_average(queries, keys, values, bias, lambda i, j: j < causal[i])
    assert means == pytest.approx(wanted, abs=ROUND_OFF)
    assert logs == pytest.approx(wanted_logs, abs=ROUND_OFF)


@pytest.mark.parametrize("n", [1, 9, 30])
def test_a_mask_of_any_shape_is_obeyed(small_blocks, n):
    queries, keys, values, bias = draw(4, 11, n)
    seen = np.random.default_rng(n).random((11, n)) < 0.5
    seen[4] = False
    means, logs = softmax_mean(queries, keys, values, bias, visible=lambda rows: seen[rows])
    wanted, wanted_logs = oracles.softmax_average(queries, keys, values, bias, lambda i, j: seen[i, j])
    assert means == pytest.approx(wanted, abs=ROUND_OFF)
    assert logs == pytest.approx(wanted_logs, abs=ROUND_OFF)
    assert means[4].tolist() == [0.0, 0.0, 0.0]
    assert logs[4] == -np.inf


def test_the_causal_road_and_the_mask_road_agree():
    queries, keys, values, bias = draw(5, 40, 40)
    causal = np.arange(1, 41)
    ordered = softmax_mean(queries, keys, values, bias, causal=causal)
    masked = softmax_mean(queries, keys, values, bias, visible=lambda rows: np.arange(40) < causal[rows][:, None])
    assert ordered[0] == pytest.approx(masked[0], abs=ROUND_OFF)
    assert ordered[1] == pytest.approx(masked[1], abs=ROUND_OFF)


@pytest.mark.parametrize("road", ["full", "causal", "mask"])
def test_keys_of_bias_minus_infinity_are_not_there(road):
    queries, keys, values, bias = draw(6, 9, 12)
    hidden = np.array([0, 3, 11])
    bias[hidden] = -np.inf
    values[hidden] = 1e300
    counts = np.arange(3, 12)
    options = {
        "full": {},
        "causal": {"causal": counts},
        "mask": {"visible": lambda rows: np.arange(12) < counts[rows][:, None]},
    }[road]
    means, logs = softmax_mean(queries, keys, values, bias, **options)
    wanted, wanted_logs = oracles.softmax_average(
        queries, keys, values, bias, lambda i, j: road == "full" or j < counts[i]
    )
    assert means == pytest.approx(wanted, abs=ROUND_OFF)
    assert logs == pytest.approx(wanted_logs, abs=ROUND_OFF)


@pytest.mark.parametrize("values", [np.ones((2, 3)), None])
def test_with_no_key_left_every_mean_is_zero(values):
    means, logs = softmax_mean(np.ones((4, 2)), np.ones((2, 2)), values, np.full(2, -np.inf))
    assert means.shape == (4, 0 if values is None else 3)
    assert not means.any()
    assert logs.tolist() == [-np.inf] * 4


def test_a_causal_row_of_count_zero_sees_nothing():
    ones = np.ones((2, 1))
    means, logs = softmax_mean(ones, ones, 5 * ones, np.zeros(2), causal=np.array([0, 2]))
    assert means[:, 0].tolist() == [0.0, 5.0]
    assert logs[0] == -np.inf
    assert logs[1] == pytest.approx(1 + np.log(2), abs=1e-15)


@pytest.mark.parametrize("road", ["full", "causal", "mask"])
def test_without_values_only_the_normalisers_come(road):
    queries, keys, values, bias = draw(7, 20, 20)
    options = {
        "full": {},
        "causal": {"causal": np.arange(20)},
        "mask": {"visible": lambda rows: np.eye(20, dtype=bool)[rows]},
    }[road]
    means, logs = softmax_mean(queries, keys, None, bias, **options)
    assert means.shape == (20, 0)
    assert logs == pytest.approx(softmax_mean(queries, keys, values, bias, **options)[1], abs=ROUND_OFF)


@pytest.mark.parametrize("road", ["full", "causal", "mask"])
def test_logits_of_ten_thousand_neither_overflow_nor_warn(road):
    points = np.array([[100.0], [-100.0]])
    options = {
        "full": {},
        "causal": {"causal": np.array([2, 2])},
        "mask": {"visible": lambda rows: np.ones((2, 2), bool)[rows]},
    }[road]
    means, logs = softmax_mean(points, points, points, np.zeros(2), **options)
    assert means[:, 0].tolist() == [100.0, -100.0]
    assert logs == pytest.approx([1e4, 1e4], abs=1e-11)


def test_a_bias_of_minus_ten_thousand_is_a_weight_and_no_mask():
    # the one key that is seen wins however low its bias is, and a later high one cannot leak into it
    points = np.array([[10.0], [5000.0]])
    means, _ = softmax_mean(points, points, points, np.array([-1e4, 0.0]), causal=np.array([1, 2]))
    assert means[:, 0].tolist() == [10.0, 5000.0]


@pytest.mark.parametrize("road", ["full", "causal", "mask"])
def test_a_cloud_far_from_the_origin_loses_nothing(road):
    # exact in floats: 1e8 + k; a shift of all keys and values must show in the answer as that shift
    rng = np.random.default_rng(8)
    small = rng.integers(-4, 5, (12, 2)) / 4.0
    queries, bias = rng.standard_normal((12, 2)), rng.standard_normal(12)
    options = {
        "full": {},
        "causal": {"causal": np.arange(1, 13)},
        "mask": {"visible": lambda rows: np.tri(12, dtype=bool)[rows]},
    }[road]
    near, _ = softmax_mean(queries, small, small, bias, **options)
    far, _ = softmax_mean(queries, small + 1e8, small + 1e8, bias, **options)
    # adding 1e8 back rounds to 1.5e-8
    assert far - 1e8 == pytest.approx(near, abs=1.6e-8)


def test_weights_enter_as_their_logarithms():
    weights = np.array([0.2, 0.3, 0.5])
    means, logs = softmax_mean(np.zeros((1, 2)), np.ones((3, 2)), np.eye(3), np.log(weights))
    assert means[0] == pytest.approx(weights, abs=1e-15)
    assert logs[0] == pytest.approx(0, abs=1e-15 * 2)


@pytest.mark.parametrize("road", ["full", "causal", "mask"])
def test_inputs_are_left_as_they_came_even_when_read_only(road):
    arrays = draw(9, 20, 20)
    arrays[3][2] = -np.inf
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.setflags(write=False)
    options = {
        "full": {},
        "causal": {"causal": np.arange(20)},
        "mask": {"visible": lambda rows: np.tri(20, dtype=bool)[rows]},
    }[road]
    softmax_mean(*arrays, **options)
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, copies, strict=True))


def test_a_value_that_is_not_finite_stays_visible_and_is_not_swept_away():
    with np.errstate(invalid="ignore"):
        means, _ = softmax_mean(np.zeros((1, 1)), np.zeros((2, 1)), np.array([[0.0], [np.nan]]), np.zeros(2))
    assert np.isnan(means[0, 0])


# --- the last bit -----------------------------------------------------------------------------------


def test_a_later_key_and_query_change_no_bit_of_an_earlier_causal_row():
    queries, keys, values, bias = draw(10, 600, 600)
    whole, _ = softmax_mean(queries, keys, values, bias, causal=np.arange(1, 601))
    for n in [*range(1, 71), 127, 128, 129, 255, 256, 257, 511, 512, 513, 599]:
        means, _ = softmax_mean(queries[:n], keys[:n], values[:n], bias[:n], causal=np.arange(1, n + 1))
        assert np.array_equal(means, whole[:n]), n


def test_a_later_key_and_query_change_no_bit_of_an_earlier_normaliser():
    queries, keys, values, bias = draw(10, 600, 600)
    _, whole = softmax_mean(queries, keys, values, bias, causal=np.arange(1, 601))
    for n in [*range(1, 71), 127, 128, 129, 255, 256, 257, 511, 512, 513, 599]:
        _, logs = softmax_mean(queries[:n], keys[:n], values[:n], bias[:n], causal=np.arange(1, n + 1))
        assert np.array_equal(logs, whole[:n]), n


def test_a_projected_row_has_the_same_bits_however_many_follow():
    rng = np.random.default_rng(11)
    points, matrix = rng.standard_normal((600, 5)), rng.standard_normal((3, 5))
    whole = project(points, matrix)
    assert whole == pytest.approx(points @ matrix.T, abs=1e-14)
    for n in [*range(1, 71), 255, 256, 257, 511, 512, 513]:
        assert np.array_equal(project(points[:n], matrix), whole[:n]), n


# --- memory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("road", ["full", "causal", "mask"])
def test_memory_stays_at_the_size_of_a_block(road):
    # one array of all pairs would be 48 MB; the arrays that come in and go out are 1 MB, a block 2 MB
    m, n = 300, 20_000
    queries, keys, values, bias = draw(12, m, n, k=2, p=2)
    counts = np.arange(n - m, n)
    options = {
        "full": {},
        "causal": {"causal": counts},
        "mask": {"visible": lambda rows: np.arange(n) < counts[rows][:, None]},
    }[road]
    tracemalloc.start()
    softmax_mean(queries, keys, values, bias, **options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16e6


# --- kernels that are not normalised ----------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 7])
@pytest.mark.parametrize("n", [1, 12, 24, 25])
def test_kernel_sums_are_plain_sums_over_blocks(small_blocks, m, n):
    queries, keys, values, _ = draw(13, m, n)
    seen = np.random.default_rng(n).random((m, n)) < 0.7
    logits = queries @ keys.T
    assert kernel_sum(queries, keys, values, np.cos) == pytest.approx(np.cos(logits) @ values, abs=ROUND_OFF)
    masked = kernel_sum(queries, keys, values, np.cos, visible=lambda rows: seen[rows])
    assert masked == pytest.approx((seen * np.cos(logits)) @ values, abs=ROUND_OFF)


def test_a_kernel_that_works_in_place_gives_the_same_and_touches_no_input():
    queries, keys, values, _ = draw(14, 5, 6)
    copies = [array.copy() for array in (queries, keys, values)]
    in_place = kernel_sum(queries, keys, values, lambda logits: np.tanh(logits, out=logits))
    assert in_place == pytest.approx(kernel_sum(queries, keys, values, np.tanh), abs=0)
    assert all(np.array_equal(a, b) for a, b in zip((queries, keys, values), copies, strict=True))


def test_an_overflow_behind_a_mask_does_not_reach_the_sum():
    with np.errstate(over="ignore"):
        result = kernel_sum(
            np.array([[1.0]]), np.array([[1.0], [1000.0]]), np.ones((2, 1)), np.exp,
            visible=lambda rows: np.array([[True, False]])[rows],
        )
    assert result[0, 0] == pytest.approx(np.e, abs=1e-15 * 2)
