"""Events: every crossing inside a step, at its time, in its direction."""

import numpy as np
import pytest

from meanfield import (
    EULER,
    RK4,
    Adaptive,
    AffinePerceptron,
    Event,
    Gaussian,
    Head,
    LieTrotter,
    Measure,
    Outcome,
    ParticleFlow,
    SoftmaxAttention,
    SplitFlow,
    integrate,
    simulate,
)
from meanfield.integration import METHODS

TURN = SoftmaxAttention(Head(np.eye(2), np.eye(2), [[0.0, -1.0], [1.0, 0.0]]))
EAST = Measure([[1.0, 0.0]])
#: 2 pi k +- arccos 0.99 in [0, 20] [a user's report].
SEVEN = [0.1415395, 6.1416458, 6.4247248, 12.4248311, 12.7079101, 18.7080164, 18.9910954]


def near_east(t, state):
    return state.points[0, 0] - 0.99


@pytest.mark.parametrize("method", METHODS)
def test_all_seven_crossings_are_found_by_every_solver_though_two_lie_in_one_step(method):
    # What counts is that none is missed; BDF's error over twenty time units is several hundred tolerances.
    run = simulate(TURN, EAST, [0.0, 20.0], events=near_east, scheme=Adaptive(method, rtol=1e-5, atol=1e-7))
    np.testing.assert_allclose(run.event_times[0], SEVEN, atol=0.02)


@pytest.mark.parametrize(("scheme", "accuracy"), [(Adaptive(), 1e-6), (Adaptive(rtol=1e-3, atol=1e-6), 0.01)])
def test_the_seven_crossings_are_as_accurate_as_the_run(scheme, accuracy):
    run = simulate(TURN, EAST, [0.0, 20.0], events=near_east, scheme=scheme)
    np.testing.assert_allclose(run.event_times[0], SEVEN, atol=accuracy)


def test_a_direction_keeps_only_crossings_that_way():
    events = [Event(near_east, direction=1), Event(near_east, direction=-1)]
    run = simulate(TURN, EAST, [0.0, 20.0], events=events)
    np.testing.assert_allclose(run.event_times[0], SEVEN[1::2], atol=1e-6)
    np.testing.assert_allclose(run.event_times[1], SEVEN[0::2], atol=1e-6)


def test_a_terminal_event_between_output_times_keeps_its_time_and_state():
    # The spare case "event state dropped".
    run = simulate(TURN, EAST, [0.0, 1.0, 5.0], events=Event(lambda t, mu: mu.points[0, 0], terminal=True))
    assert run.outcome is Outcome.STOPPED
    assert run.times.tolist() == [0.0, 1.0]
    assert run.last.time == pytest.approx(np.pi / 2, abs=1e-7)
    np.testing.assert_allclose(run.last.state.points, [[0.0, 1.0]], atol=1e-7)
    assert run.event_times[0].tolist() == [run.last.time]
    assert "terminal event at t = 1.5707963" in run.message


def test_of_several_events_in_one_step_the_first_terminal_one_ends_the_run():
    marks = [0.3, 0.5, 0.7]
    events = [Event(lambda t, mu, m=m: t - m, terminal=m == 0.5) for m in marks]
    run = simulate(lambda t, x, mu: np.ones_like(x), Measure([[0.0]]), [0.0, 0.4, 0.6, 1.0], events=events)
    assert [times.size for times in run.event_times] == [1, 1, 0]
    assert run.times.tolist() == [0.0, 0.4]
    assert run.last.time == pytest.approx(0.5, abs=1e-15)
    assert run.last.state.points[0, 0] == pytest.approx(0.5, abs=1e-14)


def test_a_direction_holds_for_terminal_events_too():
    event = Event(near_east, terminal=True, direction=1)
    assert simulate(TURN, EAST, [0.0, 20.0], events=event).last.time == pytest.approx(SEVEN[1], abs=1e-6)


def test_a_zero_at_the_start_is_no_crossing():
    run = simulate(TURN, EAST, [0.0, 4.0], events=lambda t, mu: mu.points[0, 1])
    np.testing.assert_allclose(run.event_times[0], [np.pi], atol=1e-7)


def test_a_function_that_only_touches_zero_or_stays_there_has_no_crossing():
    run = simulate(TURN, EAST, [0.0, 4.0], events=[lambda t, mu: 0.0, lambda t, mu: (t - 1) ** 2])
    assert [times.size for times in run.event_times] == [0, 0]


def test_a_crossing_at_the_end_of_a_step_is_found_once():
    run = simulate(AffinePerceptron(np.eye(2)), EAST, [0, 1], scheme=EULER, dt=0.25, events=lambda t, mu: t - 0.5)
    assert run.event_times[0].tolist() == [0.5]


def test_nothing_is_said_across_a_stretch_where_the_function_is_nan():
    def gap(t, mu):
        return np.nan if 0.4 < t < 0.6 else t - 0.5

    run = simulate(lambda t, x, mu: x, Measure([[1.0]]), [0.0, 1.0], events=gap)
    assert run.outcome is Outcome.FINISHED
    assert run.event_times[0].size == 0


def test_nan_between_two_samples_loses_no_run():
    # The samples of a step of length one are sixteenths.
    def thin(t, mu):
        return np.nan if abs(t - 0.53) < 1e-3 else t - 0.53

    run = simulate(lambda t, x, mu: x, Measure([[1.0]]), [0.0, 1.0], scheme=EULER, dt=1.0, events=thin)
    assert run.event_times[0] == pytest.approx([0.53], abs=1.1e-3)


