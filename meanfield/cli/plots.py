"""Plots of runs by kind: one function a kind, one line in the registry; each reads runs and returns a Figure."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..analysis.clustering import cluster_count
from ..analysis.observables import (
    attention_entropy,
    covariance,
    covariance_eigenvalues,
    diameter,
    effective_rank,
    numerical_rank,
    rescaled,
)
from ..measures import Gaussian
from ..spaces import Euclidean, Sphere
from ..sweeps.records import atomic_file
from .reports import default_gap


@dataclass(frozen=True)
class Look:
    """What the user asked of a plot; None leaves it to the plot."""

    observable: str | None = None
    time: float | None = None
    head: int = 1
    coordinates: list | None = None
    rescaled: bool = False
    gap: float | None = None


def _diameter(run, gap):
    return run.trajectory.observe(lambda state: diameter(state, space=run.problem.space))


def _deviation(run, gap):
    return run.trajectory.observe(lambda state: np.sqrt(covariance_eigenvalues(state)[0]))


def _clusters(run, gap):
    return run.trajectory.observe(lambda state: cluster_count(state, gap, space=run.problem.space))


def _rank(run, gap):
    return run.trajectory.observe(numerical_rank)


def _effective_rank(run, gap):
    return run.trajectory.observe(effective_rank)


def _entropy(run, gap):
    return np.array([attention_entropy(run.problem.field, t, state) for t, state in run.trajectory.items()])


#: Observables over time by name: the function of a run and a gap, the axis' words, and whether it needs tokens.
OBSERVABLES = {
    "diameter": (_diameter, "diameter of the tokens", True),
    "clusters": (_clusters, "clusters", True),
    "entropy": (_entropy, "attention entropy (nats)", True),
    "deviation": (_deviation, "largest standard deviation", False),
    "rank": (_rank, "numerical rank", False),
    "effective-rank": (_effective_rank, "effective rank", False),
}


def _telling_observable(problem):
    """What is drawn if nothing is asked for: the diameter of tokens that fill a sphere stays as it is for long."""
    if isinstance(problem.start, Gaussian):
        return "deviation"
    return "clusters" if isinstance(problem.space, Sphere) else "diameter"


def draw_observables(runs, look):
    """one observable over time, a line a run (--observable NAME)"""
    from .. import plotting

    name = look.observable or _telling_observable(runs[0].problem)
    check_observable(name, gaussian=_is_gaussian(runs[0]))
    function, words, _ = OBSERVABLES[name]
    gap = default_gap(runs[0].problem) if look.gap is None else look.gap
    curves = {run.problem.name: (run.trajectory.times, function(run, gap)) for run in runs}
    if name == "clusters":
        return plotting.plot_cluster_counts(curves, ylabel=f"clusters (gap {gap:.3g})")
    return plotting.plot_observables(curves, ylabel=words)


def draw_trajectory(runs, look):
    """where the tokens went, or the ellipses of a Gaussian over time"""
    from .. import plotting

    run = _only(runs, "trajectory")
    if _is_gaussian(run):
        return plotting.plot_gaussian_trajectory(run.trajectory, variant=_variant(run))
    return plotting.plot_trajectory(run.trajectory, variant=_variant(run), **_view(run, look))


def draw_hulls(runs, look):
    """convex hulls of the tokens at several times"""
    from .. import plotting

    run = _only(runs, "hulls")
    return plotting.plot_hulls(run.trajectory, variant=_variant(run), **_view(run, look))


def draw_attention(runs, look):
    """the attention matrix of one head (--head) at one time (--time, the last by default)"""
    from .. import plotting

    run = _only(runs, "attention")
    if _is_gaussian(run):
        raise ValueError("--kind attention must have a run of tokens; got a run of a Gaussian.")
    parts = run.problem.parts
    if look.head > len(parts):
        raise ValueError(f"--head must be 1 to {len(parts)}, the heads of this run; got {look.head}.")
    times = run.trajectory.times
    k = len(times) - 1 if look.time is None else int(np.argmin(np.abs(times - look.time)))
    state = run.trajectory[k]
    matrix = parts[look.head - 1].field.matrix(float(times[k]), state.points, state)
    return plotting.plot_attention(matrix, title=f"{run.problem.name}, $t$ = {times[k]:.3g}")


def draw_disc(runs, look):
    """shapes of 2 x 2 covariances in the unit disc, a track a run"""
    return _covariances("plot_disc", runs)


def draw_cone(runs, look):
    """2 x 2 covariances in the cone of positive matrices, a track a run"""
    return _covariances("plot_cone", runs)


def _covariances(function, runs):
    from .. import plotting

    if runs[0].problem.dimension != 2:
        raise ValueError(f"disc and cone must have tokens of dimension 2; got {runs[0].problem.dimension}.")
    paths = [run.trajectory.observe(covariance) for run in runs]
    groups = [run.problem.name for run in runs] if len(runs) > 1 else None
    return getattr(plotting, function)(paths, variant=_variant(runs[0]), groups=groups)


#: Kinds of plots by name; the docstring of each is its line in the help.
KINDS = {
    "trajectory": draw_trajectory,
    "observables": draw_observables,
    "hulls": draw_hulls,
    "attention": draw_attention,
    "disc": draw_disc,
    "cone": draw_cone,
}

#: What is no still: made frame by frame, straight into its file.
ANIMATION = "animation"

#: Formats of stills by suffix.
STILLS = (".png", ".pdf", ".svg")


def check_figure(label, path, kind):
    """Refuse a bad name of a figure before anything is computed or drawn."""
    if path.is_dir():
        raise IsADirectoryError(f"{label} must be a file; {path} is a folder. Name a file in it.")
    if kind != ANIMATION and path.suffix.lower() not in ("", *STILLS):
        raise ValueError(
            f"{label} must end in {', '.join(STILLS)}, or in nothing for .pdf and .png; got {path.name!r}."
        )


def check_observable(name, *, gaussian):
    """Refuse an observable of tokens where the state is a Gaussian."""
    if gaussian and name is not None and OBSERVABLES[name][2]:
        usable = [key for key, (_, _, needs_tokens) in OBSERVABLES.items() if not needs_tokens]
        raise ValueError(f"--observable must be one of {', '.join(usable)} for a Gaussian; got {name}.")


def draw(kind, runs, look, path):
    """Draw runs as a kind of plot into a file; an earlier file is replaced once the new one is whole.

    Parameters
    ----------
    kind : str
        A key of KINDS, or "animation".
    runs : list of Run
    look : Look
    path : Path
        Ends in .png, .pdf or .svg; an animation in .gif or .mp4. Without a suffix both .pdf and .png are made.

    Returns
    -------
    list of Path
        What was written.
    """
    from .. import plotting

    if kind == ANIMATION:
        run = _only(runs, kind)
        view = {} if _is_gaussian(run) else _view(run, look)
        path = path if path.suffix else path.with_name(f"{path.name}.gif")
        return [plotting.animate(run.trajectory, path, variant=_variant(run), **view)]
    figure = KINDS[kind](runs, look)
    if not path.suffix:
        return plotting.save_figure(figure, path)
    with atomic_file(path) as handle:
        figure.savefig(handle, format=path.suffix[1:].lower())
    return [path]


def default_kind(runs):
    """The plot of a record for which no kind was asked."""
    return "trajectory" if len(runs) == 1 else "observables"


def default_path(record, kind):
    """Beside the record, with the kind in the name."""
    return Path(record).with_name(f"{Path(record).stem}-{kind}.{'gif' if kind == ANIMATION else 'png'}")


def _is_gaussian(run):
    return isinstance(run.problem.start, Gaussian)


def _only(runs, kind):
    if len(runs) > 1:
        names = ", ".join(run.problem.name for run in runs)
        raise ValueError(f"--kind {kind} must have one run; the record has {names}. Choose with --run NAME.")
    return runs[0]


def _variant(run):
    """The row of the table of looks: the variant's name, or what is put around it."""
    if len(run.problem.parts) > 1:
        return "multihead"
    return "masked" if run.problem.masked else run.problem.parts[0].attention


def _view(run, look):
    """Options ``view`` and ``coordinates`` of plots of tokens."""
    problem = run.problem
    if _is_gaussian(run):
        raise ValueError("this kind of plot must have a run of tokens; got a run of a Gaussian.")
    if problem.dimension > 3 and look.coordinates is None:
        raise ValueError(
            f"at most 3 coordinates can be drawn; the tokens have {problem.dimension}. Choose some: --coordinates 0,1."
        )
    view = None
    if look.rescaled:
        if len(problem.parts) > 1 or problem.masked or not isinstance(problem.space, Euclidean):
            raise ValueError("--rescaled must have one head without mask in Euclidean space; leave it out here.")
        view = rescaled(problem.parts[0].head.value)
    return {"view": view, "coordinates": look.coordinates}
