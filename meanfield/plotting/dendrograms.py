"""Plots of merge trees: tokens on one side, time along the other, a bracket for every merge."""

import numpy as np
from matplotlib.collections import LineCollection

from ..checks import finite_array
from .style import figure_of, look, panel, style


@style()
def plot_merge_tree(linkage, *, start=0.0, end, variant="softmax", tscale="linear", first=None, title="", axes=None):
    """Draw a merge tree over time, one leaf a token; what has not merged by ``end`` runs out of the panel.

    Parameters
    ----------
    linkage : array_like, shape (m - 1, 4)
        From ``tree.linkage()``: heights are times since ``start``, those beyond ``end`` no merges.
    start, end : float
        Time of the first and of the last output.
    variant : str
        Colour: a row of LOOKS.
    tscale : {"linear", "log"}
        Scale of the time axis.
    first : float, optional
        Where a logarithmic axis begins; earlier merges are drawn there.
    title : str
    axes : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    linkage = finite_array("linkage", linkage, 2)
    if linkage.shape[1] != 4 or len(linkage) == 0:
        raise ValueError(
            f"linkage must have shape (m - 1, 4) with two leaves or more; got {linkage.shape}. Use tree.linkage()."
        )
    axes = panel(axes, height=2.4)
    first = start if first is None else first
    brackets, levels = _brackets(linkage, start, end, first)
    axes.add_collection(LineCollection(brackets, colors=look(variant)["color"], linewidths=0.8), autolim=False)
    axes.set_xscale(tscale)
    axes.set_xlim(first, end)
    axes.set_ylim(-0.7, levels - 0.3)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("time $t$")
    axes.set_title(title)
    return figure_of(axes)


def _brackets(linkage, start, end, first):
    """Polylines of the merges and of the branches that are left, and the number of leaves."""
    from scipy.cluster.hierarchy import dendrogram

    leaves = dendrogram(linkage, no_plot=True)["leaves"]
    places = np.empty(2 * len(leaves) - 1)
    places[leaves] = np.arange(len(leaves))
    births = np.full(len(places), first)
    lines, merged = [], np.zeros(len(places), dtype=bool)
    for k, (a, b, height, _) in enumerate(linkage):
        whole, (a, b) = len(leaves) + k, (int(a), int(b))
        time = max(start + height, first)
        places[whole], births[whole] = (places[a] + places[b]) / 2, time
        if start + height <= end:
            merged[[a, b]] = True
            lines.append([(births[a], places[a]), (time, places[a]), (time, places[b]), (births[b], places[b])])
    alive = np.flatnonzero(~merged & (births <= end))
    return lines + [[(births[k], places[k]), (end, places[k])] for k in alive], len(leaves)
