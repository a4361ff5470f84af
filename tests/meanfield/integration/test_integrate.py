"""The loop: output times, outcomes, limits, and what it refuses."""

import sys

import numpy as np
import pytest

from meanfield import (
    EULER,
    HEUN,
    RK4,
    Adaptive,
    AffinePerceptron,
    Euclidean,
    Gaussian,
    GaussianFlow,
    Head,
    L2Attention,
    LieTrotter,
    Measure,
    NotGaussianError,
    Outcome,
    ParticleFlow,
    SinkhornAttention,
    SoftmaxAttention,
    Sphere,
    SplitFlow,
    integrate,
    simulate,
)
from meanfield.integration import METHODS

ONE = Measure([[1.0]])
GROW = SoftmaxAttention(Head.identity(1))


def split(*spaces):
    start = Measure([[1.0, 0.0]])
    return SplitFlow(tuple(ParticleFlow(AffinePerceptron(np.eye(2)), start, space) for space in spaces))


@pytest.mark.parametrize("scheme", [Adaptive(), EULER, RK4], ids=repr)
@pytest.mark.parametrize("start", [0.0, -0.3, 1e9])
def test_reached_output_times_are_those_asked_for_to_the_last_bit(scheme, start):
    times = start + np.array([0.0, 0.1, 0.3, 0.7, 0.7 + 2**-20, 1.0])
    run = simulate(GROW, ONE, times, scheme=scheme, dt=None if isinstance(scheme, Adaptive) else 0.05)
    assert run.times.tolist() == times.tolist()
    assert run.last.time == times[-1]
    np.testing.assert_array_equal(run.last.state.points, run.arrays[-1])


