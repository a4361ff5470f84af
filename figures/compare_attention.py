"""One start under every attention: where the tokens go, their Gaussians beside them, and what is measured over time."""

import numpy as np

from figures.style import PAGE, look, new_figure
from meanfield.measures import Gaussian
from meanfield.plotting.covariances import plot_ellipses
from meanfield.plotting.curves import plot_observables
from meanfield.plotting.style import letter_panels, spelt
from meanfield.plotting.tokens import plot_trajectory

GREY = "#555555"

#: What is drawn over time, with its name.
ROWS = {
    "spread": "spread, $\\sqrt{\\mathrm{tr}\\,\\Sigma}$",
    "entropy": "entropy / $\\log n$",
    "clusters": "clusters",
    "diameter": "diameter",
}


def draw(study):
    """Three figures: the tokens of either regime, and the observables of both."""
    growing, contracting = (runs_of(study, regime) for regime in ("growing", "contracting"))
    return {
        "growing": panels(growing, growing_title(growing), shown=0.5, half=8.1),
        "contracting": panels(contracting, contracting_title(contracting), shown=0.01, half=2.4),
        "observables": observables(growing, contracting),
    }


def runs_of(study, regime):
    """Arrays of the finished cases of a regime by variant."""
    return {
        case["variant"]: arrays
        for case, arrays in zip(study.cases, study.arrays, strict=True)
        if case["regime"] == regime
    }


def growing_title(runs):
    """Who blows up when V = I."""
    return (
        f"$V = I$: {blown_up(runs, 'blow_up')} tokens blow up in finite time, and so do "
        f"{blown_up(runs, 'gaussian_blow_up')}\n"
        "Gaussians; every other run reaches its end (ellipses: Gaussian at 1 and 2 standard deviations)"
    )


def blown_up(runs, key):
    """Names of the runs that blew up."""
    found = [spelt(name) for name, run in runs.items() if np.isfinite(run.get(key, np.nan))]
    return " and ".join(found) or "no"


def contracting_title(runs):
    """How fast everything contracts when V = -I."""
    return (
        f"$V = -I$: every attention contracts; late slopes of the spread {slopes(runs)}, masked "
        f"{signed(runs['masked']['slope'])}\n"
        "(one start, tracks to the time shown; ellipses: Gaussian at 1 and 2 standard deviations)"
    )


def slopes(runs):
    """Least and largest late slope of the unmasked runs, with the predicted one."""
    found = [run["slope"] for name, run in runs.items() if name != "masked"]
    return f"{signed(min(found))} to {signed(max(found))} (predicted \N{MINUS SIGN}1/2)"


def signed(value, form=".2f"):
    """A number with a proper minus sign."""
    return format(value, form).replace("-", "\N{MINUS SIGN}")


def panels(runs, title, *, shown, half):
    """A panel a variant: tracks up to a share of the horizon, the tokens there, and the Gaussian there."""
    figure = new_figure(PAGE, 4.3)
    axes = figure.subplots(2, 4, sharex=True, sharey=True)
    for one, (name, run) in zip(axes.flat, runs.items(), strict=False):
        until = shown * run["horizon"]
        kept = run["times"] <= until * (1 + 1e-9)
        limits = ((-half, half), (-1.28 * half, 0.72 * half))  # room for the notes below
        plot_trajectory((run["times"][kept], run["points"][kept]), variant=name, limits=limits, axes=one)
        note = []
        if "gaussian_times" in run:
            k = np.flatnonzero(run["gaussian_times"] <= until * (1 + 1e-9))[-1]
            law = Gaussian(run["gaussian_means"][k], run["gaussian_covariances"][k])
            plot_ellipses(law, color=GREY, variant=name, axes=one)
            excess = round(100 * (run["gaussian_spread"][k] / run["spread"][k] - 1))
            note.append(f"Gaussian spread {signed(excess, '+d')} %" if excess else "Gaussian: same spread")
        if np.isfinite(run["blow_up"]):
            note.append(f"tokens blow up: {run['blow_up']:.2f}")
        if np.isfinite(run.get("gaussian_blow_up", np.nan)):
            note.append(f"Gaussian blows up: {run['gaussian_blow_up']:.2f}")
        one.text(0.02, 0.02, "\n".join(note), transform=one.transAxes, va="bottom", color=GREY)
        one.set_title(f"{spelt(name)}, $t$ = {run['times'][kept][-1]:.2g}")
        one.label_outer()
    letter_panels(axes.flat)
    figure.suptitle(title)
    return figure


def observables(growing, contracting):
    """Spread, entropy, clusters and diameter over time in both regimes."""
    figure = new_figure(PAGE, 7.8)
    axes = figure.subplots(4, 2)
    for column, runs, scale in ((0, growing, "linear"), (1, contracting, "log")):
        first = 1 if scale == "log" else 0  # t = 0 has no place on a log axis
        for row, (key, label) in enumerate(ROWS.items()):
            curves = {name: (run["times"][first:], run[key][first:]) for name, run in runs.items() if key in run}
            log = "log" if key in ("spread", "diameter") else "linear"
            plot_observables(curves, ylabel=label, xscale=scale, yscale=log, axes=axes[row, column])
        for name, run in runs.items():
            if "gaussian_times" in run:
                times, values = run["gaussian_times"][first:], run["gaussian_spread"][first:]
                axes[0, column].plot(times, values, color=look(name)["color"], linewidth=2.5, alpha=0.3)
    axes[0, 0].set_title("$V = I$ (broad and faint: Gaussians)")
    axes[0, 1].set_title("$V = -I$ (broad and faint: Gaussians)")
    times = np.array([10.0, 100.0])
    axes[0, 1].plot(times, 3 / np.sqrt(times), color=GREY, linewidth=0.8, linestyle=":")
    axes[0, 1].annotate("slope \N{MINUS SIGN}1/2", (30.0, 0.58), color=GREY)
    letter_panels(axes.flat)
    before, after = growing["softmax"]["clusters"][[0, -1]]
    figure.suptitle(
        f"Growing softmax tokens gather in clusters ({before} to {after}), contracting ones do not ({before} to "
        f"{contracting['softmax']['clusters'][-1]});\nlate slopes of contracting spreads are {slopes(contracting)}"
    )
    return figure
