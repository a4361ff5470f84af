"""What the exact kernel sum evaluates and allocates, counted instead of timed."""

import tracemalloc

import numpy as np
import pytest

from meanfield.summation import exact

#: What a sum may hold besides its block, its input and its output: copies of a few columns.
FLOATS_A_POINT = 40


class CountingNumpy:
    """NumPy, but for the entries that go through exp."""

    def __init__(self):
        self.entries, self.largest = 0, 0

    def __getattr__(self, name):
        return getattr(np, name)

    def exp(self, x, *arguments, **options):
        if np.ndim(x) == 2:
            self.entries += x.size
            self.largest = max(self.largest, x.size)
        return np.exp(x, *arguments, **options)


@pytest.fixture
def counted(monkeypatch):
    counter = CountingNumpy()
    monkeypatch.setattr(exact, "np", counter)
    return counter


def draw(m, n, k=2):
    rng = np.random.default_rng(m + n)
    return rng.standard_normal((m, k)), rng.standard_normal((n, k)), rng.standard_normal((n, 2))


@pytest.mark.parametrize(("m", "n"), [(20, 20), (300, 700), (1500, 1500)])
def test_every_pair_is_evaluated_once_in_blocks_of_the_stated_size(counted, m, n):
    queries, keys, values = draw(m, n)
    exact.softmax_mean(queries, keys, values, np.zeros(n))
    assert counted.entries == m * n
    assert counted.largest <= max(exact.BLOCK_ENTRIES, exact.SMALL_SUM)


def test_wide_logits_cost_no_second_evaluation(counted):
    queries, keys, values = draw(400, 600)
    exact.softmax_mean(100 * queries, 100 * keys, values, np.zeros(600))
    assert counted.entries == 400 * 600


def test_a_causal_sum_evaluates_little_more_than_the_pairs_it_sees(counted):
    n = 3000
    queries, keys, values = draw(n, n)
    exact.softmax_mean(queries, keys, values, np.zeros(n), causal=np.arange(1, n + 1))
    # tiles of at most 512 queries and 512 keys reach past the diagonal by less than their two sides together
    assert n * (n + 1) / 2 <= counted.entries <= n * (n + 1) / 2 + 1024 * n
    assert counted.largest <= 512 * 512


@pytest.mark.parametrize("n", [4000, 8000])
def test_memory_is_a_block_and_a_few_columns_whatever_n(n):
    queries, keys, values = draw(n, n)
    tracemalloc.start()
    exact.softmax_mean(queries[:200], keys, values, np.zeros(n))
    _, few = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    exact.softmax_mean(queries[: n // 4], keys, values, np.zeros(n))
    _, more = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # one block of 2 MB; a matrix of all pairs would take 32 and 128 MB
    allowed = 8 * (exact.BLOCK_ENTRIES + FLOATS_A_POINT * n)
    assert few <= allowed
    assert more - before <= allowed
    assert more - before >= 8 * (exact.BLOCK_ENTRIES // n) * n
