"""Merge trees on a small start: whole records, and the variants that are the same flow on the sphere."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage

import meanfield as mf
from experiments import merge_trees

CASE = {"n": 7, "d": 3, "beta": 2.0, "horizon": 30.0, "outputs": 41, "replica": 0}


@pytest.fixture(scope="module")
def record():
    return merge_trees.run(CASE, np.random.default_rng(1))


@pytest.mark.parametrize("name", mf.ATTENTION)
def test_every_variant_has_a_tree_that_agrees_with_its_counts(record, name):
    linkage, times, counts = record[f"{name}_linkage"], record[f"{name}_times"], record[f"{name}_counts"]
    assert is_valid_linkage(linkage)
    np.testing.assert_array_equal(linkage[: len(times), 2], times)
    assert (linkage[len(times) :, 2] > record[f"{name}_instants"][-1]).all()
    assert len(times) == CASE["n"] - counts[-1]
    assert (counts[-1] == 1) == np.isfinite(record[f"{name}_consensus"])
    assert -1 <= record[f"{name}_agreement"] <= 1
    assert record[f"{name}_splits"] >= 0


def test_softmax_agrees_with_itself_and_the_linear_flow_leaves_two_clusters(record):
    """x' = P_x(M x) takes almost every token to one of the two leading eigenvectors of M."""
    assert record["softmax_agreement"] == pytest.approx(1.0)
    assert record["linear_counts"][-1] == 2


def test_trees_without_a_merge_have_no_order_to_agree_on():
    assert np.isnan(merge_trees.agreement(np.ones(3), np.arange(3)))
    assert merge_trees.agreement(np.array([1, 2, 5]), np.array([3, 4, 9])) == pytest.approx(1.0)
    assert merge_trees.agreement(np.array([1, 2, 5]), np.array([9, 4, 3])) == pytest.approx(-1.0)


def test_on_the_sphere_l2_attention_is_softmax_at_twice_the_temperature():
    """-beta |x - y|^2 = -2 beta + 2 beta <x, y>: the same rows, so the same merges up to the tolerance of the runs."""
    start = mf.Measure(merge_trees.SPACE.retract(np.random.default_rng(2).normal(size=(7, 3))))
    l2 = merge_trees.merge_tree("l2", CASE, start)
    softmax = merge_trees.merge_tree("softmax", CASE | {"beta": 4.0}, start)
    np.testing.assert_allclose(l2.times, softmax.times, rtol=1e-5)
