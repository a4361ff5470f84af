"""What a feed-forward part does to the covariance: blow-up times against w, runs onto P*^{-1}, a plane of starts."""

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LogNorm

from meanfield.plotting import EndLabels, letter_panels

from .style import PAGE, new_figure

GREY = "#555555"
MARKERS = "osD^"


def draw(study):
    """Three panels: the scalar blow-up time, decay to the equilibrium, and the threshold between zero and blow-up."""
    figure = new_figure(PAGE, 3.0)
    panels = figure.subplots(1, 3, width_ratios=[1.15, 1, 1.1])
    worst = _scalar(panels[0], study)
    _equilibria(panels[1], study)
    plane = _threshold(panels[2], study.select(part="threshold", drift="symmetric")[0])
    letter_panels(panels)
    wrong = sum(arrays["disagreements"] for arrays in study.select(part="threshold"))
    starts = sum(arrays["simulated"].size for arrays in study.select(part="threshold"))
    figure.suptitle(
        "A feed-forward part $Wx$ moves the pole, or replaces it by an equilibrium $P_*^{-1}$, or by zero:\n"
        f"simulated $t^*$ agree with the closed forms to {_short(max(worst, plane))}, "
        f"and {wrong} of {starts:,} starts fall on the wrong side of $P_0 > P_*$",
        x=0.01,
        ha="left",
    )
    return figure


def _short(value):
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"${mantissa}\\times10^{{{int(exponent)}}}$"


def _scalar(axes, study):
    """t* against w, for several a s0; returns the largest relative error."""
    arrays = [study.select(part="scalar", side=side)[0] for side in ("stabilising", "destabilising")]
    rates = np.concatenate([arrays[0]["rates"][::-1], arrays[1]["rates"][1:]])
    exact, simulated = (np.concatenate([arrays[0][k][::-1], arrays[1][k][1:]]) for k in ("exact", "simulated"))
    pushes = arrays[0]["pushes"]
    colors = colormaps["viridis"](np.linspace(0.8, 0.1, len(pushes)))
    errors = []
    for j, (push, color) in enumerate(zip(pushes, colors, strict=True)):
        for one in arrays:
            line = np.where(np.isfinite(one["curves"][:, j]), one["curves"][:, j], np.nan)
            axes.plot(one["curve_rates"], line, color=color, linewidth=1.0)
        met = np.isfinite(simulated[:, j])
        axes.plot(rates[met], simulated[met, j], color=color, marker=MARKERS[j % 4], linestyle="none", markersize=3)
        errors.append(np.abs(simulated[met, j] / exact[met, j] - 1).max())
        axes.axvline(-push, color=color, linewidth=0.6, linestyle=":")
    ends = [(rates[-1], exact[-1, j]) for j in range(len(pushes))]
    EndLabels(axes, ends, [f"$as_0$ = {push:g}" for push in pushes], list(colors))
    axes.axvline(0, color="#DDDDDD", linewidth=0.6, zorder=0)
    axes.set(yscale="log", ylim=(0.08, 8), xlabel="rate $w$ of the feed-forward part", ylabel="blow-up time $t^*$")
    axes.set_title("none for $w\\leq-as_0$")
    return max(errors)


def _equilibria(axes, study):
    """Distances from the equilibrium with the predicted slopes."""
    ends, names, colors = [], [], []
    drifts = list(dict.fromkeys(case["drift"] for case in study.cases if case["part"] == "equilibrium"))
    for drift, color in zip(drifts, ("#0072B2", "#D55E00"), strict=False):
        arrays = study.select(part="equilibrium", drift=drift)[0]
        axes.plot(arrays["times"], arrays["distances"].T, color=color, alpha=0.25, linewidth=0.7)
        late = np.searchsorted(arrays["times"], arrays["times"][-1] / 2)
        middle = np.exp(np.log(arrays["distances"]).mean(axis=0))
        line = 3 * middle[late] * np.exp(-arrays["predicted"] * (arrays["times"] - arrays["times"][late]))
        axes.plot(arrays["times"][late // 3 :], line[late // 3 :], color=color, linestyle="--")
        ends.append((arrays["times"][-1], line[-1]))
        names.append(f"{drift} W:\n{arrays['predicted']:.2f}, fit {np.median(arrays['fitted']):.2f}")
        colors.append(color)
    axes.set(yscale="log", xlabel="time $t$", ylabel=r"$|\Sigma(t)-P_*^{-1}|\,/\,|P_*^{-1}|$")
    axes.set_title(r"rate $2\,\min\mathrm{Re}\,\mathrm{eig}(W)$")
    EndLabels(axes, ends, names, colors)


def _threshold(axes, arrays):
    """Blow-up times over starts diag(s1, s2), with the proved border; returns the largest relative error."""
    sizes, times = arrays["sizes"], arrays["simulated"]
    met = np.isfinite(times)
    mesh = axes.pcolormesh(sizes, sizes, np.where(met, times, np.nan), norm=LogNorm(times[met].min(), times[met].max()))
    mesh.set_rasterized(True)
    axes.plot(*arrays["border"].T, color="black", linewidth=1.2)
    axes.set(xscale="log", yscale="log", xlabel=r"start $\Sigma_{11}$", ylabel=r"start $\Sigma_{22}$")
    axes.set(xlim=(sizes[0], sizes[-1]), ylim=(sizes[0], sizes[-1]), facecolor="#F0F0F0")
    axes.annotate(r"$\Sigma\to 0$", (0.12, 0.12), xycoords="axes fraction")
    axes.annotate("blow-up", (0.4, 0.72), xycoords="axes fraction", color="white")
    axes.set_title("line: $P_0-P_*$ singular")
    bar = axes.get_figure().colorbar(mesh, ax=axes, label="blow-up time $t^*$", pad=0.03)
    bar.outline.set_visible(False)
    return np.abs(times[met] / arrays["exact"][met] - 1).max()
