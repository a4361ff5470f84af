"""Sweeps: a grid, zipped lists or a sampled design of problems from a TOML file, in parallel, kept as they finish."""

import hashlib
import itertools
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import indent

import numpy as np
from scipy.stats import qmc

from ..checks import number
from ..sweeps.parallel import run_cases
from ..sweeps.summary import WRITERS, summary_rows, write_summary
from . import options, values
from .problems import problems_from
from .reports import default_gap, judged, table
from .runs import carry_out, contents

#: A whole file, shown in the help text.
EXAMPLE = """dimension = 2
times = "0:5:11"
replicas = 3             # each with a start of its own
[grid]                   # every combination
attention = ["softmax", "l2"]
beta = [1, 4]
[zip]                    # together, row by row
tokens = [32, 64]
spread = [1.0, 0.5]
[sample]                 # a drawn design: random, latin or sobol
count = 4
method = "latin"
rtol = { low = 1e-9, high = 1e-6, scale = "log" }
"""

NOTES = f"""what a file may hold:
  options of `simulate`, or of `gaussian` with command = "gaussian"
  replicas = N       N cases of each, each with its own drawn start
  [grid]             lists; every combination is a case
  [zip]              lists of one length; taken together, row by row
  [sample]           count = N, method = "random", "latin" or "sobol", seed = 0, and for each sampled option
                     [low, high] or {{ low = .., high = .., scale = "log", integer = true }}

such a file, with every option of `meanfield simulate` fixed or varied:
{indent(EXAMPLE, "  ")}
exit status:
  0    every case was computed, whatever the outcome of its run (blow-up is an outcome)
  1    a case failed; the others are kept
  2    an argument or the file is wrong

"""

#: Commands whose options a sweep may vary.
COMMANDS = {
    "simulate": (*options.HEAD, *options.START, *options.RUN),
    "gaussian": (*options.HEAD, *options.LAW, *options.RUN),
}

#: Key of a case under which the digests of its files stand.
FILES = "contents of files"

SWEEP = (
    options.Option("jobs", options.whole, "cases at a time (default 1)", 1, "N"),
    options.Option("backend", values.text, "loky, dask, ray, dask:ADDRESS or ray:ADDRESS", "loky", "NAME"),
    options.Option("store", values.text, "folder with one record a case; finished cases are not computed again",
                   metavar="FOLDER"),
    options.Option("fresh", values.switch, "compute everything again, whatever the store holds", False, None),
    options.Option("seed", partial(number, at_least=0, integer=True), "seed of all cases (default 0)", 0, "K"),
    options.Option("gap", options.positive, "gap of the clusters (default 1%% of each start's size)"),
    options.Option("out", values.text, f"write the summary to this file ({', '.join(WRITERS)})", metavar="SUMMARY"),
    options.Option("quiet", values.switch, "no table and no progress bar", False, None),
)  # fmt: skip

#: Designs by name: points in the unit cube, shape (count, dimension).
DESIGNS = {
    "random": lambda d, count, rng: rng.random((count, d)),
    "latin": lambda d, count, rng: qmc.LatinHypercube(d, rng=rng).random(count),
    "sobol": lambda d, count, rng: qmc.Sobol(d, rng=rng).random_base2(int(np.ceil(np.log2(count))))[:count],
}

#: Scales of a sampled option: from the unit interval to [low, high].
SCALES = {
    "linear": lambda u, low, high: low + u * (high - low),
    "log": lambda u, low, high: low * (high / low) ** u,
}


@dataclass(frozen=True)
class SweepTask:
    """One case of a sweep: a problem made, run and summed up.

    Parameters
    ----------
    path : str
        The TOML file, for messages and for files that it names.
    command : str
        A key of COMMANDS.
    gap : float or None
        Gap of the clusters.
    """

    path: str
    command: str
    gap: float | None

    def problem(self, case, rng=None):
        """The problem of a case; without a ``seed`` of its own its start is drawn from the case's generator."""
        taken = {key: value for key, value in case.items() if key not in ("replica", FILES)}
        settings = options.settings_of_table(self.path, taken, COMMANDS[self.command])
        name = settings.get("attention")
        if not isinstance(name, str):
            raise ValueError(f"attention in {self.path} must be the name of a variant; got {name!r}.")
        if rng is not None and self.command == "simulate" and settings["seed"] is None and self._draws(settings):
            settings["seed"] = int(rng.integers(2**31))
        return problems_from(settings, [name], gaussian=self.command == "gaussian")[0]

    def _draws(self, settings):
        return settings["start"] is None or Path(settings["start"]).suffix.lower() not in options.READERS

    def __call__(self, case, rng):
        """Arrays of the run, and its outcome and last state as numbers."""
        problem = self.problem(case, rng)
        run = carry_out(problem, quiet=True)
        last = run.trajectory.last
        arrays, header = contents(run)
        pole = header["blow_up_time"]
        found = {"outcome": header["outcome"], "blow_up_time": np.nan if pole is None else pole, "end": last.time}
        numbers = judged(last.state, problem.space, self.gap or default_gap(problem))
        found |= {name.replace(" ", "_"): value for name, value in numbers.items()}
        return arrays | found | {"evaluations": header["statistics"]["evaluations"]}


def sweep(settings):
    """Run the cases of a TOML file, print one row each, write the summary."""
    if settings["out"] is not None and Path(settings["out"]).suffix not in WRITERS:
        raise ValueError(f"--out must end in one of {', '.join(WRITERS)}; got {settings['out']!r}.")
    task, cases, varying = read_sweep(settings["config"], settings["gap"])
    results = run_cases(
        task,
        cases,
        jobs=settings["jobs"],
        seed=settings["seed"],
        store=settings["store"],
        resume=not settings["fresh"],
        progress=False if settings["quiet"] else None,
        backend=settings["backend"],
    )
    if settings["out"] is not None:
        write_summary(settings["out"], results)
    if not settings["quiet"]:
        print("\n".join(_report(results, varying)))
        if settings["out"] is not None:
            print(f"\nsummary {settings['out']}")
    return int(any(result.failed for result in results))


