"""The user's own tokens: read from .npy, .npz or .csv files, or from where an earlier run ended."""

import csv
import zipfile
from typing import NamedTuple

import numpy as np

from ..checks import MASS_TOLERANCE, finite_array, points_array
from ..sweeps.records import HEADER_NAME, load_record
from .values import existing_file, load_npy

#: What the arrays of an archive and the columns of a table are called; the first name is the one we write.
POINTS = ("points", "tokens", "x")
WEIGHTS = ("weights", "weight", "masses", "mass")
POSITIONS = ("positions", "position")


class Tokens(NamedTuple):
    """Tokens (n, d), with weights (n,) and positions (n,) where the file has them."""

    points: np.ndarray
    weights: np.ndarray | None = None
    positions: np.ndarray | None = None


def read_tokens(label, name, *, columns=None, normalise=False):
    """Tokens from a file.

    Parameters
    ----------
    label : str
        What messages call the file.
    name : str
        A .npy file of shape (n, d); a .npz archive with ``points`` and, if wanted, ``weights`` and ``positions``; a
        record of tokens (its last state is taken); or a .csv table, one token a row, whose columns ``weight`` and
        ``position`` are no coordinates.
    columns : list of str, optional
        The columns of a table that are the coordinates.
    normalise : bool
        Divide weights that do not sum to one by their sum.

    Returns
    -------
    Tokens
    """
    suffix = "." + name.lower().rpartition(".")[2]
    if suffix not in READERS:
        raise ValueError(f"{label} must end in {', '.join(READERS)}; got {name!r}.")
    if columns is not None and suffix != ".csv":
        raise ValueError(f"--columns chooses columns of a .csv table; got {name!r}. Leave it out.")
    found = READERS[suffix](label, name, columns)
    points = points_array(f"the tokens of {name}", found.points)
    sides = {}
    for what in ("weights", "positions"):
        value = getattr(found, what)
        if value is not None:
            value = finite_array(f"the {what} of {name}", value)
            if value.shape != (len(points),):
                raise ValueError(
                    f"the {what} of {name} must be one a token, shape ({len(points)},); got shape {value.shape}."
                )
        sides[what] = value
    sides["weights"] = _probabilities(name, sides["weights"], normalise)
    return Tokens(points, **sides)


def _probabilities(name, weights, normalise):
    if weights is None:
        if normalise:
            raise ValueError(
                f"--normalise needs weights; {name} has none. Call their column or array {' or '.join(WEIGHTS)}."
            )
        return None
    total = weights.sum()
    if (weights < 0).any() or total <= 0:
        worst = int(np.argmin(weights))
        raise ValueError(
            f"the weights of {name} must not be negative and not all zero; got {weights[worst]:g} for token "
            f"{worst + 1}, sum {total:g}. Weights are masses of a probability measure."
        )
    if normalise:
        return weights / total
    if abs(total - 1) > MASS_TOLERANCE:
        raise ValueError(f"the weights of {name} must sum to 1; got {total:.10g}. Add --normalise to divide by that.")
    return weights


def _from_npy(label, name, columns):
    return Tokens(load_npy(label, name))


def _from_npz(label, name, columns):
    path = existing_file(label, name)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = None if HEADER_NAME in archive.files else {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{label} must be an archive of plain arrays; {path} is of another kind, damaged, or holds Python objects. "
            "Save it as np.savez(path, points=x, weights=w)."
        ) from error
    if arrays is None:
        return _from_record(label, load_record(path))
    unread = sorted(set(arrays) - {*POINTS, *WEIGHTS, *POSITIONS})
    if unread and len(arrays) > 1:
        raise ValueError(
            f"{label} must hold known arrays ({', '.join((*POINTS, *WEIGHTS, *POSITIONS))}); {path} also holds "
            f"{', '.join(unread)}. Save it as np.savez(path, points=x, weights=w)."
        )
    found = {key: next((arrays[name] for name in known if name in arrays), None)
             for key, known in (("points", POINTS), ("weights", WEIGHTS), ("positions", POSITIONS))}  # fmt: skip
    if found["points"] is None and len(arrays) == 1:
        found["points"] = next(iter(arrays.values()))
    if found["points"] is None:
        raise ValueError(
            f"{label} must hold an array named {' or '.join(POINTS)}; {path} holds {', '.join(arrays) or 'nothing'}. "
            "Save it as np.savez(path, points=x, weights=w)."
        )
    return Tokens(**found)


