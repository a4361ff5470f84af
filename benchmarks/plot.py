"""Time against n on log-log axes, a panel a case, each method with its slope."""

import math

from meanfield.plotting.style import PAGE, letter_panels, looks, new_figure, save_figure, style

#: Panels side by side.
COLUMNS = 3
#: Sizes that a slope is fitted to, from the largest down.
FITTED = 3
#: Most sizes that are written below a panel.
LABELLED = 5


def slope(sizes, seconds):
    """The exponent a of seconds ~ sizes^a: least squares through the logarithms of the last few points."""
    x = [math.log(n) for n in sizes[-FITTED:]]
    y = [math.log(s) for s in seconds[-FITTED:]]
    middle = sum(x) / len(x)
    return sum((a - middle) * b for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)


def panels(reports):
    """{(question, case): {method: (sizes, seconds)}} of the cases that were run at two sizes or more."""
    found = {}
    for report in reports:
        for row in report.rows:
            points = found.setdefault((report.name, row.case), {}).setdefault(row.method, {})
            points[row.size] = row.seconds
    lines = {
        key: {
            method: (sorted(points), [points[n] for n in sorted(points)])
            for method, points in methods.items()
            if len(points) > 1
        }
        for key, methods in found.items()
    }
    return {key: methods for key, methods in lines.items() if methods}


def _short(n):
    """A number as a tick: 250, 1k, 16k, 1M."""
    for unit, sign in ((10**6, "M"), (10**3, "k")):
        if n >= unit:
            return f"{n / unit:g}{sign}"
    return str(n)


def draw(reports, stem):
    """Draw all panels into ``stem.png`` (and .pdf); the PNG, or None where no case has two sizes."""
    found = panels(reports)
    if not found:
        return None
    drawn_as = looks([method for methods in found.values() for method in methods])
    height = -(-len(found) // COLUMNS)
    with style():
        figure = new_figure(PAGE, 2.4 * height)
        axes = figure.subplots(height, COLUMNS, squeeze=False).ravel()
        for panel, ((name, case), methods) in zip(axes, found.items(), strict=False):
            for method, (sizes, seconds) in methods.items():
                label = f"{method}, $n^{{{slope(sizes, seconds):.1f}}}$"
                panel.loglog(sizes, seconds, label=label, **drawn_as[method]._asdict())
            ticks = sorted({n for sizes, _ in methods.values() for n in sizes})
            ticks = ticks[:: -(-len(ticks) // LABELLED)]
            panel.set_xticks(ticks, [_short(n) for n in ticks], minor=False)
            panel.minorticks_off()
            panel.set_title(f"{name}\n{case}", fontsize=7)
            panel.legend(fontsize=5, handlelength=2.5, labelspacing=0.2)
        for panel in axes[len(found) :]:
            panel.set_axis_off()
        for panel in axes[: len(found) : COLUMNS]:
            panel.set_ylabel("seconds")
        for panel in axes[max(0, len(found) - COLUMNS) : len(found)]:
            panel.set_xlabel("n")
        letter_panels(axes[: len(found)])
        return next(path for path in save_figure(figure, stem) if path.suffix == ".png")
