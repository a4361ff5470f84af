"""The look of the house leaves the user's settings alone and whole files on the disk."""

import itertools

import matplotlib
import pytest

from meanfield.attention import ATTENTION
from meanfield.plotting.style import COLUMN, LOOKS, PAGE, look, new_figure, save_figure, style


def drawing():
    figure = new_figure(COLUMN, 2)
    axes = figure.add_subplot()
    for k, name in enumerate(LOOKS):
        axes.plot([0, 1], [0, k], label=name, **look(name))
    axes.set_title(r"Slope of $\lambda_{max}$, ℝ and é")
    return figure


def settings():
    """matplotlib's settings as they stand; reading the backend in the usual way would choose one."""
    return {name: dict.__getitem__(matplotlib.rcParams, name) for name in matplotlib.rcParams}


def test_every_variant_has_a_look_that_differs_in_colour_marker_and_line():
    assert {*ATTENTION, "masked", "multihead"} <= set(LOOKS)
    for (one, first), (other, second) in itertools.combinations(LOOKS.items(), 2):
        for what, ours, theirs in zip(first._fields, first, second, strict=True):
            assert ours != theirs, f"{one} and {other} share their {what}"


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match=r"must be one of softmax, .*; got 'relu'"):
        look("relu")


def test_style_holds_inside_and_gives_the_users_settings_back():
    with matplotlib.rc_context({"font.size": 31, "text.usetex": True, "lines.linewidth": 7}):
        before = settings()
        with style():
            assert matplotlib.rcParams["font.size"] == 8
            assert not matplotlib.rcParams["text.usetex"]
            assert settings()["backend"] is before["backend"]
        assert settings() == before


def test_figures_have_print_widths():
    assert new_figure().get_size_inches()[0] == COLUMN == 3.4
    assert new_figure(PAGE, 3).get_size_inches().tolist() == [7, 3]


def test_pdf_and_png_are_written_with_truetype_fonts_and_a_dot_in_the_name_stays(tmp_path):
    with style():
        pdf, png = save_figure(drawing(), tmp_path / "new" / "beta=0.5")
    assert (pdf.name, png.name) == ("beta=0.5.pdf", "beta=0.5.png")
    assert sorted(path.name for path in pdf.parent.iterdir()) == [pdf.name, png.name]
    assert b"/Type3" not in pdf.read_bytes()
    assert b"/FontFile2" in pdf.read_bytes()
    header = png.read_bytes()[16:24]
    assert [int.from_bytes(header[:4]), int.from_bytes(header[4:])] == [680, 400], "3.4 x 2 inches at 200 dpi"


def test_the_same_figure_gives_the_same_bytes_under_a_source_date(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, second = (save_figure(drawing(), tmp_path / name)[0].read_bytes() for name in "ab")
    assert first == second


def test_a_drawing_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    with style():
        save_figure(drawing(), tmp_path / "a")
        before = (tmp_path / "a.pdf").read_bytes()
        broken = drawing()
        broken.axes[0].set_title("$\\nonsense$")
        with pytest.raises(ValueError, match="nonsense"):
            save_figure(broken, tmp_path / "a")
    assert (tmp_path / "a.pdf").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.png"]
