"""One look for every figure: print sizes, a colour, marker and line for each variant, and a safe way to disk."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import matplotlib.style
from cycler import cycler
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

#: Width of one text column and of a full page, in inches.
COLUMN, PAGE = 3.4, 7.0

#: Resolution of the PNG files, in dots an inch.
DPI = 200


class Look(NamedTuple):
    """How one variant is drawn: never by its colour alone."""

    color: str
    marker: str
    linestyle: object


#: The Okabe-Ito colours (and their grey), with a marker and a line style of its own for each variant of attention.
LOOKS = {
    "softmax": Look("#0072B2", "o", "-"),
    "l2": Look("#D55E00", "s", "--"),
    "sinkhorn": Look("#009E73", "^", "-."),
    "sigmoid": Look("#E69F00", "D", ":"),
    "linear": Look("#CC79A7", "v", (0, (5, 1, 1, 1, 1, 1))),
    "unnormalised": Look("#56B4E9", "P", (0, (3, 1))),
    "masked": Look("#000000", "X", (0, (1, 1))),
    "multihead": Look("#999999", "*", (0, (7, 2))),
}
COLOURS = {name: look.color for name, look in LOOKS.items()}
MARKERS = {name: look.marker for name, look in LOOKS.items()}
LINES = {name: look.linestyle for name, look in LOOKS.items()}

_SETTINGS = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "figure.titlesize": 9,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=[look.color for look in LOOKS.values()]),
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.4,
    "legend.frameon": False,
    "image.cmap": "viridis",
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "pdf.fonttype": 42,  # TrueType: journals refuse the default, Type 3
    "ps.fonttype": 42,
}


@contextmanager
def style():
    """The look of the house inside a ``with``; matplotlib's settings and backend are the caller's again afterwards.

    It starts from matplotlib's own defaults, so that a figure does not depend on the user's settings file.
    """
    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def look(name):
    """``color``, ``marker`` and ``linestyle`` of a variant, as a dict to hand to ``axes.plot``.

    Raises
    ------
    ValueError
        If the table has no such variant.
    """
    if name not in LOOKS:
        raise ValueError(f"a variant must be one of {', '.join(LOOKS)}; got {name!r}. Add its row to LOOKS.")
    return LOOKS[name]._asdict()


def looks(names):
    """A `Look` for each name of a panel, as a dict: variants get their own, other names the ones left over, in order.

    More names than looks go round the table again with the line styles shifted, so no two of 64 are alike.
    """
    names = list(dict.fromkeys(names))
    taken = {name: LOOKS[name] for name in names if name in LOOKS}
    spare = [row for name, row in LOOKS.items() if name not in taken]
    table = list(LOOKS.values())
    while len(spare) < len(names):
        shift = len(spare) // len(table) + 1
        spare += [row._replace(linestyle=table[(k + shift) % len(table)].linestyle) for k, row in enumerate(table)]
    others = iter(spare)
    return {name: taken[name] if name in taken else next(others) for name in names}


def spelt(name):
    """A variant's name as it is written in a figure; other names as they are."""
    return {"l2": "L2", "multihead": "multi-head"}.get(name, name)


def ink(color):
    """A darker shade of a colour: what text in that colour is written in, to be read on white."""
    return tuple(0.75 * part for part in to_rgb(color))


class PrintFigure(Figure):
    """A Figure that keeps the look of the house, and its TrueType fonts, when its user calls ``savefig`` directly."""

    def savefig(self, fname, **options):
        """As `matplotlib.figure.Figure.savefig`, inside `style`: ticks and fonts are made only here."""
        with style():
            super().savefig(fname, **options)


def new_figure(width=COLUMN, height=2.6):
    """An empty figure of the given size in inches, laid out by constraints, belonging to no window and no pyplot."""
    return PrintFigure(figsize=(width, height), layout="constrained")


def panel(axes=None, *, width=COLUMN, height=2.6, projection=None):
    """The axes to draw into: those given, or the only ones of a new figure.

    Parameters
    ----------
    axes : matplotlib.axes.Axes, optional
        A panel of the caller's figure.
    width, height : float
        Size of the new figure in inches.
    projection : None or "3d"
        What the plot needs.

    Raises
    ------
    ValueError
        If the axes given are flat and the plot is not, or the other way round.
    """
    if axes is None:
        return new_figure(width, height).add_subplot(projection=projection)
    if (axes.name == "3d") != (projection == "3d"):
        wanted = "'3d'" if projection == "3d" else "None"
        raise ValueError(
            f"axes must have projection {wanted} for this plot; got projection {axes.name!r}. "
            f"Make them with figure.add_subplot(projection={wanted})."
        )
    return axes


def figure_of(axes):
    """The whole figure that axes belong to, subfigures seen through."""
    return axes.get_figure(root=True)


def letter_panels(axes):
    """Put a, b, c, ... in bold before the title of each panel of a sequence of axes."""
    for letter, one in zip("abcdefghijklmnopqrstuvwxyz", axes, strict=False):
        one.set_title(f"$\\bf{{{letter}}}$  {one.get_title(loc='left')}".rstrip(), loc="left")


def save_figure(figure, path):
    """Write ``path.pdf`` and ``path.png``, each whole or not at all, with fonts embedded as TrueType.

    With SOURCE_DATE_EPOCH set, the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : path_like
        Where to, without a suffix; its folder is made if it is missing.

    Returns
    -------
    list of pathlib.Path
        The two files.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for kind in ("pdf", "png"):
        target = path.with_name(f"{path.name}.{kind}")  # not with_suffix: "beta=0.5" has a dot of its own
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", suffix=f".{kind}", dir=path.parent)
        os.close(handle)
        try:
            with style():
                figure.savefig(temporary, format=kind, dpi=DPI)
            os.chmod(temporary, 0o644)  # mkstemp leaves it to the owner alone
            os.replace(temporary, target)
        finally:
            Path(temporary).unlink(missing_ok=True)
        written.append(target)
    return written
