"""Blow-up times over planes of parameters, a row a plane and a column a variant, with what is proved on top."""

import numpy as np
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from meanfield.plotting import letter_panels

from .style import PAGE, new_figure

COLUMNS = {"softmax": "softmax", "linear": "linear", "l2": "L2", "sinkhorn": "Sinkhorn"}
ROWS = {
    "turned": ("V turned, A expands\n$V=R_\\theta\\,\\mathrm{diag}(1,r)$", [-120, 0, 120]),
    "tilted, expanding": ("V tilted, A expands\n$V=R_\\theta\\,\\mathrm{diag}(1,r)R_\\theta^T$", [-90, 0, 90]),
    "tilted, contracting": ("V tilted, A contracts\n$V=R_\\theta\\,\\mathrm{diag}(1,r)R_\\theta^T$", [-90, 0, 90]),
}
#: Without a blow-up: the covariance ended smaller, or larger, than it began.
SHRUNK, GREW = "#F4F4F4", "#C9C9C9"

#: What is proved, as hatches: no blow-up, blow-up.
HATCHES = {0: "////", 1: "...."}


def draw(study):
    """One figure: 3 planes x 4 variants, and in its title the count of contradictions over all random laws."""
    figure = new_figure(PAGE, 6.1)
    panels = figure.subplots(len(ROWS), len(COLUMNS), sharey=True)
    maps = {(row, column): study.select(part="map", plane=row, field=column)[0] for row in ROWS for column in COLUMNS}
    times = np.concatenate([arrays["blow_up_times"] for arrays in maps.values()])
    finite = times[np.isfinite(times)]
    scale = LogNorm(finite.min(), finite.max())
    for i, row in enumerate(ROWS):
        for j, column in enumerate(COLUMNS):
            axes = panels[i, j]
            image = _map(axes, maps[row, column], scale)
            axes.set_title(COLUMNS[column] if i == 0 else "")
            axes.set_xticks(ROWS[row][1])
            if j == 0:
                axes.set_ylabel(f"{ROWS[row][0]}\nanisotropy $r$", linespacing=1.4)
    for axes in panels[-1]:
        axes.set_xlabel(r"angle $\theta$ (degrees)")
    letter_panels(panels.ravel())
    bar = figure.colorbar(image, ax=panels, aspect=45, pad=0.01, label="blow-up time $t^*$")
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    bar.ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    keys = [
        Patch(facecolor=SHRUNK, edgecolor="#999999", linewidth=0.5, label="no blow-up, shrank"),
        Patch(facecolor=GREW, edgecolor="#999999", linewidth=0.5, label="no blow-up, grew"),
        Patch(facecolor="white", edgecolor="#555555", hatch=HATCHES[0] * 2, linewidth=0, label="proved global"),
        Patch(facecolor="white", edgecolor="#555555", hatch=HATCHES[1] * 2, linewidth=0, label="proved blow-up"),
        Patch(facecolor="#D55E00", label="not settled"),
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=5, columnspacing=1.2, handlelength=1.4)
    horizon = next(case["horizon"] for case in study.cases if case["part"] == "map")
    figure.suptitle(f"{_verdict(maps)} (up to $t$ = {horizon:g})\n{_count(study)}", x=0.01, ha="left", linespacing=1.4)
    return figure


def _map(axes, arrays, scale):
    """One plane: colours, hatches of what is proved, and marks where the simulation did not settle."""
    grid = len(arrays["angles"])
    times, outcomes, growth, proved = (
        arrays[name].reshape(grid, grid) for name in ("blow_up_times", "outcomes", "growth", "proved")
    )
    half_angle, half_ratio = np.diff(arrays["angles"])[0] / 2, np.diff(arrays["anisotropies"])[0] / 2
    extent = (
        arrays["angles"][0] - half_angle,
        arrays["angles"][-1] + half_angle,
        arrays["anisotropies"][0] - half_ratio,
        arrays["anisotropies"][-1] + half_ratio,
    )
    options = {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": "none"}
    kinds = np.where(outcomes == 2, 2, growth > 0)
    axes.imshow(kinds, cmap=ListedColormap([SHRUNK, GREW, "#D55E00"]), vmin=0, vmax=2, **options)
    image = axes.imshow(np.where(outcomes == 1, times, np.nan), norm=scale, **options)
    fine = np.kron(proved, np.ones((8, 8)))
    x = np.linspace(extent[0], extent[1], fine.shape[1])
    y = np.linspace(extent[2], extent[3], fine.shape[0])
    for value, hatch in HATCHES.items():
        if (proved == value).any():
            bright = (outcomes == 1)[proved == value].mean() > 0.5
            area = axes.contourf(x, y, (fine == value).astype(float), levels=[0.5, 1.5], colors="none", hatches=[hatch])
            area.set_edgecolor("white" if bright else "#777777")
            area.set_linewidth(0)
    return image


def _verdict(maps):
    """Which variants blow up somewhere on the planes and which nowhere."""
    met = {name: any(np.isfinite(maps[row, name]["blow_up_times"]).any() for row in ROWS) for name in COLUMNS}
    some = " and ".join(COLUMNS[name] for name in COLUMNS if met[name])
    none = " and ".join(COLUMNS[name] for name in COLUMNS if not met[name])
    return f"Blow-up over whole regions: {some or 'none'}; nowhere: {none or 'none'}"


def _count(study):
    """Contradictions and what could not be decided, over all random laws."""
    arrays = study.select(part="random")
    names = ("proved", "outcomes", "contradicted")
    proved, outcomes, wrong = (np.concatenate([one[name] for one in arrays]) for name in names)
    said = proved >= 0
    return (
        f"{wrong.sum()} contradictions between proof and simulation over {len(proved):,} random laws:\n"
        f"{said.sum():,} of them proved, {(~said).sum():,} undecided; {(outcomes == 2).sum()} runs did not settle"
    )
