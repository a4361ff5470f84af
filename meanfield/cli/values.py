"""Values as a command line or a TOML file spells them, turned into numbers, matrices, times and names."""

import re
from pathlib import Path

import numpy as np

from ..checks import finite_array, number, time_array

#: Output times of a run over [0, T] for which only T is given.
OUTPUT_TIMES = 101


def text(label, value):
    """A string."""
    if not isinstance(value, str):
        raise ValueError(f"{label} must be a name; got {value!r}. Put it in quotes.")
    return value


def switch(label, value):
    """True or False, for a flag that stands in a TOML file."""
    if not isinstance(value, bool):
        raise ValueError(f"{label} must be true or false; got {value!r}.")
    return value


def one_of(choices):
    """A reader of one name among ``choices``, upper and lower case alike; the registered spelling comes out."""

    def read(label, value):
        found = [choice for choice in choices if choice.lower() == str(value).lower()]
        if not found:
            raise ValueError(f"{label} must be one of {', '.join(choices)}; got {value!r}.")
        return found[0]

    return read


def matrix(label, value):
    """A matrix, or a number that stands for this multiple of the identity.

    Parameters
    ----------
    label : str
        What messages call it.
    value : str, number or nested list
        "2", "1,0;0,1", [[1, 0], [0, 1]], or the name of a .npy file.

    Returns
    -------
    float or ndarray, shape (k, d) or (heads, k, d)
    """
    if isinstance(value, str):
        value = load_npy(label, value) if value.lower().endswith(".npy") else _rows(label, value)
    array = finite_array(label, value)
    if array.ndim == 0:
        return float(array)
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise ValueError(
            f"{label} must be a number (that multiple of the identity), a matrix or a stack of matrices, one a head; "
            f'got shape {array.shape}. Write rows with semicolons, "1,0;0,1".'
        )
    return array


def vector(label, value):
    """Numbers in a row, shape (d,), from "1,2", a list, or one number."""
    value = [_float(label, cell) for cell in _cells(value)] if isinstance(value, str) else value
    array = np.atleast_1d(finite_array(label, value))
    if array.ndim != 1:
        raise ValueError(f'{label} must be numbers in a row, "1,2"; got shape {array.shape}.')
    return array


def times(label, value):
    """Output times from "T" (that is 0 to T), "start:stop:count", "t0,t1,..." or a list; shape (k,)."""
    if isinstance(value, str) and ":" in value:
        parts = value.split(":")
        if len(parts) != 3:
            raise ValueError(f"{label} must be T, start:stop:count or a list; got {value!r}. For instance 0:10:101.")
        start, stop = (_float(label, part) for part in parts[:2])
        count = number(f"the count of {label}", parts[2], at_least=2, integer=True)
        if not stop > start:
            raise ValueError(f"{label} must run forwards; got {value!r}. Write the earlier time first.")
        return time_array(label, np.linspace(start, stop, count))
    found = vector(label, value)
    if len(found) > 1:
        return time_array(label, found)
    end = number(f"{label} (the end T of a run over [0, T])", found[0], above=0)
    return np.linspace(0.0, end, OUTPUT_TIMES)


def names(label, value):
    """Names in a row, from "x,y" or a list."""
    found = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise ValueError(f"{label} must be names with commas; got {value!r}.")
    return found


def whole_numbers(label, value):
    """Whole numbers in a row, from "0,1"."""
    return [number(label, item, integer=True) for item in vector(label, value)]


def assignments(label, value):
    """Options of a variant, from ["bias=-2", ...] or a TOML table; values are true, false, numbers, or else text."""
    if isinstance(value, dict):
        return value
    found = {}
    for item in value:
        key, equals, spelt = item.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{label} must be KEY=VALUE; got {item!r}. For instance {label} bias=-2.")
        found[key.strip().replace("-", "_")] = _typed(spelt.strip())
    return found


def load_npy(label, name):
    """The array of a .npy file; nothing is unpickled.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it holds no plain array.
    """
    path = existing_file(label, name)
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(
            f"{label} must be a .npy file of numbers; {path} is of another kind, damaged, or holds Python objects. "
            "Save it with np.save(path, array)."
        ) from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{label} must be a .npy file of one array; {path} is an archive. Rename it to .npz.")
    return array


def existing_file(label, name):
    """The path of a file that is there."""
    path = Path(name)
    if path.is_dir():
        raise IsADirectoryError(f"{label} must be a file; {path} is a folder.")
    if not path.is_file():
        raise FileNotFoundError(f"{label} must be a file that exists; there is no {path}. Check the name.")
    return path


def _rows(label, value):
    rows = [[_float(label, cell) for cell in _cells(row)] for row in value.split(";")]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(
            f"{label} must have rows of one length; got lengths {[len(row) for row in rows]} in {value!r}. "
            'Write rows with semicolons, "1,0;0,1".'
        )
    alone = len(rows) == 1 and len(rows[0]) == 1
    return rows[0][0] if alone else rows


def _cells(row):
    return re.split(r"\s*,\s*|\s+", row.strip())


def _float(label, cell):
    try:
        return float(cell)
    except ValueError as error:
        raise ValueError(f"{label} must hold numbers; got {cell!r}. Write them as 1.5 or 1e-3.") from error


def _typed(spelt):
    """The value that a word means: true, false, a whole number, a number, or the word itself."""
    if spelt.lower() in ("true", "false"):
        return spelt.lower() == "true"
    for kind in (int, float):
        try:
            return kind(spelt)
        except ValueError:
            continue
    return spelt
