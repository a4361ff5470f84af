"""`meanfield sweep`: every case of a file, the same bits for any jobs, kept and continued, wrong files in one line."""

import csv
import json
import re

import numpy as np
import pytest

from meanfield.cli import main
from meanfield.cli.sweeping import EXAMPLE, read_sweep
from meanfield.sweeps.records import load_record

FILE = """
dimension = 2
times = "0:1:3"
replicas = 2
[grid]
attention = ["softmax", "l2"]
[zip]
tokens = [4, 6]
spread = [1.0, 0.5]
[sample]
count = 3
method = "sobol"
beta = { low = 0.1, high = 10.0, scale = "log" }
"""


@pytest.fixture
def written(tmp_path):
    """A function that writes a sweep file and gives its name."""

    def write(text):
        path = tmp_path / "sweep.toml"
        path.write_text(text)
        return str(path)

    return write


def test_cases_are_every_combination_of_grid_rows_and_samples(written):
    _, cases, varying = read_sweep(written(FILE))
    assert len(cases) == 2 * 2 * 2 * 3
    assert varying == ["replica", "attention", "tokens", "spread", "beta"]
    assert {(case["tokens"], case["spread"]) for case in cases} == {(4, 1.0), (6, 0.5)}
    betas = sorted({case["beta"] for case in cases})
    # Sobol points in one dimension put one of three in each third or so; all lie in the range, none repeats.
    assert len(betas) == 3
    assert 0.1 <= betas[0] < betas[-1] <= 10


def test_a_sweep_is_kept_summed_up_and_continued_with_the_same_bits(written, tmp_path, capsys):
    path = written(FILE)
    store, out = tmp_path / "store", tmp_path / "summary.csv"
    assert main(["sweep", path, "--store", str(store), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "24 cases, 0 of them from the store, 0 failed" in printed
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 24
    assert {row["outcome"] for row in rows} == {"FINISHED"}
    records = sorted(store.glob("*.npz"))
    assert len(records) == 24
    before = {record.name: (record.stat().st_mtime_ns, load_record(record).arrays["last_points"]) for record in records}
    assert main(["sweep", path, "--store", str(store), "--quiet"]) == 0
    assert {record.name: record.stat().st_mtime_ns for record in store.glob("*.npz")} == {
        name: time for name, (time, _) in before.items()
    }
    other = tmp_path / "other"
    assert main(["sweep", path, "--store", str(other), "--jobs", "2", "--quiet"]) == 0
    for record in other.glob("*.npz"):
        np.testing.assert_array_equal(load_record(record).arrays["last_points"], before[record.name][1])


def test_a_case_is_computed_again_when_its_file_of_tokens_changes(written, tmp_path, capsys):
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("x,y\n0,0\n1,0\n")
    path = written('attention = "softmax"\nstart = "tokens.csv"\ntimes = 1\n[grid]\nbeta = [1]\n')
    command = ["sweep", path, "--store", str(tmp_path / "store")]
    assert main(command) == main(command) == 0
    assert "1 cases, 1 of them from the store" in capsys.readouterr().out
    tokens.write_text("x,y\n0,0\n2,0\n")
    assert main(command) == 0
    assert "1 cases, 0 of them from the store" in capsys.readouterr().out


def test_replicas_start_apart_and_a_stated_seed_holds_for_all(written):
    drawn = '[grid]\nattention = ["softmax"]\n'
    task, cases, _ = read_sweep(written("tokens = 3\ntimes = 1\nreplicas = 2\n" + drawn))
    starts = [task.problem(case, np.random.default_rng(case["replica"])).start.points for case in cases]
    assert not np.array_equal(*starts)
    task, cases, _ = read_sweep(written("tokens = 3\ntimes = 1\nseed = 5\nreplicas = 2\n" + drawn))
    starts = [task.problem(case, np.random.default_rng(case["replica"])).start.points for case in cases]
    np.testing.assert_array_equal(*starts)


def test_a_sweep_of_gaussians_finds_their_poles(written, tmp_path):
    fixed = 'command = "gaussian"\nattention = "softmax"\ncovariance = 1\ntimes = 1\n'
    path = written(fixed + "[grid]\nbeta = [0.1, 1, 2]\n")
    out = tmp_path / "summary.json"
    assert main(["sweep", path, "--out", str(out), "--quiet"]) == 0
    poles = [row["blow_up_time"] for row in json.loads(out.read_text())]
    assert poles[0] is None
    # t* = 1 / (2 beta) for V = I and S0 = I.
    assert poles[1:] == pytest.approx([0.5, 0.25], rel=1e-6)


def test_the_example_of_the_help_text_runs(written, tmp_path):
    _, cases, _ = read_sweep(written(EXAMPLE))
    assert len(cases) == 3 * 4 * 2 * 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('attention = "softmax"\n[grid]\nbata = [1]', "known keys"),
        ('attention = "softmax"\n[grid]\nbeta = 1', r"beta in \[grid\] of .* must be a list"),
        ('attention = "softmax"\n[zip]\nbeta = [1, 2]\ntokens = [3]', r"lists of \[zip\] .* one length; got beta: 2"),
        ('attention = "softmax"\nbeta = 1\n[grid]\nbeta = [1]', "beta in .* must stand in one place"),
        ('attention = "softmax"\n[sample]\nbeta = [0.1, 1]', "count in .* must be at least 1"),
        ('attention = "softmax"\n[sample]\ncount = 2\nbeta = [1, 0.1]', "low < high"),
        ('attention = "softmax"\n[sample]\ncount = 2\nmethod = "halton"\nbeta = [0, 1]', "random, latin, sobol"),
        ('attention = "hardmax"', "attention must be one of"),
        ('command = "plot"', "command in .* must be one of simulate, gaussian"),
        ('attention = "softmax"\nreplicas = 0', "replicas in .* must be at least 1"),
        ("[grid", "must be a TOML file"),
        ("times = 1", "attention in .* must be the name of a variant"),
    ],
)
def test_a_wrong_file_is_one_line_and_status_two(written, capsys, text, said):
    assert main(["sweep", written(text), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(said, error)
