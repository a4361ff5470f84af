"""Names of lines at their ends, pushed apart so that none covers another: direct labels instead of a legend."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from scipy.optimize import isotonic_regression

from .style import ink


class EndLabels(Artist):
    """Labels right of a panel, level with the ends of its lines as far as there is room.

    They are placed at each drawing, so later changes of limits, scales or sizes do not make them overlap.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    ends : list of (x, y)
        Where each line ends, in data coordinates.
    names, colors : list
    """

    def __init__(self, axes, ends, names, colors):
        super().__init__()
        self.ends = np.array(ends, dtype=float).reshape(-1, 2)
        pairs = list(zip(names, colors, strict=True))
        self.texts = [Text(0, 0, name, color=ink(color), va="center") for name, color in pairs]
        self.leaders = [Line2D([0, 0], [0, 0], color=color, linewidth=0.5, alpha=0.7) for color in colors]
        self.set_clip_on(False)
        axes.add_artist(self)
        for artist in (*self.texts, *self.leaders):
            artist.set_figure(axes.figure)

    def place(self, renderer):
        """Put the texts where they belong at the present size, limits and scales."""
        inside, point = self.axes.bbox, renderer.points_to_pixels(1.0)
        marks = self.axes.transData.transform(self.ends)
        # An end on no finite place (zero on a log axis) or outside the panel is labelled at the panel's edge.
        heights = np.where(np.isfinite(marks[:, 1]), marks[:, 1], inside.y0)
        gap = 1.02 * max((text.get_window_extent(renderer).height for text in self.texts), default=0.0)
        for k, height in zip(*spread(heights, gap, inside.y0, inside.y1), strict=True):
            start = min(marks[k, 0], inside.x1) if np.isfinite(marks[k, 0]) else inside.x1
            self.texts[k].set_position((inside.x1 + 6 * point, height))
            level = min(max(heights[k], inside.y0), inside.y1)
            self.leaders[k].set_data([start + 2 * point, inside.x1 + 5 * point], [level, height])
            far = abs(height - level) > 0.25 * gap or inside.x1 - start > 12 * point
            self.leaders[k].set_visible(far)

    def get_window_extent(self, renderer=None):
        """Where the labels are, in pixels: what the layout of the figure leaves room for."""
        renderer = self.figure._get_renderer() if renderer is None else renderer
        self.place(renderer)
        return Bbox.union([text.get_window_extent(renderer) for text in self.texts])

    def draw(self, renderer):
        """Draw texts and leaders."""
        if not self.get_visible():
            return
        self.place(renderer)
        for artist in (*self.leaders, *self.texts):
            artist.draw(renderer)
        self.stale = False


def spread(heights, gap, low, high):
    """Places nearest to the wanted heights, in the sense of least squares, at least ``gap`` apart, inside [low, high].

    Returns
    -------
    order : ndarray of int, shape (n,)
        The labels from the lowest to the highest.
    places : ndarray, shape (n,)
        Their places; too many for the room stick out at the top.
    """
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(order))
    nearest = isotonic_regression(np.asarray(heights)[order] - steps).x
    nearest = np.maximum(np.minimum(nearest, high - steps[-1]), low)
    return order, nearest + steps
