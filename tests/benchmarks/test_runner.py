"""The command line on a benchmark of a few lines: strict JSON, one table, one figure, and what is missing in words."""

import json
import sys

import pytest

from benchmarks import BENCHMARKS
from benchmarks.harness import Row
from benchmarks.machine import clock_of, versions
from benchmarks.plot import slope
from benchmarks.runner import main

SOURCE = """
from benchmarks.harness import Contest, Method

QUESTION = "What does a sum cost?"


def contests(full):
    for n in (1000, 4000, 16_000) if full else (1000, 4000):
        numbers = list(range(n))
        methods = [
            Method("ours", lambda numbers=numbers: lambda: sum(numbers)),
            Method("a loop", lambda numbers=numbers: lambda: float("nan"), needs="math"),
            Method("absent", lambda: None, needs="a_package_that_nobody_has"),
        ]
        yield Contest("sum", n, methods, lambda answer, n=n: abs(answer - n * (n - 1) / 2))


def remarks(rows):
    return [f"{len(rows)} rows were seen"]
"""


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Runs the command line on the benchmark above."""
    (tmp_path / "meanfield_sum_benchmark.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    held = []

    def ask(*arguments):
        table = {"sum": "meanfield_sum_benchmark"}
        return main([*arguments, "--out", str(tmp_path / "results")], table, held.append)

    ask.held, ask.results = held, tmp_path / "results"
    yield ask
    sys.modules.pop("meanfield_sum_benchmark", None)


def read(path):
    """JSON with no word that JSON does not have."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


def test_a_run_leaves_strict_json_a_table_and_a_figure(ask, capsys):
    assert ask("sum") == 0
    report = read(ask.results / "sum.json")
    assert [(row["method"], row["size"], row["error"]) for row in report["rows"]] == [
        ("ours", 1000, 0.0),
        ("a loop", 1000, None),
        ("ours", 4000, 0.0),
        ("a loop", 4000, None),
    ]
    assert report["question"] == "What does a sum cost?"
    assert report["missing"] == {"absent": "not installed"}
    assert report["machine"]["threads"] == 1
    assert report["machine"]["clock"] == "processor time"
    assert report["versions"]["numpy"] == versions()["numpy"] != "not installed"
    printed = capsys.readouterr().out
    assert "sum: absent did not run (not installed)" in printed
    assert "sum: 4 rows were seen" in printed
    lines = [line.split() for line in printed.splitlines() if line.startswith("sum ")]
    assert [line[2:4] for line in lines] == [[n, method] for n in ("1,000", "4,000") for method in ("ours", "a")]
    assert (ask.results / "all.png").read_bytes().startswith(b"\x89PNG")


def test_full_asks_for_more_and_threads_are_handed_on(ask, monkeypatch):
    monkeypatch.setattr("benchmarks.runner.FULL", (2, 0.01))
    monkeypatch.setattr("benchmarks.plot.draw", lambda reports, stem: None)
    assert ask("--full", "--threads", "2") == 0
    report = read(ask.results / "sum.json")
    assert {row["size"] for row in report["rows"]} == {1000, 4000, 16_000}
    assert ask.held == [2]
    assert report["machine"]["clock"] == "wall clock"


def test_one_thread_is_timed_by_the_processor_and_several_by_the_wall():
    assert clock_of(1)[1] == "processor time"
    assert clock_of(2)[1] == "wall clock"


def test_questions_are_listed_without_being_asked(ask, capsys):
    assert ask("--list") == 0
    assert capsys.readouterr().out == "sum: What does a sum cost?\n"
    assert not ask.results.exists()


@pytest.mark.parametrize(
    ("arguments", "said"), [(["speed"], "no benchmark is called speed; there are: sum"), (["--threads", "0"], "got 0")]
)
def test_a_wrong_word_is_answered_in_one_line(ask, capsys, arguments, said):
    with pytest.raises(SystemExit):
        ask(*arguments)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_asks_a_question_and_has_remarks_on_no_rows(name):
    module = __import__(BENCHMARKS[name], fromlist=["QUESTION"])
    assert module.QUESTION.endswith("?")
    assert module.remarks([]) == []


def test_the_slope_is_the_exponent_of_the_largest_sizes():
    sizes = [1, 10, 100, 1000]
    assert slope(sizes, [5.0, *(3 * n**1.5 for n in sizes[1:])]) == pytest.approx(1.5, abs=1e-12)


def test_separable_says_where_the_choice_loses():
    from benchmarks.separable import remarks

    def row(method, seconds):
        return Row("d = 2", 1000, method, seconds, 1.0, 1e-12, [seconds])

    assert remarks([row("auto", 1.5), row("exact", 2.0), row("separable", 1.0)]) == [
        "auto loses 50% at d = 2, n = 1,000"
    ]
    assert remarks([row("auto", 1.0), row("exact", 1.0), row("separable", 3.0)]) == [
        "auto loses at most 0% to the better one"
    ]
