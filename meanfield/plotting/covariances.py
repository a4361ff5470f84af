"""Plots of Gaussians: ellipses at one and two standard deviations, along a run or beside tokens."""

import numpy as np

from ..checks import number
from ..measures import Gaussian, Measure
from .frames import GREY, TIMES, box_around, frame, limits_array, steady_ticks, value_bar
from .paths import gaussian_path
from .style import figure_of, looks, panel, style

#: Standard deviations that are drawn, with the width and the style of their lines.
DEVIATIONS = {1: (1.2, "-"), 2: (0.7, "--")}


def ellipse(law, deviations=1.0, *, count=97):
    """Closed curves {m + deviations L (cos u, sin u)} on a Gaussian's ellipsoid, L from pairs of its main axes.

    Parameters
    ----------
    law : Gaussian
        Of dimension 2 or 3; a singular covariance gives a segment, a zero one a point.
    deviations : float
    count : int
        Points on a curve.

    Returns
    -------
    ndarray, shape (curves, count, d)
        One curve in the plane, three in space.
    """
    left, sizes, _ = np.linalg.svd(law.root, full_matrices=False)
    main = np.zeros((law.dimension, law.dimension))
    main[:, : len(sizes)] = left * sizes
    angle = np.linspace(0, 2 * np.pi, count)
    pairs = [(0, 1)] if law.dimension == 2 else [(0, 1), (0, 2), (1, 2)]
    turned = [np.outer(np.cos(angle), main[:, i]) + np.outer(np.sin(angle), main[:, j]) for i, j in pairs]
    return law.mean + deviations * np.stack(turned)


@style()
def plot_ellipses(law, *, variant="softmax", color=None, limits=None, symbol="x", title=None, axes=None):
    """Draw a Gaussian, or the mean and covariance of tokens, as ellipses at one and two standard deviations.

    Parameters
    ----------
    law : Gaussian or Measure
        Of dimension 2 or 3.
    variant : str
        Colour and marker of the mean.
    color : colour, optional
        Instead of the variant's.
    limits : pair or array_like, shape (d, 2), optional
        Without them a new panel is framed around the ellipses, and a given one keeps its limits.
    symbol, title, axes
        As for `plot_trajectory`; without a title a given panel keeps its own.

    Returns
    -------
    matplotlib.figure.Figure
    """
    law = Gaussian(law.mean, law.covariance) if isinstance(law, Measure) else law
    _plane_or_space(law)
    framed = axes is None or limits is not None
    axes = panel(axes, height=2.9, projection="3d" if law.dimension == 3 else None)
    look = looks([variant])[variant]
    _draw_law(axes, law, color or look.color, look.marker)
    if framed:
        limits = box_around(ellipse(law, 2.0)) if limits is None else limits_array(limits, law.dimension)
        frame(axes, limits, range(law.dimension), symbol)
    if title is not None:
        axes.set_title(title)
    return figure_of(axes)


@style()
def plot_gaussian_trajectory(run, *, variant="softmax", count=6, limits=None, symbol="x", title=None, axes=None):
    """Draw a Gaussian along a run: in one dimension mean and bands over time, else ellipses coloured by time.

    Parameters
    ----------
    run : Trajectory, Gaussian, or triple (times (k,), means (k, d), covariances (k, d, d))
        Of dimension 1, 2 or 3.
    variant : str
        Colour in one dimension, and marker of the mean.
    count : int
        Ellipses to draw, at output times spread evenly from the first to the last.
    limits : pair or array_like, shape (d, 2), optional
        Limits of the coordinates.
    symbol, title, axes
        As for `plot_trajectory`; a run that ended early says so in its title.

    Returns
    -------
    matplotlib.figure.Figure
    """
    path = gaussian_path(run)
    d = path.laws[0].dimension
    if d == 1:
        axes = panel(axes, height=2.3)
        _draw_bands(axes, path, looks([variant])[variant], symbol)
        if limits is not None:
            axes.set_ylim(limits_array(limits, 1)[0])
    else:
        _plane_or_space(path.laws[0])
        axes = panel(axes, height=2.9, projection="3d" if d == 3 else None)
        count = number("count", count, at_least=1, integer=True)
        chosen = np.unique(np.linspace(0, len(path.laws) - 1, count).round().astype(int))
        around = [ellipse(path.laws[k], 2.0) for k in chosen]
        limits = box_around(*around) if limits is None else limits_array(limits, d)
        frame(axes, limits, range(d), symbol)
        _draw_along(axes, path, chosen, looks([variant])[variant].marker)
    axes.set_title(path.ending if title is None else title)
    return figure_of(axes)


def _plane_or_space(law):
    if law.dimension not in (2, 3):
        raise ValueError(
            f"ellipses are drawn in 2 or 3 dimensions; got {law.dimension}. "
            "Take a marginal, Gaussian(m[:2], S[:2, :2]); in one dimension use plot_gaussian_trajectory."
        )


def _draw_law(axes, law, color, marker, *, strength=1.0, deviations=(1, 2)):
    for k in deviations:
        width, dashes = DEVIATIONS[k]
        for curve in ellipse(law, k):
            axes.plot(*curve.T, color=color, linewidth=width, linestyle=dashes, alpha=strength)
    axes.plot(*law.mean[:, None], color=color, marker=marker, markersize=3.5, linestyle="none", alpha=strength)


def _draw_along(axes, path, chosen, marker):
    """Ellipses coloured by time, the last one strong, over the path of the mean."""
    means = np.stack([law.mean for law in path.laws])
    axes.plot(*means.T, color=GREY, linewidth=0.8, zorder=1)
    if len(path.times) == 1:
        return _draw_law(axes, path.laws[0], "#440154", marker)
    colors = value_bar(axes, path.times[0], path.times[-1], "time $t$", TIMES)
    for k in chosen[:-1]:
        # In space three curves an ellipsoid: the second deviation only where the run ends.
        drawn = (1, 2) if len(means[0]) == 2 else (1,)
        _draw_law(axes, path.laws[k], colors(path.times[k]), marker, strength=0.75, deviations=drawn)
    return _draw_law(axes, path.laws[chosen[-1]], colors(path.times[chosen[-1]]), marker)


def _draw_bands(axes, path, look, symbol):
    """Mean and bands of one and two standard deviations over time, with t* marked if there is one."""
    mean = np.array([law.mean[0] for law in path.laws])
    deviation = np.sqrt([law.covariance[0, 0] for law in path.laws])
    for deviations, alpha in ((2, 0.15), (1, 0.3)):
        band = mean - deviations * deviation, mean + deviations * deviation
        axes.fill_between(path.times, *band, color=look.color, alpha=alpha, linewidth=0)
    if len(path.times) == 1:
        axes.errorbar(path.times, mean, yerr=2 * deviation, color=look.color, elinewidth=0.7, marker=look.marker)
    axes.plot(path.times, mean, color=look.color)
    if path.blow_up_time is not None:
        axes.axvline(path.blow_up_time, color=GREY, linewidth=0.8, linestyle=":")
    steady_ticks(axes.xaxis, axes.yaxis)
    axes.set(xlabel="time $t$", ylabel=f"mean and 1, 2 s.d. of ${symbol}$")
