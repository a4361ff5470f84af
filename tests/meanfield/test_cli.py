"""The command line: what its subcommands compute, keep, print and draw, and how they end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import meanfield.cli.commands as commands
from meanfield import ATTENTION, Head, Measure, Outcome, SoftmaxAttention, Sphere, simulate
from meanfield.cli import main
from meanfield.cli.laws import LAWS
from meanfield.cli.plots import KINDS, OBSERVABLES
from meanfield.cli.runs import runs_from
from meanfield.integration.schemes import SCHEMES, RungeKutta
from meanfield.sweeps.records import load_record, save_record


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(line, status=0):
    """Carry out a command line, spaces between its words, and check its status."""
    assert main(line.split()) == status


def bits(record):
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in record.arrays.items()}


def test_a_record_holds_what_simulate_gives_to_the_last_bit():
    run("simulate softmax --tokens 10 --space sphere --beta 3 --seed 5 --times 0:2:5 --out run.npz --quiet")
    record = load_record("run.npz")
    x0 = LAWS["sphere"](10, 2, 1.0, np.random.default_rng(5))
    field = SoftmaxAttention(Head.identity(2, 3.0))
    expected = simulate(field, Measure(x0), np.linspace(0, 2, 5), space=Sphere())
    np.testing.assert_array_equal(record.arrays["points"], expected.arrays)
    np.testing.assert_array_equal(record.arrays["times"], expected.times)
    assert record.header["outcome"] == "FINISHED"
    assert record.header["parameters"]["start"] == {"law": "sphere", "tokens": 10, "spread": 1.0, "seed": 5}
    assert record.header["statistics"]["evaluations"] == expected.statistics.evaluations


@pytest.mark.parametrize("name", ATTENTION)
def test_every_registered_variant_runs_and_is_told_apart(name):
    run(f"simulate {name} --tokens 5 --times 0.1 --out {name}.npz --quiet")
    problem = runs_from(load_record(f"{name}.npz"))[0].problem
    assert type(problem.field) is ATTENTION[name]


@pytest.mark.parametrize("name", [name for name, scheme in SCHEMES.items() if isinstance(scheme, RungeKutta)])
def test_every_fixed_step_scheme_runs_with_the_evaluations_of_its_stages(name):
    run(f"simulate softmax --tokens 5 --times 1 --scheme {name} --dt 0.01 --out run.npz --quiet")
    evaluations = load_record("run.npz").header["statistics"]["evaluations"]
    assert evaluations == 100 * len(SCHEMES[name].weights)


@pytest.mark.parametrize(
    "line",
    [
        "simulate masked-l2 --tokens 6 --times 0.5 --scheme RK45 --rtol 1e-5 --max-step 0.2",
        "simulate softmax+sinkhorn --beta 2 --beta 0.3 --value -1 --tokens 6 --times 0.5 --set tolerance=1e-8",
        "simulate softmax --space sphere --radius 3 --start gaussian --retract --tokens 7 --times 1",
        "simulate softmax --start tokens.npz --times 1 --scheme heun --dt 0.1",
        "gaussian l2 --moments tokens.npz --times 0.5",
        "gaussian softmax --covariance 1,0.2;0.2,2 --mean 1,0 --times 0:1:9",
    ],
)
def test_a_record_runs_again_to_the_same_bits(line):
    rng = np.random.default_rng(0)
    np.savez("tokens.npz", points=rng.normal(size=(9, 3)), weights=rng.dirichlet(np.ones(9)))
    first = main([*line.split(), "--out", "first.npz", "--quiet"])
    os.remove("tokens.npz")
    run("simulate --from first.npz --out second.npz --quiet", status=first)
    one, two = load_record("first.npz"), load_record("second.npz")
    assert bits(one) == bits(two)
    assert one.header["parameters"] == two.header["parameters"]
    assert [one.header[key] for key in ("outcome", "message")] == [two.header[key] for key in ("outcome", "message")]


def test_a_gaussian_that_blows_up_ends_with_status_one_and_its_record(capsys):
    # softmax with Q = K = V = I on N(0, I): S' = 2 S^2, so t* = 1/2.
    run("gaussian softmax --covariance 1 --times 0:2:21 --out law.npz", status=1)
    out, err = capsys.readouterr()
    assert "BLEW_UP" in out
    assert "blow-up at t* = 0.5" in err
    record = load_record("law.npz")
    assert record.header["outcome"] == "BLEW_UP"
    assert record.header["blow_up_time"] == pytest.approx(0.5, rel=1e-6)
    times, covariance = record.arrays["times"][:5], record.arrays["covariance"][:5]
    np.testing.assert_allclose(times, [0, 0.1, 0.2, 0.3, 0.4], atol=1e-15)
    np.testing.assert_allclose(covariance, np.eye(2) / (1 - 2 * times)[:, None, None], rtol=1e-6, atol=1e-9)


def test_a_limit_is_status_one_and_keeps_what_was_computed(capsys):
    run("simulate softmax --tokens 5 --times 10 --max-evaluations 60 --out run.npz --quiet", status=1)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "max_evaluations = 60" in err
    record = load_record("run.npz")
    assert record.header["outcome"] == "LIMIT"
    assert 1 < len(record.arrays["times"]) < 101
    assert len(record.arrays["output_times"]) == 101


def test_several_heads_add_up():
    run("simulate softmax --query 1 --query 2 --value 1 --value -1 --tokens 4 --times 0.1 --out two.npz --quiet")
    field = runs_from(load_record("two.npz"))[0].problem.field
    mu = Measure(np.array([[1.0, 0.0], [0.0, 2.0]]))
    eye = np.eye(2)
    expected = SoftmaxAttention(Head(eye, eye, eye))(0, mu.points, mu)
    expected = expected + SoftmaxAttention(Head(2 * eye, eye, -eye))(0, mu.points, mu)
    np.testing.assert_allclose(field(0, mu.points, mu), expected, rtol=1e-14)


def test_a_toml_file_says_it_all_and_the_command_line_wins(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    np.save(folder / "x.npy", np.eye(2))
    np.save(folder / "v.npy", -np.eye(2))
    (folder / "run.toml").write_text(
        'attention = "sigmoid+softmax"\nstart = "x.npy"\ntimes = [0, 0.5, 1]\nrtol = 1e-6\n'
        "[set]\nbias = -1\n[[head]]\nvalue = [[0, -1], [1, 0]]\nbeta = 2\n[[head]]\nvalue = 'v.npy'\nbeta = 0.5\n"
    )
    run("simulate --config elsewhere/run.toml --rtol 1e-7 --out run.npz --quiet")
    problem = runs_from(load_record("run.npz"))[0].problem
    assert [part.attention for part in problem.parts] == ["sigmoid", "softmax"]
    assert [part.head.scale for part in problem.parts] == [2.0, 0.5]
    assert [part.options for part in problem.parts] == [{"bias": -1}, {}]
    np.testing.assert_array_equal(problem.parts[0].head.value, [[0, -1], [1, 0]])
    np.testing.assert_array_equal(problem.parts[1].head.value, -np.eye(2))
    assert problem.scheme.rtol == 1e-7
    assert list(problem.times) == [0, 0.5, 1]


def test_a_run_goes_on_from_where_a_record_ends():
    run("simulate masked --tokens 6 --times 0:2:3 --out whole.npz --quiet")
    run("simulate masked --tokens 6 --times 0:1:2 --out first.npz --quiet")
    run("simulate masked --start first.npz --times 1:2:2 --out rest.npz --quiet")
    whole, rest = load_record("whole.npz").arrays["points"], load_record("rest.npz").arrays["points"]
    # Two runs at rtol 1e-8 with other steps.
    np.testing.assert_allclose(rest[-1], whole[-1], rtol=1e-6)


def test_compare_starts_all_variants_alike_and_draws_them(capsys):
    run("compare softmax masked sigmoid --tokens 6 --space sphere --times 0.5 --out all.npz --figure fig.png")
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines()[6:9]] == [
        ["softmax", "FINISHED"],
        ["masked", "FINISHED"],
        ["sigmoid", "FINISHED"],
    ]
    runs = runs_from(load_record("all.npz"))
    starts = [one.trajectory[0].tokens for one in runs]
    np.testing.assert_array_equal(starts[0], starts[1])
    np.testing.assert_array_equal(starts[0], starts[2])
    assert Path("fig.png").read_bytes().startswith(b"\x89PNG")


def test_compare_of_gaussians_fails_if_one_run_does(capsys):
    run("compare softmax l2 --covariance 1 --times 2 --out both.npz", status=1)
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert rows["softmax"][1:4] == ["BLEW_UP", "0.5", "0.5"]
    assert rows["l2"][1:4] == ["FINISHED", "2", "-"]
    assert err.startswith("meanfield: softmax: blow-up")
    assert err.count("\n") == 1


def test_info_shows_outcome_header_and_arrays_of_any_record(capsys):
    run("simulate softmax --tokens 5 --times 0.1 --out run.npz --quiet")
    run("info run.npz")
    out = capsys.readouterr().out
    for said in ("FINISHED", "parameters.start.seed", "101 x 5 x 2", "numpy"):
        assert said in out
    save_record("other.npz", {"y": np.arange(3), "empty": np.zeros(0)}, {"kind": "experiment", "case": {"n": [1, 2]}})
    run("info other.npz")
    out = capsys.readouterr().out
    assert "case.n" in out
    assert "0 to 2" in out
    run("info run.npz --json")
    assert json.loads(capsys.readouterr().out)["outcome"] == "FINISHED"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_plot_is_drawn_from_the_record_alone(kind, capsys):
    run("simulate softmax --tokens 6 --value -1 --times 0:1:3 --out run.npz --quiet")
    run(f"plot run.npz --kind {kind}")
    assert capsys.readouterr().out == f"run-{kind}.png\n"
    assert Path(f"run-{kind}.png").read_bytes().startswith(b"\x89PNG")


def test_every_observable_is_a_finite_number_at_every_time():
    run("simulate softmax --tokens 6 --times 0:1:3 --out run.npz --quiet")
    one = runs_from(load_record("run.npz"))[0]
    values = {name: function(one, 0.01) for name, (function, _, _) in OBSERVABLES.items()}
    assert {value.shape for value in values.values()} == {(3,)}
    assert values["clusters"][0] == 6
    assert values["diameter"][0] == pytest.approx(np.ptp(one.trajectory[0].points, axis=0).max(), rel=0.5)


def test_a_gaussian_a_comparison_and_an_animation_are_drawn(capsys):
    run("compare softmax l2 --covariance 1 --value -1 --times 0:1:2 --out both.npz --quiet")
    run("plot both.npz --quiet")
    run("plot both.npz --run l2 --out law.svg --quiet")
    run("plot both.npz --run l2 --kind animation --quiet")
    assert {"both-observables.png", "law.svg", "both-animation.gif"} <= set(os.listdir())
    run("plot both.npz --kind attention --run l2", status=2)
    assert "must have a run of tokens" in capsys.readouterr().err


def test_a_masked_variant_reads_positions_and_others_say_that_they_do_not(capsys):
    Path("t.csv").write_text("x,y,position\n1,0,0.9\n0,1,0.1\n1,1,0.5\n")
    run("simulate masked --start t.csv --times 0.1 --out m.npz --quiet")
    assert list(load_record("m.npz").arrays["points"][0, :, 0]) == [0.9, 0.1, 0.5]
    run("simulate softmax --start t.csv --times 0.1")
    assert "softmax reads no positions" in capsys.readouterr().err


def test_a_record_is_never_replaced_unasked(capsys):
    line = "simulate softmax --tokens 3 --times 0.1 --out run.npz --quiet"
    run(line)
    before = load_record("run.npz").header["written"]
    run(line, status=2)
    assert "Add --force" in capsys.readouterr().err
    assert load_record("run.npz").header["written"] == before
    run(line + " --force --seed 1")
    assert load_record("run.npz").header["parameters"]["start"]["seed"] == 1


def test_a_full_disk_loses_no_table(monkeypatch, capsys):
    def fails(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commands, "save_record", fails)
    run("simulate softmax --tokens 3 --times 0.1 --out run.npz", status=2)
    out, err = capsys.readouterr()
    assert "FINISHED" in out
    assert "No space left" in err


@pytest.fixture
def _ctrl_c_at_evaluation_40(monkeypatch):
    """Someone presses Ctrl-C while softmax attention is evaluated for the 40th time."""
    evaluate, calls = SoftmaxAttention.__call__, []

    def pressed(self, t, x, mu):
        calls.append(t)
        if len(calls) == 40:
            signal.raise_signal(signal.SIGINT)
        return evaluate(self, t, x, mu)

    monkeypatch.setattr(SoftmaxAttention, "__call__", pressed)


@pytest.mark.usefixtures("_ctrl_c_at_evaluation_40")
def test_ctrl_c_ends_a_run_with_its_record(capsys):
    handler = signal.getsignal(signal.SIGINT)
    run("simulate softmax --tokens 5 --space sphere --times 0:100:10001 --out run.npz", status=130)
    out, err = capsys.readouterr()
    assert "interrupted by Ctrl-C" in out
    assert err.count("\n") == 1
    record = load_record("run.npz")
    assert record.header["interrupted"] is True
    one = runs_from(record)[0].trajectory
    assert one.outcome is Outcome.STOPPED
    assert one.statistics.evaluations == 41
    assert len(one) > 1
    assert one.times[-1] <= one.last.time < 100
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.usefixtures("_ctrl_c_at_evaluation_40")
def test_ctrl_c_ends_a_comparison_after_the_run_under_way():
    run("compare sigmoid softmax l2 --tokens 5 --times 5 --out all.npz --quiet", status=130)
    assert [one.problem.name for one in runs_from(load_record("all.npz"))] == ["sigmoid", "softmax"]


def test_ctrl_c_outside_of_a_run_is_one_line(monkeypatch, capsys):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "load_record", interrupted)
    run("info run.npz", status=130)
    assert capsys.readouterr().err == "meanfield: interrupted by Ctrl-C; nothing was kept.\n"


def test_a_reader_that_leaves_is_no_error():
    run("simulate softmax --tokens 3 --times 0.1 --out run.npz --quiet")
    command = [sys.executable, "-m", "meanfield", "info", "run.npz"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, env=_environment())
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 141


def _environment():
    return {**os.environ, "PYTHONPATH": str(Path(commands.__file__).parents[2])}


@pytest.mark.parametrize("command", ["simulate", "gaussian", "compare", "info", "plot"])
def test_help_has_an_example_that_parses_and_names_what_is_registered(command, capsys):
    run(f"{command} --help")
    out = capsys.readouterr().out
    assert f"  meanfield {command} " in out
    if command in ("simulate", "gaussian", "compare"):
        assert all(name in out for name in [*ATTENTION, "exit status"])


def test_the_version_is_that_of_the_package(capsys):
    run("--version")
    assert capsys.readouterr().out.startswith("meanfield ")
