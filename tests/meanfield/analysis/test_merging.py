"""Merge trees against plain loops over pairs of tokens, and against merges whose times are known."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, dendrogram, is_valid_linkage
from scipy.spatial.distance import squareform

import meanfield as mf
from meanfield.analysis.merging import MergingDetector
from meanfield.analysis.observables import rescaled


def on_a_line(*layers, weights=None):
    """Tokens on a line, one list of places an instant, at times 0, 1, 2, ..."""
    return mf.Trajectory.from_hidden_states(
        [np.array(layer, dtype=float)[:, None] for layer in layers], weights=weights
    )


def wanderers(seed, n=12, instants=15):
    """Tokens that jump about and draw together, so that clusters meet, part and meet again."""
    rng = np.random.default_rng(seed)
    walks = rng.normal(size=(instants, n, 2)).cumsum(axis=0) * np.linspace(1, 0.1, instants)[:, None, None]
    return mf.Trajectory.from_hidden_states(list(walks))


def together_since(tree):
    """For each pair of tokens the first instant from which on their labels agree up to the end, by plain loops."""
    n = len(tree.tokens)
    since = np.full((n, n), np.inf)
    for i in range(n):
        for j in range(n):
            for t, found in list(zip(tree.instants, tree.clusters, strict=True))[::-1]:
                if found.labels[tree.tokens[i]] != found.labels[tree.tokens[j]]:
                    break
                since[i, j] = t
    return since


def heights(tree):
    """Times at which pairs of leaves are joined in the linkage, infinite where they are not by the end."""
    joined = squareform(cophenet(tree.linkage(roof=1e9))) + tree.instants[0]
    return np.where(joined > tree.instants[-1], np.inf, joined)


def test_merges_masses_and_persistence_of_four_tokens():
    run = on_a_line([0, 1, 4, 9], [0, 0.4, 4, 9], [0, 0.3, 0.7, 9], [0, 0, 0, 9], weights=[0.1, 0.2, 0.3, 0.4])
    tree = MergingDetector(0.5)(run)
    np.testing.assert_array_equal(tree.times, [1, 2])
    np.testing.assert_array_equal(tree.resolution, [1, 1])
    np.testing.assert_array_equal(tree.counts, [4, 3, 2, 2])
    pair, three = tree.merges
    assert (pair.birth, pair.death, pair.persistence) == (1, 2, 1)
    assert pair.tokens.tolist() == [0, 1]
    assert three.tokens.tolist() == [0, 1, 2]
    assert (pair.mass, three.mass) == (pytest.approx(0.3), pytest.approx(0.6))  # up to round-off
    np.testing.assert_array_equal(tree.persistence, [1, 1, 2, np.inf, 1, np.inf])
    assert tree.consensus_time is None
    assert tree.splits == ()
    found = tree.clusters_at(1.9)
    np.testing.assert_allclose(found.masses, [0.3, 0.3, 0.4])
    np.testing.assert_allclose(found.centres[:, 0], [0.4 * 2 / 3, 4, 9])


def test_a_run_away_from_time_zero_shifts_times_and_not_heights():
    field, start, times = contraction, mf.Measure([[-1.0], [1.0], [1.5]]), np.linspace(0, 4, 41)
    near = MergingDetector(0.1)(mf.simulate(field, start, times))
    far = MergingDetector(0.1)(mf.simulate(field, start, times + 1000))
    np.testing.assert_allclose(far.times, near.times + 1000)
    np.testing.assert_allclose(far.linkage(), near.linkage(), atol=1e-9)  # times near 1000 are round to 1e-13


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_says_of_every_pair_since_when_it_is_together_for_good(seed):
    tree = MergingDetector(1.0)(wanderers(seed))
    since = together_since(tree)
    off_diagonal = ~np.eye(len(since), dtype=bool)
    np.testing.assert_array_equal(heights(tree)[off_diagonal], since[off_diagonal])
    assert is_valid_linkage(tree.linkage(), throw=True)
    assert sorted(dendrogram(tree.linkage(), no_plot=True)["leaves"]) == list(range(12))
    assert len(tree.times) == 12 - tree.counts[-1]


def test_the_order_of_the_tokens_changes_no_merge():
    run = wanderers(2)
    order = np.random.default_rng(0).permutation(12)
    shuffled = mf.Trajectory.from_hidden_states(list(run.arrays[:, order]))
    tree, other = MergingDetector(1.0)(run), MergingDetector(1.0)(shuffled)
    np.testing.assert_array_equal(other.times, tree.times)
    np.testing.assert_array_equal(heights(other), heights(tree)[np.ix_(order, order)])
    assert sorted(sorted(order[branch.tokens]) for branch in other.branches) == sorted(
        sorted(branch.tokens) for branch in tree.branches
    )


def test_a_cluster_that_splits_is_reported_and_merges_for_good_only_later():
    run = on_a_line([0, 0.1, 0.2, 5], [0, 3, 3.1, 5], [0, 0.1, 0.2, 5], [0, 0, 0, 0])
    tree = MergingDetector(0.5)(run)
    (split,) = tree.splits
    assert split.time == 1
    assert [part.tolist() for part in split.parts] == [[0], [1, 2]]
    np.testing.assert_array_equal(tree.times, [0, 2, 3])  # tokens 1 and 2 never part
    np.testing.assert_array_equal(tree.counts, [2, 3, 2, 1])
    assert tree.consensus_time == 3


def test_tokens_without_mass_are_no_leaves():
    run = on_a_line([0, 1, 2], [0, 0, 0.1], weights=[0.5, 0, 0.5])
    tree = MergingDetector(0.5)(run)
    assert tree.tokens.tolist() == [0, 2]
    assert [branch.tokens.tolist() for branch in tree.branches] == [[0], [2], [0, 2]]
    np.testing.assert_array_equal(tree.times, [1])


def test_tokens_that_merge_in_one_instant_make_one_branch_and_count_one_less():
    tree = MergingDetector(0.5)(on_a_line([0, 2, 4, 9], [0, 0, 0, 9]))
    np.testing.assert_array_equal(tree.times, [1, 1])
    assert tree.merges[0].children == (0, 1, 2)
    np.testing.assert_allclose(tree.linkage(roof=7), [[0, 1, 1, 2], [4, 2, 1, 3], [3, 5, 7, 4]])


def contraction(t, x, mu):
    return -x


def speeding_up(t, x, mu):
    return -2 * t * x


@pytest.mark.parametrize(("field", "merge"), [(contraction, np.log(20)), (speeding_up, np.sqrt(np.log(20)))])
def test_a_merge_between_output_times_is_found_to_the_resolution(field, merge):
    """Tokens at -1 and 1 are 2 e^{-t} apart, or 2 e^{-t^2}: nearer than 0.1 from t = log 20, or its root."""
    run = mf.simulate(field, mf.Measure([[-1.0], [1.0]]), np.linspace(0, 4, 5))
    plain, fine = MergingDetector(0.1)(run), MergingDetector(0.1, resolution=0.01)(run)
    assert plain.times[0] == np.ceil(merge)
    assert merge <= fine.times[0] <= merge + fine.resolution[0]
    assert 0 < fine.resolution[0] <= 0.01 * (1 + 1e-9)
    assert len(fine.instants) == 5 + 99


def test_a_run_that_an_event_stopped_is_read_up_to_there():
    near = mf.Event(lambda t, mu: float(np.ptp(mu.points)) - 0.09, terminal=True)
    run = mf.simulate(contraction, mf.Measure([[-1.0], [1.0]]), [0, 2, 4], events=near)
    assert len(run) == 2
    np.testing.assert_allclose(MergingDetector(0.1)(run).times, np.log(2 / 0.09), rtol=1e-6)  # tolerance of the run


def test_on_the_sphere_the_gap_is_geodesic():
    """Two tokens drawn to their mean are an angle delta apart with tan(delta/2) = tan(delta_0/2) e^{-t}."""
    start = mf.Measure([[1.0, 0.0], [np.cos(2.0), np.sin(2.0)]])

    def to_the_mean(t, x, mu):
        return np.broadcast_to(mu.mean, x.shape)

    run = mf.simulate(to_the_mean, start, np.linspace(0, 3, 4), space=mf.Sphere())
    tree = MergingDetector(1.0, space=mf.Sphere(), resolution=0.01)(run)
    merge = np.log(np.tan(1.0) / np.tan(0.5))
    assert merge <= tree.times[0] <= merge + 0.01


def test_masked_tokens_under_moving_heads_gather_at_the_first_one():
    """Causal attention with V = I takes almost every start to x_1(0); positions and schedules are no obstacle."""
    space = mf.Sphere()
    tokens = space.retract(np.random.default_rng(0).normal(size=(5, 3)))
    field = mf.MaskedAttention(mf.SoftmaxAttention(mf.Schedule(lambda t: mf.Head.identity(3, 2 + np.sin(t)))))
    run = mf.simulate(field, mf.Measure.positioned(np.arange(5) / 5, tokens), np.linspace(0, 20, 21), space=space)
    tree = MergingDetector(0.2, space=space, resolution=0.1)(run)
    assert tree.consensus_time is not None
    assert (tree.resolution <= 0.1 * (1 + 1e-9)).all()
    np.testing.assert_allclose(tree.clusters_at(20).centres[0], tokens[0], atol=0.2)  # the gap


def test_a_view_is_looked_through():
    """x' = x in rescaled coordinates e^{-t} x stands still, so that nothing merges or parts."""
    run = mf.simulate(lambda t, x, mu: x, mf.Measure([[0.0], [0.5], [3.0]]), [0, 1, 2])
    assert MergingDetector(1.0)(run).splits
    tree = MergingDetector(1.0, view=rescaled(np.eye(1)))(run)
    assert tree.splits == ()
    np.testing.assert_array_equal(tree.counts, [2, 2, 2])


