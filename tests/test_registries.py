"""What is registered is whole: a module, a test, a claim, a figure, a look and a line in the README."""

import importlib
import re
from pathlib import Path

import pytest

from experiments import EXPERIMENTS
from figures import FIGURES
from meanfield.attention import ATTENTION, Attention, make_attention
from meanfield.integration.schemes import SCHEMES
from meanfield.parameters import Head
from meanfield.plotting.style import LOOKS

ROOT = Path(__file__).parents[1]


def texts(folder):
    """All test code under a folder of tests/."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests" / folder).rglob("*.py")))


def readme_cells():
    """Every cell of the README's tables, without its marks."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    return {cell.strip(" `*") for line in lines if line.startswith("|") for cell in line.split("|")}


@pytest.mark.parametrize("name", ATTENTION)
def test_an_attention_has_its_own_module_that_says_what_it_is(name):
    variant = ATTENTION[name]
    assert variant.__module__ == f"meanfield.attention.{name}"
    assert issubclass(variant, Attention)
    assert variant.__doc__
    assert type(make_attention(name, Head.identity(2))) is variant


@pytest.mark.parametrize("name", ATTENTION)
def test_an_attention_is_tested_against_a_plain_loop(name):
    written = texts("meanfield/attention")
    assert ATTENTION[name].__name__ in written
    assert f"oracles.{name}" in written


@pytest.mark.parametrize("name", ATTENTION)
def test_an_attention_has_a_look_and_a_row_in_the_readme(name):
    assert name in LOOKS
    assert name in readme_cells()


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_states_its_order_and_is_tested(name):
    assert SCHEMES[name].order >= 1
    written = texts("meanfield/integration")
    assert "SCHEMES" in written or type(SCHEMES[name]).__name__ in written


def test_the_root_offers_what_is_registered():
    root = importlib.import_module("meanfield")
    assert {variant.__name__ for variant in ATTENTION.values()} <= set(root.__all__)
    assert all(hasattr(root, name) for name in root.__all__)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_has_a_claim_cases_that_differ_and_a_test(name):
    module = importlib.import_module(EXPERIMENTS[name])
    assert EXPERIMENTS[name] == f"experiments.{name}"
    assert re.fullmatch(r"[^.].*\.", module.CLAIM), "one sentence"
    quick, usual = module.cases(True), module.cases(False)
    assert 0 < len(quick) <= len(usual)
    assert callable(module.run)
    assert (ROOT / "tests" / "experiments" / f"test_{name}.py").is_file()
    assert name in readme_cells()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_draws_an_experiment_and_has_a_test(name):
    assert FIGURES[name] == f"figures.{name}"
    assert callable(importlib.import_module(FIGURES[name]).draw)
    assert (ROOT / "tests" / "figures" / f"test_{name}.py").is_file()


def test_each_experiment_has_its_figure_and_each_figure_its_experiment():
    assert list(FIGURES) == list(EXPERIMENTS)


@pytest.mark.parametrize("folder", ["experiments", "figures"])
def test_every_module_there_is_registered(folder):
    frame = {"__init__", "__main__", "runner", "style"}
    registered = set(EXPERIMENTS if folder == "experiments" else FIGURES)
    drawn = {
        path.stem
        for path in (ROOT / folder).glob("*.py")
        if re.search(r"^def (run|draw)\(", path.read_text(encoding="utf-8"), re.MULTILINE) and path.stem not in frame
    }
    assert drawn == registered
