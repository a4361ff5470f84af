"""The gallery: every experiment with its claim, figures, command and source; published claims from a checked file."""

import re

import numpy as np
import pytest

from figures import FIGURES, gallery
from meanfield.sweeps.studies import Study, save_study

NAMES = {"drift": "figures.drift", "drift_far": "figures.drift_far", "later": "figures.later"}


@pytest.fixture
def folders(tmp_path):
    """Records of two experiments, and three pictures of theirs."""
    for name in ("drift", "drift_far"):
        study = Study(name, f"<{name}> & more.", True, 7, [{"k": 0}], [{"x": np.arange(2.0)}], seconds=3.0)
        save_study(tmp_path / "results" / f"{name}.npz", study)
    (tmp_path / "out").mkdir()
    for stem in ("drift", "drift_side", "drift_far_left"):
        (tmp_path / "out" / f"{stem}.png").write_bytes(b"png")
    (tmp_path / "claims.toml").write_text(ENTRY)
    return tmp_path


ENTRY = """[[claim]]
claim = "Things drift < 3."
source = "KEY"
experiment = "drift"
measured = "2"
verdict = "holds in part"
"""


def page(folders):
    return gallery.gallery(folders / "results", folders / "out", NAMES, folders / "claims.toml")


def test_every_experiment_has_claim_command_sources_and_its_own_figures(folders):
    text = page(folders)
    cards = dict(zip(NAMES, text.split('<section class="card"')[1:], strict=True))
    assert re.findall(r'img src="([^"]+)"', cards["drift"]) == ["drift.png", "drift_side.png"]
    assert re.findall(r'img src="([^"]+)"', cards["drift_far"]) == ["drift_far_left.png"]
    assert "&lt;drift&gt; &amp; more." in cards["drift"]
    assert "quick run, 1 cases, seed 7, 3 s" in cards["drift"]
    assert "Not run here yet" in cards["later"]
    for name, card in cards.items():
        assert f"python -m experiments {name}<" in card
        assert f'href="../../experiments/{name}.py"' in card


def test_the_table_shows_claims_with_their_verdicts_and_links_to_figures(folders):
    text = page(folders)
    assert "<td>Things drift &lt; 3.</td><td>[KEY]</td><td>2</td>" in text
    assert '<a href="#drift">drift</a>' in text
    assert "◐ holds in part" in text
    assert "page.html" not in text
    (folders / "out" / "page.html").touch()
    assert 'href="page.html"' in page(folders)
    assert "://" not in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('verdict = "holds in part"', 'verdict = "maybe"', "verdict must be one of holds, holds in part"),
        ('measured = "2"\n', "", "claim 1 of .* must have claim, source, experiment, measured, verdict; got"),
        ('experiment = "drift"', 'experiment = "drfit"', "no experiment is called drfit"),
    ],
)
def test_a_wrong_entry_is_named(folders, old, new, said):
    (folders / "claims.toml").write_text(ENTRY.replace(old, new))
    with pytest.raises(ValueError, match=said):
        page(folders)


def test_the_claims_of_the_house_are_whole_and_their_sources_stand_in_the_readme():
    claims = gallery.read_claims()
    readme = (gallery.CLAIMS.parents[1] / "README.md").read_text(encoding="utf-8")
    assert claims
    assert all(f"[{entry['source']}]" in readme and entry["experiment"] in FIGURES for entry in claims)


def test_the_command_writes_the_index_without_any_record(tmp_path, capsys):
    assert gallery.main(["--results", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert text.count("Not run here yet") == len(FIGURES)
    assert f"{len(FIGURES)} experiments, 0 figures" in capsys.readouterr().out
