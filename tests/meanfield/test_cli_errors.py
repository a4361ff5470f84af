"""The command line: every wrong argument or file is one line that says what must hold, and status 2."""

import os
import re

import numpy as np
import pytest

from meanfield.cli import main
from meanfield.sweeps.records import save_record

TABLES = {
    "negative.csv": "x,y,weight\n1,2,-0.5\n3,4,1.5\n",
    "sum.csv": "x,y,weight\n1,2,2\n3,4,2\n",
    "nan.csv": "x,y\n1,2\n3,nan\n",
    "words.csv": "word,x\ncat,1\ndog,3\n",
    "ragged.csv": "1,2\n3\n",
    "empty.csv": "",
    "head.csv": "x,y\n",
    "index.csv": ",a,b\n0,1,2\n1,3,4\n",
    "two_weights.csv": "x,weight,weights\n1,1,1\n",
    "no_coordinates.csv": "weight\n1\n",
    "bad.toml": "attention = [\n",
    "unknown.toml": "attention = 'softmax'\nbetta = 2\n",
    "half.toml": "attention = 'softmax'\n[[head]]\nbeta = 1\nvalue = 1\n[[head]]\nbeta = 2\n",
    "typed.toml": "attention = 'softmax'\nforce = 'yes'\n",
    "number.toml": "attention = 3\n",
    "junk.npz": "junk",
    "junk.npy": "junk",
}


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.csv").write_bytes("x\n1\n# é\n".encode("latin-1"))
    (tmp_path / "folder").mkdir()
    np.save("x.npy", np.random.default_rng(0).normal(size=(4, 3)))
    np.save("flat.npy", np.arange(5.0))
    np.save("objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    np.savez("names.npz", a=np.eye(2), b=np.eye(2))
    np.savez("weights.npz", points=np.eye(4), weights=np.ones(3) / 3)
    np.savez("infinite.npz", points=np.array([[np.inf, 0.0]]))
    np.save("origin.npy", np.zeros((2, 2)))
    save_record("experiment.npz", {"y": np.zeros(2)}, {"kind": "experiment"})
    save_record("hollow.npz", {}, {"kind": "simulation", "parameters": {}})


WRONG = [
    ("", "required: COMMAND"),
    ("nonsense", "invalid choice: 'nonsense'"),
    ("simulate", "attention must be the name of one variant"),
    ("simulate softmax l2", "`compare` takes more"),
    ("simulate softmaxx", "attention must be one of softmax, .*'softmaxx'"),
    ("simulate softmax+", "got 'softmax\\+'"),
    ("simulate softmax+masked", "heads must be all masked or none"),
    ("simulate masked-sinkhorn", "does not take SinkhornAttention"),
    ("simulate softmax --bogus 1", "got --bogus 1. See meanfield simulate --help"),
    ("simulate softmax --start nope.csv", "there is no nope.csv"),
    ("simulate softmax --start unifrom", "a law \\(uniform, .*got 'unifrom'"),
    ("simulate softmax --start flat.npy", "shape \\(n, d\\)"),
    ("simulate softmax --start objects.npy", "holds Python objects"),
    ("simulate softmax --start junk.npz", "holds Python objects"),
    ("simulate softmax --start junk.npy", "holds Python objects"),
    ("simulate softmax --start names.npz", "holds a, b"),
    ("simulate softmax --start weights.npz", "one a token, shape \\(4,\\)"),
    ("simulate softmax --start infinite.npz", "must be finite; got inf"),
    ("simulate softmax --start experiment.npz", "must be a record of tokens"),
    ("simulate softmax --start negative.csv", "must not be negative.*-0.5 for token 1"),
    ("simulate softmax --start sum.csv", "must sum to 1; got 4. Add --normalise"),
    ("simulate softmax --start nan.csv", "line 3, column y .*must be finite"),
    ("simulate softmax --start words.csv", "line 2, column word .*'cat'.*--columns"),
    ("simulate softmax --start words.csv --columns y", "word, x; got y"),
    ("simulate softmax --start x.npy --columns y", "columns of a .csv table"),
    ("simulate softmax --start ragged.csv", "line 2 .*2 cells; got 1"),
    ("simulate softmax --start ragged.csv --columns x", "needs a header line"),
    ("simulate softmax --start empty.csv", "empty.csv is empty"),
    ("simulate softmax --start head.csv", "a header and no rows"),
    ("simulate softmax --start index.csv", "often an index"),
    ("simulate softmax --start two_weights.csv", "one column of weights"),
    ("simulate softmax --start no_coordinates.csv", "must have a column of coordinates"),
    ("simulate softmax --start latin.csv", "table in UTF-8"),
    ("simulate softmax --start x.npy --tokens 3", "--tokens must go with a law"),
    ("simulate softmax --columns x", "--columns must go with a file"),
    ("simulate softmax --start x.npy --dimension 2", "--dimension has 2, x.npy has 3"),
    ("simulate softmax --start x.npy --query 1,0;0,1", "x.npy has 3, --query has 2"),
    ("simulate softmax --query 1,0", "--query must have as many rows as K"),
    ("simulate softmax --value 1,0", "--value must have 2 rows"),
    ("simulate softmax --query 1,0;0", "rows of one length"),
    ("simulate softmax --query 1,a;0,1", "must hold numbers; got 'a'"),
    ("simulate softmax --query nope.npy", "there is no nope.npy"),
    ("simulate softmax --query flat.npy", "--query must be a number .*shape \\(5,\\)"),
    ("simulate softmax+l2 --beta 1 --beta 2 --beta 3", "2 for variants, 3 for beta"),
    ("simulate softmax --beta x", "--beta must be one number; got 'x'"),
    ("simulate softmax --beta nan", "--beta must be finite"),
    ("simulate softmax --set bias=1", "--set must name an option of the variant \\(softmax: .*got 'bias'"),
    ("simulate sigmoid --set bias=abc", "bias must be one number; got 'abc'"),
    ("simulate sigmoid --set bias", "must be KEY=VALUE"),
    ("simulate softmax --space torus", "euclidean, sphere; got 'torus'"),
    ("simulate softmax --radius 2", "--radius must go with --space sphere"),
    ("simulate softmax --retract", "--retract must go with --space sphere"),
    ("simulate softmax --space sphere --start x.npy", "Add --retract"),
    ("simulate softmax --space sphere --start uniform", "Add --retract"),
    ("simulate softmax --space sphere --start origin.npy --retract", "token 1 is there"),
    ("simulate softmax --tokens 0", "--tokens must be at least 1"),
    ("simulate softmax --tokens 1.5", "whole number"),
    ("simulate softmax --seed -1", "--seed must be at least 0"),
    ("simulate softmax --times 0,2,1", "--times must increase strictly; got 2 then 1"),
    ("simulate softmax --times 5:0:3", "must run forwards"),
    ("simulate softmax --times 0:5", "T, start:stop:count or a list"),
    ("simulate softmax --times 0:1:1.5", "the count of --times must be a whole number"),
    ("simulate softmax --times -1", "must be greater than 0; got -1"),
    ("simulate softmax --times soon", "must hold numbers; got 'soon'"),
    ("simulate softmax --dt 0.1", "--dt must go with a fixed-step scheme"),
    ("simulate softmax --scheme rk4", "must have a step; got no --dt"),
    ("simulate softmax --scheme rk4 --dt 0.1 --rtol 1e-3", "--rtol must go with an adaptive scheme"),
    ("simulate softmax --scheme rk5", "--scheme must be one of DOP853"),
    ("simulate softmax --max-seconds 0", "--max-seconds must be greater than 0"),
    ("simulate softmax --out folder", "folder is a folder"),
    ("simulate softmax --out run.txt", "must end in .npz"),
    ("simulate softmax --out bad.toml/run.npz", "no such folder"),
    ("simulate --config nope.toml", "there is no nope.toml"),
    ("simulate --config bad.toml", "must be a TOML file"),
    ("simulate --config unknown.toml", "known keys: .*; got betta"),
    ("simulate --config half.toml", "value in half.toml must stand in every"),
    ("simulate --config typed.toml", "force in typed.toml must be true or false"),
    ("simulate --config number.toml", "attention must be a name"),
    ("simulate --from nope.npz", "no record at nope.npz"),
    ("simulate --from experiment.npz", "its kind is 'experiment'"),
    ("simulate --from hollow.npz", "must hold what its header says; 'parts' is missing"),
    ("simulate --from experiment.npz --beta 2", "--from must stand alone.*got beta"),
    ("gaussian softmax", "got neither"),
    ("gaussian softmax --covariance 1 --moments x.npy", "got both"),
    ("gaussian softmax --mean 0,0,0 --moments x.npy", "--mean must go with --covariance"),
    ("gaussian softmax --moments uniform", "--moments must be a file of tokens"),
    ("gaussian softmax --covariance 1,2;0,1", "covariance must be symmetric"),
    ("gaussian softmax --covariance -1", "positive semi-definite"),
    ("gaussian softmax --covariance 1 --mean 0,0 --dimension 3", "one dimension"),
    ("gaussian sigmoid --covariance 1", "meanfield simulate sigmoid --start gaussian"),
    ("gaussian masked --covariance 1", "does not keep Gaussians"),
    ("gaussian softmax --covariance 1 --space sphere", "options must be known to gaussian"),
    ("compare softmax", "two or more names"),
    ("compare softmax softmax", "two or more names of variants, each once"),
    ("compare softmax l2 --covariance 1 --tokens 5", "tokens or a Gaussian; got --tokens and --covariance"),
    ("compare softmax l2 --figure x.bmp", "--figure must end in .png"),
    ("compare softmax l2 --figure folder", "folder is a folder"),
    ("compare softmax l2 --observable rank", "--observable must go with --figure"),
    ("compare softmax l2 --covariance 1 --figure x.png --observable clusters", "one of deviation, rank"),
    ("info nope.npz", "no record at nope.npz"),
    ("info folder", "folder is a folder"),
    ("info junk.npz", "must be a whole record"),
    ("info nan.csv", "a record must be a .npz file"),
    ("plot experiment.npz", "its kind is 'experiment'"),
    ("plot nope.npz", "no record at nope.npz"),
    ("plot experiment.npz --kind pie", "--kind must be one of trajectory"),
]


@pytest.mark.parametrize(("line", "said"), WRONG, ids=[line or "nothing" for line, _ in WRONG])
def test_what_is_wrong_is_one_line_and_status_two(line, said, capsys):
    before = set(os.listdir())
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(f"meanfield: error: .*{said}.*\n", err), err
    assert set(os.listdir()) == before


def test_what_a_plot_cannot_draw_is_said(capsys):
    np.save("x.npy", np.random.default_rng(0).normal(size=(4, 4)))
    for line in (
        "simulate softmax --start x.npy --times 0.1 --out run.npz --quiet",
        "simulate masked+masked-l2 --tokens 4 --times 0.1 --out two.npz --quiet",
        "compare softmax l2 --covariance 1 --times 0.1 --out law.npz --quiet",
    ):
        assert main(line.split()) == 0, line
    for line, said in (
        ("plot run.npz", "Choose some: --coordinates 0,1"),
        ("plot run.npz --kind disc", "dimension 2; got 4"),
        ("plot run.npz --out run.npz", "must end in .png"),
        ("plot run.npz --out folder", "folder is a folder"),
        ("plot run.npz --coordinates 7", "coordinates must be"),
        ("plot two.npz --rescaled", "--rescaled must have one head"),
        ("plot two.npz --kind attention --head 3", "--head must be 1 to 2"),
        ("plot law.npz --kind trajectory", "Choose with --run NAME"),
        ("plot law.npz --run sigmoid", "--run must be one of softmax, l2"),
        ("plot law.npz --observable entropy", "one of deviation, rank, effective-rank"),
        ("plot law.npz --kind hulls --run l2", "run of tokens"),
    ):
        assert main(line.split()) == 2, line
        err = capsys.readouterr().err
        assert said in err, line
        assert err.count("\n") == 1, line
