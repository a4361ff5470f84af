"""Where energies are not convex: a Dirac in the twisted metric, two Gaussians, and the search over random laws."""

import numpy as np
from matplotlib.ticker import NullLocator

from figures.style import PAGE, new_figure
from meanfield.plotting.labels import EndLabels
from meanfield.plotting.style import ink, letter_panels, looks

GREY = "#555555"
BENT = "#D55E00"
NAMES = {"distance": "distance to N(0, I)", "sinkhorn": "Sinkhorn"}


def draw(study):
    """One figure of four panels."""
    place = study.select(kind="dirac")[0]
    paths = {case["energy"]: run for case, run in finished(study, "geodesic")}
    searches = {(case["energy"], case["metric"]): run for case, run in finished(study, "search")}
    figure = new_figure(PAGE, 5.2)
    top, bottom = figure.subfigures(2, 1)
    axes = [*top.subplots(1, 2), *bottom.subplots(1, 2)]
    dirac_values(axes[0], place)
    dirac_bend(axes[1], place)
    along(axes[2], paths)
    found(axes[3], searches)
    letter_panels(axes)
    twisted = searches["interaction", "twisted"]["tokens"]
    figure.suptitle(
        "For $V = I$, $A = -I$ the softmax energy is not convex: on a Dirac its second derivative is $x^2 - 1$ (to "
        f"{scientific(np.abs(place['general'] - place['x'] ** 2 + 1).max())}),\nand in the twisted metric "
        f"{100 * np.mean(twisted < 0):.0f} % of {len(twisted)} random laws of tokens have a direction that bends down"
    )
    return figure


def finished(study, kind):
    """Cases of a kind with their arrays."""
    return [(case, run) for case, run in zip(study.cases, study.arrays, strict=True) if case["kind"] == kind]


def dirac_values(axes, run):
    """The energy of a Dirac against its arc length, with the part that bends down."""
    bent = np.abs(run["x"]) <= 1 + 1e-12
    axes.plot(run["arc"], run["values"], color="#0072B2")
    axes.plot(run["arc"][bent], run["values"][bent], color=BENT, linewidth=2.4)
    ends = run["arc"][bent][[0, -1]]
    axes.plot(ends, run["values"][bent][[0, -1]], "o", color=BENT)
    for end, side, shift in zip(ends, ("left", "right"), (7, -7), strict=True):
        sign = "\N{MINUS SIGN}" if side == "left" else ""
        axes.annotate(
            f"$x$ = {sign}1",
            (end, run["values"][bent][0]),
            (shift, 0),
            textcoords="offset points",
            color=BENT,
            ha=side,
            va="center",
        )
    axes.annotate("bends down", (0, run["values"].max()), (0, -24), textcoords="offset points", color=BENT, ha="center")
    axes.set(xlabel="arc length of the twisted metric, $ds = e^{-x^2/2}\\,dx$", ylabel="energy $e^{-x^2}/2$")
    axes.set_title("a Dirac at $x$ on the line")


def dirac_bend(axes, run):
    """Its second derivative by the formula, by the search over directions, and by differences."""
    axes.axhspan(min(run["formula"].min(), -1) - 0.2, 0, color="#FBEEE6", zorder=0)
    axes.plot(run["x"], run["x"] ** 2 - 1, color=GREY, linewidth=0.9, label="$x^2 - 1$")
    axes.plot(run["x"], run["general"], "o", color="#0072B2", markersize=3.5, label="second variation")
    axes.plot(run["x"], run["differences"], "+", color="#000000", markersize=6, label="differences of values")
    axes.axhline(0, color=GREY, linewidth=0.5)
    axes.set(xlabel="place $x$", ylabel="$d^2E/ds^2$", ylim=(-1.2, 3.2))
    axes.legend(loc="upper center", handletextpad=0.4)
    axes.set_title("negative for $|x| < 1$")


def along(axes, paths):
    """Second derivatives along the geodesic between two Gaussians."""
    ends, names, colors = [], [], []
    for name, look in looks(paths).items():
        run = paths[name]
        axes.plot(run["s"], run["second"], color=look.color, linestyle=look.linestyle)
        ends.append((run["s"][-1], run["second"][-1]))
        names.append(NAMES.get(name, name))
        colors.append(ink(look.color))
    axes.axhspan(axes.get_ylim()[0], 0, color="#FBEEE6", zorder=0)
    axes.axhline(0, color=GREY, linewidth=0.5)
    EndLabels(axes, ends, names, colors)
    bent = sum(run["lowest"] < 0 for run in paths.values())
    axes.set(xlabel="parameter $s$ of the Bures geodesic", ylabel="$d^2E/ds^2$ per unit of arc", xlim=(0, 1))
    axes.set_title(f"between two Gaussians: {bent} of {len(paths)} bend down")


def found(axes, searches):
    """The lowest second derivative at every random law, one row an energy, on a symmetric log axis."""
    labels = []
    for row, ((name, metric), run) in enumerate(searches.items()):
        for values, shift, color, marker in (
            (run["tokens"], 0.17, "#0072B2", "o"),
            (run["gaussians"], -0.17, "#009E73", "^"),
        ):
            height = np.full(len(values), -row + shift)
            axes.plot(values, height, marker, color=color, markersize=2.5, alpha=0.5, markeredgewidth=0)
        labels.append(NAMES.get(name, name) + (", twisted" if metric == "twisted" else ""))
    axes.set_xscale("symlog", linthresh=0.1, linscale=0.5)
    low, high = axes.get_xlim()
    axes.axvspan(low, 0, color="#FBEEE6", zorder=0)
    axes.set(xlim=(low, high), xlabel="lowest $d^2E/ds^2$ at a random law")
    axes.axvline(0, color=GREY, linewidth=0.5)
    axes.set_yticks(-np.arange(len(labels)), labels)
    axes.yaxis.set_minor_locator(NullLocator())
    ticks = [tick for tick in (-1000, -100, -10, -1, 0, 1, 10) if low <= tick <= high]
    axes.set_xticks(ticks, [str(tick).replace("-", "\N{MINUS SIGN}") for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(-len(labels) + 0.5, 0.55)
    everywhere = sum(max([*run["tokens"], *run["gaussians"]]) < 0 for run in searches.values())
    axes.set_title(f"{everywhere} of {len(searches)} bend down at every law")
    for words, color, height in (
        ("$\\bullet$ tokens", "#0072B2", 0.94),
        ("$\\blacktriangle$ Gaussians", "#009E73", 0.86),
    ):
        axes.text(0.98, height, words, color=ink(color), transform=axes.transAxes, ha="right", va="top")


def scientific(value):
    """A power of ten above a small number."""
    return "0" if value == 0 else f"$10^{{{int(np.ceil(np.log10(value)))}}}$"
