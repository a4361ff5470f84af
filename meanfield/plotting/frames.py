"""Frames of plots of points: equal aspect, limits that panels share, axis names, a sphere, a bar of values."""

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from ..checks import finite_array
from ..spaces import Sphere

#: What the letters of coordinates stand for.
WORDS = {"x": "token coordinate", "z": "rescaled coordinate"}

#: The shortest side of a frame, as a share of its longest: a cloud on a line still gets a panel to stand in.
THIN = 0.35

GREY = "#BBBBBB"

#: Colour maps of values, and of times: late is dark, since ends are strong.
VALUES, TIMES = "viridis", "viridis_r"


def box_around(*clouds, margin=0.06):
    """Limits that hold all clouds of points, for panels that are compared.

    Parameters
    ----------
    *clouds : array_like, shape (..., d)
    margin : float
        Share of the longest side left free around them.

    Returns
    -------
    ndarray, shape (d, 2)
    """
    points = np.concatenate([np.asarray(cloud, dtype=float).reshape(-1, np.shape(cloud)[-1]) for cloud in clouds])
    low, high = points.min(axis=0), points.max(axis=0)
    longest = (high - low).max() or max(np.abs(points).max(), 1.0)
    half = np.maximum((high - low) / 2, THIN * longest / 2) + margin * longest
    middle = (low + high) / 2
    return np.stack([middle - half, middle + half], axis=1)


def limits_array(limits, d):
    """Limits from the caller, (low, high) for all coordinates or one pair a coordinate, as shape (d, 2)."""
    array = finite_array("limits", limits)
    if array.shape not in ((2,), (d, 2)) or (array[..., 1] <= array[..., 0]).any():
        raise ValueError(
            f"limits must be (low, high) with low < high, or shape ({d}, 2); got {array.tolist()}. "
            "box_around(clouds) makes them."
        )
    return np.broadcast_to(array, (d, 2))


def chosen_coordinates(tokens, coordinates):
    """Tokens (..., d) in the coordinates to draw, and their numbers; at most three."""
    d = tokens.shape[-1]
    if coordinates is None:
        if d > 3:
            raise ValueError(
                f"only 1, 2 or 3 coordinates can be drawn; the tokens have {d}. "
                "Choose some, coordinates=(0, 1), or look at a projection: view=lambda t, mu: Measure(mu.points @ P)."
            )
        coordinates = range(d)
    coordinates = list(coordinates)
    if not 1 <= len(coordinates) <= 3 or not all(-d <= c < d for c in coordinates):
        raise ValueError(f"coordinates must be 1 to 3 of the numbers 0 to {d - 1}; got {coordinates}.")
    return tokens[..., coordinates], [c % d for c in coordinates]


def frame(axes, limits, coordinates, symbol):
    """Equal aspect, limits and names of the coordinates on a panel of points in the plane or in space."""
    words = WORDS.get(symbol, "coordinate")
    for name, (low, high), c in zip("xyz", limits, coordinates, strict=False):
        getattr(axes, f"set_{name}lim")(low, high)
        getattr(axes, f"set_{name}label")(f"{words} ${symbol}_{{{c + 1}}}$")
    if axes.name == "3d":
        for name, c in zip("xyz", coordinates, strict=True):
            getattr(axes, f"set_{name}label")(f"${symbol}_{{{c + 1}}}$")
        frame_space(axes, limits)
    else:
        steady_ticks(axes.xaxis, axes.yaxis)
        axes.set_aspect("equal", adjustable="box")


def steady_ticks(*axes):
    """A handful of ticks on each axis whatever its length: else labels change width after the layout has seen them."""
    for axis in axes:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def frame_space(axes, limits, zoom=0.88):
    """Equal aspect and quiet walls for a panel in space."""
    axes.set_box_aspect([high - low for low, high in limits], zoom=zoom)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.set_tick_params(pad=-2)
        axis.labelpad = -5
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], prune="both"))


def draw_space(axes, space):
    """The circle or sphere that tokens live on, faintly; nothing for a Euclidean space."""
    if not isinstance(space, Sphere):
        return
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = space.radius * np.stack([np.cos(angle), np.sin(angle)])
    if axes.name != "3d":
        axes.plot(*circle, color=GREY, linewidth=0.6, zorder=0)
        return
    for latitude in np.linspace(-np.pi / 2, np.pi / 2, 7)[1:-1]:
        level = np.full(len(angle), space.radius * np.sin(latitude))
        axes.plot(*(circle * np.cos(latitude)), level, color=GREY, linewidth=0.3)
    for longitude in np.linspace(0, np.pi, 7)[:-1]:
        turned = circle[0] * np.cos(longitude), circle[0] * np.sin(longitude), circle[1]
        axes.plot(*turned, color=GREY, linewidth=0.3)


def draw_tracks(axes, tracks, colors, *, alpha=0.35, linewidth=0.7):
    """Faint lines, one a track; tracks have shape (m, k, 2 or 3), colours one a track or one for all."""
    if axes.name == "3d":
        lines = Line3DCollection(list(tracks), colors=colors, alpha=alpha, linewidths=linewidth, zorder=1)
        axes.add_collection3d(lines)
    else:
        lines = LineCollection(list(tracks), colors=colors, alpha=alpha, linewidths=linewidth, zorder=1)
        axes.add_collection(lines, autolim=False)
    lines.set_rasterized(sum(len(track) for track in tracks) > 50_000)  # else a PDF of many megabytes


def value_bar(axes, low, high, label, colors=VALUES):
    """A bar of values as high as the panel, beside it; returns the map from values to colours."""
    if high <= low:
        low, high = low - 0.5, high + 0.5
    scale = ScalarMappable(Normalize(low, high), colors)
    bar_beside(axes, scale, label)
    return scale.to_rgba


def bar_beside(axes, mappable, label):
    """A bar of colours as high as the panel, beside it."""
    figure = axes.get_figure(root=False)
    if axes.name == "3d":
        bar = figure.colorbar(mappable, ax=axes, label=label, shrink=0.6, aspect=18, pad=0.14)
    else:
        bar = figure.colorbar(mappable, ax=axes, label=label, pad=0.02)
        bar.ax.set_box_aspect(None)
        bar.ax.set_axes_locator(_Beside(axes))
    bar.locator = MaxNLocator(5, steps=[1, 2, 5, 10])
    bar.outline.set_visible(False)


class _Beside:
    """Places a bar along the right side of a panel, whose height follows from its equal aspect only when drawn."""

    def __init__(self, axes):
        self.axes = axes

    def __call__(self, bar, renderer):
        self.axes.apply_aspect()
        panel = self.axes.get_position()
        inch = bar.figure.dpi / bar.figure.bbox.width
        return Bbox.from_extents(panel.x1 + 0.07 * inch, panel.y0, panel.x1 + 0.16 * inch, panel.y1)
