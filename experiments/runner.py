"""Runs experiments: all cases share one pool, each is kept as soon as it is done, and nothing stale is used."""

import argparse
import hashlib
import importlib
import json
import os
import sys
from functools import partial
from pathlib import Path

import numpy
import scipy

import meanfield
from meanfield.checks import number
from meanfield.sweeps.parallel import run_cases
from meanfield.sweeps.records import atomic_file, load_record
from meanfield.sweeps.studies import Study, save_study, table

from . import EXPERIMENTS, FULL

#: Rooms of the package that no result depends on.
NOT_COMPUTING = ("plotting", "cli", "__main__")


def parser(names):
    """The command line."""
    result = argparse.ArgumentParser(prog="python -m experiments", description="Run experiments and record them.")
    result.add_argument("names", nargs="*", metavar="NAME", help=f"which ones; all by default: {', '.join(names)}")
    size = result.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="few and small cases")
    size.add_argument("--full", action="store_true", help="the largest cases")
    result.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="worker processes")
    result.add_argument("--backend", default="loky", metavar="NAME", help="loky, dask, ray, dask:ADDRESS, ray:ADDRESS")
    result.add_argument("--seed", type=int, default=0, metavar="S", help="root of every case's random numbers")
    result.add_argument("--out", type=Path, default=Path("experiments/results"), metavar="DIR", help="for the records")
    result.add_argument("--no-resume", action="store_true", help="compute again what is already there")
    result.add_argument("--no-table", action="store_true", help="leave the table to python -m figures")
    result.add_argument("--list", action="store_true", help="name the experiments and their claims")
    return result


def run_case(experiments, case, rng):
    """One case, in a worker: the ``run`` of its experiment."""
    return importlib.import_module(experiments[case["experiment"]]).run(case["case"], rng)


def plan(experiments, names, *, quick, full):
    """The modules of the named experiments, and all their cases as one list."""
    modules = {name: importlib.import_module(experiments[name]) for name in names}
    before = os.environ.get(FULL)
    if full:
        os.environ[FULL] = "1"
    try:
        cases = [{"experiment": name, "case": case} for name in names for case in modules[name].cases(quick)]
    finally:
        if before is None:
            os.environ.pop(FULL, None)
        else:
            os.environ[FULL] = before
    return modules, cases


def fingerprint(module, experiments):
    """SHA-256 of what a result depends on besides its case and the seed.

    That is the package without the rooms that compute nothing, the experiment's module, the modules and data beside it
    that belong to no other experiment, and the versions of NumPy and SciPy.
    """
    package, home = Path(meanfield.__file__).parent, Path(module.__file__).parent
    others = {f"{name.rsplit('.', 1)[-1]}.py" for name in experiments.values()} | {"__main__.py", "runner.py"}
    files = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in NOT_COMPUTING]
    files += [path for path in home.glob("*.py") if path.name not in others or path == Path(module.__file__)]
    files += [path for path in home.glob("data/*") if path.is_file()]
    digest = hashlib.sha256(f"{numpy.__version__} {scipy.__version__}".encode())
    for path in sorted(files):
        digest.update(path.name.encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def forget_stale(store, prints):
    """Delete the kept cases of experiments whose code is not the one that computed them, and note the code of today."""
    note = store / "sources.json"
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        known = {}
    stale = {name for name, value in prints.items() if known.get(name) != value}
    for path in store.glob("*.npz") if stale else ():
        try:
            name = load_record(path).header["parameters"]["experiment"]
        except (ValueError, KeyError, TypeError):
            continue  # the store names damaged files when it comes to them, and computes them again
        if name in stale:
            path.unlink()
    # Only now: interrupted before this line, the rest is still stale for the next run.
    with atomic_file(note) as handle:
        handle.write(json.dumps(known | prints, indent=1).encode())


def study_of(name, module, results, *, quick, seed):
    """The finished and the failed cases of one experiment, as its record keeps them."""
    return Study(
        name=name,
        claim=module.CLAIM,
        quick=quick,
        seed=seed,
        cases=[result.case["case"] for result in results if not result.failed],
        arrays=[result.arrays for result in results if not result.failed],
        failed=[{"case": result.case["case"], "message": result.message} for result in results if result.failed],
        seconds=sum(result.seconds for result in results),
    )


def run_all(experiments, names, options):
    """Run every case, write one record an experiment; the studies and their files."""
    modules, cases = plan(experiments, names, quick=options.quick, full=options.full)
    store = options.out / "cases"
    forget_stale(store, {name: fingerprint(modules[name], experiments) for name in names})
    results = run_cases(
        partial(run_case, dict(experiments)),
        cases,
        jobs=options.jobs,
        backend=options.backend,
        seed=options.seed,
        store=store,
        resume=not options.no_resume,
    )
    studies = {}
    for name in names:
        own = [result for result in results if result.case["experiment"] == name]
        studies[name] = study_of(name, modules[name], own, quick=options.quick, seed=options.seed)
        save_study(options.out / f"{name}.npz", studies[name])
    return studies


def main(argv=None, experiments=EXPERIMENTS):
    """Run the named experiments; exit status 0, 1 if a case failed, 130 after Ctrl-C."""
    line = parser(experiments)
    options = line.parse_args(argv)
    unknown = [name for name in options.names if name not in experiments]
    if unknown:
        line.error(f"no experiment is called {', '.join(unknown)}; there are: {', '.join(experiments)}")
    try:
        options.jobs = number("--jobs", options.jobs, at_least=1, integer=True)
        options.seed = number("--seed", options.seed, at_least=0, integer=True)
    except ValueError as error:
        line.error(str(error))
    names = list(dict.fromkeys(options.names)) or list(experiments)
    if options.list:
        print("\n".join(f"{name}: {importlib.import_module(experiments[name]).CLAIM}" for name in names))
        return 0
    try:
        studies = run_all(experiments, names, options)
    except KeyboardInterrupt:
        kept = options.out / "cases"
        print(f"\nstopped: finished cases are kept in {kept}; the same command goes on from there", file=sys.stderr)
        return 130
    if not options.no_table:
        rows = [
            (name, len(study.cases), len(study.failed), study.seconds, options.out / f"{name}.npz")
            for name, study in studies.items()
        ]
        print(table(("experiment", "done", "failed", "seconds", "record"), rows))
    failures = [(name, failure) for name, study in studies.items() for failure in study.failed]
    for name, failure in failures:
        reason = failure["message"].strip().splitlines()[-1]
        print(f"{name} {failure['case']} failed: {reason}", file=sys.stderr)
    return 1 if failures else 0
