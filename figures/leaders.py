"""Leaders: who follows whom in two runs, and how many leaders there are over time and in the end."""

import numpy as np

from figures.style import COLOURS, LINES, MARKERS, PAGE, new_figure
from meanfield.plotting.frames import box_around, frame
from meanfield.plotting.polytopes import hull_faces
from meanfield.plotting.style import letter_panels

#: How each kind of case is called and drawn: words, and the variant whose colour, marker and line it borrows.
KINDS = {
    "identity": ("identity matrices", "softmax"),
    "random": ("random squares", "l2"),
}
GREY = "#555555"


def draw(study):
    """One figure of four panels."""
    runs = {kind: study.select(matrices=kind) for kind in KINDS}
    figure = new_figure(PAGE, 5.4)
    axes = figure.subplots(2, 2)
    limits = box_around(*(runs[kind][0]["z"] for kind in KINDS), margin=0.12)
    for one, kind in zip(axes[0], KINDS, strict=True):
        followed(one, runs[kind][0], kind, limits)
    over_time(axes[1, 0], runs)
    in_the_end(axes[1, 1], runs)
    letter_panels(axes.ravel())
    last = {kind: np.array([run["leaders"][-1] for run in group]) for kind, group in runs.items()}
    everyone = [run for group in runs.values() for run in group]
    undecided, rows = sum(int(run["undecided"][-1]) for run in everyone), sum(len(run["share"]) for run in everyone)
    distance = max(float(run["corner_distance"]) for run in everyone)
    corners = "every leader a corner of the hull" if distance == 0 else f"leaders within {distance:.1g} of a corner"
    figure.suptitle(
        f"Attention ends on {span(last['identity'])} leaders when $V = K^\\top Q = I$, "
        f"on {span(last['random'])} when both are random squares $W W^\\top$\n"
        f"({len(everyone)} runs; {undecided or 'none'} of {rows} rows undecided at the end, {corners})"
    )
    return figure


def followed(axes, run, kind, limits):
    """Tracks in rescaled coordinates from the first hull to the end; leaders are ringed, their followers counted."""
    words, borrowed = KINDS[kind]
    z, leader = run["z"], run["leader"]
    frame(axes, limits, range(2), "z")
    for corners in hull_faces(z[0]):
        axes.fill(*corners.T, facecolor="#F0F0F0", edgecolor="#BBBBBB", linewidth=0.6, zorder=0)
    axes.plot(z[..., 0], z[..., 1], color=COLOURS[borrowed], linewidth=0.7, alpha=0.6, zorder=1)
    axes.scatter(*z[0].T, s=7, color=GREY, linewidths=0, zorder=2)
    axes.scatter(*z[-1].T, s=14, color=COLOURS[borrowed], marker=MARKERS[borrowed], linewidths=0, zorder=3)
    leading, followers = np.unique(leader, return_counts=True)
    axes.scatter(*z[-1, leading].T, s=70, facecolors="none", edgecolors="black", linewidths=1.0, zorder=4)
    middle = z[0].mean(axis=0)
    for one, count in zip(leading, followers, strict=True):
        away = np.sign(z[-1, one] - middle) * 9
        axes.annotate(str(count), z[-1, one], away, textcoords="offset points", ha="center", va="center")
    axes.set_title(f"{words}: {len(leading)} leaders")


def over_time(axes, runs):
    """Mean number of leaders over time, with a line a run behind it."""
    for kind, group in runs.items():
        words, borrowed = KINDS[kind]
        times, counts = group[0]["times"], np.stack([run["leaders"] for run in group])
        axes.step(times, counts.T, where="post", color=COLOURS[borrowed], linewidth=0.4, alpha=0.35)
        mean = counts.mean(axis=0)
        axes.step(times, mean, where="post", color=COLOURS[borrowed], linestyle=LINES[borrowed], linewidth=1.8)
        axes.annotate(
            words, (times[-1], mean[-1]), (0, 5), textcoords="offset points", ha="right", color=COLOURS[borrowed]
        )
    axes.set(xlabel="time $t$, in units of $1/\\lambda_1(V)$", ylabel="leaders", ylim=(0, None))
    axes.set_title("leaders over time, runs and mean")


def in_the_end(axes, runs):
    """How many runs end with how many leaders."""
    last = {kind: np.array([run["leaders"][-1] for run in group]) for kind, group in runs.items()}
    numbers = np.arange(max(map(np.max, last.values())) + 1)
    for side, (kind, counts) in zip((-0.2, 0.2), last.items(), strict=True):
        words, borrowed = KINDS[kind]
        found = np.bincount(counts, minlength=len(numbers))
        hatch = {"identity": "", "random": "////"}[kind]
        bars = axes.bar(
            numbers + side, found, 0.38, color=COLOURS[borrowed], hatch=hatch, edgecolor="white", linewidth=0
        )
        highest = int(found.argmax())
        at = bars[highest]
        axes.annotate(
            words,
            (at.get_x() + at.get_width(), at.get_height()),
            (4, -6),
            textcoords="offset points",
            color=COLOURS[borrowed],
        )
    axes.set(xlabel="leaders at the end", ylabel="runs", xticks=numbers[1:], xlim=(0.4, numbers[-1] + 0.6))
    axes.set_title("leaders at the end")


def span(counts):
    """The range of whole numbers, in figures."""
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low} to {high}"
