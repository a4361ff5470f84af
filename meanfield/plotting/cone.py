"""Plots of 2 x 2 covariances in the published coordinates: the disc of shapes and the cone of all of them [CACP25]."""

import numpy as np

from ..checks import number
from .frames import GREY, draw_tracks, frame_space
from .paths import covariance_path
from .style import Look, figure_of, looks, panel, style


def disc_coordinates(covariances):
    """Shape of 2 x 2 covariances [[a, c], [c, b]]: (a - b, 2c) / (a + b), in the unit disc [CACP25].

    Rank one is the circle, a multiple of the identity the centre; the zero matrix has no shape and gives NaN.

    Parameters
    ----------
    covariances : array_like, shape (..., 2, 2)

    Returns
    -------
    ndarray, shape (..., 2)
    """
    cone = cone_coordinates(covariances)
    with np.errstate(invalid="ignore", divide="ignore"):
        return cone[..., :2] / cone[..., 2:]


def cone_coordinates(covariances):
    """2 x 2 covariances [[a, c], [c, b]] as points (a - b, 2c, a + b) of the cone u^2 + w^2 <= v^2 [CACP25].

    Parameters
    ----------
    covariances : array_like, shape (..., 2, 2)

    Returns
    -------
    ndarray, shape (..., 3)
    """
    s = np.asarray(covariances, dtype=float)
    if s.shape[-2:] != (2, 2):
        raise ValueError(
            f"disc and cone hold 2 x 2 covariances, shape (..., 2, 2); got {s.shape}. Take a marginal, S[..., :2, :2]."
        )
    return np.stack([s[..., 0, 0] - s[..., 1, 1], s[..., 0, 1] + s[..., 1, 0], s[..., 0, 0] + s[..., 1, 1]], axis=-1)


@style()
def plot_disc(runs, *, variant="softmax", groups=None, title="", axes=None):
    """Draw the shapes that covariances take along runs: tracks faint, starts grey, ends strong, in the unit disc.

    Parameters
    ----------
    runs : sequence
        Each a Trajectory of a Gaussian or an array of covariances, shape (k, 2, 2); one array (p, k, 2, 2) will do.
    variant : str
        Colour and marker of the ends.
    groups : sequence of str, optional
        A name for each run, for instance its fate; each name gets a colour and marker of its own and a legend entry.
    title : str
    axes : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    paths = [disc_coordinates(covariance_path(run)) for run in runs]
    axes = panel(axes, height=3.2)
    angle = np.linspace(0, 2 * np.pi, 181)
    axes.fill(np.cos(angle), np.sin(angle), facecolor="#F5F5F5", edgecolor=GREY, linewidth=0.8, zorder=0)
    axes.plot(0, 0, marker="+", color="#777777", markersize=6, zorder=0.5)
    axes.text(-0.75, 0.75, "rank one", color="#777777", ha="center", va="center", rotation=45)
    _draw_runs(axes, paths, variant, groups)
    axes.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal", title=title)
    axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    axes.set_xlabel(r"stretch $(\Sigma_{11}-\Sigma_{22})\,/\,\mathrm{tr}\,\Sigma$")
    axes.set_ylabel(r"tilt $2\Sigma_{12}\,/\,\mathrm{tr}\,\Sigma$")
    return figure_of(axes)


@style()
def plot_cone(runs, *, variant="softmax", groups=None, top=None, title="", axes=None):
    """Draw covariances along runs inside the cone of positive matrices, the cone drawn faintly.

    Parameters
    ----------
    runs : sequence
        Each a Trajectory of a Gaussian or an array of covariances, shape (k, 2, 2); one array (p, k, 2, 2) will do.
    variant, groups, title, axes
        As for `plot_disc`; the axes need projection="3d".
    top : float, optional
        Largest trace that is drawn: tracks are cut there. By default the largest there is.

    Returns
    -------
    matplotlib.figure.Figure
    """
    paths = [cone_coordinates(covariance_path(run)) for run in runs]
    if top is None:
        top = 1.05 * max((path[:, 2].max() for path in paths), default=0.0) or 1.0
    top = number("top", top, above=0)
    axes = panel(axes, height=3.2, projection="3d")
    _draw_cone(axes, top)
    _draw_runs(axes, [np.where(path[:, 2:] <= top, path, np.nan) for path in paths], variant, groups)
    limits = [(-top, top), (-top, top), (0, top)]
    axes.set(xlim=limits[0], ylim=limits[1], zlim=limits[2], title=title)
    frame_space(axes, limits, zoom=0.82)
    axes.set_xlabel(r"$\Sigma_{11}-\Sigma_{22}$")
    axes.set_ylabel(r"$2\Sigma_{12}$")
    axes.set_zlabel(r"trace $\mathrm{tr}\,\Sigma$")
    return figure_of(axes)


def _draw_cone(axes, top):
    angle = np.linspace(0, 2 * np.pi, 61)
    height = np.array([0.0, top])
    surface = height[:, None] * np.cos(angle), height[:, None] * np.sin(angle), height[:, None] + 0 * angle
    axes.plot_surface(*surface, color="#999999", alpha=0.08, linewidth=0, shade=False)
    for level in (top / 2, top):
        axes.plot(level * np.cos(angle), level * np.sin(angle), level + 0 * angle, color=GREY, linewidth=0.5)
    for turn in np.linspace(0, 2 * np.pi, 13)[:-1]:
        axes.plot(height * np.cos(turn), height * np.sin(turn), height, color=GREY, linewidth=0.3)


def _draw_runs(axes, paths, variant, groups):
    """Tracks, starts and ends, group by group; points that are not finite are left out."""
    names = [variant] * len(paths) if groups is None else [str(name) for name in groups]
    if len(names) != len(paths):
        raise ValueError(f"groups must name each of the {len(paths)} runs; got {len(names)}.")
    for name, look in looks(names).items():
        mine = [path[np.isfinite(path).all(axis=1)] for path, own in zip(paths, names, strict=True) if own == name]
        mine = [path for path in mine if len(path)]
        if mine:
            _draw_group(axes, mine, look, name)
    if groups is not None:
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2, "columnspacing": 1.0}
        place = {"loc": "upper left", "bbox_to_anchor": (-0.08, 1.0)} if axes.name == "3d" else below
        axes.legend(handletextpad=0.2, **place)


def _draw_group(axes, paths, look: Look, name):
    many = len(paths) > 60
    draw_tracks(axes, paths, look.color, alpha=0.2 if many else 0.35, linewidth=0.5 if many else 0.7)
    space = {"depthshade": False} if axes.name == "3d" else {}
    starts = np.stack([path[0] for path in paths])
    ends = np.stack([path[-1] for path in paths])
    axes.scatter(*starts.T, s=2, color=GREY, linewidths=0, zorder=1.5, **space)
    mark = {"marker": look.marker, "s": 7 if many else 16, "linewidths": 0.3, "edgecolors": "white"}
    axes.scatter(*ends.T, color=look.color, zorder=3, label=name, **mark, **space)
