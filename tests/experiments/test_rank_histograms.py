"""The published histograms: the table of known counts, the loop of retries, and what the exact flow cannot do."""

import numpy as np
import pytest

from experiments.published import CONVERGED, DIVERGED, EXHAUSTED
from experiments.rank_histograms import PROBE, cases, follow_published, run


def case(variant, value, d, **changes):
    found = next(c for c in cases(False) if (c["variant"], c["value"], c["d"]) == (variant, value, d))
    return found | changes


def test_counts_of_softmax_with_identity_values_in_dimension_three():
    """The table: the scheme as published, the flow at the same tolerance, the limit; every limit has rank two."""
    arrays = run(case("softmax", "identity", 3), None)
    assert arrays["published"].tolist() == [3, 48, 49, 0]
    assert arrays["accurate"].tolist() == [0, 32, 68, 0]
    assert arrays["limit"].tolist() == [1, 31, 68, 0]
    assert arrays["limit_ranks"].tolist() == [0, 0, 100, 0]
    assert arrays["exact_rank"] == 2
    assert not arrays["dropped"].any()
    assert all(arrays[name].dtype.kind == "i" for name in ("published", "accurate", "limit", "dropped"))


def test_taking_every_step_gives_what_the_short_cut_gives():
    """After 500 steps a step is 1/500 of the time elapsed: the ends differ by less than that, and here no rank does."""
    chosen = case("l2", "identity", 3, draws=12)
    short, every = run(chosen, None), run(chosen | {"one_by_one": chosen["iterations"]}, None)
    np.testing.assert_array_equal(short["attempts"], every["attempts"])
    np.testing.assert_array_equal(short["published"], every["published"])


def test_published_runs_fail_where_the_exact_flow_cannot():
    arrays = run(case("softmax", "random", 5, draws=7), None)
    attempts, followed = arrays["attempts"], arrays["followed"]
    failed = attempts[:, 2] != CONVERGED
    assert (attempts[:, 2] == DIVERGED).any()
    assert np.isin(np.flatnonzero(failed)[0], followed)
    assert (arrays["exact_status"] == CONVERGED).all()
    assert (arrays["lyapunov"] <= 1 + 1e-6).all()
    assert (attempts[failed, 3] == -1).all()
    assert arrays["published"].sum() + arrays["dropped"].sum() == 7
    # A draw is tried again with the next start, and every attempt uses one start up.
    np.testing.assert_array_equal(attempts[:, 1], np.arange(len(attempts)))
    np.testing.assert_array_equal(attempts[~failed, 0], np.arange(7))


@pytest.mark.parametrize("seed", range(4))
def test_looking_ahead_changes_nothing_in_the_order_of_retries(seed):
    """Fates drawn at random for each pair, early divergence, late failure or convergence: the loop one by one again."""
    rng = np.random.default_rng(seed)
    fate = rng.choice(4, size=(60, 2000), p=[0.6, 0.25, 0.1, 0.05])
    fate[7] = np.where(rng.random(2000) < 0.9, 1, 0)
    fate[30] = np.where(rng.random(2000) < 0.8, 3, 0)
    ends = np.array([CONVERGED, DIVERGED, DIVERGED, EXHAUSTED])

    def scheme(draws, starts, last):
        own = fate[draws, starts]
        status = np.where(own == 1, DIVERGED, EXHAUSTED) if last == PROBE else ends[own]
        return np.stack([draws, starts], axis=1)[:, None, :] * np.ones((1, 2, 1)), status

    expected, draw = [], 0
    for start in range(2000):
        status = ends[fate[draw, start]]
        expected.append((draw, start, status))
        draw += status == CONVERGED
        if draw == 60:
            break
    attempts, finals = follow_published(scheme, 60)
    np.testing.assert_array_equal(attempts, expected)
    np.testing.assert_array_equal(finals[:, 0], attempts[:, :2])


def test_all_twelve_panels_are_cases_and_quick_ones_use_fewer_draws():
    assert len(cases(False)) == len(cases(True)) == 12
    assert {c["draws"] for c in cases(False)} == {100}
    assert max(c["draws"] for c in cases(True)) < 100
