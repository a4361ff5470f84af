"""The command line: what its words mean, and what it reads out of files of tokens."""

import numpy as np
import pytest

from meanfield.cli import values
from meanfield.cli.laws import LAWS
from meanfield.cli.parser import EXAMPLES, join_negative, make_parser
from meanfield.cli.problem import parse_attention
from meanfield.cli.tokens import read_tokens


@pytest.mark.parametrize(
    ("spelt", "meant"),
    [
        ("2", 2.0),
        ("1,0;0,1", [[1, 0], [0, 1]]),
        ("1 0; 0 -1", [[1, 0], [0, -1]]),
        ("1,2,3", [[1, 2, 3]]),
        ([[1, 2]], [[1, 2]]),
        (3, 3.0),
    ],
)
def test_a_matrix_is_read_as_it_is_written(spelt, meant):
    np.testing.assert_array_equal(values.matrix("m", spelt), meant)


@pytest.mark.parametrize(
    ("spelt", "meant"),
    [
        ("5", np.linspace(0, 5, 101)),
        (5, np.linspace(0, 5, 101)),
        ("1:3:5", [1, 1.5, 2, 2.5, 3]),
        ("-1:1:3", [-1, 0, 1]),
        ("0,1,5", [0, 1, 5]),
        ([0, 0.5], [0, 0.5]),
    ],
)
def test_times_are_an_end_a_range_or_a_list(spelt, meant):
    np.testing.assert_array_equal(values.times("t", spelt), meant)


def test_options_of_a_variant_are_typed():
    found = values.assignments("--set", ["a=1", "b=-2.5", "c=true", "max-products=7", "d=word"])
    assert found == {"a": 1, "b": -2.5, "c": True, "max_products": 7, "d": "word"}
    assert [type(value) for value in found.values()] == [int, float, bool, int, str]


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("l2", [("l2", False)]),
        ("masked", [("softmax", True)]),
        ("Masked-L2", [("l2", True)]),
        ("softmax+sigmoid", [("softmax", False), ("sigmoid", False)]),
    ],
)
def test_names_of_attention_are_variants_masks_and_sums(name, heads):
    assert parse_attention(name) == heads


def test_values_with_a_minus_sign_belong_to_their_option():
    words = [
        "simulate",
        "softmax",
        "--value",
        "-1,0;0,-1",
        "--times",
        "-1:1:3",
        "--beta=-2",
        "--retract",
        "--seed",
        "1",
    ]
    joined = ["simulate", "softmax", "--value=-1,0;0,-1", "--times=-1:1:3", "--beta=-2", "--retract", "--seed", "1"]
    assert join_negative(words) == joined


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_examples_of_the_help_parse(command):
    for line in EXAMPLES[command].strip().splitlines():
        words = line.partition("(")[0].partition("|")[0].replace('"', "").split()
        assert words[:2] == ["meanfield", command]
        assert make_parser().parse_known_args(join_negative(words[1:]))[1] == []


@pytest.mark.parametrize("name", LAWS)
def test_a_law_draws_points_of_its_support_by_the_seed_alone(name):
    x = LAWS[name](50, 3, 2.0, np.random.default_rng(1))
    np.testing.assert_array_equal(x, LAWS[name](50, 3, 2.0, np.random.default_rng(1)))
    norms = np.linalg.norm(x, axis=1)
    support = {
        "uniform": np.abs(x).max() <= 2,
        "gaussian": 1.5 < x.std() < 2.5,  # 150 draws of deviation 2: five standard errors are 0.6
        "sphere": np.allclose(norms, 2, rtol=1e-14),
        "ball": norms.max() <= 2 and norms.min() < 1.5,
        "hemisphere": np.allclose(norms, 2, rtol=1e-14) and x[:, -1].min() >= 0 > x[:, 0].min(),
    }
    assert x.shape == (50, 3)
    assert support[name]


def test_the_ball_is_filled_evenly():
    # The share within half the radius is 1/8 in three dimensions; four standard errors of 4,000 draws are 0.021.
    x = LAWS["ball"](4000, 3, 1.0, np.random.default_rng(2))
    assert (np.linalg.norm(x, axis=1) < 0.5).mean() == pytest.approx(1 / 8, abs=0.021)


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "x,y\n1,2\n3,4\n",
        "\ufeffx;y\n1;2\n\n# remark\n3;4\n",
        "x\ty\r\n1\t2\r\n3\t4\r\n",
        " 1 , 2 \n 3 , 4",
    ],
)
def test_a_table_is_read_with_or_without_header_and_whatever_its_delimiter(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    found = read_tokens("--start", str(path))
    np.testing.assert_array_equal(found.points, [[1, 2], [3, 4]])
    assert found[1:] == (None, None)


def test_columns_of_weights_and_positions_are_no_coordinates(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("word,Weight,y,position,x\ncat,1,10,0.5,1\ndog,3,20,0.25,2\n")
    found = read_tokens("--start", str(path), columns=["x", "y"], normalise=True)
    np.testing.assert_array_equal(found.points, [[1, 10], [2, 20]])
    np.testing.assert_array_equal(found.weights, [0.25, 0.75])
    np.testing.assert_array_equal(found.positions, [0.5, 0.25])


def test_arrays_come_from_npy_and_npz_files_whatever_their_type(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", tokens=x.astype(int), weight=[0.5, 0.5, 0])
    np.savez(tmp_path / "alone.npz", anything=x)
    for name in ("x.npy", "x.npz", "alone.npz"):
        found = read_tokens("--start", str(tmp_path / name))
        np.testing.assert_array_equal(found.points, x)
        assert found.points.dtype == np.float64
    np.testing.assert_array_equal(read_tokens("--start", str(tmp_path / "x.npz")).weights, [0.5, 0.5, 0])
