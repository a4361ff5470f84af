"""Heads over time: the batch of heads against the package, G^2 against H, and whose identity closes."""

import numpy as np
import pytest

import meanfield as mf
from experiments import FULL
from experiments import heads_over_time as experiment
from meanfield.gradient_flow.metric import HeadsMobility, TwistedMetric
from meanfield.gradient_flow.moving_heads import oscillating_heads, ou_heads


@pytest.fixture(scope="module")
def identities():
    cases = [case for case in experiment.cases(True) if case["kind"] == "identity"]
    return {
        (case["motion"], case["heads"]): experiment.run(case | {"n": 6}, np.random.default_rng(2)) for case in cases
    }


def decay(motion, heads, seed=0, n=12, horizon=6.0):
    case = {"kind": "decay", "motion": motion, "heads": heads, "n": n, "d": 3, "horizon": horizon}
    return experiment.run(case, np.random.default_rng(seed))


def test_full_size_has_the_published_numbers(monkeypatch):
    monkeypatch.setenv(FULL, "1")
    sizes = {(c["d"], c["heads"], c["n"], c["horizon"]) for c in experiment.cases(False) if c["kind"] == "decay"}
    sphere = {(3, count, 200, 20.0) for count in (1, 10, 100)}
    assert sizes == sphere | {(2, count, 100, 20.0) for count in (1, 5, 20)}


@pytest.mark.parametrize("make", [lambda rng: ou_heads(5, 0.2, rng), lambda rng: oscillating_heads(5, rng)])
def test_all_heads_at_once_are_the_fields_and_energies_of_the_package(make):
    rng = np.random.default_rng(1)
    heads, mu = make(rng), mf.Measure(mf.Sphere().retract(rng.standard_normal((7, 3))))
    t, x = 0.1234, mu.points
    matrices = heads.matrix(slice(None), t)
    np.testing.assert_allclose(matrices, [heads.matrix(h, t) for h in range(5)], rtol=1e-15)
    velocity = heads.field()(t, x, mu)
    np.testing.assert_allclose(-experiment.head_means(matrices, x)[0].mean(axis=0), velocity, rtol=1e-12, atol=1e-14)
    energy, rate, squared = experiment.balance(matrices, x)
    now = heads.energy().at(t)
    tangent = mf.Sphere().tangent(x, velocity)
    assert energy == pytest.approx(now.value(mu), rel=1e-12)
    assert rate == pytest.approx(-now.derivative(mu, tangent), rel=1e-12)
    metric = TwistedMetric(-np.eye(3), HeadsMobility(tuple(matrices)))
    assert squared == pytest.approx(metric.squared_norm(mu, tangent), rel=1e-12)


def test_the_start_has_its_clusters_on_the_axes():
    start = experiment.clusters(600, 3, np.random.default_rng(0))
    nearest = np.abs(start.points).max(axis=1)
    # the angle to the axis is 0.05 sqrt(2) on average in two directions: 1 - cos is 0.05^2
    assert np.mean(1 - nearest) == pytest.approx(experiment.NOISE**2, rel=0.2)
    np.testing.assert_allclose(start.mean, 0.0, atol=0.01)
    assert experiment.clusters(8, 2, np.random.default_rng(0)).points.shape == (8, 2)


def test_one_head_dissipates_its_energy_at_the_rate_of_g_squared_and_more_do_not():
    for motion in experiment.MOTIONS:
        assert decay(motion, 1, horizon=1.0)["gap"] < 1e-13
        assert decay(motion, 10, horizon=1.0)["gap"] > 0.05


def test_g_squared_falls_with_the_number_of_random_heads_and_not_of_oscillating_ones():
    counts = np.array([1, 32])
    slopes = {}
    for motion in experiment.MOTIONS:
        late = [
            np.mean([decay(motion, count, seed, n=8, horizon=4.0)["late"] for seed in range(2)]) for count in counts
        ]
        slopes[motion] = np.polyfit(np.log(counts), np.log(late), 1)[0]
    # a late mean of two draws has a spread of a factor 2, that is 0.3 in a slope over ln 32
    assert slopes["noise"] == pytest.approx(-1.0, abs=0.35)
    assert slopes["oscillation"] == pytest.approx(0.0, abs=0.35)


def test_runs_stay_on_the_sphere_with_positive_energies():
    run = decay("noise", 3, horizon=1.0)
    np.testing.assert_allclose(np.linalg.norm(run["final"], axis=1), 1.0, rtol=1e-14)
    assert (run["energies"] > 0).all()
    assert len(run["times"]) == 21


@pytest.mark.parametrize("motion", experiment.MOTIONS)
def test_the_identity_closes_with_order_two_for_one_head_and_not_for_three(identities, motion):
    # the work of the heads is summed by the trapezoidal rule
    assert identities[motion, 1]["order"] == pytest.approx(2.0, abs=0.3)
    assert abs(identities[motion, 3]["order"]) < 0.5
    assert identities[motion, 3]["residual"][-1] > 0.01
    for count in (1, 3):
        assert identities[motion, count]["chain_order"] == pytest.approx(2.0, abs=0.3)
