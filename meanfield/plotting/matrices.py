"""Plots of attention matrices."""

import numpy as np

from ..checks import matrix_array
from .frames import bar_beside
from .style import figure_of, panel, style

#: Most labels an axis of the standard size has room for.
ROOM = 24


@style()
def plot_attention(
    matrix, *, labels=None, key_labels=None, limits=None, scale="attention weight $P_{ij}$", title="", axes=None
):
    """Draw an attention matrix in cividis: a row for each token that looks, a column for each that is seen.

    Parameters
    ----------
    matrix : array_like, shape (m, n)
        From ``field.matrix(t, x, mu)``.
    labels : sequence of str, optional
        Names of the rows (and of the columns, if they are the same tokens), for instance the words of a sentence.
    key_labels : sequence of str, optional
        Names of the columns, where they are others.
    limits : (low, high), optional
        Ends of the colour scale, shared by panels that are compared; by default from 0 (or the least entry) to the
        largest.
    scale : str or None
        Name at the bar of colours; None leaves the bar out.
    title : str
    axes : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    matrix = matrix_array("matrix", matrix, (None, None))
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"matrix must have shape (m, n); got {matrix.shape}. For several heads draw one panel a head.")
    low, high = (min(0.0, matrix.min()), matrix.max()) if limits is None else limits
    if high <= low:
        high = low + 1.0
    axes = panel(axes, height=2.9)
    image = axes.imshow(matrix, cmap="cividis", vmin=low, vmax=high, aspect="equal", interpolation="none")
    for side in axes.spines.values():
        side.set_visible(False)
    rows = _names("labels", labels, len(matrix))
    same = key_labels is None and matrix.shape[0] == matrix.shape[1]
    columns = rows if same else _names("key_labels", key_labels, matrix.shape[1])
    _label(axes.yaxis, rows, "looking token $i$", len(matrix))
    _label(axes.xaxis, columns, "seen token $j$", matrix.shape[1])
    if columns is not None:
        axes.tick_params(axis="x", rotation=90)
    if scale is not None:
        bar_beside(axes, image, scale)
    axes.set_title(title)
    return figure_of(axes)


def _names(name, labels, count):
    if labels is None:
        return None
    if len(labels) != count:
        raise ValueError(f"{name} must name each of the {count} tokens; got {len(labels)} names.")
    return [str(label).replace("$", r"\$") for label in labels]


def _label(axis, names, words, count):
    """Names as ticks (every second, third, ... where there is no room for all), or numbers from 1."""
    every = -(-count // ROOM)
    if names is None:
        step = max(1, 5 * round(count / 25)) if count > 6 else 1
        ticks = np.unique([0, *range(step - 1, count, step)])
        axis.set_ticks(ticks, [str(k + 1) for k in ticks])
        axis.set_label_text(words)
    else:
        axis.set_ticks(range(0, count, every), names[::every], fontsize=min(8, 150 / count * every))
        axis.set_label_text(words)
    axis.set_tick_params(length=0 if names is not None else 2)
