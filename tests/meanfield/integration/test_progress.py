"""Progress: fractions to a caller's function, a bar on a terminal, silence elsewhere."""

import io
import sys

import pytest

from meanfield import EULER, Adaptive, Head, Measure, SoftmaxAttention, simulate

FIELD, START = SoftmaxAttention(Head.identity(1)), Measure([[1.0]])


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("scheme", "dt"), [(Adaptive(), None), (EULER, 0.1)])
def test_a_function_is_given_fractions_that_rise_to_one(scheme, dt):
    heard = []
    simulate(FIELD, START, [5.0, 6.0, 8.0], scheme=scheme, dt=dt, progress=heard.append)
    assert heard == sorted(heard)
    assert 0 < heard[0] < 1
    assert heard[-1] == 1.0


def test_the_bar_is_off_when_stderr_is_no_terminal(capfd):
    simulate(FIELD, START, [0.0, 1.0])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("choice", "shown"), [(None, True), (False, False)])
def test_a_terminal_gets_a_bar_unless_it_is_refused(monkeypatch, choice, shown):
    terminal, clock = Terminal(), iter(range(10_000))
    monkeypatch.setattr(sys, "stderr", terminal)
    # tqdm keeps silent for the first second, so its clock is made to run faster.
    monkeypatch.setattr("tqdm.std.time", lambda: float(next(clock)))
    simulate(FIELD, START, [0.0, 1.0], progress=choice)
    assert ("100%" in terminal.getvalue()) is shown


def test_what_is_no_listener_is_refused():
    with pytest.raises(ValueError, match="progress must be None, False or a function of the fraction done; got 'bar'"):
        simulate(FIELD, START, [0.0, 1.0], progress="bar")
