"""Asks the questions: races their contests, keeps one JSON file a question, prints one table, draws one figure."""

import argparse
import importlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from . import BENCHMARKS
from .harness import race
from .machine import clock_of, description, hold, versions

#: (rounds, seconds a method may take in one contest) of the two sizes.
QUICK, FULL = (7, 0.15), (15, 5.0)


@dataclass(frozen=True)
class Report:
    """The answer to one question, and what it was measured on."""

    name: str
    question: str
    full: bool
    rows: list
    missing: dict
    remarks: list
    machine: dict
    versions: dict


def parser(names):
    """The command line."""
    result = argparse.ArgumentParser(prog="python -m benchmarks", description="Time meanfield beside its peers.")
    result.add_argument("names", nargs="*", metavar="NAME", help=f"which ones; all by default: {', '.join(names)}")
    result.add_argument("--full", action="store_true", help="all sizes and more rounds: many minutes and 8 GB")
    result.add_argument("--threads", type=int, default=1, metavar="N", help="cores and threads for everyone (1)")
    result.add_argument("--out", type=Path, default=Path("benchmarks/results"), metavar="DIR", help="for the results")
    result.add_argument("--list", action="store_true", help="name the questions")
    return result


def ask(name, module, *, full, threads):
    """Race every contest of one question.

    Returns
    -------
    Report
    """
    rounds, share = FULL if full else QUICK
    clock, clock_name = clock_of(threads)
    rows, missing = [], {}
    for contest in tqdm(module.contests(full), desc=name, unit="contest", disable=None, leave=False):
        done, absent = race(contest, rounds=rounds, share=share, clock=clock)
        rows += done
        for method, reason in absent.items():
            where = "" if reason == "not installed" else f"{contest.case}, n = {contest.size:,}: "
            missing.setdefault(method, f"{where}{reason}")
    machine = description() | {"threads": threads, "clock": clock_name}
    return Report(name, module.QUESTION, full, rows, missing, module.remarks(rows), machine, versions())


def save(report, folder):
    """Write one report as strict JSON; the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.name}.json"
    text = json.dumps(asdict(report), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def table(reports):
    """The one table of all reports, with what is missing and what the rows say below it."""
    head = ("question", "case", "n", "method", "ms", "ratio", "error", "rounds")
    cells = [
        (
            *(report.name, row.case, f"{row.size:,}", row.method, f"{row.seconds * 1e3:#.3g}", f"{row.ratio:.2f}"),
            *("-" if row.error is None else f"{row.error:.0e}", str(len(row.samples))),
        )
        for report in reports
        for row in report.rows
    ]
    width = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    left = (0, 1, 3)
    lines = [
        "  ".join(c.ljust(w) if j in left else c.rjust(w) for j, (c, w) in enumerate(zip(line, width, strict=True)))
        for line in (head, tuple("-" * w for w in width), *cells)
    ]
    lines += ["", "ratio: time over that of the first method of the case; error: against a reference of its own."]
    for report in reports:
        lines += [f"{report.name}: {method} did not run ({why})" for method, why in report.missing.items()]
        lines += [f"{report.name}: {remark}" for remark in report.remarks]
    first, machine = reports[0], reports[0].machine
    known = ", ".join(f"{name} {version}" for name, version in first.versions.items() if version != "not installed")
    lines.append(f"{machine['clock']}, {machine['threads']} thread(s) on {machine['processor']}; {known}")
    return "\n".join(lines)


def main(argv=None, benchmarks=BENCHMARKS, hold=hold):
    """Ask the named questions; exit status 0, or 130 after Ctrl-C."""
    line = parser(benchmarks)
    options = line.parse_args(argv)
    unknown = [name for name in options.names if name not in benchmarks]
    if unknown:
        line.error(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(benchmarks)}")
    if options.threads < 1:
        line.error(f"--threads must be at least 1; got {options.threads}")
    names = list(dict.fromkeys(options.names)) or list(benchmarks)
    hold(options.threads)
    modules = {name: importlib.import_module(benchmarks[name]) for name in names}
    if options.list:
        print("\n".join(f"{name}: {module.QUESTION}" for name, module in modules.items()))
        return 0
    reports = []
    try:
        for name, module in modules.items():
            reports.append(ask(name, module, full=options.full, threads=options.threads))
            save(reports[-1], options.out)
    except KeyboardInterrupt:
        print(f"\nstopped: {len(reports)} of {len(names)} questions are answered in {options.out}", file=sys.stderr)
        return 130
    print(table(reports))
    from .plot import draw

    drawn = draw(reports, options.out / ("all" if len(names) == len(benchmarks) else "_".join(names)))
    print(f"numbers in {options.out}/*.json" + (f", time against n in {drawn}" if drawn else ""))
    return 0
