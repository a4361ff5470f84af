"""The attention sink: rates and ratios of masked attention against the mass at position 0."""

import numpy as np

from figures.style import PAGE, new_figure
from meanfield.plotting.labels import EndLabels

#: Colours, markers and words of the disturbances, in the order of the record.
DISTURBANCES = (("#0072B2", "o", "sink alone"), ("#D55E00", "s", "worst"), ("#009E73", "^", "random"))

#: Masses below this stand at the left end, next to zero.
LEAST = 4e-3

GREY = "#555555"


def draw(study):
    """For p = 1 and p = 2: the rate at the start with the factors of the mask, and the ratio at the horizon."""
    figure = new_figure(PAGE, 5.2)
    axes = figure.subplots(2, 2, sharex=True)
    for row, p in enumerate((1, 2)):
        cases = sorted((case["mass"], k) for k, case in enumerate(study.cases) if case["p"] == p)
        masses, runs = np.array([mass for mass, _ in cases]), [study.arrays[k] for _, k in cases]
        rates(axes[row, 0], masses, runs, p)
        ratios(axes[row, 1], masses, runs, p, study.cases[0]["horizon"])
    for one in axes[1]:
        one.set_xlabel(r"mass $\theta(\{0\})$ of the sink")
    for letter, one in zip("abcd", axes.flat, strict=True):
        one.set_title(f"$\\bf{{{letter}}}$  {one.get_title(loc='left')}", loc="left")
    at_zero = study.select(mass=0, p=2)[0]["mask_factor"]
    figure.suptitle(
        "A light attention sink costs masked attention little: $\\log(1/\\theta(\\{0\\}))$ in the rate of $d_1$,\n"
        f"at most a factor 2 in that of $d_2$ ({at_zero:.2f} with no sink at all), and not $1/\\theta(\\{{0\\}})$"
    )
    return figure


def rates(axes, masses, runs, p):
    """Growth rates at the start: measured, and what the factor of the mask allows."""
    x = shown(masses)
    proved, sink = (np.array([run["in_law"] * run[name] for run in runs]) for name in ("mask_factor", "sink_factor"))
    kept = masses > 0
    axes.plot(x, proved, color="#000000", linestyle="-.")
    axes.plot(x[kept], sink[kept], color=GREY, linestyle=":")
    measured(axes, x, np.array([run["quotients"] for run in runs]))
    beside = {"textcoords": "offset points"}
    axes.annotate(r"$1/\theta(\{0\})$", (x[kept][0], sink[kept][0]), (6, -2), color=GREY, **beside)
    axes.annotate("proved" if p == 1 else "proved: at most 2", (x[1], proved[1]), (2, 5), color="#000000", **beside)
    axes.set(yscale="log", ylim=(0.6, 300), ylabel="rate at the start", title=f"$d_{p}$: Lipschitz quotient")
    sink_axis(axes)


def ratios(axes, masses, runs, p, horizon):
    """Ratios at the horizon, and the constants with either factor."""
    x = shown(masses)
    bound, sink = (np.exp([run[name] for run in runs]) for name in ("log_bound", "log_sink_bound"))
    axes.plot(x, bound, color="#000000", linestyle="-.")
    kept = sink < 300
    axes.plot(x[kept], sink[kept], color=GREY, linestyle=":")
    last = measured(axes, x, np.array([run["ratios"] for run in runs]))
    names = [name for _, _, name in DISTURBANCES] + ["proved"]
    colors = [color for color, _, _ in DISTURBANCES] + ["#000000"]
    left = [(x[-1], value) for value in (*last, bound[-1])]
    EndLabels(axes, left, names, colors)
    top = (x[kept][0], sink[kept][0])
    axes.annotate(r"$1/\theta(\{0\})$ alone", top, (-4, -4), textcoords="offset points", ha="right", color=GREY)
    axes.set(yscale="log", ylim=(1, 300), ylabel="growth of the distance", title=f"$d_{p}$ at $t$ = {horizon:g}")
    sink_axis(axes)


def measured(axes, x, values):
    """One marked line a disturbance; the values at the right end."""
    for (color, marker, _), column in zip(DISTURBANCES, values.T, strict=True):
        axes.plot(x, column, color=color, marker=marker, linewidth=0.8, markersize=3)
    return values[-1]


def shown(masses):
    """Masses on the axis: zero at the left end, next to the log axis of the others."""
    return np.where(masses > 0, masses, LEAST / 2)


def sink_axis(axes):
    """A log axis whose left end is labelled 0."""
    axes.set_xscale("log")
    axes.set_xticks([LEAST / 2, 0.01, 0.1, 1.0], ["0", "0.01", "0.1", "1"])
    axes.set_xticks([], minor=True)
    axes.axvline(LEAST / 1.4, color="#CCCCCC", linewidth=0.6, zorder=0)
