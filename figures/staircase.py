"""The staircase of the energy: its steps in time and in arc length, the tokens that merge, and when they do."""

import numpy as np
from matplotlib import colormaps

from figures.style import LINES, MARKERS, PAGE, new_figure
from meanfield.plotting.labels import EndLabels
from meanfield.plotting.style import ink, letter_panels

GREY = "#555555"

#: The merge law is a limit of low temperatures: how near it is, is said from here on.
WITHIN = 2000


def draw(study):
    """One figure of four panels."""
    runs = {
        name: {
            case["beta"]: arrays
            for case, arrays in zip(study.cases, study.arrays, strict=True)
            if case["attention"] == name
        }
        for name in ("unnormalised", "softmax")
    }
    steep = runs["unnormalised"]
    figure = new_figure(PAGE, 4.9)
    axes = figure.subplots(2, 2)
    stairs_in_time(axes[0, 0], steep)
    stairs_in_length(axes[0, 1], steep)
    tracks(axes[1, 0], max(steep), steep[max(steep)])
    merge_times(axes[1, 1], runs)
    letter_panels(axes.flat)
    figure.suptitle(
        "The energy rests at the levels $\\Sigma m_k^2/n^2$ of clusters of $m_k$ tokens until the nearest two merge,\n"
        rf"after the time they would need alone: within {100 * (10 ** worst(runs) - 1):.1f} % for $\beta \geq$ "
        rf"{WITHIN}, over {decades(runs)} powers of ten"
    )
    return figure


def worst(runs):
    """The largest |log10 of measured over predicted time| of a merge, for temperatures from `WITHIN` on."""
    cold = [run for by_beta in runs.values() for beta, run in by_beta.items() if beta >= WITHIN]
    return max(np.abs(run["merge_log_times"] - run["predicted_log_times"]).max() for run in cold)


def decades(runs):
    """How many powers of ten the merge times span."""
    times = np.concatenate([run["merge_log_times"] for by_beta in runs.values() for run in by_beta.values()])
    return round(np.ptp(times))


def shade(betas):
    """A colour for each temperature."""
    places = (np.array(sorted(betas)) - min(betas)) / max(np.ptp(sorted(betas)), 1)
    return dict(zip(sorted(betas), colormaps["viridis"](0.9 - 0.9 * places), strict=True))


def levels_behind(axes, plateaus):
    """The predicted levels as dashed lines, named at the left by their clusters."""
    for level in plateaus:
        axes.axhline(level, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)


def stairs_in_time(axes, runs):
    """Level against log10 t, one line a temperature."""
    run = runs[max(runs)]
    levels_behind(axes, run["plateaus"])
    ends = []
    for beta, color in shade(runs).items():
        seen = runs[beta]["log_time"] > -1
        times = runs[beta]["log_time"][seen]
        axes.plot(times, runs[beta]["level"][seen], color=color)
        ends.append(times[-1])
    for (beta, color), end, height in zip(shade(runs).items(), ends, np.linspace(0.93, 0.60, len(ends)), strict=True):
        axes.annotate(f"{beta}", (end, height), (2, 0), textcoords="offset points", color=ink(color[:3]), va="center")
    axes.annotate(r"$\beta$ =", (ends[0], 0.93), (-14, 0), textcoords="offset points", color=GREY, va="center")
    axes.set(xlabel=r"$\log_{10}$ of time $t$", ylabel="energy / its largest value", ylim=(0.15, 1.05))
    axes.set_xlim(-1, 1.08 * max(ends))
    axes.set_title("in time: plateaus last $e^{c\\beta}$")


def stairs_in_length(axes, runs):
    """Level against the arc length of the tokens' path, where all temperatures have their steps at one place."""
    run = runs[max(runs)]
    levels_behind(axes, run["plateaus"])
    for beta, color in shade(runs).items():
        axes.plot(runs[beta]["length"], runs[beta]["level"], color=color)
    end = run["length"][-1]
    ends = [(end, level) for level in run["plateaus"]]
    EndLabels(
        axes,
        ends,
        [clusters(masses, level) for masses, level in zip(run["masses"], run["plateaus"], strict=True)],
        [GREY] * len(ends),
    )
    axes.set(xlabel="arc length of the path", ylim=(0.15, 1.05), xlim=(0, end))
    axes.set_title("in arc length: one place for all steps")


def clusters(masses, level):
    """A level and the sizes of the clusters that make it, such as '0.52: 3, 2'."""
    sizes = np.round(masses[masses > 0] * len(masses)).astype(int)
    return f"{level:.2f}: " + ", ".join(map(str, sizes))


def tracks(axes, beta, run):
    """Angles of the tokens against arc length at one temperature."""
    axes.plot(run["length"], run["angles"], color=shade([beta, 0])[beta], linewidth=1.0)
    for length in run["merge_lengths"]:
        axes.axvline(length, color=GREY, linewidth=0.6, linestyle=":")
    for length, log_time in zip(run["merge_lengths"], run["merge_log_times"], strict=True):
        axes.annotate(
            f"$10^{{{log_time:.0f}}}$",
            (length, 1.0),
            (-2, -2),
            xycoords=("data", "axes fraction"),
            color=GREY,
            textcoords="offset points",
            ha="right",
            va="top",
        )
    axes.set(xlabel="arc length of the path", ylabel=r"angles $\theta_i$")
    axes.set_xlim(0, run["length"][-1])
    axes.set_ylim(-0.03, 1.18 * run["angles"].max())
    axes.set_title(rf"tokens, and merge times for $\beta$ = {beta}")


def merge_times(axes, runs):
    """log10 of the merge times against beta, measured and predicted."""
    colors = {"unnormalised": "#56B4E9", "softmax": "#0072B2"}
    for name, by_beta in runs.items():
        betas = sorted(by_beta)
        measured = np.array([by_beta[beta]["merge_log_times"] for beta in betas])
        predicted = np.array([by_beta[beta]["predicted_log_times"] for beta in betas])
        axes.plot(betas, predicted, zorder=1, color=colors[name], linestyle=LINES[name], linewidth=0.9)
        axes.plot(
            betas,
            measured,
            color=colors[name],
            marker=MARKERS[name],
            linestyle="none",
            markersize=4.5,
            markerfacecolor="none" if name == "softmax" else colors[name],
            label=[name] + ["_"] * (measured.shape[1] - 1),
        )
    most = runs["unnormalised"][max(runs["unnormalised"])]["merge_log_times"]
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$\log_{10}$ of merge time")
    EndLabels(
        axes,
        [(max(runs["unnormalised"]), time) for time in most],
        [f"merge {k + 1}" for k in range(len(most))],
        [GREY] * len(most),
    )
    axes.legend(loc="upper left", handletextpad=0.2, borderpad=0)
    axes.set_title("merge times (lines: merge law)")
