"""The published pictures of covariances in the plane: the authors' scheme above, the exact flow below."""

import textwrap

import numpy as np

from figures.style import PAGE, new_figure
from meanfield.plotting.cone import plot_cone, plot_disc
from meanfield.plotting.style import letter_panels, spelt

#: How a run ended, as the record counts it.
CONVERGED, DIVERGED, EXHAUSTED = 0, 1, 2

#: The look of runs that did not end as most of their picture do, and another one for multi-head attention, whose grey
#: would vanish among the grey starts; every panel has its name in its title.
OTHER, SHOWN_AS = "masked", {"multihead": "linear"}

#: Directions from which the cones are seen (elevation, azimuth).
VIEWS = {"zero": (20, -174), "line": (20, -86), "plane": (20, -45), "two_lines": (20, -88)}

TITLES = {
    "zero": "To zero: $V > 0$, $K = -Q$ of full rank, every covariance contracts to 0",
    "line_and_plane": "One row of $Q = -K$: one head freezes a line, two heads leave a plane of equilibria",
    "two_lines": "To two lines: the isotropic directions of an indefinite $A + A^T$",
    "blow_up": "Expanding $A$, $V = I$: softmax blows up in finite time, L2 and Sinkhorn grow for ever",
    "both": "Random $V$: whether a covariance blows up depends on where it starts",
}
FIGURES = {
    "zero": ("zero",),
    "line_and_plane": ("line", "plane"),
    "two_lines": ("two_lines",),
    "blow_up": ("blow_up",),
    "both": ("both",),
}


def draw(study):
    """One figure for each group of published pictures."""
    result = {}
    for name, pictures in FIGURES.items():
        runs = [
            (case, arrays)
            for picture in pictures
            for case, arrays in zip(study.cases, study.arrays, strict=True)
            if case["picture"] == picture
        ]
        if runs:
            result[name] = sheet(TITLES[name], runs)
    return result


def sheet(title, runs):
    """A column for each run: the scheme above, the flow below, and a few lines on how they ended and differ."""
    flat = runs[0][0]["view"] == "disc"
    told = caption(runs)
    heights = [*([2.15 if flat else 1.65] * 2), 0.145 * told.count("\n") + 0.25]
    figure = new_figure(PAGE, sum(heights) + 0.3)
    *rows, bottom = figure.subfigures(3, 1, height_ratios=heights)
    for row, key, name in zip(rows, ("published", "exact"), ("authors' scheme", "exact flow"), strict=True):
        panels = row.subplots(1, len(runs), subplot_kw={} if flat else {"projection": "3d"}, squeeze=False)[0]
        for axes, (case, arrays) in zip(panels, runs, strict=True):
            panel(axes, case, arrays, key)
            axes.set_title(heading(case), loc="left")
            if axes is not panels[0]:
                axes.set_ylabel("")
        letter_panels(panels)
        row.supylabel(name, fontsize=9)
    bottom.text(0.01, 0.98, told, va="top", fontsize=7.5, color="#333333")
    figure.suptitle(title)
    return figure


def heading(case):
    """The variant, with its heads where they are more than one or fewer than the title of the picture says."""
    heads = f", $H$ = {case['heads']}" if case["variant"] == "multihead" else ""
    return f"{spelt(case['variant'])}{heads}"


def panel(axes, case, arrays, key):
    """Tracks and ends of one run, the common fate in the variant's look and the rare one in black."""
    status = arrays[f"{key}_status"]
    common = np.bincount(arrays["exact_status"]).argmax()
    looks = (SHOWN_AS.get(case["variant"], case["variant"]), status == common), (OTHER, status != common)
    top = 1.02 * max(np.trace(arrays[k], axis1=-2, axis2=-1).max() for k in ("published", "exact"))
    for look, chosen in looks:
        tracks = arrays[key][chosen].astype(float)
        if len(tracks) and case["view"] == "disc":
            plot_disc(tracks, variant=look, axes=axes)
        elif len(tracks):
            plot_cone(tracks, variant=look, top=min(2.0, float(top)), axes=axes)
    if case["view"] == "cone":
        axes.view_init(*VIEWS[case["picture"]])
        axes.set_box_aspect((2, 2, 1), zoom=1.32)
        axes.set_axis_off()


def caption(runs):
    """What the record says about the two rows, a paragraph a column: how runs ended, where and why they differ."""
    first = runs[0][0]
    where = "Cone: trace upwards, rank one on the surface. " if first["view"] == "cone" else ""
    other = " Black: runs with the rarer fate." if any(len(np.unique(a["exact_status"])) > 1 for _, a in runs) else ""
    told = [f"{where}Grey: {len(runs[0][1]['starts'])} starts of trace one.{other}"]
    for letter, (case, arrays) in zip("abcdefgh", runs, strict=False):
        told.append(f"{letter}  h = {case['step']}, stop at |dS/dt| < {case['low']:.0e}: {fates(case, arrays)}")
        told[-1] += f"{slips(case, arrays)}."
    return "\n".join(textwrap.fill(line, 122, subsequent_indent="    ") for line in told)


def fates(case, arrays):
    """How many runs ended how, by the scheme and by the flow, and the largest distance between their ends."""
    words = {CONVERGED: "converge", DIVERGED: f"pass trace {case['high']:g}", EXHAUSTED: "still move at the last step"}
    ways = []
    for key in ("published", "exact"):
        count = np.bincount(arrays[f"{key}_status"], minlength=3)
        ways.append(", ".join(f"{count[k]} {word}" for k, word in words.items() if count[k]))
    text = f"in both {ways[0]}" if ways[0] == ways[1] else f"scheme {ways[0]}; flow {ways[1]}"
    poles = arrays["blow_up_times"][np.isfinite(arrays["blow_up_times"])]
    if len(poles):
        text += f" ({len(poles)} with a pole ahead, t* = {poles.min():.3g} to {poles.max():.3g})"
    elif (arrays["exact_status"] == DIVERGED).any():
        text += " (no pole ahead)"
    if np.isfinite(arrays["centre_blow_up_time"]):
        text += f", from I/2 t* = {float(arrays['centre_blow_up_time']):.5f}"
    both = (arrays["published_status"] == CONVERGED) & (arrays["exact_status"] == CONVERGED)
    if both.any():
        first, second = arrays["published"][both, -1].astype(float), arrays["exact"][both, -1].astype(float)
        size = np.maximum(np.trace(second, axis1=1, axis2=2), 1)
        text += f", converged ends differ by at most {(np.abs(first - second).max(axis=(1, 2)) / size).max():.0e}"
    return text


def slips(case, arrays):
    """Where the published code does not do what its picture says."""
    if case["moved_starts"]:
        return "; the published runs start where one softmax step has moved the grid, in place"
    if case["picture"] == "both" and case["variant"] == "multihead" and case["heads"] == 1:
        return "; the published code runs one head, so this is softmax again"
    if case["picture"] == "both" and case["variant"] == "multihead":
        return "; two heads, as the published title says"
    if case["picture"] == "two_lines" and case["variant"] == "softmax":
        return "; the published softmax picture shows the L2 runs"
    if case["picture"] == "plane":
        return "; the second head has no row and does nothing"
    if int(arrays["clipped"]):
        return f"; the scheme clips {int(arrays['clipped'])} steps that leave the cone"
    return ""
