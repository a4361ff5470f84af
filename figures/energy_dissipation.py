"""Energy dissipation: energies over time, dE/dt two ways, and what is left of both checks as the step shrinks."""

import numpy as np

from figures.style import PAGE, look, new_figure
from meanfield.plotting.labels import EndLabels
from meanfield.plotting.style import letter_panels

GREY = "#555555"
FAILING = {"two heads": "#D55E00", "turned": "#000000"}


def draw(study):
    """One figure of four panels."""
    runs = {case["pair"]: arrays for case, arrays in zip(study.cases, study.arrays, strict=True)}
    good = {name: run for name, run in runs.items() if name not in FAILING}
    figure = new_figure(PAGE, 5.0)
    axes = figure.subplots(2, 2)
    energies(axes[0, 0], runs)
    ratios(axes[0, 1], runs)
    refinement(axes[1, 0], runs, "residual", 4)
    refinement(axes[1, 1], runs, "quotients", 2)
    names_at_ends(axes[1, 0], runs, "residual")
    axes[1, 0].set(ylabel="residual / range of the energy")
    axes[1, 0].set_title("identity along the run, by refinement")
    axes[1, 1].set(ylabel="difference quotient $-$ chain rule")
    axes[1, 1].set_title("chain rule, by refinement")
    letter_panels(axes.flat)
    orders = np.array([run["order"] for run in good.values()])
    figure.suptitle(
        f"{len(good)} gradient flows dissipate their energy at the rate of their metric: residuals fall with order "
        f"{orders.min():.1f} to {orders.max():.1f};\nfor two heads, and where $VA^{{-1}}$ is turned and not symmetric, "
        "they stay, however fine the step"
    )
    return figure


def styled(name):
    """Colour and line of a pair: that of its attention, dashed for Gaussians, dotted on the sphere."""
    if name in FAILING:
        return {"color": FAILING[name], "linewidth": 1.8}
    kind = name.split()[0]
    line = ":" if name.endswith("sphere") else "--" if name.endswith(("Gaussian", "moments")) else "-"
    return {"color": look(kind)["color"], "linestyle": line, "linewidth": 1.0}


def energies(axes, runs):
    """Each energy from its start, over its range, with the names of the kinds."""
    for name, run in runs.items():
        moved = (run["energies"] - run["energies"][0]) / np.ptp(run["energies"])
        axes.plot(run["times"], moved, **styled(name))
    axes.axhline(0, color=GREY, linewidth=0.5)
    turned = runs["turned"]
    moved = (turned["energies"] - turned["energies"][0]) / np.ptp(turned["energies"])
    k = int(0.45 * len(moved))
    axes.annotate(
        "turned", (turned["times"][k], moved[k]), (5, -10), textcoords="offset points", color=styled("turned")["color"]
    )
    up = sum(run["sign"] > 0 for run in runs.values())
    axes.text(0.03, 0.04, f"descent: {len(runs) - up - 1}", transform=axes.transAxes, color=GREY)
    axes.text(0.03, 0.96, f"ascent: {up} on the sphere", transform=axes.transAxes, color=GREY, va="top")
    axes.set(xlabel="time $t$", ylabel="energy gained / its range", ylim=(-1.1, 1.25))
    down = sum(bool(run["monotone"]) for run in runs.values())
    axes.set_title(f"{down} of {len(runs)} energies are monotone")


def ratios(axes, runs):
    """Chain rule over metric, over time."""
    good = [name for name in runs if name not in FAILING]
    for name, run in runs.items():
        axes.plot(run["times"], run["chain_rule"] / run["metric"], **styled(name))
    axes.axhline(0, color=GREY, linewidth=0.5)
    last = runs[good[0]]["times"][-1]
    worst = max(run["gap"] for name, run in runs.items() if name in good)
    names = [f"{len(good)} gradient flows: 1\n(to {scientific(worst)})", *FAILING]
    ends = [(last, 1.0)] + [(last, runs[name]["chain_rule"][-1] / runs[name]["metric"][-1]) for name in FAILING]
    EndLabels(axes, ends, names, [GREY, *FAILING.values()])
    axes.set(xlabel="time $t$", ylabel="chain rule / metric")
    axes.set_title("$dE/dt$ by chain rule over $dE/dt$ by metric")


def refinement(axes, runs, key, predicted):
    """What is left at each step size, on log axes, with the predicted slope."""
    steps = runs["two heads"]["steps"]
    for name, run in runs.items():
        axes.plot(steps, run[key], marker="o", markersize=2.5, **styled(name))
    lowest = min(run[key][0] for run in runs.values())
    law = 0.2 * lowest * (steps / steps[0]) ** -float(predicted)
    axes.plot(steps, law, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.annotate(
        f"order {predicted}", (steps[1], law[1]), (-4, -4), textcoords="offset points", color=GREY, ha="right", va="top"
    )
    axes.set(xscale="log", yscale="log", xlabel="number of steps")
    axes.set_xticks(steps, [str(step) for step in steps])
    axes.set_xticks([], minor=True)


def names_at_ends(axes, runs, key):
    """The name of each pair at its finest run."""
    ends = [(run["steps"][-1], run[key][-1]) for run in runs.values()]
    names = [
        name.replace(" on the sphere", ", sphere").replace(" Gaussian", ", Gaussian").replace(" moments", ", moments")
        for name in runs
    ]
    EndLabels(axes, ends, names, [styled(name)["color"] for name in runs])


def scientific(value):
    """A number as a power of ten, rounded up."""
    return f"$10^{{{int(np.ceil(np.log10(value)))}}}$"
