"""The race under a clock that the test moves: who is called when, what is kept, who is missing."""

import math

import pytest

from benchmarks.harness import SHORTEST, Contest, Method, race, rows_of


class Clock:
    """A clock that only calls move."""

    def __init__(self):
        self.now, self.calls = 0.0, []

    def __call__(self):
        return self.now

    def method(self, name, *durations, answer=0.0, **options):
        """A method whose calls take these times in turn, the last one from then on."""
        taken = list(durations)

        def call():
            self.calls.append(name)
            self.now += taken.pop(0) if len(taken) > 1 else taken[0]
            return answer

        return Method(name, lambda: call, **options)


@pytest.fixture
def clock():
    return Clock()


def run(clock, *methods, rounds=3, share=100.0, error=float):
    return race(Contest("case", 7, list(methods), error), rounds=rounds, share=share, clock=clock)


def test_methods_take_turns_in_every_round(clock):
    run(clock, clock.method("a", 1.0), clock.method("b", 1.0), clock.method("c", 1.0), rounds=3)
    # the first round warms up, the second is sample one of each
    assert "".join(clock.calls) == "abc" * 4


def test_times_are_medians_and_ratios_are_to_the_first_method(clock):
    rows, _ = run(clock, clock.method("a", 9.0, 1.0, 2.0, 30.0), clock.method("b", 9.0, 7.0, 8.0, 6.0))
    assert [row.samples for row in rows] == [[1.0, 2.0, 30.0], [7.0, 8.0, 6.0]]
    assert [(row.seconds, row.ratio) for row in rows] == [(2.0, 1.0), (7.0, 3.5)]
    assert {(row.case, row.size) for row in rows} == {("case", 7)}


def test_times_are_per_piece_of_work(clock):
    rows, _ = run(clock, clock.method("a", 8.0, units=4), clock.method("b", 8.0, units=16))
    assert [row.seconds for row in rows] == [2.0, 0.5]


def test_short_calls_are_repeated_until_a_sample_lasts(clock):
    rows, _ = run(clock, clock.method("a", SHORTEST / 8), rounds=2)
    # one call warms up, one counts the repetitions, two samples of eight calls each
    assert len(clock.calls) == 1 + 1 + 2 * 8
    assert rows[0].seconds == pytest.approx(SHORTEST / 8, rel=1e-9)
    assert len(rows[0].samples) == 2


def test_a_slow_method_sits_out_while_the_others_go_on(clock):
    rows, _ = run(clock, clock.method("a", 1.0), clock.method("b", 4.0), clock.method("c", 50.0), rounds=5, share=6.0)
    # b stops once it has spent its share; the one call of c is its sample, since it took more than that
    assert [len(row.samples) for row in rows] == [5, 2, 1]
    assert clock.calls.count("c") == 1
    assert rows[2].seconds == 50.0


def test_a_peer_that_is_not_installed_or_fails_is_named_and_the_others_go_on(clock):
    def broken():
        raise RuntimeError("no compiler\nand more lines")

    absent = Method("absent", broken, needs="a_package_that_nobody_has")
    failing = Method("failing", broken, needs="math")
    rows, missing = run(clock, clock.method("a", 1.0), absent, failing, clock.method("b", 1.0, needs="math"))
    assert [row.method for row in rows] == ["a", "b"]
    assert missing == {"absent": "not installed", "failing": "RuntimeError: no compiler"}


def test_our_own_failure_is_no_missing_peer(clock):
    def broken():
        raise ArithmeticError("lost")

    with pytest.raises(ArithmeticError, match="lost"):
        run(clock, Method("ours", broken))


@pytest.mark.parametrize(("answer", "error"), [(2e-9, 2e-9), (math.nan, None), (math.inf, None)])
def test_the_error_stands_beside_the_time(clock, answer, error):
    rows, _ = run(clock, clock.method("a", 1.0, answer=answer))
    assert rows[0].error == error


def test_rows_are_found_by_method(clock):
    rows, _ = run(clock, clock.method("a", 1.0), clock.method("b", 2.0))
    assert rows_of(rows, "b") == {("case", 7): rows[1]}
