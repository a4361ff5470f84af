"""The experiment on real tokens: what it measures, how it ties time to depth, and what it finds."""

import numpy as np
import pytest

import meanfield as mf
from experiments import real_tokens
from experiments.data import load_real_tokens


@pytest.fixture(scope="module")
def results():
    cases = [case | {"sentences": 2} for case in real_tokens.cases(True) if case["beta"] == 4.0]
    return {case["space"]: real_tokens.run(case, None) for case in cases}


@pytest.mark.parametrize("space", real_tokens.SPACES)
def test_arrays_are_finite_and_observables_lie_in_their_bounds(results, space):
    found = results[space]
    assert found["finished"] == 2
    assert np.isfinite(found["simulated"]).all()
    assert np.isfinite(found["layers"][:, :, :4]).all()
    assert np.isnan(found["layers"][:, -1, 4]).all(), "no layer reads the last state"
    for runs in (found["simulated"], found["layers"]):
        cosine, rank, size, clusters, entropy = np.moveaxis(runs, -1, 0)
        assert (np.abs(cosine) <= 1 + 1e-12).all()
        assert ((rank > 0) & (rank <= 1)).all()
        assert (size > 1).all()
        assert ((clusters > 0) & (clusters <= 1)).all()
        assert ((entropy[:, :-1] >= -1e-12) & (entropy[:, :-1] <= 1 + 1e-12)).all()
    np.testing.assert_allclose(found["simulated"][:, 0, :4], found["layers"][:, 0, :4], rtol=1e-9)


def test_only_on_the_sphere_do_simulated_tokens_turn_towards_each_other(results):
    # sphere: the layers' mean cosine gains about 0.35 and the run at its matched times at least half of it; in R^d
    # the tokens are centred and V = I keeps the mean nearly where it is
    gain = {space: run["matched"][-1, 0] - run["matched"][0, 0] for space, run in results.items()}
    assert gain["sphere"] > 0.15
    assert abs(gain["euclidean"]) < 0.02
    assert results["sphere"]["score"] < 0.75 * results["sphere"]["score_at_rest"]


def test_the_coordinates_of_the_span_give_the_run_of_all_384():
    states = load_real_tokens()[0][2]
    tokens = real_tokens.placed(states, "euclidean")[0][:6]
    case = {"variant": "softmax", "beta": 4.0, "space": "euclidean", "horizon": 1.0}
    short, field = real_tokens.simulated_run(case, tokens)
    assert field.head.dimension == 6
    full = mf.simulate(mf.SoftmaxAttention(mf.Head.identity(384, 4.0)), mf.Measure(tokens), [0.0, 1.0], progress=False)
    gram = full[-1].points @ full[-1].points.T
    # rtol 1e-6 a step, over a growth by e
    np.testing.assert_allclose(short[-1].points @ short[-1].points.T, gram, atol=1e-4)


def test_the_fit_of_time_finds_the_step_a_curve_was_made_with_and_rest_when_nothing_helps():
    times = np.linspace(0, 6, 61)
    curve = np.column_stack([times, times**2, np.sqrt(1 + times), np.exp(-times), np.cos(times)])
    layers = np.array([[np.interp(0.3 * k, times, column) for column in curve.T] for k in range(7)])
    found = real_tokens.fit_time(times, curve, layers)
    assert found["time_per_layer"] == pytest.approx(0.3)
    assert found["score"] == pytest.approx(0, abs=1e-12)
    assert found["followed"] == 5
    away = 2 * layers[0] - curve
    assert real_tokens.fit_time(times, away, layers)["time_per_layer"] == 0
