"""``python -m figures [NAME ...]``: read records, draw them, save PDF and PNG, print one table; it computes nothing."""

import argparse
import importlib
import os
import signal
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tqdm import tqdm

from meanfield.sweeps.studies import load_study, table

from . import FIGURES
from .style import save_figure, style

#: Up to so many figures are drawn in this process: workers take longer to start.
FEW = 4


def parser(names):
    """The command line."""
    result = argparse.ArgumentParser(prog="python -m figures", description="Draw the records of the experiments.")
    result.add_argument("names", nargs="*", metavar="NAME", help=f"default: all with a record ({', '.join(names)})")
    result.add_argument("--results", type=Path, default=Path("experiments/results"), help="folder of the records")
    result.add_argument("--out", type=Path, default=Path("figures/out"), help="folder for the figures")
    result.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="worker processes")
    return result


def draw(name, module, study, out):
    """Draw one study and save it.

    Returns
    -------
    list of str
        The stems of the files: ``name``, or ``name_key`` for each figure of a dict.
    """
    with style():
        drawn = importlib.import_module(module).draw(study)
        drawn = {f"{name}_{key}": figure for key, figure in drawn.items()} if isinstance(drawn, dict) else {name: drawn}
        for stem, figure in drawn.items():
            save_figure(figure, out / stem)
    return list(drawn)


def attempt(name, module, results, out):
    """A row of the table for one figure, and what went wrong, if anything."""
    path = results / f"{name}.npz"
    if not path.is_file():
        return (name, 0, 0, 0.0, "none", ""), f"{name}: no record {path}; run: python -m experiments {name}"
    try:
        study = load_study(path)
    except ValueError as error:
        return (name, 0, 0, 0.0, str(path), ""), f"{name}: {error}"
    row = (name, len(study.cases), len(study.failed), study.seconds, str(path))
    if not study.cases:
        return (*row, ""), f"{name}: no case of {path} finished, so there is nothing to draw"
    try:
        return (*row, " ".join(draw(name, module, study, out))), None
    except Exception as error:  # a figure that fails must not cost the others theirs; its traceback is shown
        traceback.print_exc()
        return (*row, ""), f"{name}: {type(error).__name__}: {error}"


@contextmanager
def workers(jobs, count):
    """A map that keeps its order: over worker processes, or in this one where there is little to draw."""
    if jobs <= 1 or count <= FEW:
        yield map
        return
    # Ctrl-C belongs to this process; the workers are told to stop by it.
    ignoring = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    with ProcessPoolExecutor(min(jobs, count), **ignoring) as pool:
        try:
            yield pool.map
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def attempt_of(options, figures, name):
    """`attempt` by name."""
    return attempt(name, figures[name], options.results, options.out)


def main(argv=None, figures=FIGURES):
    """Draw the named figures; exit status 0, or 1 if one could not be drawn."""
    line = parser(figures)
    options = line.parse_args(argv)
    unknown = [name for name in options.names if name not in figures]
    if unknown:
        line.error(f"no figure is called {', '.join(unknown)}; there are: {', '.join(figures)}")
    recorded = [name for name in figures if (options.results / f"{name}.npz").is_file()]
    rows, wrong = [], []
    try:
        names = options.names or recorded or list(figures)
        with workers(options.jobs, len(names)) as mapped:
            drawn = mapped(partial(attempt_of, options, figures), names)
            for row, message in tqdm(drawn, total=len(names), desc="figures", unit="figure", disable=None):
                rows.append(row)
                wrong += [message] if message else []
    except KeyboardInterrupt:
        print(f"stopped: {len(rows)} figures are in {options.out}", file=sys.stderr)
        return 130
    columns = ("experiment", "done", "failed", "seconds", "record", f"figures in {options.out} (.pdf, .png)")
    print(table(columns, rows))
    for message in wrong:
        print(message, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