def read_sweep(path, gap=None):
    """The task, the cases and the names of what varies, from a TOML file.

    Every case's options are read and checked, and its problem is made once, before anything is run.

    Raises
    ------
    ValueError
        If the file or an option is wrong; says where.
    """
    whole = options.read_toml(path)
    command = whole.pop("command", "simulate")
    if command not in COMMANDS:
        raise ValueError(f"command in {path} must be one of {', '.join(COMMANDS)}; got {command!r}.")
    replicas = number(f"replicas in {path}", whole.pop("replicas", 1), at_least=1, integer=True)
    axes = [
        [{"replica": k} for k in range(replicas)] if replicas > 1 else [{}],
        _grid(path, whole.pop("grid", {})),
        _zipped(path, whole.pop("zip", {})),
        _sampled(path, whole.pop("sample", {})),
    ]
    varying = list(dict.fromkeys(key for axis in axes for point in axis for key in point))
    doubled = [key for key in varying if key in whole or sum(key in axis[0] for axis in axes) > 1]
    if doubled:
        raise ValueError(f"{', '.join(doubled)} in {path} must stand in one place; it is set or varied twice.")
    cases = []
    for points in itertools.product(*axes):
        case = dict(whole)
        for point in points:
            case |= point
        cases.append(case | _contents_of_files(path, case))
    task = SweepTask(str(path), command, gap)
    for case in cases:
        task.problem(case)
    return task, cases, varying


def _contents_of_files(path, case):
    """Digests of the token files and matrices that a case names: a case is another one when they change."""
    words = [value for value in case.values() if isinstance(value, str)]
    named = [word for word in words if Path(word).suffix.lower() in options.READERS]
    found = {name: Path(path).parent / name for name in named}
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in found.items() if file.is_file()}
    return {FILES: digests} if digests else {}


def _grid(path, grid):
    lists = {key: _list(path, "grid", key, value) for key, value in grid.items()}
    return [dict(zip(lists, point, strict=True)) for point in itertools.product(*lists.values())]


def _zipped(path, together):
    lists = {key: _list(path, "zip", key, value) for key, value in together.items()}
    lengths = {len(value) for value in lists.values()}
    if len(lengths) > 1:
        found = ", ".join(f"{key}: {len(value)}" for key, value in lists.items())
        raise ValueError(f"the lists of [zip] in {path} must have one length; got {found}.")
    return [dict(zip(lists, point, strict=True)) for point in zip(*lists.values(), strict=True)] if lists else [{}]


def _list(path, place, key, value):
    if not isinstance(value, list) or not value:
        raise ValueError(f"{key} in [{place}] of {path} must be a list of values; got {value!r}. Write [{value!r}].")
    return value


def _sampled(path, table):
    if not table:
        return [{}]
    table = dict(table)
    count = number(f"count in [sample] of {path}", table.pop("count", 0), at_least=1, integer=True)
    method, seed = table.pop("method", "latin"), table.pop("seed", 0)
    if method not in DESIGNS:
        raise ValueError(f"method in [sample] of {path} must be one of {', '.join(DESIGNS)}; got {method!r}.")
    ranges = {key: _range(path, key, value) for key, value in table.items()}
    if not ranges:
        raise ValueError(f"[sample] of {path} must name an option to sample, e.g. beta = [0.1, 10].")
    seed = number(f"seed in [sample] of {path}", seed, at_least=0, integer=True)
    unit = DESIGNS[method](len(ranges), count, np.random.default_rng(seed))
    return [{key: draw(u) for (key, draw), u in zip(ranges.items(), row, strict=True)} for row in unit]


def _range(path, key, value):
    """A function from the unit interval to the values of a sampled option."""
    value = {"low": value[0], "high": value[1]} if isinstance(value, list) and len(value) == 2 else value
    if not isinstance(value, dict) or not {"low", "high"} <= set(value) <= {"low", "high", "scale", "integer"}:
        raise ValueError(
            f"{key} in [sample] of {path} must be [low, high] or {{ low = .., high = .., scale = .., integer = .. }}; "
            f"got {value!r}."
        )
    scale = value.get("scale", "linear")
    low, high = (number(f"{end} of {key} in {path}", value[end]) for end in ("low", "high"))
    if scale not in SCALES or not low < high or (scale == "log" and low <= 0):
        raise ValueError(
            f"{key} in [sample] of {path} must have low < high (above 0 on a log scale) and a scale of "
            f"{', '.join(SCALES)}; got {value!r}."
        )
    if value.get("integer"):
        return lambda u: int(np.clip(np.floor(SCALES[scale](u, low, high + 1)), low, high))
    return lambda u: float(SCALES[scale](u, low, high))


def _report(results, varying):
    """A table with one row a case: what varies, and how it ended."""
    shown = ("outcome", "blow_up_time", "clusters", "directions", "diameter", "effective_rank")
    rows = summary_rows(results)
    columns = [*varying, *(name for name in shown if any(row.get(name) is not None for row in rows))]
    lines = table([["case", *columns], *([k, *(row.get(name) for name in columns)] for k, row in enumerate(rows))])
    loaded = sum(row["status"] == "loaded" for row in rows)
    failed = [f"case {k} failed: {row['message']}" for k, row in enumerate(rows) if row["status"] == "failed"]
    return [*lines, "", f"{len(rows)} cases, {loaded} of them from the store, {len(failed)} failed", *failed]
