"""What each subcommand does with its settings; each returns an exit status."""

import json
import sys
import tempfile
from pathlib import Path

from ..sweeps.records import load_record, save_record
from .plots import Look, check_figure, check_observable, default_kind, default_path, draw
from .problems import problems_from
from .reports import many_runs, one_run, record_lines
from .runs import KINDS_OF_RECORD, ONE, carry_out, contents, contents_of_many, runs_from

#: Exit statuses.
FINE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


def simulate(settings):
    """One variant moves tokens."""
    return _one(settings, gaussian=False)


def gaussian(settings):
    """One variant moves a Gaussian by the ODEs of its mean and covariance."""
    return _one(settings, gaussian=True)


def rerun(settings):
    """The run of a record, once more from its own parameters."""
    _check_out(settings)
    runs = runs_from(_record(settings["from"]))
    if len(runs) > 1:
        raise ValueError(f"--from must name a record of one run; {settings['from']} holds {len(runs)}.")
    return _carry_out_one(runs[0].problem, settings)


def _one(settings, *, gaussian):
    _check_out(settings)
    problem = problems_from(settings, [settings["attention"]], gaussian=gaussian)[0]
    _say_what_is_left_out([problem], settings)
    return _carry_out_one(problem, settings)


def _carry_out_one(problem, settings):
    run = carry_out(problem, quiet=settings["quiet"])
    _keep_and_report(settings, *contents(run), lambda: one_run(run, settings["gap"]))
    return _status([run])


def compare(settings):
    """Several variants move one start."""
    _check_out(settings)
    gaussian = _wants_gaussian(settings)
    figure = _figure(settings, gaussian=gaussian)
    problems = problems_from(settings, settings["attention"], gaussian=gaussian)
    _say_what_is_left_out(problems, settings)
    runs = []
    for problem in problems:
        runs.append(carry_out(problem, quiet=settings["quiet"]))
        if runs[-1].interrupted:
            break
    _keep_and_report(settings, *contents_of_many(runs), lambda: many_runs(runs, settings["gap"]))
    if figure:
        written = draw("observables", runs, Look(settings["observable"], gap=settings["gap"]), figure)
        _print([] if settings["quiet"] else [f"figure {path}" for path in written])
    return _status(runs)


def info(settings):
    """What a record holds."""
    record = _record(settings["record"])
    if settings["json"]:
        _print([json.dumps(record.header, indent=2, sort_keys=True)])
        return FINE
    summary = []
    if record.header.get("kind") in KINDS_OF_RECORD:
        runs = runs_from(record)
        summary = one_run(runs[0]) if record.header["kind"] == ONE else many_runs(runs)
    _print(record_lines(record, summary))
    return FINE


def plot(settings):
    """A figure of a record."""
    runs = runs_from(_record(settings["record"]))
    if settings["run"] is not None:
        names = [run.problem.name for run in runs]
        if settings["run"] not in names:
            raise ValueError(f"--run must be one of {', '.join(names)}; got {settings['run']!r}.")
        runs = [runs[names.index(settings["run"])]]
    kind = settings["kind"] or default_kind(runs)
    look = Look(**{key: settings[key] for key in ("observable", "time", "head", "coordinates", "rescaled", "gap")})
    path = Path(settings["out"]) if settings["out"] else default_path(settings["record"], kind)
    check_figure("--out", path, kind)
    written = draw(kind, runs, look, path)
    if not settings["quiet"]:
        _print([str(path) for path in written])
    return FINE


def _record(name):
    """The record of a name that may be one."""
    if Path(name).is_dir():
        raise IsADirectoryError(f"a record must be a file; {name} is a folder. Name a .npz file in it.")
    if Path(name).suffix != ".npz":
        raise ValueError(f"a record must be a .npz file, made with --out; got {name!r}.")
    return load_record(name)


def _wants_gaussian(settings):
    """Whether options ask for a Gaussian start; refuses a mixture of both kinds."""
    law = [key for key in ("mean", "covariance", "moments") if settings[key] is not None]
    cloud = [key for key in ("start", "tokens", "spread", "seed") if settings[key] is not None]
    cloud += [key for key in ("radius", "retract") if settings[key]] + ["space"] * (settings["space"] != "euclidean")
    if law and cloud:
        raise ValueError(f"a start must be tokens or a Gaussian; got --{cloud[0]} and --{law[0]}. Leave one out.")
    return bool(law)


def _figure(settings, *, gaussian):
    """The path of the figure of a comparison, or None."""
    if settings["figure"] is None:
        if settings["observable"] is not None:
            raise ValueError("--observable must go with --figure FILE; got no --figure.")
        return None
    path = Path(settings["figure"])
    check_figure("--figure", path, "observables")
    check_observable(settings["observable"], gaussian=gaussian)
    return path


def _check_out(settings):
    """Refuse a bad name of the record before anything is computed."""
    if settings["out"] is None:
        return
    path = Path(settings["out"])
    if path.is_dir():
        raise IsADirectoryError(f"--out must be a file; {path} is a folder. Name a file in it: {path / 'run.npz'}.")
    if path.suffix != ".npz":
        raise ValueError(f"--out must end in .npz; got {path.name!r}. Use {path.name + '.npz'}.")
    if path.exists() and not settings["force"]:
        raise FileExistsError(f"--out must not exist yet; {path} does. Add --force to replace it, or name another.")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=above):
            pass
    except OSError as error:
        raise PermissionError(
            f"--out must lie where files can be written; {above} is no such folder ({error.strerror})."
        ) from error


def _keep_and_report(settings, arrays, header, report):
    """Write the record if one is wanted, then print the report, even if the disk is full."""
    kept = []
    try:
        if settings["out"] is not None:
            kept = ["", f"record {save_record(settings['out'], arrays, header)}"]
    finally:
        if not settings["quiet"]:
            _print([*report(), *kept])


def _say_what_is_left_out(problems, settings):
    """Positions of a file that an unmasked field does not read are left out, and that is said."""
    unread = [problem.name for problem in problems if problem.origin.get("positions") and not problem.masked]
    if unread and not settings["quiet"]:
        print(
            f"meanfield: note: {', '.join(unread)} reads no positions; those of {problems[0].origin['file']} are left "
            "out. Masked variants read them.",
            file=sys.stderr,
        )


def _status(runs):
    """The exit status of runs, failures said on stderr."""
    for run in runs:
        if run.failed or run.interrupted:
            print(f"meanfield: {run.problem.name}: {run.trajectory.message}", file=sys.stderr)
    if any(run.interrupted for run in runs):
        return INTERRUPTED
    return FAILED if any(run.failed for run in runs) else FINE


def _print(lines):
    if lines:
        print("\n".join(lines))
