"""Counts of ranks for K = -Q: the published scheme, the exact flow at the same tolerance, its limit, the exact rank."""

import numpy as np
from matplotlib.ticker import MultipleLocator

from figures.style import PAGE, new_figure

ROWS = {
    ("softmax", "identity"): "softmax, $V = I$",
    ("softmax", "random"): "softmax, random $V$",
    ("l2", "identity"): "L2, $V = I$",
    ("l2", "random"): "L2, random $V$",
}
DIMENSIONS = (3, 4, 5)

#: What the bars are: name, key of the record, colour, hatch.
BARS = (
    ("authors' scheme", "published", "#BBBBBB", ""),
    ("exact flow, same stop", "accurate", "#333333", ""),
    ("closed-form limit", "limit", "white", "/////"),
)

#: How an attempt may fail.
DIVERGED, EXHAUSTED = 1, 2


def draw(study):
    """A row for each variant and kind of V, a column for each dimension."""
    figure = new_figure(PAGE, 6.6)
    panels = figure.subplots(len(ROWS), len(DIMENSIONS), sharey=True)
    for (variant, value), line in zip(ROWS, panels, strict=True):
        for d, axes in zip(DIMENSIONS, line, strict=True):
            panel(axes, study.select(variant=variant, value=value, d=d)[0])
        line[0].set_ylabel(f"{ROWS[variant, value]}\nnumber of draws")
    for d, axes in zip(DIMENSIONS, panels[0], strict=True):
        axes.set_title(f"$d$ = {d}")
    for axes in panels[-1]:
        axes.set_xlabel("eigenvalues above 0.1")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, columnspacing=1.2, handlelength=1.5)
    figure.suptitle(title(study))
    return figure


def title(study):
    """The claim, with the numbers of the record."""
    failed = sum(int((run["attempts"][:, 2] != 0).sum()) for run in study.arrays)
    followed = sum(len(run["followed"]) for run in study.arrays)
    converged = sum(int((run["exact_status"] == 0).sum()) for run in study.arrays)
    return (
        "Every limit has rank $d - \\lfloor d/2 \\rfloor$ (triangle); the threshold and Euler steps show lower ones\n"
        f"{failed} published runs diverge or go on; the exact flow converges in {converged} of {followed} followed"
    )


def panel(axes, run):
    """Bars by rank, a triangle at the exact rank, and what became of runs that are not counted."""
    ranks = np.arange(len(run["published"]))
    shown = [bar for bar in BARS if bar[1] in run]
    width = 0.8 / len(BARS)
    exact = int(run["exact_rank"])
    axes.axvspan(exact - 0.5, exact + 0.5, color="#F0E442", alpha=0.25, linewidth=0, label="exact rank of the limit")
    for k, (name, key, color, hatch) in enumerate(shown):
        place = ranks + (k - (len(shown) - 1) / 2) * width
        axes.bar(place, run[key], width, color=color, hatch=hatch, edgecolor="#333333", linewidth=0.4, label=name)
    axes.plot(exact, 1.0, marker="v", color="black", markersize=5, clip_on=False, transform=axes.get_xaxis_transform())
    axes.xaxis.set_major_locator(MultipleLocator(1))
    axes.set(xlim=(-0.5, len(ranks) - 0.5), ylim=(0, 1.25 * run["published"].sum()))
    status = run["attempts"][:, 2]
    lost = {
        "diverge": int((status == DIVERGED).sum()),
        "unfinished": int((status == EXHAUSTED).sum()),
        "dropped": int(run["dropped"].sum()),
    }
    told = "\n".join(f"{count} {word}" for word, count in lost.items() if count)
    if told:
        axes.text(0.02, 0.99, told, va="top", transform=axes.transAxes, color="#555555", linespacing=1.05)