def test_a_single_token_and_coincident_ones_make_trees():
    alone = MergingDetector(1.0)(on_a_line([0], [1]))
    assert alone.linkage().shape == (0, 4)
    assert alone.consensus_time == 0
    twins = MergingDetector(1.0)(on_a_line([0, 0], [1, 1]))
    np.testing.assert_array_equal(twins.times, [0])
    np.testing.assert_array_equal(twins.resolution, [0])


def test_what_cannot_be_read_off_is_said():
    field = mf.SoftmaxAttention(mf.Head.identity(1))
    law = mf.simulate(field, mf.Gaussian([0.0], [[1.0]]), [0, 0.1])
    with pytest.raises(ValueError, match=r"merging is read off a Measure; got Gaussian"):
        MergingDetector(1.0)(law)
    with pytest.raises(ValueError, match="hidden states of a model have no velocity field"):
        MergingDetector(0.5, resolution=0.1)(on_a_line([0, 1], [0, 0]))
    layers = mf.simulate(contraction, mf.Measure([[-1.0], [1.0]]), [0, 0.9], scheme=mf.EULER, dt=0.9)
    with pytest.raises(ValueError, match=r"resolution needs a run that an accurate one can follow.*0\.307 away"):
        MergingDetector(0.25, resolution=0.1)(layers)
    with pytest.raises(ValueError, match="gap must be greater than 0; got 0"):
        MergingDetector(0)
    with pytest.raises(ValueError, match="resolution must be greater than 0; got -1"):
        MergingDetector(1, resolution=-1)
    tree = MergingDetector(0.5)(on_a_line([0, 1], [0, 0]))
    with pytest.raises(ValueError, match="t must lie in the run, 0 to 1; got 2"):
        tree.clusters_at(2)
    with pytest.raises(ValueError, match="roof must be greater than 1; got 1"):
        tree.linkage(roof=1)


def test_a_record_of_a_tree_keeps_its_times():
    arrays = MergingDetector(0.5)(on_a_line([0, 0.1, 5], [0, 3, 5], [0, 0, 0])).arrays()
    np.testing.assert_array_equal(arrays["times"], [2, 2])
    np.testing.assert_array_equal(arrays["splits"], [1])
    assert arrays["consensus_time"] == 2
    assert MergingDetector(0.5)(on_a_line([0, 5], [0, 5])).arrays()["consensus_time"] == np.inf
