"""The covariance of n tokens beside that of their Gaussian, which has a pole; at the pole against n; and the radii."""

import numpy as np
from matplotlib import colormaps

from meanfield.plotting import EndLabels, letter_panels

from .style import PAGE, new_figure

GREY = "#555555"
MARKERS = "osD^vPX*"


def draw(study):
    """Three panels: covariance over time, covariance at t* against n, and radius against its bound."""
    sizes = sorted({case["n"] for case in study.cases})
    groups = {n: study.select(n=n) for n in sizes}
    colors = dict(zip(sizes, colormaps["viridis"](np.linspace(0.85, 0.1, len(sizes))), strict=True))
    figure = new_figure(PAGE, 3.0)
    panels = figure.subplots(1, 3, width_ratios=[1.35, 1, 1.1])
    _covariances(panels[0], groups, colors)
    _at_the_pole(panels[1], groups, colors)
    _radii(panels[2], groups, colors)
    letter_panels(panels)
    first = groups[sizes[0]][0]
    few, many = (np.mean([arrays["at_pole"] for arrays in groups[n]]) for n in (sizes[0], sizes[-1]))
    figure.suptitle(
        f"The Gaussian blows up at $t^*$ = {first['pole']:g}; its {_count(sizes[-1])} tokens do not: "
        f"there their variance is {many:.2g},\nhardly more than the {few:.2g} of {_count(sizes[0])} tokens, "
        r"for tokens stay within $R_0e^{|V|t}$ and $R_0\approx\sqrt{2\log n}$",
        x=0.01,
        ha="left",
    )
    return figure


def _count(n):
    return f"{n:,}"


def _covariances(axes, groups, colors):
    ends, names = [], []
    for n, arrays in groups.items():
        times = arrays[0]["times"]
        middle = np.exp(np.mean([np.log(one["covariance"]) for one in arrays], axis=0))
        axes.plot(times, middle, color=colors[n])
        ends.append((times[-1], middle[-1]))
        names.append(f"$n$ = {_count(n)}")
    first = next(iter(groups.values()))[0]
    before = np.isfinite(first["gaussian"])
    axes.plot(first["times"][before], first["gaussian"][before], color="black", linestyle="--")
    axes.axvline(first["pole"], color=GREY, linewidth=0.8, linestyle=":")
    top = 3 * max(end for _, end in ends)
    axes.set(yscale="log", ylim=(0.8, top), xlabel="time $t$", ylabel=r"variance $\Sigma(t)$")
    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axes.annotate("Gaussian", (first["pole"], 0.93), (-14, 0), ha="right", va="center", **place)
    axes.annotate("$t^*$", (first["pole"], 0.02), (3, 0), color=GREY, **place)
    axes.set_title("tokens leave the Gaussian")
    EndLabels(axes, ends, names, [colors[n] for n in groups])


def _at_the_pole(axes, groups, colors):
    """Variance at t*, one mark a replica, below the square of the radius bound."""
    n = np.array(list(groups), dtype=float)
    middle = [np.mean([one["at_pole"] for one in arrays]) for arrays in groups.values()]
    bounds = []
    for k, (size, arrays) in enumerate(groups.items()):
        values = [one["at_pole"] for one in arrays]
        marks = {"color": colors[size], "marker": MARKERS[k % len(MARKERS)], "linestyle": "none"}
        axes.plot(np.full(len(values), size), values, alpha=0.5, markersize=3, **marks)
        bounds.append(np.mean([np.interp(one["pole"], one["times"], one["bound"]) ** 2 for one in arrays]))
    axes.plot(n, middle, color="black")
    axes.plot(n, bounds, color=GREY, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="number of tokens $n$", ylabel=r"variance at $t^*$")
    axes.set(ylim=(2, 2 * max(bounds)), title="at the pole")
    axes.annotate(r"bound $R_0^2e^{2|V|t^*}$", (n[0], bounds[-1]), (0, 9), textcoords="offset points", color=GREY)
    axes.annotate("mean", (n[0], middle[0]), (0, 12), textcoords="offset points")
    axes.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axes.minorticks_off()


def _radii(axes, groups, colors):
    ends, names = [], []
    for n, arrays in groups.items():
        one = arrays[0]
        radius, bound = (np.mean([replica[name] for replica in arrays], axis=0) for name in ("radius", "bound"))
        axes.plot(one["times"], radius, color=colors[n])
        axes.plot(one["times"], bound, color=colors[n], linestyle="--", linewidth=0.8)
        ends.append((one["times"][-1], radius[-1]))
        names.append(f"{_count(n)}")
    axes.axvline(one["pole"], color=GREY, linewidth=0.8, linestyle=":")
    axes.set(yscale="log", xlabel="time $t$", ylabel=r"radius $\max_i\,|x_i(t)|$", title="inside the bound")
    axes.set_yticks([3, 4, 6, 8], ["3", "4", "6", "8"])
    axes.minorticks_off()
    axes.annotate(r"dashed: $R_0e^{|V|t}$", (0.04, 0.94), xycoords="axes fraction", va="top", color=GREY)
    EndLabels(axes, ends, names, [colors[n] for n in groups])
