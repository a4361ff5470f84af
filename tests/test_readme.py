"""The README's code runs as it stands, top to bottom, and says what it claims."""

import re
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names():
    """What the README's Python blocks leave behind, run one after the other."""
    space = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, flags=re.S):
        exec(compile(block, "README.md", "exec"), space)
    return space


def test_the_pole_of_the_second_journey_is_where_the_comment_says(names):
    assert names["run"].outcome is mf.Outcome.BLEW_UP
    assert names["run"].blow_up_time == pytest.approx(0.5, rel=1e-6)
    np.testing.assert_allclose([state.covariance.item() for state in names["run"]], [1, 2, 50], rtol=1e-6)


def test_the_first_journey_ends_in_few_clusters_and_the_sweep_keeps_its_order(names):
    assert names["verdict"].happened
    assert [result.case["beta"] for result in names["results"]] == [1.0, 1.0, 4.0, 4.0]


def test_a_users_field_and_kernels_move_tokens(names):
    for field in (names["consensus"], names["cauchy"], names["ReluAttention"](mf.Head.identity(2, beta=0.01))):
        assert mf.simulate(field, names["tokens"], [0, 1]).outcome is mf.Outcome.FINISHED


def test_every_source_key_in_the_code_is_listed():
    root = Path(__file__).parents[1]
    code = [path for folder in ("meanfield", "experiments", "figures") for path in (root / folder).rglob("*.py")]
    used = {key for path in code for key in re.findall(r"\[[A-Z]{2,6}\d{2}\]", path.read_text(encoding="utf-8"))}
    assert used <= set(re.findall(r"\[[A-Z]{2,6}\d{2}\]", TEXT))
