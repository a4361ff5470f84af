"""Clustering of softmax tokens in rescaled coordinates: nested hulls, parallel hyperplanes, Boolean attention."""

import numpy as np

from figures.style import COLOURS, PAGE, new_figure
from meanfield.plotting.matrices import plot_attention
from meanfield.plotting.polytopes import plot_hulls
from meanfield.plotting.style import letter_panels
from meanfield.plotting.tokens import plot_trajectory

#: The horizon of the runs that are drawn; the long run shows how far double precision carries.
HORIZON = 5.0

GREY = "#555555"
KINDS = {
    "polytope in the plane": ({"kind": "polytope", "d": 2}, COLOURS["softmax"], "-"),
    "polytope in space": ({"kind": "polytope", "d": 3}, COLOURS["l2"], "--"),
    "hyperplanes": ({"kind": "hyperplanes", "d": 2}, COLOURS["sinkhorn"], "-."),
}


def draw(study):
    """Three figures: polytopes, hyperplanes, matrices."""
    return {"polytopes": polytopes(study), "hyperplanes": hyperplanes(study), "matrices": matrices(study)}


def polytopes(study):
    """Hulls at several times in the plane and in space, and how fast tokens reach their vertices."""
    plane = study.select(kind="polytope", d=2, horizon=HORIZON)
    space = study.select(kind="polytope", d=3, horizon=HORIZON)
    figure = new_figure(PAGE, 2.9)
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1.05, 1.15, 1.05))
    axes = [left.add_subplot(), middle.add_subplot(projection="3d"), right.add_subplot()]
    for runs, size, one in ((plane, "area", axes[0]), (space, "volume", axes[1])):
        draw_hulls(one, min(runs, key=lambda run: run["volumes"][-1] / run["volumes"][0]), size)
    for runs, color, line, place in ((plane, COLOURS["softmax"], "-", 0.13), (space, COLOURS["l2"], "--", 0.04)):
        for run in runs:
            axes[2].plot(run["times"], run["to_leader"].max(axis=1), color=color, linestyle=line, linewidth=0.8)
        rates = np.array([run["decay"] for run in runs])
        told = f"$d$ = {runs[0]['z'].shape[-1]}, rate {span(rates)}"
        axes[2].text(0.03, place, told, color=color, transform=axes[2].transAxes)
    times = plane[0]["times"]
    law = 2 * plane[0]["diameter"] * np.exp(-times)
    axes[2].plot(times, law, color=GREY, linestyle=":")
    axes[2].annotate("$e^{-t}$", (times[20], law[20]), (3, 3), textcoords="offset points", color=GREY)
    axes[2].set(yscale="log", xlabel="time $t$", ylabel="farthest token from its vertex", ylim=(0.01, 60))
    axes[2].set_title(f"{len(plane) + len(space)} runs")
    letter_panels(axes)
    everyone = plane + space
    largest = max((run["hull_growth"] / run["diameter"]).max() for run in everyone)
    figure.suptitle(
        "Rescaled tokens fall onto the vertices of a polytope like $e^{-t}$, inside nested hulls\n"
        f"(largest growth of a hull {scientific(largest)} diameters, solver tolerance "
        f"{scientific(everyone[0]['tolerance'])})"
    )
    return figure


def draw_hulls(axes, run, size):
    """The hulls of one run at times ever farther apart, its tracks in the plane, and its vertices ringed."""
    points, vertices = run["z"], run["vertices"]
    shown = np.unique(np.geomspace(1, len(points), 7).round().astype(int)) - 1
    plot_hulls((run["times"][shown], points[shown]), count=len(shown), symbol="z", axes=axes)
    if axes.name != "3d":
        axes.plot(points[..., 0], points[..., 1], color=GREY, linewidth=0.4, alpha=0.5, zorder=1)
    axes.scatter(*vertices.T, s=42, facecolors="none", edgecolors=COLOURS["l2"], linewidths=1.0, zorder=4)
    kept = run["volumes"][-1] / run["volumes"][0]
    axes.set_title(f"{len(vertices)} vertices, {size} {100 * kept:.0f} %", loc="left")


