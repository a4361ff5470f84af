"""The adaptive scheme: it meets its tolerance, and no field makes it hang, print or hand out NaN."""

import numpy as np
import pytest

from meanfield import RK4, Adaptive, Measure, Outcome, simulate
from meanfield.integration import METHODS

START = Measure([[1.0]])


def growth_until(limit, afterwards):
    """x' = x until ``limit``, then whatever ``afterwards`` makes of x."""
    return lambda t, x, mu: x if t <= limit else afterwards(x)


def singular(x):
    raise np.linalg.LinAlgError("Singular matrix")


def overflowing(x):
    raise OverflowError("math range error")


FAULTS = {
    "nan": lambda x: x * np.nan,
    "inf": lambda x: x * np.inf,
    "singular matrix": singular,
    "overflow": overflowing,
}


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
@pytest.mark.parametrize("method", METHODS)
def test_the_error_of_a_time_dependent_run_stays_within_a_hundred_tolerances(method, rtol):
    # x = x0 exp(sin t): a step may err by rtol, and the errors of some tens of steps add up.
    times = np.linspace(0.0, 6.0, 7)
    scheme = Adaptive(method, rtol=rtol, atol=rtol / 100)
    run = simulate(lambda t, x, mu: np.cos(t) * x, Measure([[1.0], [-3.0]]), times, scheme=scheme)
    exact = np.array([1.0, -3.0]) * np.exp(np.sin(times))[:, None]
    assert np.abs(run.arrays[:, :, 0] / exact - 1).max() < 100 * rtol


@pytest.mark.parametrize(("scheme", "dt"), [(Adaptive(), None), (RK4, 0.01)])
def test_a_field_is_asked_at_the_time_of_the_caller(scheme, dt):
    times = np.array([2.0, 2.5, 4.0])
    run = simulate(lambda t, x, mu: np.cos(t) * x, START, times, scheme=scheme, dt=dt)
    np.testing.assert_allclose(run.arrays[:, 0, 0], np.exp(np.sin(times) - np.sin(2.0)), rtol=1e-7)


def test_a_tighter_tolerance_costs_more_and_errs_less():
    runs = [simulate(lambda t, x, mu: -x, START, [0.0, 3.0], scheme=Adaptive(rtol=rtol)) for rtol in (1e-4, 1e-10)]
    errors = [abs(run[-1].points[0, 0] - np.exp(-3)) for run in runs]
    assert errors[1] < 1e-4 * errors[0]
    assert runs[0].statistics.evaluations < runs[1].statistics.evaluations


@pytest.mark.parametrize("size", [1e-6, 1e-30])
def test_a_small_start_is_as_accurate_as_a_large_one(size):
    run = simulate(lambda t, x, mu: -x, Measure([[size]]), [0.0, 3.0])
    assert run[-1].points[0, 0] == pytest.approx(size * np.exp(-3), rel=1e-7)


def test_small_tokens_beside_large_positions_keep_their_accuracy():
    start = Measure.positioned([0.0, 1.0], [[1e-9], [2e-9]])
    run = simulate(lambda t, x, mu: -x, start, [0.0, 3.0])
    np.testing.assert_allclose(run[-1].tokens, start.tokens * np.exp(-3), rtol=1e-7)


def test_the_largest_step_is_kept():
    run = simulate(lambda t, x, mu: 0 * x, START, [0.0, 1.0], scheme=Adaptive(max_step=0.01))
    assert run.statistics.steps >= 100


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", METHODS)
def test_a_field_that_fails_later_ends_not_finite_at_the_last_good_state(method, fault):
    # A user's report.
    run = simulate(growth_until(0.1, FAULTS[fault]), START, [0.0, 0.05, 1.0], scheme=Adaptive(method))
    assert run.outcome is Outcome.NOT_FINITE
    assert run.times.tolist() == [0.0, 0.05]
    assert 0.0999 < run.last.time <= 0.1
    assert run.last.state.points[0, 0] == pytest.approx(np.exp(0.1), abs=1e-3)
    assert np.isfinite(run.arrays).all()
    assert run.statistics.evaluations < 2000


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", METHODS)
def test_a_field_that_fails_at_once_ends_not_finite_at_the_start(method, fault):
    # one evaluation, and no solver is built.
    run = simulate(lambda t, x, mu: FAULTS[fault](x), START, [0.0, 1.0], scheme=Adaptive(method))
    assert run.outcome is Outcome.NOT_FINITE
    assert run.times.tolist() == [0.0]
    assert run.last.time == 0.0
    assert run.statistics.evaluations == 1
    assert "at the start" in run.message


@pytest.mark.parametrize("method", METHODS)
def test_a_field_that_fails_right_after_the_start_ends_too(method):
    run = simulate(growth_until(0.0, FAULTS["nan"]), START, [0.0, 1.0], scheme=Adaptive(method))
    assert run.outcome is Outcome.NOT_FINITE
    assert run.last.time == 0.0
    assert run.statistics.evaluations < 10_000


@pytest.mark.parametrize("method", METHODS)
def test_a_field_is_never_asked_at_points_that_are_not_finite(method):
    asked = []

    def field(t, x, mu):
        asked.append(np.isfinite(x).all())
        return x * (np.nan if t > 0.1 else 1.0)

    simulate(field, START, [0.0, 1.0], scheme=Adaptive(method))
    assert all(asked)


@pytest.mark.parametrize("method", METHODS)
def test_a_singularity_without_growth_stalls_in_silence(method, capfd):
    # x = sqrt(1 - 2t): the speed, not the point, becomes infinite at t = 1/2.
    run = simulate(lambda t, x, mu: -1 / x, START, [0.0, 0.25, 1.0], scheme=Adaptive(method, rtol=1e-6))
    assert run.outcome is Outcome.STALLED
    assert run.times.tolist() == [0.0, 0.25]
    assert run.last.time == pytest.approx(0.5, abs=1e-4)
    assert "without signs of a pole" in run.message
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", METHODS)
def test_a_jump_too_high_for_any_step_stalls(method):
    field = growth_until(0.5, lambda x: 1e12 + 0 * x)
    run = simulate(field, START, [0.0, 1.0], scheme=Adaptive(method))
    assert run.outcome is Outcome.STALLED
    assert run.last.time == pytest.approx(0.5, abs=1e-10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("span", [1e-100, 1e-12, 1e12])
def test_spans_of_any_size_are_run_to_their_end(method, span):
    run = simulate(lambda t, x, mu: -0.9 * x / span, START, [0.0, span], scheme=Adaptive(method, rtol=1e-6))
    assert run.outcome is Outcome.FINISHED
    assert run.last.time == span
    assert run[-1].points[0, 0] == pytest.approx(np.exp(-0.9), rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_an_error_of_the_callers_stays_what_it_is(method):
    def broken(t, x, mu):
        if t > 0.1:
            raise ValueError("the caller's own")
        return x

    with pytest.raises(ValueError, match="the caller's own"):
        simulate(broken, START, [0.0, 1.0], scheme=Adaptive(method))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "RK4"}, "method must be one of DOP853, RK45, RK23, Radau, BDF, LSODA; got 'RK4'"),
        ({"rtol": 0}, "rtol must be at least 2.2"),
        ({"atol": 0}, "atol must be greater than 0"),
        ({"atol": np.inf}, "atol must be finite"),
        ({"max_step": 0}, "max_step must be greater than 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Adaptive(**options)
