"""One layer seen twice: where its steps take the tokens and what they attend to, its two norms, and the flow."""

import numpy as np

from figures.style import PAGE, look, new_figure
from meanfield.measures import Gaussian
from meanfield.plotting.covariances import plot_ellipses
from meanfield.plotting.matrices import plot_attention
from meanfield.plotting.style import ink, letter_panels
from meanfield.plotting.tokens import plot_trajectory

GREY = "#555555"


def draw(study):
    """Four panels: the layer above, norms and flow below."""
    layer = study.select(part="toy")[0]
    flow = study.select(part="flow", variant="softmax", beta=1.0, sign=1.0)[0]
    figure = new_figure(PAGE, 6.2)
    axes = figure.subplots(2, 2)
    draw_places(layer, axes[0, 0])
    draw_attention(layer, axes[0, 1])
    draw_norms(layer, axes[1, 0])
    draw_flow(flow, axes[1, 1])
    letter_panels(axes.flat)
    figure.suptitle(title(layer, flow))
    return figure


#: Scores before the mask still have a column for the last token, so they are not compared.
BEFORE_THE_MASK = (12, 13)


def largest_earlier_change(layer):
    """The largest change of any earlier token in any step when the last word is another one."""
    largest = 0.0
    for k in range(1, len(layer["names"]) + 1):
        if k not in BEFORE_THE_MASK:
            new, old = np.broadcast_arrays(layer[f"edited_{k:02d}"], layer[f"step_{k:02d}"])
            change = np.subtract(new, old, where=new != old, out=np.zeros(new.shape))  # hidden scores are -inf in both
            largest = max(largest, np.abs(change[..., :-1, :]).max())
    return largest


def title(layer, flow):
    """Both halves of the claim, with their numbers."""
    opened = np.abs(layer["open"][1:] - layer["open"][0])[:, :-1].max()
    return (
        f"In steps: another last word changes earlier tokens by {largest_earlier_change(layer):g} "
        f"(without the mask by {opened:.1f});\n"
        f"as a flow: {len(flow['tokens'])} tokens reach $t$ = {flow['times'][-1]:g}, "
        f"their Gaussian blows up at $t^*$ = {flow['gaussian_blow_up']:.3f}"
    )


def draw_places(layer, axes):
    """The tokens before the layer, after attention and after the MLP, in their principal plane."""
    tracks = layer["places"]
    for k, word in enumerate(layer["tokens"]):
        axes.plot(*tracks[:, k].T, color=look("softmax")["color"], linewidth=0.8, alpha=0.5)
        axes.annotate(str(word), tracks[-1, k], xytext=(3, 2), textcoords="offset points", fontsize=7)
    for stop, marker, name in zip(tracks, ("o", "^", "s"), ("before", "after attention", "after MLP"), strict=True):
        axes.plot(*stop.T, marker, color=ink(look("softmax")["color"]), markersize=3.5, label=name, linestyle="")
    axes.legend(loc="best", fontsize=7)
    axes.set_aspect("equal", adjustable="datalim")
    first, second = 100 * layer["plane_share"]
    axes.set(xlabel=f"first principal axis ({first:.0f} %)", ylabel=f"second ({second:.0f} %)")
    axes.set_title("tokens before, within and after the layer")


def draw_attention(layer, axes):
    """The attention of one head."""
    weights = layer[f"step_{int(layer['attention_step']):02d}"][0]
    plot_attention(weights, labels=list(layer["tokens"]), axes=axes)
    axes.set_title("step 15: attention of head 1")


def draw_norms(layer, axes):
    """The last token, shifted, in the plane of mean and standard deviation: what each norm makes of it."""
    angle = np.linspace(0, np.pi, 200)
    axes.plot(np.cos(angle), np.sin(angle), color=GREY, linewidth=0.8)
    axes.annotate("rms = 1", (-1.1, 0.1), color=GREY, fontsize=7, ha="right")
    before, centred, scaled = layer["moments"][:, :, -1, :2]
    axes.plot(*before.T, ".", color=GREY, label="token + c")
    for rows, variant, name in ((scaled, "l2", "RMSNorm"), (centred, "sinkhorn", "LayerNorm")):
        shape = look(variant)
        axes.plot(*rows.T, shape["marker"], color=shape["color"], label=name, linestyle="", zorder=3)
    axes.set_aspect("equal")
    axes.set(xlabel="mean", ylabel="standard deviation", ylim=(0, 1.8 * before[:, 1].max()))
    axes.legend(loc="upper right", fontsize=7)
    axes.set_title("LayerNorm leaves a point, RMSNorm an arc")


def draw_flow(flow, axes):
    """The tokens' tracks to four fifths of the Gaussian's t*, with its ellipses there."""
    k = np.flatnonzero(flow["gaussian_times"] <= 0.8 * flow["gaussian_blow_up"])[-1]
    half = 1.6 * np.abs(flow["points"][: k + 1]).max()
    limits = ((-half, half), (-half, half))
    plot_trajectory((flow["times"][: k + 1], flow["points"][: k + 1]), variant="softmax", limits=limits, axes=axes)
    plot_ellipses(Gaussian(flow["gaussian_means"][k], flow["gaussian_covariances"][k]), color=GREY, axes=axes)
    axes.set_title(f"softmax flow and Gaussian at t = {flow['times'][k]:.2f}")
