"""Plots of tokens: their trajectories on a line, in the plane and in space, and one cloud of them."""

import numpy as np

from ..checks import finite_array
from ..measures import Measure
from .frames import (
    GREY,
    box_around,
    chosen_coordinates,
    draw_space,
    draw_tracks,
    frame,
    limits_array,
    steady_ticks,
    value_bar,
)
from .paths import token_path
from .style import figure_of, looks, panel, style

#: Area of the marker of the heaviest token, in square points.
AREA = 16.0


@style()
def plot_trajectory(
    run,
    *,
    view=None,
    variant="softmax",
    values=None,
    values_label="",
    coordinates=None,
    limits=None,
    symbol=None,
    title=None,
    axes=None,
):
    """Draw where tokens went: tracks faint, starts small and grey, ends strong.

    Tokens of one coordinate are drawn over time, of two in the plane and of three in space with equal aspect. Tokens
    with positions are coloured by them. Markers have areas proportional to the masses; padding is hollow. A run that
    ended early says so in its title.

    Parameters
    ----------
    run : Trajectory, Measure, or pair (times (k,), points (k, n, d))
    view : callable, optional
        ``view(t, measure) -> measure``: the coordinates to look in, for instance `rescaled` (V).
    variant : str
        Colour and marker: a row of LOOKS, or any name.
    values : array_like, shape (n,), optional
        Numbers that colour the tokens (viridis) instead; their name is ``values_label``.
    coordinates : sequence of int, optional
        Which one to three coordinates to draw.
    limits : pair or array_like, shape (d, 2), optional
        Limits of the coordinates drawn, so that panels can be compared (`box_around`).
    symbol : str, optional
        Letter of the coordinates: "x", or "z" under a view.
    title : str, optional
    axes : matplotlib.axes.Axes, optional
        Panel to draw into.

    Returns
    -------
    matplotlib.figure.Figure
    """
    path = token_path(run, view)
    tokens, numbers = chosen_coordinates(path.tokens, coordinates)
    symbol = symbol or ("x" if view is None else "z")
    d = tokens.shape[-1]
    axes = panel(axes, height=2.3 if d == 1 else 2.9, projection="3d" if d == 3 else None)
    limits = box_around(tokens) if limits is None else limits_array(limits, d)
    colors = _colors(axes, path, variant, values, values_label)
    if d == 1:
        over_time = np.stack(np.broadcast_arrays(path.times[:, None, None], tokens)).squeeze(-1)
        drawn = over_time.transpose(1, 2, 0)
        _frame_in_time(axes, path, limits[0], numbers[0], symbol)
    else:
        drawn = tokens
        draw_space(axes, path.space if d == path.tokens.shape[-1] else None)
        frame(axes, limits, numbers, symbol)
    draw_tracks(axes, np.swapaxes(drawn, 0, 1), colors)
    if len(drawn) > 1:
        axes.scatter(*drawn[0].T, s=3, color=GREY, zorder=2, linewidths=0)
    _dots(axes, drawn[-1], path.weights, colors, variant)
    axes.set_title(path.ending if title is None else title)
    return figure_of(axes)


@style()
def plot_measure(
    measure,
    *,
    variant="softmax",
    values=None,
    values_label="",
    coordinates=None,
    limits=None,
    symbol="x",
    title="",
    axes=None,
):
    """Draw one cloud of tokens, in the plane or in space, or their masses over a line.

    Parameters
    ----------
    measure : Measure or array_like, shape (n, d)
    variant, values, values_label, coordinates, limits, symbol, title, axes
        As for `plot_trajectory`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    measure = measure if isinstance(measure, Measure) else Measure(measure)
    path = token_path(measure)
    tokens, numbers = chosen_coordinates(path.tokens[0], coordinates)
    d = tokens.shape[-1]
    axes = panel(axes, height=2.0 if d == 1 else 2.9, projection="3d" if d == 3 else None)
    limits = box_around(tokens) if limits is None else limits_array(limits, d)
    colors = _colors(axes, path, variant, values, values_label)
    if d == 1:
        axes.vlines(tokens[:, 0], 0, path.weights, colors=colors, linewidth=0.8)
        axes.set(xlim=limits[0], xlabel=f"token coordinate ${symbol}$", ylabel="mass $w$")
        axes.set_ylim(0, 1.15 * path.weights.max())
        tokens = np.column_stack([tokens, path.weights])
    else:
        frame(axes, limits, numbers, symbol)
    _dots(axes, tokens, path.weights, colors, variant)
    axes.set_title(title)
    return figure_of(axes)


def _frame_in_time(axes, path, limits, number, symbol):
    """Axes of tokens on a line over time, with t* marked if there is one."""
    name = f"${symbol}$" if path.tokens.shape[-1] == 1 else f"${symbol}_{{{number + 1}}}$"
    words = "rescaled coordinate" if symbol == "z" else "token coordinate"
    axes.set(xlabel="time $t$", ylabel=f"{words} {name}", ylim=limits)
    steady_ticks(axes.xaxis, axes.yaxis)
    span = path.times[-1] - path.times[0] or 1.0
    end = path.times[-1] if path.blow_up_time is None else max(path.times[-1], path.blow_up_time)
    axes.set_xlim(path.times[0] - 0.02 * span, end + 0.04 * span)
    if path.blow_up_time is not None:
        axes.axvline(path.blow_up_time, color=GREY, linewidth=0.8, linestyle=":")


def _colors(axes, path, variant, values, label):
    """One colour a token, from values, positions or the look of the variant, shape (n, 4) or one colour."""
    if values is None and path.positions is not None:
        values, label = path.positions, "position $s$"
    if values is None:
        return [looks([variant])[variant].color] * len(path.weights)
    values = finite_array("values", values)
    if values.shape != path.weights.shape:
        raise ValueError(f"values must have shape {path.weights.shape}, one a token; got {values.shape}.")
    return list(value_bar(axes, values.min(), values.max(), label)(values))


def _dots(axes, points, weights, colors, variant):
    """Strong markers with areas proportional to masses; padding is hollow."""
    look = looks([variant])[variant]
    massive = weights > 0
    colors = np.array(colors, dtype=object)
    areas = np.where(massive, AREA * weights / weights.max(), AREA)
    for chosen, filled in ((massive, True), (~massive, False)):
        if not chosen.any():
            continue
        edges = ["white"] * chosen.sum() if filled else list(colors[chosen])
        axes.scatter(
            *points[chosen].T,
            s=areas[chosen],
            marker=look.marker,
            facecolors=list(colors[chosen]) if filled else "none",
            edgecolors=edges,
            linewidths=0.3 if filled else 0.6,
            zorder=3,
            **({"depthshade": False} if axes.name == "3d" else {}),
        )
