"""What is printed of runs and records: short tables, numbers readable."""

import numpy as np

from ..analysis.clustering import clusters
from ..analysis.observables import covariance_eigenvalues, diameter, effective_rank, numerical_rank
from ..integration import Adaptive
from ..measures import Gaussian, Measure
from ..spaces import Sphere


def spelt(value):
    """A value as a table shows it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def table(rows):
    """Rows of cells as lines with aligned columns: the first column to the left, the others to the right."""
    cells = [[spelt(cell) for cell in row] for row in rows]
    first, *widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for name, *values in cells:
        right = [value.rjust(width) for value, width in zip(values, widths, strict=True)]
        lines.append("  ".join([name.ljust(first), *right]).rstrip())
    return lines


def pairs(rows):
    """Lines "name  value", names in one column."""
    width = max(len(name) for name, _ in rows)
    return [f"{name.ljust(width)}  {spelt(value)}" for name, value in rows]


def default_gap(problem):
    """A hundredth of the size of the start: of its diameter, or of the largest standard deviation of a Gaussian."""
    return 0.01 * _size(problem.start, problem.space) or 0.01


def _size(state, space):
    if isinstance(state, Measure):
        return diameter(state, space=space)
    return float(np.sqrt(covariance_eigenvalues(state)[0]))


def judged(state, space, gap):
    """Numbers that describe a state: name -> value, for tokens and for a Gaussian; inf where they overflow."""
    with np.errstate(all="ignore"):
        ranks = {"rank": numerical_rank(state), "effective rank": effective_rank(state)}
        size = {"|mean|": float(np.linalg.norm(state.mean))}
        if isinstance(state, Measure):
            count = clusters(state, gap, space=space).count
            return {"diameter": _size(state, space), "clusters": count, **ranks, **size}
        left = int((np.sqrt(covariance_eigenvalues(state)) > gap).sum())
        return {"largest s.d.": _size(state, space), "directions": left, **ranks, **size}


def described(problem):
    """Rows (name, value) on what was asked for."""
    betas = list(dict.fromkeys(spelt(part.head.scale) for part in problem.parts))
    heads = f", {len(problem.parts)} heads" if len(problem.parts) > 1 else ""
    options = {key: value for part in problem.parts for key, value in part.options.items()}
    chosen = "".join(f", {key} = {spelt(value)}" for key, value in options.items())
    scheme, times = problem.scheme, problem.times
    if isinstance(scheme, Adaptive):
        numerics = f"{scheme.method}, rtol {scheme.rtol:g}, atol {scheme.atol:g}"
    else:
        numerics = f"{scheme!r}, dt = {problem.dt:g}"
    return [
        ("attention", f"{problem.name}{heads}, beta = {', '.join(betas)}, d = {problem.dimension}{chosen}"),
        ("start", _start(problem)),
        ("times", f"{times[0]:g} to {times[-1]:g}, {len(times)} output times"),
        ("scheme", numerics),
    ]


def _start(problem):
    origin = problem.origin
    if isinstance(problem.start, Gaussian):
        return f"Gaussian with the moments of {origin['moments']}" if "moments" in origin else "Gaussian"
    drawn = origin.get("file") or f"{origin['law']}, spread {origin['spread']:g}, seed {origin['seed']}"
    space = f", on the sphere of radius {problem.space.radius:g}" if isinstance(problem.space, Sphere) else ""
    weights = problem.start.weights
    kind = "" if "file" not in origin else ", equal weights" if np.ptp(weights) == 0 else ", weighted"
    return f"{len(problem.start)} tokens, d = {problem.dimension}{kind}, {drawn}{space}"


def ending(run):
    """Rows (name, value) on how a run ended and what it cost."""
    trajectory, cost = run.trajectory, run.trajectory.statistics
    how = "interrupted by Ctrl-C" if run.interrupted else trajectory.outcome.value
    pole = [] if trajectory.blow_up_time is None else [("t*", f"{trajectory.blow_up_time:.10g}")]
    return [
        ("outcome", f"{trajectory.outcome.name}, {how}"),
        *pole,
        ("cost", f"{cost.evaluations} evaluations, {cost.steps} steps, {cost.seconds:.3g} s"),
    ]


def one_run(run, gap=None):
    """Lines on one run: what was asked for, how it ended, and the state before and after."""
    problem, trajectory = run.problem, run.trajectory
    gap = default_gap(problem) if gap is None else gap
    before, after = (judged(state, problem.space, gap) for state in (trajectory[0], trajectory.last.state))
    rows = [("", "start", "end"), ("t", float(trajectory.times[0]), trajectory.last.time)]
    for name, value in before.items():
        rows.append((f"{name} (gap {gap:.3g})" if name in GAPPED else name, value, after[name]))
    return [*pairs([*described(problem), *ending(run)]), "", *table(rows)]


#: What depends on the gap.
GAPPED = ("clusters", "directions")


def many_runs(runs, gap=None):
    """Lines on several runs from one start: one row a variant, in the state where it ended."""
    first = runs[0].problem
    gap = default_gap(first) if gap is None else gap
    rows = []
    for run in runs:
        trajectory = run.trajectory
        row = {"attention": run.problem.name, "outcome": trajectory.outcome.name}
        row |= {"t": trajectory.last.time, "t*": trajectory.blow_up_time}
        row |= judged(trajectory.last.state, run.problem.space, gap)
        rows.append(row | {"evaluations": trajectory.statistics.evaluations})
    shared = [row for row in described(first) if row[0] != "attention"]
    return [*pairs([*shared, ("gap", gap)]), "", *table([list(rows[0]), *(list(row.values()) for row in rows)])]


def record_lines(record, summary=()):
    """Lines on any record: who wrote it, a summary if there is one, its header, its arrays."""
    header = dict(record.header)
    written = [str(header.pop("written", "?"))]
    written += [f"{key.removesuffix('_version')} {header.pop(key)}" for key in sorted(header) if "_version" in key]
    size = f"{record.path.stat().st_size / 1e6:.3g} MB"
    lines = pairs([("record", f"{record.path}, {size}"), ("written", ", ".join(written))])
    lines += ["", *summary] if summary else []
    flat = list(_flattened(header))
    if flat:
        lines += ["", "header", *(f"  {line}" for line in pairs(flat))]
    if record.arrays:
        arrays = [(name, array.dtype, shape(array), _span(array)) for name, array in record.arrays.items()]
        lines += ["", "arrays", *(f"  {line}" for line in table(arrays))]
    return lines


def shape(array):
    """The shape of an array in words, "101 x 64 x 2"."""
    return " x ".join(map(str, array.shape)) or "one"


def _flattened(value, name=""):
    """Pairs "a.b", leaf from nested dicts and lists of dicts."""
    nested = isinstance(value, list) and any(isinstance(item, dict | list) for item in value)
    if isinstance(value, dict) or nested:
        items = value.items() if isinstance(value, dict) else enumerate(value, 1)
        for key, item in items:
            yield from _flattened(item, f"{name}.{key}" if name else str(key))
    else:
        yield name, ", ".join(map(spelt, value)) if isinstance(value, list) else value


def _span(array):
    if array.dtype.kind not in "fiu" or array.size == 0:
        return ""
    return f"{spelt(float(array.min()))} to {spelt(float(array.max()))}"
