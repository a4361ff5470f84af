"""The page as a file: whole, small, alone, and with the bits of its record."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

from experiments import two_views
from figures.page.__main__ import main
from figures.page.build import FOLDER, SCRIPTS, STYLES, build, packed, page_record
from meanfield.encoder.qwen3 import STEPS
from meanfield.sweeps.studies import Study, save_study


def unpacked(value):
    """An array out of what `packed` made of it."""
    return np.frombuffer(base64.b64decode(value["base64"]), dtype=f"<{value['kind']}").reshape(value["shape"])


def texts(name):
    """The keys of one language, and all its text."""
    written = (FOLDER / "js" / f"texts_{name}.js").read_text(encoding="utf-8").split("TEXTS.zh.names")[0]
    return set(re.findall(r'(?:^|[,{])\s*"([\w.]+)": "', written, re.MULTILINE)), written


def test_the_page_is_one_small_file_that_names_no_other(text):
    assert len(text.encode()) < 1.5e6
    code = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    assert set(re.findall(r"https?://[^\s\"']+", code)) == {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert not re.search(r"\bimport\b|\bfetch\(|XMLHttpRequest|url\((?!#)|\bsrc=|@font-face", code)
    assert all(target.startswith(("#", "data:")) for target in re.findall(r'href="([^"]*)"', code))
    assert not re.search(r"/\*(CSS|DATA|JS)\*/", text)


def test_every_script_and_style_is_in_it_and_short_enough_to_read(text):
    assert {path.stem for path in (FOLDER / "js").glob("*.js")} == set(SCRIPTS)
    assert {path.stem for path in (FOLDER / "css").glob("*.css")} == {*STYLES, "gallery"}
    for path in [*(FOLDER / "js").glob("*.js"), *(FOLDER / "css" / f"{name}.css" for name in STYLES)]:
        written = path.read_text(encoding="utf-8")
        assert written in text
        assert len(written.splitlines()) <= 160


def test_arrays_keep_their_bits_and_numbers_that_do_not_exist_are_null(study):
    record = json.loads(json.dumps(page_record(study)))
    toy = study.select(part="toy")[0]
    for k in range(23):
        np.testing.assert_array_equal(unpacked(record["layers"]["toy"][f"step_{k:02d}"]), toy[f"step_{k:02d}"])
    depths = record["layers"]["depths"]["step_03"]
    assert depths["kind"] == "f4"
    np.testing.assert_array_equal(unpacked(depths), study.select(part="depths")[0]["step_03"])
    softmax = next(run for run in record["flows"] if run["variant"] == "softmax" and run["beta"] == 1)
    assert softmax["blow_up"] is None
    assert softmax["gaussian_blow_up"] == study.select(variant="softmax", beta=1.0)[0]["gaussian_blow_up"]
    assert packed(np.array(["a", "b"])) == ["a", "b"]


def test_both_languages_say_the_same_things_and_name_every_step():
    english, _ = texts("en")
    chinese, written = texts("zh")
    assert english == chinese
    template = (FOLDER / "template.html").read_text(encoding="utf-8")
    used = set(re.findall(r'data-t(?:-label)?="([\w.]+)"', template))
    for name in SCRIPTS:
        if not name.startswith("texts"):
            used |= set(re.findall(r'\bt\("([\w.]+)"', (FOLDER / "js" / f"{name}.js").read_text(encoding="utf-8")))
    assert used <= english
    assert not re.search(r"[\u4e00-\u9fff][,;:?]", written), "half-width marks after Chinese"
    names = (FOLDER / "js" / "texts_zh.js").read_text(encoding="utf-8").split("TEXTS.zh.names")[1]
    missing = [name for name, _ in STEPS if f'"{name}":' not in names]
    assert missing == []


@pytest.mark.skipif(not two_views.weights_installed(), reason="MiniLM is not installed: make models")
def test_with_the_real_layer_the_page_is_still_small_enough_and_its_steps_are_translated(study):
    view = two_views.run({"part": "minilm"}, None)
    whole = Study("two_views", study.claim, True, 0, [{"part": "minilm"}, *study.cases], [view, *study.arrays])
    # The usual record has 24 flows more than this one, of 31 times: at most 10 kB each.
    assert len(build(whole).encode()) + 24 * 10_000 < 1.5e6
    names = (FOLDER / "js" / "texts_zh.js").read_text(encoding="utf-8")
    assert [name for name in view["names"] if f'"{name}":' not in names] == []


def test_the_command_writes_the_page_and_says_what_is_missing(study, tmp_path, capsys):
    line = ["--results", str(tmp_path), "--out", str(tmp_path / "out" / "page.html")]
    assert main(line) == 1
    assert "run: python -m experiments two_views" in capsys.readouterr().err
    save_study(tmp_path / "two_views.npz", study)
    assert main(line) == 0
    assert (tmp_path / "out" / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    flows = [k for k, case in enumerate(study.cases) if case["part"] == "flow"]
    halved = Study("two_views", "A line.", True, 0, *([part[k] for k in flows] for part in (study.cases, study.arrays)))
    save_study(tmp_path / "two_views.npz", halved)
    assert main(line) == 1
    assert "needs the parts toy and flow" in capsys.readouterr().err
    assert Path(line[-1]).is_file()