def test_a_last_time_just_above_a_round_number_is_taken():
    # A user's report.
    times = np.arange(0, 0.3 + 0.1, 0.1)
    run = simulate(GROW, ONE, times)
    assert run.times.tolist() == times.tolist()
    np.testing.assert_allclose(run.arrays[:, 0, 0], np.exp(times), rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_states_between_steps_are_as_good_as_those_at_steps(method):
    times = np.linspace(0.0, 2.0, 41)
    run = simulate(GROW, ONE, times, scheme=Adaptive(method, rtol=1e-6, atol=1e-8))
    np.testing.assert_allclose(run.arrays[:, 0, 0], np.exp(times), rtol=1e-4)


def test_output_times_one_spacing_apart_are_all_hit():
    times = [0.0, 0.5, np.nextafter(0.5, 1), np.nextafter(np.nextafter(0.5, 1), 1), 1.0]
    for scheme, dt in ((Adaptive(), None), (EULER, 0.1)):
        run = simulate(GROW, ONE, times, scheme=scheme, dt=dt)
        assert run.times.tolist() == times
        assert (np.diff(run.arrays[:, 0, 0]) >= 0).all()


@pytest.mark.parametrize(("scheme", "dt"), [(Adaptive(), None), (EULER, 0.1)])
def test_one_output_time_gives_the_start_back(scheme, dt):
    run = simulate(GROW, ONE, [2.5], scheme=scheme, dt=dt)
    assert run.outcome is Outcome.FINISHED
    assert run.times.tolist() == [2.5]
    assert run.last.time == 2.5
    assert run.statistics.evaluations == 0
    np.testing.assert_array_equal(run[0].points, ONE.points)


def test_a_large_start_and_a_field_that_works_in_place_leave_the_callers_array_unchanged():
    # A user's report.
    x0 = np.random.default_rng(0).standard_normal((400, 400))
    before = x0.copy()

    def in_place(t, x, mu):
        x *= -1
        return x

    for scheme, dt in ((Adaptive(rtol=1e-6), None), (RK4, 0.1)):
        run = simulate(in_place, Measure(x0), [0.0, 1.0], scheme=scheme, dt=dt)
        np.testing.assert_allclose(run[-1].points, np.exp(-1) * x0, rtol=1e-5)
        np.testing.assert_array_equal(run[0].points, x0)
    np.testing.assert_array_equal(x0, before)


@pytest.mark.parametrize("method", METHODS)
def test_a_field_that_reuses_its_buffer_gives_the_same_run(method):
    buffer = np.empty((2, 1))

    def reused(t, x, mu):
        np.multiply(np.cos(t), x, out=buffer)
        return buffer

    start, scheme = Measure([[1.0], [2.0]]), Adaptive(method, rtol=1e-6)
    fresh = simulate(lambda t, x, mu: np.cos(t) * x, start, [0.0, 1.0, 2.0], scheme=scheme)
    np.testing.assert_array_equal(simulate(reused, start, [0.0, 1.0, 2.0], scheme=scheme).arrays, fresh.arrays)


def test_a_sinkhorn_run_that_misses_its_marginals_is_not_converged():
    tokens = Measure(np.random.default_rng(1).standard_normal((20, 2)))
    hard = SinkhornAttention(Head.identity(2, 3.0), max_products=2)
    for scheme, dt in ((Adaptive(), None), (EULER, 0.1)):
        run = simulate(hard, tokens, [0.0, 1.0], scheme=scheme, dt=dt)
        assert run.outcome is Outcome.NOT_CONVERGED
        assert run.times.tolist() == [0.0]
        assert "missed its marginals by" in run.message


@pytest.mark.parametrize(("scheme", "dt"), [(Adaptive(), None), (HEUN, 0.01)])
def test_a_limit_on_evaluations_is_met_exactly_and_keeps_what_came_before(scheme, dt):
    run = simulate(GROW, ONE, np.linspace(0.0, 50.0, 501), scheme=scheme, dt=dt, max_evaluations=300)
    assert run.outcome is Outcome.LIMIT
    assert run.statistics.evaluations == 300
    assert 1 < len(run) < 501
    np.testing.assert_allclose(run.arrays[:, 0, 0], np.exp(run.times), rtol=1e-3)
    assert run.times[-1] <= run.last.time < 50
    assert run.last.state.points[0, 0] == pytest.approx(np.exp(run.last.time), rel=1e-3)
    assert "max_evaluations = 300 was met at t = " in run.message


@pytest.mark.parametrize(("scheme", "dt"), [(Adaptive(), None), (EULER, 1e-3)])
def test_a_limit_on_seconds_ends_the_run(scheme, dt):
    run = simulate(GROW, ONE, [0.0, 1.0], scheme=scheme, dt=dt, max_seconds=1e-9)
    assert run.outcome is Outcome.LIMIT
    assert run.times.tolist() == [0.0]
    assert "max_seconds = 1e-09 was met" in run.message


def test_an_adaptive_run_has_a_limit_of_its_own_on_evaluations(monkeypatch):
    module = sys.modules["meanfield.integration.integrate"]
    assert module.MAX_EVALUATIONS == 100_000
    monkeypatch.setattr(module, "MAX_EVALUATIONS", 1000)
    # A sign that flips for ever: without a limit this would not end in a lifetime.
    run = simulate(lambda t, x, mu: -1e8 * np.sign(x), ONE, [0.0, 1.0])
    assert run.outcome is Outcome.LIMIT
    assert run.statistics.evaluations == 1000


@pytest.mark.parametrize("variant", [L2Attention, SinkhornAttention])
def test_a_covariance_that_overflows_in_a_fixed_step_is_not_finite(variant):
    law = Gaussian([0.0, 0.0], np.eye(2))
    head = Head(np.eye(2), 1e-3 * np.eye(2), 1e150 * np.eye(2))
    run = simulate(variant(head), law, [0.0, 1.0, 10.0], scheme=RK4, dt=1.0)
    assert run.outcome is Outcome.NOT_FINITE
    assert np.isfinite(run.arrays).all()


def test_a_token_that_steps_to_the_centre_of_its_sphere_is_not_finite():
    # The first part takes the token to the origin, where the second has no direction to put it.
    start = Measure([[1.0, 0.0]])
    inward = ParticleFlow(AffinePerceptron(-np.eye(2)), start)
    bad = SplitFlow((inward, ParticleFlow(AffinePerceptron(np.eye(2)), start, Sphere())))
    assert integrate(bad, [0.0, 1.0], scheme=LieTrotter(), dt=1.0).outcome is Outcome.NOT_FINITE


def test_a_user_s_floating_point_settings_do_not_reach_the_run():
    with np.errstate(all="raise"):
        run = simulate(lambda t, x, mu: x**3, ONE, [0.0, 9.0], scheme=EULER, dt=1.0)
    assert run.outcome is Outcome.NOT_FINITE


def test_a_split_flow_without_projections_runs_adaptively_as_the_sum_of_its_parts():
    run = integrate(split(Euclidean(), Euclidean()), [0.0, 1.0])
    np.testing.assert_allclose(run[-1].points, [[np.exp(2), 0.0]], rtol=1e-7)


def test_rates_of_a_gaussian_may_be_integrated_directly():
    law = Gaussian([1.0], [[4.0]])
    run = integrate(GaussianFlow(AffinePerceptron([[1.0]]), law), [0.0, 1.0])
    assert run[-1].covariance[0, 0] == pytest.approx(4 * np.exp(2), rel=1e-7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simulate(GROW, ONE, []), "times must be a list of times"),
        (lambda: simulate(GROW, ONE, [0.0, 0.0]), "times must increase strictly; got 0 then 0 at index 0"),
        (lambda: simulate(GROW, ONE, [0.0, 0.4, 0.3]), "times must increase strictly; got 0.4 then 0.3 at index 1"),
        (lambda: simulate(GROW, ONE, [0.0, np.inf]), "times must be finite"),
        (lambda: simulate(GROW, ONE, [0, 1], scheme=EULER), "EULER has a fixed step and needs dt"),
        (lambda: simulate(GROW, ONE, [0, 1], dt=0.1), "dt belongs to fixed-step schemes"),
        (lambda: simulate(GROW, ONE, [0, 1], scheme=EULER, dt=0), "dt must be greater than 0"),
        (lambda: simulate(GROW, ONE, [0, 1], scheme=EULER, dt=-0.1), "dt must be greater than 0"),
        (lambda: simulate(GROW, ONE, [0, 1], scheme=EULER, dt=1e-320), "dt must be a sensible part of the interval"),
        (lambda: simulate(GROW, ONE, [0, 1], scheme="rk4", dt=0.1), "scheme must be Adaptive.*got 'rk4'"),
        (lambda: simulate(GROW, ONE, [0, 1], scheme=LieTrotter, dt=0.1), "scheme must be Adaptive"),
        (lambda: simulate(GROW, ONE, [0, 1], max_evaluations=0), "max_evaluations must be at least 1"),
        (lambda: simulate(GROW, ONE, [0, 1], max_evaluations=1.5), "max_evaluations must be a whole number"),
        (lambda: simulate(GROW, ONE, [0, 1], max_seconds=0), "max_seconds must be greater than 0"),
        (lambda: integrate(GROW, [0, 1]), "flow must be a ParticleFlow, GaussianFlow or SplitFlow; got Softmax"),
        (lambda: integrate(split(Sphere(), Sphere()), [0, 1]), "a split flow with projections is not an ODE"),
        (lambda: integrate(split(Sphere(), Sphere()), [0, 1], scheme=RK4, dt=0.1), "so RK4 cannot drive it"),
    ],
)
def test_what_cannot_be_run_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("scheme", "dt"), [(Adaptive(), None), (EULER, 0.1)])
def test_a_field_of_a_wrong_shape_is_refused_whenever_it_shows(scheme, dt):
    with pytest.raises(ValueError, match=r"one real velocity a point, shape \(1, 1\)"):
        simulate(lambda t, x, mu: x if t < 0.5 else x[0], ONE, [0.0, 1.0], scheme=scheme, dt=dt)


