"""Plots of numbers: observables and cluster counts over time, and errors against the number of tokens."""

from fractions import Fraction

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from ..checks import finite_array
from ..verdict import Verdict
from .frames import GREY, steady_ticks
from .labels import EndLabels
from .style import figure_of, looks, panel, spelt, style


@style()
def plot_observables(
    curves,
    *,
    xlabel="time $t$",
    ylabel="",
    xscale="linear",
    yscale="linear",
    references=None,
    verdicts=(),
    title="",
    axes=None,
):
    """Draw numbers over time, one line a name, with the names at the ends of the lines.

    Parameters
    ----------
    curves : dict of str to (times (k,), values (k,))
        Names of variants get their colour, marker and line style; other names those left over.
    xlabel, ylabel : str
        Symbol and words.
    xscale, yscale : str
        "linear", "log" or another scale of matplotlib's; values that a log axis cannot hold leave a gap,
        and where it can hold none the axis stays linear.
    references : dict of str to (times, values), optional
        What theory says, drawn thin, dashed and grey, with its name.
    verdicts : sequence of Verdict
        What happened at a time is marked there by a dotted line with its kind.
    title : str
    axes : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    axes = panel(axes, height=2.4)
    read = {name: _curve(name, curve) for name, curve in curves.items()}
    for k, (name, look) in enumerate(looks(read).items()):
        times, values = read[name]
        step = max(1, len(times) // 6)
        axes.plot(times, values, markevery=(k * step // max(len(read), 1), step), **look._asdict())
    extra = {name: _curve(name, curve) for name, curve in (references or {}).items()}
    for times, values in extra.values():
        axes.plot(times, values, color="#555555", linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    _finish(axes, xlabel, ylabel, xscale, yscale, title)
    _mark_verdicts(axes, verdicts)
    colors = [look.color for look in looks(read).values()] + ["#555555"] * len(extra)
    _name_ends(axes, list({**read, **extra}), [*read.values(), *extra.values()], colors)
    return figure_of(axes)


@style()
def plot_cluster_counts(counts, *, xlabel="time $t$", ylabel="clusters", yscale="linear", title="", axes=None):
    """Draw numbers of clusters over time as steps; lines that coincide are set apart by a hair.

    Parameters
    ----------
    counts : dict of str to Verdict or (times (k,), counts (k,))
        A Verdict of `ClusteringDetector` carries both, and its time is marked on its line.
    xlabel, ylabel, yscale, title, axes
        As for `plot_observables`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    axes = panel(axes, height=2.4)
    read = {name: _counts(name, given) for name, given in counts.items()}
    highest = max((values.max() for _, values in read.values()), default=1.0)
    shown = {}
    for k, (name, look) in enumerate(looks(read).items()):
        times, values = read[name]
        hair = min(0.012 * highest, 0.4 / len(read)) if yscale == "linear" else 0.0
        apart = hair * (k - (len(read) - 1) / 2)
        shown[name] = times, values + apart
        axes.step(*shown[name], where="post", color=look.color, linestyle=look.linestyle)
        given = counts[name]
        since = given.time if isinstance(given, Verdict) and given.happened else None
        at = np.searchsorted(times, since) if since is not None else 0
        axes.plot(times[at], values[at] + apart, marker=look.marker, color=look.color)
    _finish(axes, xlabel, ylabel, "linear", yscale, title)
    if yscale == "linear":
        axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.06 * highest + 0.2)
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    _name_ends(axes, list(shown), list(shown.values()), [look.color for look in looks(read).values()])
    return figure_of(axes)


def power_law(x, y):
    """Least-squares fit of y = factor * x^exponent in logarithms.

    Parameters
    ----------
    x, y : array_like, shape (k,)
        Positive, with at least two different x.

    Returns
    -------
    exponent, factor : float
    """
    x, y = finite_array("x", x, 1), finite_array("y", y, 1)
    if len(x) != len(y) or len(np.unique(x)) < 2 or min(x.min(), y.min()) <= 0:
        raise ValueError(
            "a power law needs positive x and y of one length with two different x; "
            f"got x {x.tolist()}, y {y.tolist()}."
        )
    exponent, offset = np.polyfit(np.log(x), np.log(y), 1)
    return float(exponent), float(np.exp(offset))


