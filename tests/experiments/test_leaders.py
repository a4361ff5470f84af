"""Leaders of small runs against the theorems, and the clock that the largest eigenvalue sets."""

import numpy as np
import pytest

import meanfield as mf
from experiments import leaders

CASE = {"n": 12, "d": 2, "box": 5.0, "horizon": 10.0, "outputs": 11, "matrices": "identity", "replica": 0}


@pytest.mark.parametrize("seed", range(3))
def test_identity_matrices_end_on_corners_of_the_hull(seed):
    record = leaders.run(CASE, np.random.default_rng(seed))
    assert record["undecided"][-1] == 0
    assert record["leaders"][-1] == len(np.unique(record["leader"])) >= 2
    assert record["corner_distance"] < 1e-9  # the scale on which a corner is told from a point of a face
    # Rescaled tokens come to where their leader is, like e^{-t} from the box's size.
    ends = record["z"][-1]
    assert np.abs(ends - ends[record["leader"]]).max() < 30 * np.exp(-10 / 2)


@pytest.mark.parametrize("seed", range(3))
def test_one_leading_direction_leaves_at_most_two_leaders(seed):
    record = leaders.run(CASE | {"matrices": "random"}, np.random.default_rng(seed))
    assert 1 <= record["leaders"][-1] <= 2
    assert record["eigenvalue_ratio"] < 1


def test_dividing_v_by_a_number_changes_the_clock_alone():
    rng = np.random.default_rng(0)
    value, product = leaders.random_squares(2, rng)
    start = mf.Measure(rng.uniform(-1, 1, (6, 2)))
    slow = mf.simulate(mf.SoftmaxAttention(mf.Head(product, np.eye(2), value)), start, [0, 2])
    fast = mf.simulate(mf.SoftmaxAttention(mf.Head(product, np.eye(2), 4 * value)), start, [0, 0.5])
    np.testing.assert_allclose(fast[-1].points, slow[-1].points, rtol=1e-6)  # the tolerance of the runs, 1e-8, grown
    assert np.linalg.eigvalsh(value)[-1] == pytest.approx(1.0)


def test_both_kinds_have_equally_many_replicas():
    for quick in (True, False):
        kinds = [case["matrices"] for case in leaders.cases(quick)]
        assert set(kinds) == set(leaders.MATRICES)
        assert kinds.count("identity") == kinds.count("random")