def hyperplanes(study):
    """Tokens in the plane with the lines they end on, and their coordinates along phi_1 over time."""
    runs = study.select(kind="hyperplanes", horizon=HORIZON)
    run = runs[0]
    figure = new_figure(PAGE, 2.9)
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.25))
    axes = [left.add_subplot(), right.add_subplot()]
    plot_trajectory((run["times"], run["z"]), symbol="z", axes=axes[0], title="tokens end on parallel lines")
    lead, across = run["directions"].T
    for level in run["levels"]:
        axes[0].axline(level * lead, level * lead + across, color=COLOURS["l2"], linewidth=0.9, zorder=0)
    axes[1].plot(run["times"], run["coordinates"], color=COLOURS["softmax"], linewidth=0.7, alpha=0.7)
    for level in run["levels"]:
        axes[1].axhline(level, color=COLOURS["l2"], linewidth=0.9, zorder=0)
        number = f"{level:.2f}".replace("-", "\N{MINUS SIGN}")
        place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
        axes[1].annotate(number, (1.0, level), (3, 0), color=COLOURS["l2"], **place)
    axes[1].set(xlabel="time $t$", ylabel=r"coordinate of $z$ along $\varphi_1$", xlim=(0, run["times"][-1]))
    rates = np.array([each["decay"] for each in runs])
    axes[1].set_title(f"gaps decay at rate {span(rates)}; $\\lambda_1$ = {run['rate']:.2f}")
    letter_panels(axes)
    counts = sorted({len(each["levels"]) for each in runs})
    largest = max((each["hull_growth"] / each["diameter"]).max() for each in runs)
    found = " or ".join(map(str, counts))
    figure.suptitle(
        f"With one leading eigenvalue of $V$ the coordinates along $\\varphi_1$ take {found} of at most 3 values "
        f"({len(runs)} {'runs' if len(runs) > 1 else 'run'});\ntheir range never grows by more than "
        f"{scientific(largest)} diameters"
    )
    return figure


def matrices(study):
    """Attention at three times, the largest share of each row over time, and the long run."""
    run = study.select(kind="polytope", d=2, horizon=HORIZON)[0]
    long = [a for case, a in zip(study.cases, study.arrays, strict=True) if case["horizon"] > HORIZON]
    figure = new_figure(PAGE, 4.3)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1.0))
    images = list(top.subplots(1, 3))
    for k, (one, time, matrix) in enumerate(zip(images, run["matrix_times"], run["matrices"], strict=True)):
        plot_attention(matrix, limits=(0, 1), scale="attention weight $P_{ij}$" if k == 2 else None, axes=one)
        one.set_title(f"$t$ = {time:.1f}, {100 * matrix.max(axis=1).mean():.0f} % on the largest")
    count = sum(case["horizon"] == HORIZON for case in study.cases)
    curves = list(bottom.subplots(1, 1 + bool(long), squeeze=False)[0])
    for k, (name, (chosen, color, line)) in enumerate(KINDS.items()):
        runs = study.select(**chosen, horizon=HORIZON)
        for each in runs:
            curves[0].plot(each["times"], each["largest_share"].min(axis=1), color=color, linestyle=line, linewidth=0.8)
        until = max(each["boolean"][0] for each in runs)
        told = f"{name}: Boolean by $t$ = {until:.1f}"
        curves[0].text(0.98, 0.32 - 0.12 * k, told, color=color, ha="right", transform=curves[0].transAxes)
    curves[0].set(xlabel="time $t$", ylabel="largest share of worst row", ylim=(0, 1.05))
    curves[0].set_title(f"{count} runs, the least Boolean row of each")
    if long:
        lasting(curves[1], long[0])
    letter_panels(images + curves)
    figure.suptitle("Attention becomes Boolean: in the end each token follows one leader (rows sorted by leader)")
    return figure


def lasting(axes, run):
    """How long double precision keeps the rows Boolean: until a token is its leader up to round-off."""
    axes.plot(run["times"], run["largest_share"].mean(axis=1), color=COLOURS["softmax"])
    end = run["boolean"][1]
    axes.axvline(end, color=GREY, linestyle=":", linewidth=0.8)
    told = f"Boolean until $t$ = {end:.0f}:\nthen $e^{{-t}}$ is round-off"
    axes.annotate(told, (end, 0.5), (-4, 0), textcoords="offset points", ha="right", va="center", color=GREY)
    axes.set(xlabel="time $t$", ylabel="mean largest share", ylim=(0, 1.05), title="what double precision can hold")


def span(values):
    """Least and largest of several numbers, or the only one."""
    low, high = f"{values.min():.2f}", f"{values.max():.2f}"
    return low if low == high else f"{low} to {high}"


def scientific(value):
    """A small number in powers of ten."""
    if value <= 0:
        return "0"
    factor, power = f"{value:.0e}".split("e")
    return rf"{factor}$\times 10^{{{int(power)}}}$" if factor != "1" else rf"$10^{{{int(power)}}}$"