def _from_record(label, record):
    if not {"last_points", "weights"} <= set(record.arrays):
        raise ValueError(
            f"{label} must be a record of tokens made by `meanfield simulate`; {record.path} holds "
            f"{', '.join(record.arrays) or 'no arrays'}."
        )
    points, positions = record.arrays["last_points"], None
    if record.header["parameters"]["positioned"]:
        points, positions = points[:, 1:], points[:, 0]
    return Tokens(points, record.arrays["weights"], positions)


def _from_csv(label, name, columns):
    path = existing_file(label, name)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{label} must be a table in UTF-8; {path} is not ({error}).") from error
    kept = [(k, line) for k, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if not kept:
        raise ValueError(f"{label} must hold one token a row; {path} is empty.")
    delimiter = next((mark for mark in ";\t" if mark in kept[0][1]), ",")
    rows = [[cell.strip() for cell in row] for row in csv.reader((line for _, line in kept), delimiter=delimiter)]
    numbers = [k for k, _ in kept]
    header = None
    if not all(map(_is_number, rows[0])):
        header, rows, numbers = rows[0], rows[1:], numbers[1:]
    roles = _roles(path, header, len(rows[0]) if rows else 0, columns)
    if not rows:
        raise ValueError(f"{label} must hold one token a row; {path} has a header and no rows.")
    width = len(header or rows[0])
    table = np.empty((len(rows), width))
    chosen = sorted({k for role in roles.values() for k in role})
    for i, (row, line) in enumerate(zip(rows, numbers, strict=True)):
        if len(row) != width:
            raise ValueError(f"line {line} of {path} must have {width} cells; got {len(row)}.")
        for k in chosen:
            table[i, k] = _cell(path, line, header[k] if header else k + 1, row[k])
    sides = {what: table[:, roles[what][0]] if roles[what] else None for what in ("weights", "positions")}
    return Tokens(table[:, roles["points"]], **sides)


def _roles(path, header, width, columns):
    """Which columns are coordinates, which one the weights, which one the positions."""
    if header is None:
        if columns is not None:
            raise ValueError(f"--columns needs a header line; {path} has none. Write the names in its first line.")
        return {"points": list(range(width)), "weights": [], "positions": []}
    if "" in header or len(set(header)) < len(header):
        raise ValueError(
            f"the columns of {path} must have names, each its own; got {header}. "
            "A column without a name is often an index: leave it out when saving."
        )
    sides = {
        what: [k for k, column in enumerate(header) if column.lower() in known]
        for what, known in (("weights", WEIGHTS), ("positions", POSITIONS))
    }
    if max(map(len, sides.values())) > 1:
        raise ValueError(f"{path} must have one column of weights and one of positions at most; got {header}.")
    if columns is None:
        points = [k for k in range(len(header)) if [k] not in sides.values()]
    else:
        missing = [column for column in columns if column not in header]
        if missing:
            raise ValueError(f"--columns must name columns of {path}: {', '.join(header)}; got {', '.join(missing)}.")
        points = [header.index(column) for column in columns]
    if not points:
        raise ValueError(f"{path} must have a column of coordinates; got {header}.")
    both = [header[k] for k in points if [k] in sides.values()]
    if both:
        raise ValueError(f"--columns must name coordinates; {', '.join(both)} of {path} is none. Leave it out.")
    return {"points": points, **sides}


def _cell(path, line, column, cell):
    if not _is_number(cell):
        raise ValueError(
            f"line {line}, column {column} of {path} must be a number; got {cell!r}. "
            "Leave a column of words out with --columns NAME,NAME."
        )
    value = float(cell)
    if not np.isfinite(value):
        raise ValueError(f"line {line}, column {column} of {path} must be finite; got {cell}. Repair or remove it.")
    return value


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


#: Readers by suffix.
READERS = {".npy": _from_npy, ".npz": _from_npz, ".csv": _from_csv}
