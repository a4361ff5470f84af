"""Clusters that no order of the tokens changes, and the two first detectors: clustering and blow-up."""

import re
from itertools import permutations

import numpy as np
import pytest

from meanfield import (
    RK4,
    BlowUpDetector,
    ClusteringDetector,
    Euclidean,
    Event,
    Gaussian,
    Head,
    Measure,
    Outcome,
    SoftmaxAttention,
    Sphere,
    clusters,
    simulate,
)
from meanfield.analysis import clustering
from meanfield.analysis.observables import rescaled

CHAIN = np.array([0, 0.9, 1.8, 5, 5])
GROW = SoftmaxAttention(Head.identity(1))


@pytest.mark.parametrize(("gap", "expected"), [(1, [[0, 1, 2], [3, 4]]), (0.5, [[0], [1], [2], [3, 4]])])
def test_no_order_of_the_tokens_changes_the_clusters(gap, expected):
    for order in permutations(range(5)):
        found = clusters(Measure(CHAIN[list(order), None]), gap)
        groups = [sorted(order[i] for i in np.flatnonzero(found.labels == c)) for c in range(found.count)]
        assert sorted(groups) == expected
        assert found.sizes.sum() == 5
        # Numbered by the smallest index in each: a label that is new is the next one.
        assert [label for k, label in enumerate(found.labels) if label not in found.labels[:k]] == list(
            range(len(expected))
        )


def test_clusters_in_blocks_are_the_same(monkeypatch):
    cloud = Measure(np.random.default_rng(0).uniform(size=(60, 2)))
    whole = clusters(cloud, 0.12).labels
    monkeypatch.setattr(clustering, "BLOCK_PAIRS", 40)
    assert np.array_equal(clusters(cloud, 0.12).labels, whole)


def test_masses_and_centres_are_weighted_and_padding_belongs_nowhere():
    found = clusters(Measure([[0.0], [1.0], [9.0], [0.5]], [0.1, 0.3, 0.6, 0.0]), 1.0)
    assert found.labels.tolist() == [0, 0, 1, -1]
    assert found.masses == pytest.approx([0.4, 0.6], rel=1e-15)
    assert found.centres[:, 0] == pytest.approx([0.75, 9], rel=1e-15)
    assert found.sizes.tolist() == [2, 1]
    assert np.asarray(found).tolist() == [0, 0, 1, -1]


def test_a_far_cloud_a_sphere_and_one_token_have_their_clusters():
    assert len(clusters(Measure([[1e12], [1e12 + 1]]), 0.75)) == 2
    quarter = Measure([[1.0, 0.0], [0.0, 1.0]])
    assert clusters(quarter, 1.5, space=Euclidean()).count == 1
    assert clusters(quarter, 1.5, space=Sphere()).count == 2
    assert clusters(Measure([[2.0]]), 1e-9).count == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: clusters(Measure([[0.0]]), 0), "gap must be greater than 0; got 0"),
        (lambda: clusters(Gaussian([0], [[1]]), 1), "found in a Measure; got Gaussian"),
        (lambda: ClusteringDetector(np.nan), "gap must be finite"),
        (lambda: ClusteringDetector(1, at_most=0.5), "at_most must be a whole number"),
    ],
)
def test_what_has_no_clusters_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_tokens_on_the_sphere_cluster_and_the_time_is_the_first_output_from_which_they_stay_together():
    start = Measure([[1.0, 0.0], [0.0, 1.0]])
    run = simulate(SoftmaxAttention(Head.identity(2, 0.0)), start, np.linspace(0, 3, 31), space=Sphere())
    verdict = ClusteringDetector(0.5, space=Sphere())(run)
    # cos(angle) = tanh t: the angle passes 0.5 at artanh(cos 0.5) = 1.366.
    assert verdict
    assert verdict.time == pytest.approx(1.4, abs=1e-12)
    assert verdict.evidence["counts"].tolist() == [2] * 14 + [1] * 17
    assert verdict.evidence["diameter"] == pytest.approx(np.arccos(np.tanh(3)), rel=1e-6)


def test_tokens_that_only_drift_together_in_rescaled_coordinates_cluster_there_alone():
    # Uniform weights: the difference stays 0.2, and is 0.2 e^{-t} in rescaled coordinates.
    uniform = SoftmaxAttention(Head([[0.0]], [[1.0]], [[1.0]]))
    run = simulate(uniform, Measure([[1.0], [1.2]]), [0.0, 1.0, 2.0])
    assert not ClusteringDetector(0.1)(run)
    assert ClusteringDetector(0.1, view=rescaled([[1.0]]))(run).time == 1.0


def test_a_gaussian_clusters_in_the_directions_that_are_left():
    head = Head([[1.0, 0.0]], [[-1.0, 0.0]], np.eye(2))
    run = simulate(SoftmaxAttention(head), Gaussian([0, 0], np.eye(2)), [0.0, 1.0, 60.0])
    # s_11 = 1 / (1 + 2 t): a standard deviation of 0.0909 at t = 60.
    verdict = ClusteringDetector(0.1)(run)
    assert verdict
    assert verdict.time == 60.0
    assert verdict.evidence["counts"].tolist() == [2, 2, 1]
    assert not ClusteringDetector(0.1, at_most=0)(run)


def test_a_confirmed_pole_is_a_blow_up_with_its_time():
    verdict = BlowUpDetector()(simulate(GROW, Gaussian([1.0], [[1.0]]), [0.0, 0.25, 1.0]))
    assert verdict.happened is True
    assert verdict.time == pytest.approx(0.5, rel=1e-8)
    assert verdict.evidence["data"] == "Gaussian"


def test_growth_to_the_end_is_no_blow_up_and_the_evidence_says_how_large():
    verdict = BlowUpDetector()(simulate(GROW, Measure([[1.0], [-2.0]]), [0.0, 3.0]))
    assert verdict.happened is False
    assert verdict.time is None
    assert verdict.evidence["data"] == "2 tokens"
    assert 1 < verdict.evidence["growth"] <= np.exp(3)


@pytest.mark.parametrize(
    ("options", "outcome", "reason"),
    [
        ({"max_evaluations": 30}, Outcome.LIMIT, "max_evaluations = 30 .* A pole was not confirmed"),
        ({"events": Event(lambda t, law: t - 0.1, terminal=True)}, Outcome.STOPPED, "terminal event"),
        ({"scheme": RK4, "dt": 0.1}, Outcome.NOT_FINITE, "overflowed .* A pole was not confirmed"),
    ],
)
def test_a_run_that_ended_in_any_other_way_is_undecided(options, outcome, reason):
    run = simulate(GROW, Gaussian([1.0], [[1.0]]), [0.0, 5.0], **options)
    verdict = BlowUpDetector()(run)
    assert run.outcome is outcome
    assert verdict.happened is None
    assert re.search(reason, verdict.evidence["reason"])
