"""Merge trees of every attention from one start, their cluster counts, and how far they agree on who merges first."""

import numpy as np

from figures.style import LINES, PAGE, look, new_figure
from meanfield.attention import ATTENTION
from meanfield.plotting.curves import plot_cluster_counts
from meanfield.plotting.dendrograms import plot_merge_tree
from meanfield.plotting.style import letter_panels, spelt

#: Where the logarithmic time axes begin.
FIRST = 0.1


def draw(study):
    """One figure: six trees of the first start, its cluster counts, and all starts' agreement with softmax."""
    run, beta = study.arrays[0], study.cases[0]["beta"]
    horizon = float(run["horizon"])
    figure = new_figure(PAGE, 6.0)
    upper, lower = figure.subfigures(2, 1, height_ratios=(2.0, 1.05))
    trees = upper.subplots(2, 3, sharex=True, sharey=True).ravel()
    for name, axes in zip(ATTENTION, trees, strict=True):
        ended = f"one at $t$ = {run[f'{name}_consensus']:.3g}"
        if not np.isfinite(run[f"{name}_consensus"]):
            ended = f"{run[f'{name}_counts'][-1]} are left"
        scale = {"tscale": "log", "first": FIRST, "end": horizon}
        plot_merge_tree(run[f"{name}_linkage"], variant=name, title=f"{spelt(name)}: {ended}", axes=axes, **scale)
        axes.label_outer()
    trees[0].set_ylabel("tokens")
    trees[3].set_ylabel("tokens")
    left, right = lower.subplots(1, 2, width_ratios=(1.25, 1))
    counts(left, run, horizon)
    agreement(right, study)
    letter_panels([*trees, left, right])
    gathering = [name for name in ATTENTION if all(np.isfinite(one[f"{name}_consensus"]) for one in study.arrays)]
    splits = sum(int(one[f"{name}_splits"]) for one in study.arrays for name in ATTENTION)
    starts = "one start" if len(study.arrays) == 1 else f"each of {len(study.arrays)} starts"
    figure.suptitle(
        f"From {starts} on the sphere, gathered in one cluster by $t$ = {horizon:g}: {spelt_list(gathering)}\n"
        f"({study.cases[0]['n']} tokens, $\\beta$ = {beta:g}, clusters within {run['gap']:g} rad; "
        f"{splits or 'no'} cluster{'s' if splits != 1 else ''} split again)"
    )
    return figure


def counts(axes, run, horizon):
    """Numbers of clusters over time; a run that ended in one cluster stays there."""
    curves = {}
    for name in ATTENTION:
        times, values = run[f"{name}_instants"], run[f"{name}_counts"]
        seen = times > 0
        curves[name] = np.append(times[seen], horizon), np.append(values[seen], values[-1])
    plot_cluster_counts(curves, title="clusters over time", axes=axes)
    axes.set_xscale("log")
    axes.set_xlim(FIRST, horizon)


def agreement(axes, study):
    """Rank correlation of each variant's merge times of pairs with softmax's, one mark a start."""
    names = [name for name in ATTENTION if name != "softmax"]
    for place, name in enumerate(names):
        values = np.array([float(run[f"{name}_agreement"]) for run in study.arrays])
        values = values[np.isfinite(values)]
        shift = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(len(values))
        style = look(name) | {"linestyle": "none"}
        axes.plot(values, place + shift, alpha=0.8, **style)
        middle = np.median(values) if len(values) else np.nan
        axes.plot([middle] * 2, [place - 0.3, place + 0.3], color=style["color"], linestyle=LINES["softmax"])
    axes.set_yticks(range(len(names)), [spelt(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlim(min(0.0, axes.get_xlim()[0]), 1.02)
    axes.set_xlabel("rank correlation with softmax")
    axes.set_title("who merges first")


def spelt_list(names):
    """Names in words: "a, b and c", or "none"."""
    words = [spelt(name) for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "none"
