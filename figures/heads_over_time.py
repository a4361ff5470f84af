"""Heads that move in time: G^2 over time and against the number of heads, and the energy identity by refinement."""

import numpy as np
from matplotlib import colormaps

from figures.style import PAGE, new_figure
from meanfield.plotting.curves import plot_convergence, power_law
from meanfield.plotting.labels import EndLabels
from meanfield.plotting.style import ink, letter_panels, looks

GREY = "#555555"
SPACES = {3: "sphere", 2: "circle"}


def draw(study):
    """One figure of four panels."""
    runs = decays(study)
    late = {
        name: (list(by_count), [[run["late"] for run in by_count[h]] for h in by_count])
        for name, by_count in runs.items()
    }
    figure = new_figure(PAGE, 5.2)
    axes = figure.subplots(2, 2)
    over_time(axes[0, 0], runs["noise, sphere"])
    against_heads(axes[0, 1], late)
    gaps(axes[1, 0], runs)
    refinement(axes[1, 1], study)
    letter_panels(axes.flat)
    exponents = {
        name: power_law(counts, np.exp(np.mean(np.log(values), axis=1)))[0] for name, (counts, values) in late.items()
    }
    noise, oscillation = (signed(exponents[f"{motion}, sphere"]) for motion in ("noise", "oscillation"))
    figure.suptitle(
        f"The dissipation $G^2$ falls like $H^{{b}}$ under random heads ($b$ = {noise}), hardly "
        f"under oscillating ones ($b$ = {oscillation});\n"
        "it is the rate at which the energy falls for one head, and for one head only"
    )
    return figure


def decays(study):
    """Runs by motion and space, then by number of heads."""
    found = {}
    for case, arrays in zip(study.cases, study.arrays, strict=True):
        if case["kind"] == "decay":
            by_count = found.setdefault(f"{case['motion']}, {SPACES[case['d']]}", {})
            by_count.setdefault(case["heads"], []).append(arrays)
    return found


def over_time(axes, by_count):
    """G^2 over time for every number of heads, the second half shaded: there the means are taken."""
    shades = colormaps["viridis"](np.linspace(0.9, 0.0, len(by_count)))
    ends = []
    for color, runs in zip(shades, by_count.values(), strict=True):
        run = runs[0]
        axes.plot(run["times"], run["dissipation"], color=color, linewidth=0.9)
        ends.append((run["times"][-1], run["dissipation"][-1]))
    last = ends[0][0]
    axes.axvspan(last / 2, last, color="#EEEEEE", zorder=0)
    EndLabels(axes, ends, [f"$H$ = {count}" for count in by_count], [color[:3] for color in shades])
    axes.set(yscale="log", xlabel="time $t$", ylabel="dissipation $G^2$", xlim=(0, last))
    axes.set_title("random heads, sphere")


def against_heads(axes, late):
    """The late mean of G^2 against H with the fitted exponents."""
    plot_convergence(late, predicted=-1.0, xlabel="number of heads $H$", ylabel="late mean of $G^2$", axes=axes)
    axes.set_title("$G^2$ in the shaded half")


def gaps(axes, runs):
    """How far -dE/dt is from G^2, on average over a run, against H."""
    for name, look in looks(runs).items():
        counts = list(runs[name])
        values = [np.mean([run["gap"] for run in runs[name][count]]) for count in counts]
        axes.plot(counts, values, color=look.color, marker=look.marker, linestyle=look.linestyle)
    axes.set(xscale="log", yscale="log", xlabel="number of heads $H$", ylabel="mean of $|{-dE/dt} - G^2|\\,/\\,G^2$")
    axes.set_ylim(1e-17, 30)
    worst = max(run["gap"] for by_count in runs.values() for run in by_count[1])
    below = [np.mean([run["gap"] for run in by_count[h]]) for by_count in runs.values() for h in by_count if h > 1]
    axes.annotate(
        f"one head: at most {scientific(worst)}",
        (1, worst),
        (8, 0),
        textcoords="offset points",
        color=GREY,
        va="center",
    )
    axes.annotate(
        f"more: {min(below):.2g} to {max(below):.2g}",
        (max(runs["noise, sphere"]), min(below)),
        (0, -14),
        textcoords="offset points",
        color=GREY,
        ha="right",
    )
    axes.set_title("is $G^2$ the rate of the energy?")


def refinement(axes, study):
    """The residual of the identity along a run against the number of steps."""
    ends, names, colors = [], [], []
    for motion, line in (("noise", "-"), ("oscillation", "--")):
        for count, color in ((1, "#0072B2"), (3, "#D55E00")):
            run = study.select(kind="identity", motion=motion, heads=count)[0]
            axes.plot(run["steps"], run["residual"], color=color, linestyle=line, marker="o", markersize=3)
            ends.append((run["steps"][-1], run["residual"][-1]))
            names.append(f"{count} head{'s' if count > 1 else ''}, {motion}:\norder {signed(run['order'])}")
            colors.append(ink(color))
    EndLabels(axes, ends, names, colors)
    axes.set(xscale="log", yscale="log", xlabel="number of steps", ylabel="residual / range of energy")
    axes.set_xticks(run["steps"], [str(step) for step in run["steps"]])
    axes.set_xticks([], minor=True)
    axes.set_title("energy identity, by refinement")


def scientific(value):
    """A small number in powers of ten."""
    factor, power = f"{value:.0e}".split("e")
    return rf"{factor}$\times 10^{{{int(power)}}}$"


def signed(value):
    """A number with a proper minus sign."""
    return f"{value + 0.0:.2f}".replace("-", "\N{MINUS SIGN}")
