"""L2 attention near its pole: the largest eigenvalue over time, and when it passes levels, against epsilon."""

import numpy as np
from matplotlib import colormaps

from meanfield.plotting import EndLabels, letter_panels

from .style import PAGE, look, new_figure

GREY = "#555555"


def draw(study):
    """Two panels: growth beside the pole, and times of passage against the smallest singular value of K."""
    pole = study.select(part="deficient", start="sheet")[0]
    family = study.select(part="regular", start="sheet")[0]
    case = next(case for case in study.cases if case["part"] == "regular" and case["start"] == "sheet")
    epsilons, levels = np.array(case["epsilons"]), np.array(case["levels"])
    figure = new_figure(PAGE, 3.3)
    left, right = figure.subplots(1, 2)
    _growth(left, pole, family, epsilons)
    _passages(right, family, epsilons, levels)
    letter_panels([left, right])
    slope = np.mean(family["slope"])
    figure.suptitle(
        f"With singular $K$ this L2 attention blows up at $t^*$ = {pole['blow_up_time']:.4f} "
        f"(proved: {pole['proved_time']:g});\nwith $\\sigma_{{min}}(K)=\\varepsilon>0$ it never does: "
        f"it passes each level $N$, with a delay that grows like $\\varepsilon^{{{slope:.3f}}}$",
        x=0.01,
        ha="left",
    )
    return figure


def _growth(axes, pole, family, epsilons):
    """Largest eigenvalue over time for the singular K and for some regular ones."""
    sizes = np.linalg.norm(pole["covariances"], 2, axis=(1, 2))
    chosen = np.unique(np.linspace(0, len(epsilons) - 1, 5).astype(int))
    colors = colormaps["viridis"](np.linspace(0.15, 0.8, len(chosen)))
    ends, names = [], []
    for k, color in zip(chosen, colors, strict=True):
        axes.plot(family["times"], family["sizes"][k], color=color)
        ends.append((family["times"][-1], family["sizes"][k, -1]))
        names.append(f"$\\varepsilon$ = {_power(epsilons[k])}")
    axes.plot(pole["times"], sizes, **look("l2") | {"linestyle": "none"}, markevery=4)
    axes.axvline(pole["proved_time"], color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate(
        "$\\varepsilon$ = 0 (marks): a pole",
        (pole["proved_time"], 0.97),
        (-3, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="top",
        color=GREY,
    )
    axes.set(yscale="log", xlabel="time $t$", ylabel=r"largest eigenvalue of $\Sigma(t)$")
    axes.set_title("a pole, and growth beside it")
    EndLabels(axes, ends, names, list(colors))


def _passages(axes, family, epsilons, levels):
    """Time of passage of each level: simulated, exact, and the proved lower bound of the highest."""
    colors = colormaps["viridis"](np.linspace(0.15, 0.8, len(levels)))
    markers = "osD^"
    ends, names = [], []
    for j, color in enumerate(colors):
        axes.plot(family["curve_epsilons"], family["curves"][:, j], color=color, linewidth=1.0)
        axes.plot(epsilons, family["passages"][:, j], color=color, marker=markers[j % 4], linestyle="none")
        ends.append((epsilons[-1], family["curves"][-1, j]))
        names.append(f"$N$ = {_power(levels[j])}")
    axes.plot(epsilons, family["proved"][:, -1], color=GREY, linestyle="--", linewidth=0.8)
    ends.append((epsilons[-1], family["proved"][-1, -1]))
    names.append(f"proved for\n$N$ = {_power(levels[-1])}")
    axes.axhline(family["pole"], color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate("$t^*$", (1.5 * epsilons[0], family["pole"]), (0, 6), textcoords="offset points", color=GREY)
    axes.set(xscale="log", yscale="log", xlabel=r"smallest singular value $\varepsilon$ of $K$")
    axes.set(ylabel=r"time at which $|\Sigma|$ passes $N$", title="marks simulated, lines exact")
    axes.set_ylim(bottom=0.1)
    EndLabels(axes, ends, names, [*colors, GREY])


def _power(value):
    """A power of ten as one, other numbers in short."""
    exponent = np.log10(value)
    whole = abs(exponent - round(exponent)) < 1e-9 and abs(exponent) >= 1
    return f"$10^{{{exponent:.0f}}}$" if whole else f"{value:.2g}"
