"""The figure of the maps, on a record of a few cells."""

import numpy as np

from experiments.blow_up_map import CLAIM, FIELDS, PLANES
from figures.blow_up_map import draw
from meanfield.sweeps.studies import Study


def study():
    """Softmax and linear attention blow up in one cell of each plane; one of eight random laws contradicts."""
    cases, arrays = [], []
    for plane in PLANES:
        for field in FIELDS:
            times = np.full(9, np.inf)
            if field in ("softmax", "linear"):
                times[4] = 0.5 if field == "softmax" else 2.0
            cases.append({"part": "map", "plane": plane, "field": field, "grid": 3, "horizon": 6.0})
            arrays.append(
                {
                    "angles": np.linspace(-90, 90, 3),
                    "anisotropies": np.linspace(-1, 1, 3),
                    "blow_up_times": times,
                    "outcomes": np.isfinite(times).astype(int),
                    "growth": np.linspace(-1, 1, 9),
                    "proved": np.where(np.isfinite(times), 1, 0),
                }
            )
    for field in FIELDS[:2]:
        cases.append({"part": "random", "field": field})
        arrays.append(
            {
                "proved": np.array([0, 1, -1, 0]),
                "outcomes": np.array([0, 1, 2, 0]),
                "contradicted": np.array([field == "linear", False, False, False]),
            }
        )
    return Study("blow_up_map", CLAIM, True, 0, cases, arrays)


def test_title_counts_contradictions_and_what_is_left_open():
    title = draw(study()).get_suptitle()
    assert "Blow-up over whole regions: softmax and linear; nowhere: L2 and Sinkhorn (up to $t$ = 6)" in title
    assert "1 contradictions between proof and simulation over 8 random laws" in title
    assert "6 of them proved, 2 undecided; 2 runs did not settle" in title


def test_every_panel_shows_the_same_scale_of_times():
    figure = draw(study())
    images = [axes.images[1] for axes in figure.axes[:12]]
    assert {(image.norm.vmin, image.norm.vmax) for image in images} == {(0.5, 2.0)}
    shown = [np.ma.compressed(np.ma.masked_invalid(image.get_array())).tolist() for image in images]
    assert shown == 3 * [[0.5], [2.0], [], []]
