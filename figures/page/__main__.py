"""``python -m figures.page``: write the page of two views from its record."""

import argparse
import sys
from pathlib import Path

from meanfield.sweeps.records import atomic_file
from meanfield.sweeps.studies import load_study

from .build import build


def parser():
    """The command line."""
    result = argparse.ArgumentParser(prog="python -m figures.page", description="Write the page of two views.")
    result.add_argument("--results", type=Path, default=Path("experiments/results"), help="folder of the records")
    result.add_argument("--out", type=Path, default=Path("figures/out/page.html"), help="the file to write")
    return result


def main(argv=None):
    """Write the page; exit status 0, or 1 with one line that says what is missing."""
    options = parser().parse_args(argv)
    path = options.results / "two_views.npz"
    try:
        if not path.is_file():
            raise ValueError(f"no record {path}; run: python -m experiments two_views")
        text = build(load_study(path))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    with atomic_file(options.out) as handle:
        handle.write(text.encode("utf-8"))
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.2f} MB; open it in a browser, no network is needed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
