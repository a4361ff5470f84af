"""The attention matrix losing its rank: four moments of one run, ranks of all runs, and one run's singular values."""

import numpy as np

from figures.style import COLOURS, LINES, PAGE, new_figure
from meanfield.plotting.matrices import plot_attention
from meanfield.plotting.style import letter_panels

GREY = "#555555"


def draw(study):
    """One figure: matrices above, ranks and singular values below."""
    run, case = study.arrays[0], study.cases[0]
    figure = new_figure(PAGE, 4.9)
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
    above = upper.subplots(1, 4, sharey=True)
    steps = np.searchsorted(run["times"], run["matrix_times"])
    for k, (one, step) in enumerate(zip(above, steps, strict=True)):
        scale = "attention weight $P_{ij}$" if k == 3 else None
        title = f"$t$ = {run['matrix_times'][k]:.1f}, rank {run['ranks'][step]}"
        plot_attention(run["matrices"][k], limits=(0.0, 1.0), scale=scale, title=title, axes=one)
        one.label_outer()
    left, right = lower.subplots(1, 2, width_ratios=(1.35, 1))
    ranks(left, study)
    singular_values(right, run)
    letter_panels([*above, left, right])
    moved = [int(one["ranks"][-1]) for one in study.arrays]
    drifted = [int(one["drift_ranks"][-1]) for one in study.arrays]
    figure.suptitle(
        f"The attention matrix of {case['n']} tokens in dimension {case['d']} falls from rank {run['ranks'][0]} to "
        f"{span(moved)} by $t$ = {case['horizon']:g}\n"
        f"(and to {span(drifted)} by the published $T$, where $V$ alone moves the tokens, as in the published script)"
    )
    return figure


def ranks(axes, study):
    """Numerical rank of all runs over time, moved by attention and by V alone; effective rank of the first."""
    for k, run in enumerate(study.arrays):
        strong = {"alpha": 1.0, "linewidth": 1.6} if k == 0 else {"alpha": 0.4, "linewidth": 0.7}
        seen = run["times"] > 0
        axes.step(run["times"][seen], run["ranks"][seen], where="post", color=COLOURS["softmax"], **strong)
        axes.step(
            run["drift_times"], run["drift_ranks"], where="post", color=COLOURS["l2"], linestyle=LINES["l2"], **strong
        )
    run = study.arrays[0]
    seen = run["times"] > 0
    axes.plot(run["times"][seen], run["effective_ranks"][seen], color=GREY, linestyle=":", linewidth=1.2)
    n = study.cases[0]["n"]
    axes.text(0.42, 0.92, "moved by attention", color=COLOURS["softmax"], transform=axes.transAxes)
    axes.text(0.42, 0.82, "its effective rank (first run)", color=GREY, transform=axes.transAxes)
    axes.text(0.42, 0.72, "moved by $V$ alone", color=COLOURS["l2"], transform=axes.transAxes)
    published = run["drift_times"][-1]
    axes.axvline(published, color=GREY, linewidth=0.6, linestyle=":")
    axes.annotate(
        "published $T$ = 11", (published, n), (-3, 0), textcoords="offset points", rotation=90, ha="right", va="top"
    )
    axes.set(xscale="log", yscale="log", xlim=(0.8, 1.15 * published), ylim=(0.9, 1.25 * n))
    marks = [1, 2, 3, 5, 10, 20, 40]
    axes.set_yticks([mark for mark in marks if mark <= n], [str(mark) for mark in marks if mark <= n])
    axes.set_yticks([], minor=True)
    axes.set(xlabel="time $t$, in units of $1/\\lambda_1(V)$", ylabel="rank of the attention matrix")
    axes.set_title(f"{len(study.arrays)} run{'s' if len(study.arrays) > 1 else ''}")


def singular_values(axes, run):
    """All singular values of one run over time, on a log axis."""
    values = run["spectra"]
    for k in range(values.shape[1]):
        axes.plot(run["times"], values[:, k], color=COLOURS["softmax"], linewidth=0.7, alpha=0.7)
    axes.set(yscale="log", ylim=(1e-6, 2 * values.max()), xlim=(0, run["times"][-1]))
    axes.set(xlabel="time $t$, in units of $1/\\lambda_1(V)$", ylabel="singular values of $P$")
    axes.set_title("they vanish one by one")


def span(counts):
    """The range of whole numbers, in figures."""
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"between {low} and {high}"
