"""The staircase: levels counted by hand, merge times by the law and by another integrator, fields of the package."""

import numpy as np
import pytest

import meanfield as mf
from experiments import staircase
from meanfield.gradient_flow.staircase import published_start
from meanfield.gradient_flow.staircase import staircase as at_unit_speed


@pytest.fixture(scope="module")
def results():
    return {(case["attention"], case["beta"]): staircase.run(case, None) for case in staircase.cases(True)}


def test_the_full_set_has_the_published_temperatures_for_both_attentions():
    assert {(case["attention"], case["beta"]) for case in staircase.cases(False)} == {
        (name, beta) for name in ("unnormalised", "softmax") for beta in (500, 1000, 1500, 2000, 3000, 4000)
    }


def test_the_energy_never_falls_and_rests_at_the_levels_of_its_clusters(results):
    for (_, beta), run in results.items():
        # a level is e^{beta (...)} of numbers near 1, so round-off is beta times larger
        assert np.diff(run["level"]).min() >= -beta * 4 * np.finfo(float).eps
        np.testing.assert_allclose(run["plateaus"], [0.20, 0.28, 0.44, 0.52, 1.0], rtol=1e-12)
        np.testing.assert_allclose(run["masses"].sum(axis=1), 1.0, rtol=1e-12)
    cold = results["unnormalised", 4000]
    for end, level in zip(cold["merge_lengths"], cold["plateaus"][1:], strict=True):
        # just after a merge the others are still far: the nearest gap, 0.1487, adds 2 * 3/25 e^{-beta 0.011}
        assert cold["level"][np.searchsorted(cold["length"], end)] == pytest.approx(level, abs=1e-6)


def test_times_and_lengths_only_grow(results):
    for run in results.values():
        assert (np.diff(run["length"]) >= 0).all()
        # once a time has saturated it wavers by the tolerance of the run, 1e-8
        assert (np.diff(run["log_time"][1:]) >= -1e-8).all()
        assert (np.diff(run["merge_log_times"]) > 0).all()


@pytest.mark.parametrize(("attention", "beta"), [("unnormalised", 4000), ("unnormalised", 2000), ("softmax", 2000)])
def test_merge_times_follow_the_law_of_the_nearest_pair(results, attention, beta):
    run = results[attention, beta]
    # the next pair moves e^{-beta (difference of cosines)} as fast: 1e-3 of a decade at 2000, nothing at 4000
    tolerance = 1e-3 if beta == 2000 else 1e-5
    np.testing.assert_allclose(run["merge_log_times"], run["predicted_log_times"], atol=tolerance)


def test_the_law_of_the_nearest_pair_is_exact_for_a_pair():
    gap, beta = 0.3, 300.0
    angles, weights = np.array([0.0, gap]), np.ones(2) / 2
    for power in staircase.POWERS.values():
        phase, unit = staircase.until_contact(angles, weights, beta, power)
        measured = np.log10(unit * phase.last.state.points[0, 1])
        # rtol 1e-8 of the run, relative to the time
        assert measured == pytest.approx(staircase.merge_law(angles, beta, power)[0], abs=1e-7)
        assert phase.last.state.points[:, 0].mean() == pytest.approx(gap / 2, abs=1e-9)


def test_another_integrator_in_coordinates_of_the_plane_agrees(results):
    other = at_unit_speed(published_start(), 500, glue=staircase.GLUE, samples=150)
    run = results["unnormalised", 500]
    np.testing.assert_allclose(other.plateaus, run["plateaus"], rtol=1e-12)
    # its time is a sum over 150 samples a stage of a slowness that is nearly exponential between them
    np.testing.assert_allclose(other.merge_log_times / np.log(10), run["merge_log_times"], atol=2e-2)
    # its arc length weighs by masses and goes on in W_2; ours is that of the clusters' angles
    assert (np.diff(other.merge_arcs) > 0).all()


def test_velocities_in_angles_are_those_of_the_attention_fields():
    angles, weights, beta = np.array([0.0, 0.4, 1.5]), np.array([0.2, 0.5, 0.3]), 3.0
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    mu, head = mf.Measure(points, weights), mf.Head.identity(2, beta=beta)
    east = np.column_stack([-np.sin(angles), np.cos(angles)])
    for name, scale in (("unnormalised", np.exp(-beta)), ("softmax", 1.0)):
        expected = scale * np.sum(mf.make_attention(name, head)(0.0, points, mu) * east, axis=1)
        found = staircase.velocity(angles, weights, beta, staircase.POWERS[name])
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_gluing_earlier_changes_only_the_last_logarithm_of_a_merge(results, monkeypatch):
    monkeypatch.setattr(staircase, "GLUE", 1e-4)
    early = staircase.run({"beta": 2000, "attention": "unnormalised"}, None)
    # the first merge takes time ln(gap / glue) at rate 1; the later ones are e^{18} times longer and do not see it
    np.testing.assert_allclose(
        early["merge_log_times"][1:], results["unnormalised", 2000]["merge_log_times"][1:], atol=1e-5
    )


def test_clusters_that_never_meet_are_an_error(monkeypatch):
    monkeypatch.setattr(staircase, "LONGEST", 0.2)
    with pytest.raises(ArithmeticError, match="no two clusters met at beta = 500: FINISHED"):
        staircase.run({"beta": 500, "attention": "softmax"}, None)
