"""Plots of the convex hulls of clouds of tokens, nested in time when they should be [GLPR23]."""

import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from ..checks import number
from .frames import GREY, TIMES, box_around, chosen_coordinates, frame, limits_array, value_bar
from .paths import token_path
from .style import figure_of, look, panel, style

#: Directions in which a cloud is thinner than this share of its size are flat.
FLAT = 1e-9


def hull_faces(points):
    """Corners of the faces of a convex hull, for hulls of any rank.

    Parameters
    ----------
    points : array_like, shape (n, d)
        In the plane or in space.

    Returns
    -------
    list of ndarray, shape (corners, d)
        One polygon in the plane; triangles in space; a polygon, a segment or a point where the cloud is flat.
    """
    points = np.asarray(points, dtype=float)
    centre = points.mean(axis=0)
    _, sizes, directions = np.linalg.svd(points - centre, full_matrices=False)
    flat = FLAT * max(np.abs(points - centre).max(), np.finfo(float).tiny)
    rank = int((sizes > flat).sum())
    if rank == 0:
        return [centre[None]]
    within = (points - centre) @ directions[:rank].T
    if rank == 1:
        return [points[[within[:, 0].argmin(), within[:, 0].argmax()]]]
    from scipy.spatial import ConvexHull

    hull = ConvexHull(within)
    return [points[hull.vertices]] if rank == 2 else [points[face] for face in hull.simplices]


@style()
def plot_hulls(
    run, *, view=None, variant="softmax", count=6, coordinates=None, limits=None, symbol=None, title=None, axes=None
):
    """Draw convex hulls of the tokens at several times, coloured by time, with the last tokens on the last hull.

    Parameters
    ----------
    run : Trajectory, Measure, or pair (times (k,), points (k, n, d))
    view : callable, optional
        ``view(t, measure) -> measure``, for instance `rescaled` (V): there the hulls are nested if V = I.
    variant : str
        Marker of the tokens.
    count : int
        Hulls to draw, at output times spread evenly from the first to the last.
    coordinates : sequence of int, optional
        Which two or three coordinates to draw.
    limits, symbol, title, axes
        As for `plot_trajectory`. Tokens without mass are left out.

    Returns
    -------
    matplotlib.figure.Figure
    """
    path = token_path(run, view)
    tokens, numbers = chosen_coordinates(path.tokens[:, path.weights > 0], coordinates)
    d = tokens.shape[-1]
    if d == 1:
        raise ValueError("hulls are drawn of 2 or 3 coordinates; got 1. On a line use plot_trajectory.")
    axes = panel(axes, height=2.9, projection="3d" if d == 3 else None)
    limits = box_around(tokens) if limits is None else limits_array(limits, d)
    frame(axes, limits, numbers, symbol or ("x" if view is None else "z"))
    count = number("count", count, at_least=1, integer=True)
    chosen = np.unique(np.linspace(0, len(tokens) - 1, count).round().astype(int))
    colors = value_bar(axes, path.times[0], path.times[-1], "time $t$", TIMES)
    for k in chosen:
        _draw_hull(axes, hull_faces(tokens[k]), colors(path.times[k]), last=k == chosen[-1])
    depth = {"depthshade": False} if d == 3 else {}
    axes.scatter(*tokens[0].T, s=3, color=GREY, linewidths=0, zorder=2, **depth)
    mark = {"marker": look(variant)["marker"], "color": colors(path.times[-1])}
    axes.scatter(*tokens[-1].T, s=12, linewidths=0, zorder=3, **mark, **depth)
    axes.set_title(path.ending if title is None else title)
    return figure_of(axes)


def _draw_hull(axes, faces, color, *, last):
    """One hull: an outline, the last one stronger and faintly filled."""
    width, alpha = (1.2, 0.13) if last else (0.7, 0.0)
    if axes.name == "3d" and len(faces[0]) > 2:
        edge = (*color[:3], 0.9 if last else 0.25)
        solid = Poly3DCollection(faces, facecolor=(*color[:3], alpha), edgecolor=edge, linewidth=0.6 * width)
        axes.add_collection3d(solid)
        return
    for corners in faces:
        ring = np.concatenate([corners, corners[:1]])
        axes.plot(*ring.T, color=color, linewidth=width, marker="o" if len(corners) == 1 else None, markersize=2)
        if axes.name != "3d" and len(corners) > 2:
            axes.fill(*corners.T, color=color, alpha=alpha, linewidth=0)
