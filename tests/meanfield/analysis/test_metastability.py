"""Plateaus of numbers made by hand, and a run whose clusters wait before they merge."""

from itertools import pairwise

import numpy as np
import pytest

import meanfield as mf
from meanfield.analysis.metastability import ClusterCount, MetastabilityDetector, plateaus
from meanfield.analysis.observables import rescaled


def test_plateaus_of_a_staircase():
    times = np.arange(10.0)
    found = plateaus(times, [5, 5, 5, 4, 3, 3, 3, 3, 1, 1], 2)
    assert [tuple(one) for one in found] == [(0, 2, 5, True), (4, 7, 3, True)]
    assert found[1].duration == 3


def test_the_longest_stretch_is_taken_before_its_neighbours():
    """From the left, 0 to 0.8 would be the first stretch within 1; the level from 0.8 on is longer."""
    found = plateaus(np.arange(8), [0, 0.4, 0.8, 1.2, 1.2, 1.2, 1.2, 1.2], 1, tolerance=0.5)
    assert [(one.start, one.end) for one in found] == [(0, 1), (2, 7)]
    assert not found[1].ended


@pytest.mark.parametrize("seed", range(5))
def test_a_plateau_keeps_its_range_and_no_longer_one_exists(seed):
    values = np.random.default_rng(seed).normal(size=60).cumsum()
    times = np.arange(60.0)
    found = plateaus(times, values, 1, tolerance=2.0)
    longest = max(
        (b - a for a in range(60) for b in range(a, 60) if np.ptp(values[a : b + 1]) <= 2.0),
    )
    assert max(one.duration for one in found) == longest
    for one in found:
        assert np.ptp(values[int(one.start) : int(one.end) + 1]) <= 2.0
    assert all(one.end < other.start for one, other in pairwise(found))


def test_a_clock_measures_durations():
    times = np.array([1, 10, 100, 110, 120, 130.0])
    values = [2, 2, 2, 1, 1, 1]
    assert [one.level for one in plateaus(times, values, 1.5, clock=np.log10)] == [2]
    assert [one.level for one in plateaus(times, values, 15)] == [2, 1]
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="A logarithmic clock needs times above 0"):
        plateaus(times - 1, values, 1, clock=np.log10)


def test_two_clusters_that_wait_before_they_merge_are_metastable():
    """At beta = 4 tokens 0.2 apart merge soon, pairs 2 apart later by a factor e^{4 (1 - cos 2)} = 290."""
    angles = np.array([0, 0.2, 2.0, 2.2])
    start = mf.Measure(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    field = mf.SoftmaxAttention(mf.Head.identity(2, beta=4))
    times = np.concatenate([[0.0], np.geomspace(0.01, 300, 51)])
    run = mf.simulate(field, start, times, space=mf.Sphere())
    detector = MetastabilityDetector(ClusterCount(0.1, space=mf.Sphere()), 20.0)
    verdict = detector(run)
    assert verdict.happened
    assert [(one.level, one.ended) for one in verdict.evidence["plateaus"]] == [(2, True), (1, False)]
    assert verdict.time == verdict.evidence["plateaus"][0].start < 5
    short = detector(mf.simulate(field, start, times[times < 20], space=mf.Sphere()))
    assert (short.happened, short.time) == (False, None)
    cut = detector(mf.simulate(field, start, times, space=mf.Sphere(), max_evaluations=30))
    assert cut.happened is None


def test_clusters_are_counted_in_the_coordinates_of_a_view():
    measure = mf.Measure([[0.0], [np.e]])
    assert ClusterCount(1.5)(1.0, measure) == 2
    assert ClusterCount(1.5, view=rescaled(np.eye(1)))(1.0, measure) == 1


def test_bad_input_is_said():
    with pytest.raises(ValueError, match="values must be one a time; got 2 values at 3 times"):
        plateaus([0, 1, 2], [1, 1], 1)
    with pytest.raises(ValueError, match="shortest must be greater than 0; got 0"):
        MetastabilityDetector(ClusterCount(1.0), 0)
    with pytest.raises(ValueError, match="observable must be callable"):
        MetastabilityDetector(0.1, 1.0)
