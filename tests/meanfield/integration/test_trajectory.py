"""Trajectories: reading, measuring, and real layers as a run."""

import importlib.util

import numpy as np
import pytest

from meanfield import Gaussian, Head, Measure, Outcome, SoftmaxAttention, Trajectory, simulate

TIMES = [0.0, 0.5, 1.0]
TOKENS = Measure([[1.0, 0.0], [0.0, 2.0]], [0.25, 0.75])
FIELD = SoftmaxAttention(Head.identity(2))


@pytest.fixture(scope="module")
def particles():
    return simulate(FIELD, TOKENS, TIMES)


@pytest.fixture(scope="module")
def gaussians():
    return simulate(FIELD, Gaussian([1.0, 0.0], [[0.2, 0.1], [0.1, 0.1]]), TIMES)


def test_indices_give_states_and_slices_give_lists_of_them(particles):
    np.testing.assert_array_equal(particles[1].points, particles.arrays[1])
    np.testing.assert_array_equal(particles[-1].points, particles.arrays[2])
    assert particles[0].weights is TOKENS.weights
    assert [len(state) for state in particles[1:]] == [2, 2]


@pytest.mark.parametrize(("index", "error"), [(3, IndexError), (-4, IndexError), (0.5, TypeError), ("last", TypeError)])
def test_an_index_that_is_none_is_an_error(particles, index, error):
    with pytest.raises(error, match=r"index|integer"):
        particles[index]


def test_iteration_runs_over_states_and_items_over_times_and_states(particles):
    assert len(particles) == 3
    for k, (state, (t, same)) in enumerate(zip(particles, particles.items(), strict=True)):
        assert t == TIMES[k]
        np.testing.assert_array_equal(state.points, same.points)


def test_the_arrays_cannot_be_changed_behind_the_trajectory(particles):
    with pytest.raises(ValueError, match="read-only"):
        particles[0].points[0, 0] = 7.0
    with pytest.raises(ValueError, match="read-only"):
        particles.times[0] = 7.0


def test_observe_stacks_a_function_of_the_states(particles, gaussians):
    np.testing.assert_array_equal(particles.observe(len), [2, 2, 2])
    assert gaussians.observe(lambda law: law.covariance).shape == (3, 2, 2)


def test_a_gaussian_run_holds_mean_and_root(gaussians):
    assert isinstance(gaussians[2], Gaussian)
    L = gaussians.arrays[2][:, 1:]
    np.testing.assert_array_equal(gaussians[2].covariance, L @ L.T)


def test_a_finished_run_says_what_it_cost(particles):
    assert particles.outcome is Outcome.FINISHED
    assert particles.blow_up_time is None
    assert particles.statistics.evaluations > particles.statistics.steps > 0
    assert particles.statistics.seconds > 0
    assert particles.event_times == []


def test_real_layers_are_a_trajectory_with_the_layer_as_time():
    layers = [np.full((3, 2), float(k)) for k in range(4)]
    run = Trajectory.from_hidden_states(layers, weights=[0.5, 0.25, 0.25])
    assert run.times.tolist() == [0.0, 1.0, 2.0, 3.0]
    np.testing.assert_array_equal(run.observe(lambda mu: mu.mean[0]), [0, 1, 2, 3])
    assert run.last.time == 3.0
    assert run[2].weights.tolist() == [0.5, 0.25, 0.25]
    layers[0][:] = 9
    assert run[0].points.max() == 0


@pytest.mark.parametrize("layers", [[], [np.ones((3, 2)), np.ones((2, 2))]])
def test_layers_of_several_shapes_are_refused(layers):
    with pytest.raises(ValueError, match=r"layers must be a list of arrays of one shape \(n, d\)"):
        Trajectory.from_hidden_states(layers)


def test_real_layers_cannot_be_integrated():
    run = Trajectory.from_hidden_states([np.ones((3, 2))] * 2)
    with pytest.raises(ValueError, match="read, not integrated"):
        run.flow.rate(0.0, run.arrays[0])


@pytest.mark.skipif(importlib.util.find_spec("xarray") is not None, reason="xarray is installed")
def test_without_xarray_the_message_says_how_to_get_it(particles):
    with pytest.raises(ImportError, match=r"pip install 'meanfield\[xarray\]'"):
        particles.to_xarray()


@pytest.mark.skipif(importlib.util.find_spec("xarray") is None, reason="needs the extra xarray")
def test_to_xarray_names_every_axis(particles, gaussians):
    points = particles.to_xarray()
    assert points["points"].dims == ("time", "token", "coordinate")
    assert points.attrs["outcome"] == "FINISHED"
    laws = gaussians.to_xarray()
    assert laws["covariance"].dims == ("time", "coordinate", "coordinate_")
    np.testing.assert_allclose(laws["covariance"][2], gaussians[2].covariance, rtol=1e-15)
    np.testing.assert_array_equal(laws["mean"][1], gaussians[1].mean)