def test_a_field_that_works_in_place_on_a_law_changes_no_run():
    class Careless(SoftmaxAttention):
        def on_gaussian(self, t, law):
            affine = super().on_gaussian(t, law)
            law.mean[...] = law.root[...] = 0
            return affine

    start, head = Gaussian([1.0], [[0.1]]), Head.identity(1)
    careless = simulate(Careless(head), start, [0, 1])
    assert np.array_equal(careless.arrays, simulate(SoftmaxAttention(head), start, [0, 1]).arrays)


def test_a_law_that_leaves_the_domain_of_its_field_ends_the_run_and_keeps_what_came_before():
    # s' = 0.4 s^2 / (1 - s / 5) runs into s = 5, where the kernel exp(+|x - y|^2 / 10) is no longer integrable.
    field = L2Attention(Head([[1.0]], [[1.0]], [[-1.0]], scale=-0.1))
    run = simulate(field, Gaussian([0.0], [[1.0]]), [0.0, 1.0, 20.0])
    # The implicit solution 1/s + (ln s) / 5 = 1 - 0.4 t at s = 5 [S11].
    end = (1 - 1 / 5 - 0.2 * np.log(5.0)) / 0.4
    assert run.outcome in (Outcome.NOT_FINITE, Outcome.STALLED)
    np.testing.assert_array_equal(run.times, [0.0, 1.0])
    assert run.last.time == pytest.approx(end, rel=1e-6)
    assert run.last.state.covariance[0, 0] == pytest.approx(5, rel=1e-3)


def test_a_field_that_never_had_a_reduction_is_the_caller_s_error():
    field = L2Attention(Head([[1.0]], [[1.0]], [[1.0]], scale=-1.0))
    with pytest.raises(NotGaussianError, match="kernel outgrows the law"):
        simulate(field, Gaussian([0.0], [[1.0]]), [0.0, 1.0])
