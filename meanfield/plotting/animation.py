"""Animations of runs: one frame an output time, in fixed axes, with the time shown."""

import os
import tempfile
from pathlib import Path

import numpy as np

from ..checks import number
from ..integration.trajectory import Trajectory
from ..measures import Gaussian
from .covariances import ellipse
from .frames import GREY, box_around, chosen_coordinates, draw_space, frame, limits_array
from .paths import gaussian_path, token_path
from .style import DPI, figure_of, looks, panel, style

#: Suffixes that can be written, with the writer of each.
WRITERS = {".gif": "pillow", ".mp4": "ffmpeg"}


@style()
def animate(
    run,
    path,
    *,
    view=None,
    variant="softmax",
    coordinates=None,
    limits=None,
    symbol=None,
    fps=12,
    dpi=DPI // 2,
    title="",
    progress=None,
):
    """Write a run as a moving picture: tokens with their tracks, or the ellipses of a Gaussian.

    Parameters
    ----------
    run : Trajectory, or arrays as for `plot_trajectory` and `plot_gaussian_trajectory`
        Tokens of 1 to 3 coordinates, or a Gaussian in 2 or 3 dimensions.
    path : path_like
        Where to: .gif (needs nothing else) or .mp4 (needs the program ffmpeg). Written whole or not at all.
    view, variant, coordinates, limits, symbol
        As for `plot_trajectory`; without limits the axes hold the whole run.
    fps : float
        Frames, that is output times, a second.
    dpi : int
        Dots an inch of a picture 3.4 inches wide.
    title : str
        Stands before the time.
    progress : callable, optional
        ``progress(k, frames)`` after each frame.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        On another suffix, before anything is drawn.
    RuntimeError
        If the suffix is .mp4 and there is no ffmpeg, before anything is drawn.
    """
    path = Path(path)
    writer = _writer(path, number("fps", fps, above=0))
    if _is_gaussian(run):
        figure, draw, times = _gaussian_scene(gaussian_path(run), variant, limits, symbol or "x")
    else:
        symbol = symbol or ("x" if view is None else "z")
        figure, draw, times = _token_scene(token_path(run, view), variant, coordinates, limits, symbol)
    axes = figure.axes[0]

    def frames():
        for k, time in enumerate(times):
            draw(k)
            axes.set_title(_time_line(title, time))
            yield
            if progress is not None:
                progress(k + 1, len(times))

    axes.set_title(_time_line(title, times[-1]))
    _record(figure, frames(), path, writer, dpi)
    return path


def _record(figure, frames, path, writer, dpi):
    """Write the figure as it looks at each turn of ``frames`` to a temporary file that takes the name at the end."""
    figure.draw_without_rendering()  # the layout is settled once: else the axes would shiver with the labels
    figure.set_layout_engine("none")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix.lower(), dir=path.parent)
    os.close(handle)
    try:
        with writer.saving(figure, temporary, dpi):
            for _ in frames:
                writer.grab_frame()
        os.chmod(temporary, 0o644)  # mkstemp leaves it to the owner alone
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _writer(path, fps):
    """The writer for a suffix, or an error that says what is missing."""
    from matplotlib import animation

    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise ValueError(f"an animation must be saved as {' or '.join(WRITERS)}; got {path.name!r}. Take .gif.")
    maker = animation.PillowWriter if WRITERS[suffix] == "pillow" else animation.FFMpegWriter
    if not maker.isAvailable():
        raise RuntimeError(
            f"saving {path.name!r} needs the program ffmpeg, which was not found. "
            f"Install it, or save {path.with_suffix('.gif').name!r}, which needs nothing."
        )
    return maker(fps=fps)


def _is_gaussian(run):
    if isinstance(run, Trajectory):
        return isinstance(run.last.state, Gaussian)
    return isinstance(run, Gaussian) or (isinstance(run, tuple | list) and len(run) == 3)


def _time_line(title, time):
    return f"{title}, $t$ = {time:.3g}" if title else f"$t$ = {time:.3g}"


def _token_scene(path, variant, coordinates, limits, symbol):
    """Figure, ``draw(k)`` and times of moving tokens; one coordinate moves over time."""
    tokens, numbers = chosen_coordinates(path.tokens, coordinates)
    d = tokens.shape[-1]
    limits = box_around(tokens) if limits is None else limits_array(limits, d)
    axes = panel(height=2.3 if d == 1 else 3.2, projection="3d" if d == 3 else None)
    if d == 1:
        clock = np.broadcast_to(path.times[:, None, None], tokens.shape)
        tokens = np.concatenate([clock, tokens], axis=-1)
        span = path.times[-1] - path.times[0] or 1.0
        axes.set(xlim=(path.times[0] - 0.02 * span, path.times[-1] + 0.04 * span), ylim=limits[0])
        axes.set(xlabel="time $t$", ylabel=f"token coordinate ${symbol}$")
    else:
        draw_space(axes, path.space if d == path.tokens.shape[-1] else None)
        frame(axes, limits, numbers, symbol)
    look = looks([variant])[variant]
    faint = {"color": look.color, "alpha": 0.35, "linewidth": 0.7}
    tracks = [axes.plot(*start[:, None], **faint)[0] for start in tokens[0]]
    marks = {"color": look.color, "marker": look.marker, "linestyle": "none", "markeredgecolor": "white"}
    dots = axes.plot(*tokens[0].T, markeredgewidth=0.3, **marks)[0]
    move = "set_data_3d" if d == 3 else "set_data"

    def draw(k):
        for i, track in enumerate(tracks):
            getattr(track, move)(*tokens[: k + 1, i].T)
        getattr(dots, move)(*tokens[k].T)

    return figure_of(axes), draw, path.times


def _gaussian_scene(path, variant, limits, symbol):
    """Figure, ``draw(k)`` and times of a moving Gaussian with the track of its mean."""
    d = path.laws[0].dimension
    if d not in (2, 3):
        raise ValueError(
            f"a Gaussian is animated in 2 or 3 dimensions; got {d}. In one dimension use plot_gaussian_trajectory."
        )
    curves = {k: np.stack([ellipse(law, k) for law in path.laws]) for k in (1, 2)}
    limits = box_around(curves[2]) if limits is None else limits_array(limits, d)
    axes = panel(height=3.2, projection="3d" if d == 3 else None)
    frame(axes, limits, range(d), symbol)
    look = looks([variant])[variant]
    means = np.stack([law.mean for law in path.laws])
    move = "set_data_3d" if d == 3 else "set_data"
    track = axes.plot(*means[:1].T, color=GREY, linewidth=0.8)[0]
    dot = axes.plot(*means[:1].T, color=look.color, marker=look.marker, linestyle="none")[0]
    lines = {
        k: [axes.plot(*curve.T, color=look.color, linestyle="-" if k == 1 else "--")[0] for curve in curves[k][0]]
        for k in curves
    }

    def draw(k):
        getattr(track, move)(*means[: k + 1].T)
        getattr(dot, move)(*means[k : k + 1].T)
        for deviations, drawn in lines.items():
            for line, curve in zip(drawn, curves[deviations][k], strict=True):
                getattr(line, move)(*curve.T)

    return figure_of(axes), draw, path.times