@pytest.mark.parametrize("method", ["DOP853", "Radau", "BDF", "LSODA"])
def test_a_crossing_within_round_off_of_the_end_of_a_step_breaks_no_run(method):
    # An interpolant at the beginning of a step may differ in the last bit from the state that ended the step before.
    scheme, seen = Adaptive(method, rtol=1e-4), []

    def recorded(t, mu):
        seen.append(mu.points[0, 0])
        return 1.0

    simulate(lambda t, x, mu: x, Measure([[1.0]]), [0.1, 2.1], scheme=scheme, events=recorded)
    # One call at the start, then sixteen samples a step, the last one at its end; not the end of the run.
    ends = np.array(seen[16:-16:16])[:20]
    marks = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, 9)])
    events = [lambda t, mu, m=m: mu.points[0, 0] - m for m in marks]
    run = simulate(lambda t, x, mu: x, Measure([[1.0]]), [0.1, 2.1], scheme=scheme, events=events)
    assert run.outcome is Outcome.FINISHED
    np.testing.assert_allclose([times[0] for times in run.event_times], 0.1 + np.log(marks), rtol=1e-2)


def test_a_jump_and_a_root_of_high_order_are_located():
    events = [lambda t, mu: 1.0 if t > 0.3 else -1.0, lambda t, mu: (t - 0.7) ** 9]
    run = simulate(lambda t, x, mu: x, Measure([[1.0]]), [0.0, 1.0], events=events)
    assert run.event_times[0] == pytest.approx([0.3], abs=1e-14)
    assert run.event_times[1] == pytest.approx([0.7], abs=1e-14)


def test_events_on_a_late_clock_are_found_to_the_spacing_of_its_doubles():
    times = 1e9 + np.linspace(0.0, 20.0, 41)
    run = simulate(TURN, EAST, times, events=near_east)
    np.testing.assert_allclose(run.event_times[0] - 1e9, SEVEN, atol=1e-6)


def test_many_crossings_on_a_late_clock_never_break_a_run():
    # Steps end within round-off of a crossing here, and both sides of it have to agree on the sign.
    start = 0.1
    events = [lambda t, mu, k=k: (t - start) - k / 16 for k in range(1, 32)]
    run = simulate(lambda t, x, mu: x, Measure([[1.0]]), start + np.arange(3.0), scheme=EULER, dt=0.25, events=events)
    assert [times.size for times in run.event_times] == [1] * 31


@pytest.mark.parametrize(("scheme", "accuracy"), [(RK4, 1e-6), (EULER, 0.02)])
def test_events_are_located_inside_fixed_steps(scheme, accuracy):
    # Cubic Hermite inside: fourth order for RK4; Euler's own error is dt / 2 times the time elapsed.
    event = Event(lambda t, mu: mu.points[0, 0], terminal=True)
    run = simulate(TURN, EAST, [0.0, 5.0], scheme=scheme, dt=0.02, events=event)
    assert run.outcome is Outcome.STOPPED
    assert run.last.time == pytest.approx(np.pi / 2, abs=accuracy)


def test_events_inside_a_split_step_are_located():
    flow = SplitFlow((ParticleFlow(AffinePerceptron(np.eye(2)), EAST), ParticleFlow(AffinePerceptron(np.eye(2)), EAST)))
    run = integrate(flow, [0.0, 1.0], scheme=LieTrotter(RK4), dt=0.1, events=lambda t, mu: mu.points[0, 0] - np.e)
    np.testing.assert_allclose(run.event_times[0], [0.5], atol=1e-5)


def test_events_see_gaussians_too():
    law = Gaussian([0.0], [[1.0]])
    run = simulate(AffinePerceptron([[0.5]]), law, [0.0, 2.0], events=lambda t, law: law.covariance[0, 0] - 2)
    np.testing.assert_allclose(run.event_times[0], [np.log(2)], atol=1e-7)


def test_an_event_where_the_rate_overflows_falls_back_to_a_straight_line():
    def field(t, x, mu):
        return np.where(x > 1.5, np.inf, 1.0)

    half = Event(lambda t, mu: mu.points[0, 0] - 0.5)
    run = simulate(field, Measure([[0.0]]), [0.0, 2.0], scheme=EULER, dt=2.0, events=half)
    np.testing.assert_allclose(run.event_times[0], [0.5], atol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Event(3), r"an event's function must be callable, \(t, state\) -> float; got 3"),
        (lambda: Event(near_east, direction=2), "direction must be -1, 0 or 1; got 2"),
        (lambda: simulate(TURN, EAST, [0, 1], events=[near_east, 3]), "must be callable"),
        (lambda: simulate(TURN, EAST, [0, 1], events=None), "events must be an Event, a function"),
        (lambda: simulate(TURN, EAST, [0, 1], events=lambda t, mu: mu.points), "one number.*at t = 0 it gave"),
    ],
)
def test_what_makes_no_event_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_error_inside_an_event_stays_what_it_is():
    def broken(t, mu):
        raise TypeError("the caller's own")

    with pytest.raises(TypeError, match="the caller's own"):
        simulate(TURN, EAST, [0, 1], events=broken)


@pytest.mark.parametrize("options", [{}, {"scheme": RK4, "dt": 0.1}])
def test_an_event_that_works_in_place_changes_no_run(options):
    def careless(t, state):
        array = state.mean if isinstance(state, Gaussian) else state.points
        array[...] = 0
        return 1.0

    field = SoftmaxAttention(Head.identity(1))
    for start in (Measure([[1.0], [2.0]]), Gaussian([1.0], [[0.1]])):
        watched = simulate(field, start, [0, 0.35, 1], events=Event(careless), **options)
        assert np.array_equal(watched.arrays, simulate(field, start, [0, 0.35, 1], **options).arrays)
