"""One row a case: parameters, status and scalar results, as rows and as a CSV or JSON file."""

import csv
import io
import json
import math
from pathlib import Path

from .records import atomic_file


def summary_rows(results):
    """One flat dict a case.

    Columns are the case's parameters, then every array of size one as a scalar, then ``status``, ``seconds`` and the
    last line of ``message``. NaN and infinity become None. A name that is taken gets the prefix ``result.``.

    Parameters
    ----------
    results : list of CaseResult
        From `run_cases`.

    Returns
    -------
    list of dict
    """
    rows = []
    for result in results:
        row = dict(result.case)
        found = {name: array.item() for name, array in result.arrays.items() if array.size == 1}
        lines = result.message.strip().splitlines()
        own = {"status": str(result.status), "seconds": result.seconds, "message": lines[-1] if lines else ""}
        for columns in (found, own):
            for name, value in columns.items():
                row[f"result.{name}" if name in row else name] = _strict(value)
        rows.append(row)
    return rows


def write_summary(path, results):
    """Write `summary_rows` as CSV or strict JSON, by the suffix of the name, atomically.

    Parameters
    ----------
    path : str or Path
        A name that ends in .csv or .json.
    results : list of CaseResult
        From `run_cases`.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If the suffix is another one.
    """
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ValueError(f"a summary must end in one of {', '.join(WRITERS)}; got {path.name!r}. Rename it.")
    text = WRITERS[path.suffix](summary_rows(results))
    with atomic_file(path) as handle:
        handle.write(text.encode())
    return path


def _csv_text(rows):
    """Rows as CSV, a column for every name that occurs; None is empty, lists and dicts are JSON."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = (row.get(name) for name in columns)
        writer.writerow([json.dumps(cell) if isinstance(cell, list | tuple | dict) else cell for cell in cells])
    return text.getvalue()


def _json_text(rows):
    """Rows as a JSON list of objects."""
    return json.dumps(rows, indent=1, allow_nan=False) + "\n"


#: suffix -> rows to text.
WRITERS = {".csv": _csv_text, ".json": _json_text}


def _strict(value):
    """A scalar that strict JSON can hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str) else str(value)
