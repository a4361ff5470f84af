"""Put template, styles, scripts and the arrays of the record into one HTML file; nothing is computed here."""

import base64
import html
import json
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from meanfield.plotting.style import LOOKS

FOLDER = Path(__file__).parent

#: Scripts in the order in which they need one another.
SCRIPTS = ("data", "dom", "colours", "texts_en", "texts_zh", "state", "language", "plane", "attention", "steps")
SCRIPTS += ("causal", "norms", "flow", "main")
STYLES = ("page", "parts")

#: Layers in the order in which they are offered, and where the embeddings came from.
LAYERS = ("toy", "minilm", "depths")
SOURCE = "all-MiniLM-L6-v2 (experiments/data/real_tokens.npz)"


def packed(value):
    """An array as JSON can carry it: numbers as base64 of little-endian floats, strings as lists, NaN as null.

    Arrays of 1 or more axes keep their bits; single numbers become JSON numbers.
    """
    array = np.asarray(value)
    if array.dtype.kind in "US":
        return array.tolist()
    if array.ndim == 0:
        number = array.item()
        return number if np.isfinite(number) else None
    kind = "f4" if array.dtype == np.float32 else "f8"
    data = np.ascontiguousarray(array, dtype=f"<{kind}")
    return {"shape": list(array.shape), "kind": kind, "base64": base64.b64encode(data.tobytes()).decode()}


def page_record(study):
    """All that the page knows, as one JSON value.

    Parameters
    ----------
    study : Study
        The record of ``two_views``.
    """
    parts = {case["part"]: arrays for case, arrays in zip(study.cases, study.arrays, strict=True)}
    flows = [
        {"variant": case["variant"], "beta": case["beta"], "sign": case["sign"], **arrays}
        for case, arrays in zip(study.cases, study.arrays, strict=True)
        if case["part"] == "flow"
    ]
    order = [name for name in LAYERS if name in parts]
    if "toy" not in order or not flows:
        raise ValueError(
            f"the page needs the parts toy and flow of two_views; the record has {sorted(parts)}. "
            "Run: python -m experiments two_views"
        )
    return {
        "claim": study.claim,
        "quick": study.quick,
        "seed": study.seed,
        "source": SOURCE,
        "order": order,
        "layers": {name: {key: packed(value) for key, value in parts[name].items()} for name in order},
        "flows": [{key: packed(value) for key, value in run.items()} for run in flows],
        "looks": {name: {"color": look.color, "marker": look.marker} for name, look in LOOKS.items()},
        "cividis": [to_hex(color) for color in colormaps["cividis"](np.linspace(0, 1, 65))],
    }


def build(study):
    """The page, one string of HTML that asks for no other file."""
    # In a script element only "</" could end the data early.
    data = json.dumps(page_record(study), ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    scripts = "\n".join((FOLDER / "js" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    filled = {
        "/*CSS*/": "\n".join((FOLDER / "css" / f"{name}.css").read_text(encoding="utf-8") for name in STYLES),
        "/*DATA*/": data,
        "/*JS*/": f'(() => {{\n"use strict";\n{scripts}}})();\n',
    }
    page = (FOLDER / "template.html").read_text(encoding="utf-8")
    for mark, text in filled.items():
        before, after = page.split(mark)
        page = before + text + after
    return page


def escaped(text):
    """Text that is safe between tags and inside quotes."""
    return html.escape(str(text), quote=True)
