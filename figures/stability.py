"""Stability: distances over time and for every attention, beside the proved constant and measured estimates."""

import numpy as np

from figures.style import PAGE, look, new_figure
from meanfield.plotting.labels import EndLabels
from meanfield.plotting.style import letter_panels, spelt

GREY = "#555555"


def draw(study):
    """Two runs over time, then every variant at the horizon in the plane and on the circle."""
    figure = new_figure(PAGE, 5.0)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
    axes = [*top.subplots(1, 2), *bottom.subplots(1, 2, sharex=True, sharey=True)]
    for one, variant, name in ((axes[0], "softmax", "softmax"), (axes[1], "masked", "masked softmax")):
        over_time(one, study.select(variant=variant, space="plane", replica=0)[0], variant)
        one.set_title(f"{name}, near laws")
    variants = list(dict.fromkeys(case["variant"] for case in study.cases))
    for one, space, name in ((axes[2], "plane", "in the plane"), (axes[3], "circle", "on the circle")):
        runs = {variant: study.select(variant=variant, space=space) for variant in variants}
        at_the_end(one, runs)
        one.set_title(f"all variants, {name}")
    end = study.arrays[0]["times"][-1]
    for one in axes[2:]:
        one.set_xlabel(f"logarithm of the growth up to $t$ = {end:g}")
    letter_panels(axes)
    above = sum(bool((np.log(run["ratios"]) > run["log_bound"] + 1e-9).any()) for run in study.arrays)
    figure.suptitle(
        f"Two solutions never drift apart by more than the proved constant: {above} of {len(study.arrays)} pairs do;\n"
        "Gronwall with the measured Lipschitz quotient is near, the constant for all laws of the ball is far"
    )
    return figure


def over_time(axes, run, variant):
    """The ratio, the two measured estimates and the bound of one pair."""
    own = look(variant)
    curves = {
        "ratio $W_2(\\mu_t, \\nu_t) / W_2(\\mu_0, \\nu_0)$": (run["ratios"], own["color"], "-"),
        "measured quotient": (run["gronwall"], GREY, "--"),
        "worst direction": (run["local_estimate"], GREY, ":"),
        "proved $C(t, R_0)$": (np.exp(run["log_bound"]), "#000000", "-."),
    }
    short = ["ratio", "Gronwall,\nmeasured quotient", "Gronwall,\nworst direction", "proved\n$C(t, R_0)$"]
    for values, color, line in curves.values():
        axes.plot(run["times"], values, color=color, linestyle=line, linewidth=1.8 if line == "-" else 1.2)
    ends = [(run["times"][-1], values[-1]) for values, _, _ in curves.values()]
    EndLabels(axes, ends, short, [color for _, color, _ in curves.values()])
    axes.set(yscale="log", xlabel="time $t$", ylabel="growth of the distance")
    marks = [mark for mark in (0.5, 1, 2, 5, 10, 20, 50, 100) if axes.get_ylim()[0] <= mark <= axes.get_ylim()[1]]
    axes.set_yticks(marks, [f"{mark:g}" for mark in marks])
    axes.set_yticks([], minor=True)


def at_the_end(axes, runs):
    """One band a variant and one line a pair: logarithms of the ratio, of Gronwall's estimate and of the bound."""
    for row, (variant, pairs) in enumerate(runs.items()):
        color = look(variant)["color"]
        level = row + 0.7 * ((np.arange(len(pairs)) + 0.5) / len(pairs) - 0.5)
        ratios, gronwall = (np.log([run[name][-1] for run in pairs]) for name in ("ratios", "gronwall"))
        bounds = np.array([run["log_bound"][-1] for run in pairs])
        axes.hlines(level, ratios, bounds, color=color, linewidth=0.5, alpha=0.6, zorder=1)
        axes.scatter(ratios, level, marker="o", s=7, color=color, linewidths=0)
        axes.scatter(gronwall, level, marker="d", s=7, facecolors="white", edgecolors=GREY, linewidths=0.6)
        axes.scatter(bounds, level, marker="|", s=9, color="#000000", linewidths=1.0)
    axes.set_yticks(range(len(runs)), [spelt(variant) for variant in runs])
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xticks([-0.5, 0, 0.5, 1, 10, 100], ["\N{MINUS SIGN}0.5", "0", "0.5", "1", "10", "100"])
    axes.set_xticks([], minor=True)
    axes.axvline(0.0, color="#CCCCCC", linewidth=0.6, zorder=0)
    axes.set(ylim=(len(runs) - 0.4, -1.2))
    words = "\N{BLACK CIRCLE} ratio    \N{WHITE DIAMOND} Gronwall, measured quotient    | proved"
    axes.text(0.02, 0.955, words, color=GREY, va="center", transform=axes.transAxes)