@style()
def plot_convergence(errors, *, predicted=-0.5, xlabel="number of tokens $n$", ylabel="error", title="", axes=None):
    """Draw errors against n on log axes, with the fitted slope of each and the predicted one.

    Parameters
    ----------
    errors : dict of str to (n (k,), errors (k,) or (k, seeds))
        Positive. Several seeds are drawn as faint points under their geometric mean, which the fit is made on.
    predicted : float or None
        Slope that theory says, drawn dashed and grey through the first mean of the first curve.
    xlabel, ylabel, title : str
    axes : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    axes = panel(axes, height=2.6)
    names, lines, colors = [], [], []
    for name, look in looks(errors).items():
        n, values = (np.asarray(part, dtype=float) for part in errors[name])
        values = finite_array(f"errors of {name}", values.reshape(len(n), -1))
        if (values <= 0).any():
            raise ValueError(f"errors of {name} must be positive for log axes; got {values.min():g}. Leave those out.")
        middle = np.exp(np.log(values).mean(axis=1))
        if values.shape[1] > 1:
            spots = {"color": look.color, "alpha": 0.35, "s": 5, "linewidths": 0, "zorder": 1}
            axes.scatter(np.repeat(n, values.shape[1]), values.ravel(), **spots)
        axes.plot(n, middle, color=look.color, marker=look.marker, linestyle="none")
        label, line = spelt(name), (n, middle)
        if len(np.unique(n)) > 1:
            exponent, factor = power_law(n, middle)
            line = np.sort(n), factor * np.sort(n) ** exponent
            axes.plot(*line, color=look.color, linestyle=look.linestyle, linewidth=1.0)
            label = f"{spelt(name)}\nslope {_signed(exponent)}"
        names.append(label)
        lines.append(line)
        colors.append(look.color)
    if predicted is not None and lines:
        ends = np.array([min(n.min() for n, _ in lines), max(n.max() for n, _ in lines)])
        n, middle = lines[0]
        line = ends, 0.6 * middle[0] * (ends / n[0]) ** predicted
        axes.plot(*line, color="#555555", linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
        names.append(f"predicted\nslope {_fraction(predicted)}")
        lines.append(line)
        colors.append("#555555")
    _finish(axes, xlabel, ylabel, "log", "log", title)
    _name_ends(axes, names, lines, colors)
    return figure_of(axes)


def _signed(value):
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _fraction(value):
    """A slope as a simple fraction if it is one: -1/2 rather than -0.50."""
    simple = Fraction(value).limit_denominator(8)
    return str(simple).replace("-", "\N{MINUS SIGN}") if abs(float(simple) - value) < 1e-9 else _signed(value)


def _curve(name, curve):
    """A curve as two float arrays of one length; values may hold NaN (gaps)."""
    times, values = (np.asarray(part, dtype=float) for part in curve)
    if times.ndim != 1 or times.shape != values.shape or times.size == 0:
        raise ValueError(
            f"curve {name!r} must be (times (k,), values (k,)) with k >= 1; got {times.shape} and {values.shape}. "
            "Cut both to the times that were reached."
        )
    return times, values


def _counts(name, given):
    if isinstance(given, Verdict):
        given = given.evidence["times"], given.evidence["counts"]
    return _curve(name, given)


def _finish(axes, xlabel, ylabel, xscale, yscale, title):
    for axis, scale, choose, k in ((axes.xaxis, xscale, axes.set_xscale, 0), (axes.yaxis, yscale, axes.set_yscale, 1)):
        if scale == "log" and any((line.get_xydata()[:, k] > 0).any() for line in axes.lines):
            choose("log", nonpositive="mask")
            _plain_decades(axis)
        elif scale in ("linear", "log"):  # a log axis cannot hold nothing: all diameters of one token are zero
            steady_ticks(axis)
        else:
            choose(scale)
    if xscale == "linear":
        axes.margins(x=0.025)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)


def _plain_decades(axis):
    """Ticks of a log axis: powers of ten, and 2 and 5 in between as plain numbers where there are few decades."""
    low, high = axis.get_view_interval()
    few = 0 < low < high < 30 * low and low >= 1e-3 and high < 1e5
    axis.set_minor_locator(LogLocator(subs=(2, 5) if few else "auto"))
    axis.set_minor_formatter(StrMethodFormatter("{x:g}") if few else NullFormatter())
    if few:
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _mark_verdicts(axes, verdicts):
    """A dotted line at the time of each verdict that has one, its kind written along it."""
    for verdict in verdicts:
        if verdict.happened and verdict.time is not None:
            axes.axvline(verdict.time, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
            words = f"{verdict.kind}, $t$ = {verdict.time:.3g}"
            place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "rotation": 90}
            axes.annotate(words, (verdict.time, 0.98), (-2, 0), ha="right", va="top", color="#555555", **place)


def _name_ends(axes, names, lines, colors):
    """Names at the last finite point of each line."""
    ends, kept = [], []
    for k, (x, y) in enumerate(lines):
        finite = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if len(finite):
            ends.append((x[finite[-1]], y[finite[-1]]))
            kept.append(k)
    if kept:
        EndLabels(axes, ends, [spelt(names[k]) for k in kept], [colors[k] for k in kept])
