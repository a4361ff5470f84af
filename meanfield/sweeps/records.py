"""Records: one .npz file with arrays and a strict-JSON header, written whole or not at all, read without pickle."""

import contextlib
import json
import math
import os
import platform
import re
import secrets
import struct
import time
import zipfile
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np

#: Raised by one whenever a file written by this version could be misread by the one before.
FORMAT_VERSION = 1

#: The member of the archive that holds the header; no array may have this name.
HEADER_NAME = "header"

#: Everything that zipfile, the .npy reader and the JSON reader raise on bytes that are not theirs.
DAMAGE = (ValueError, KeyError, TypeError, EOFError, OSError, MemoryError, OverflowError, RuntimeError, SyntaxError,
          AttributeError, zipfile.BadZipFile, zlib.error, struct.error)  # fmt: skip

_TEMPORARY = re.compile(r"\..+\.(?P<host>[^.]+)\.(?P<process>\d+)\.[0-9a-f]{8}\.tmp")
_DAY = 86400.0


@dataclass(frozen=True, eq=False)
class Record:
    """What a file holds: ``path``, ``arrays`` (name -> array) and ``header`` (a dict read from strict JSON)."""

    path: Path
    arrays: dict
    header: dict


def save_record(path, arrays, header):
    """Write arrays and header as one .npz file, atomically; the arrays' bytes depend on their values only.

    Parameters
    ----------
    path : str or Path
        Name of the file, ending in .npz; folders are made where they are missing, an earlier file is replaced.
    arrays : dict of str to array_like
        No object arrays. NaN and infinity are allowed here, as data.
    header : dict
        Parameters, seed and the like: None, booleans, finite numbers, strings, lists and dicts of these (tuples come
        back as lists). ``format_version``, ``meanfield_version``, ``numpy_version``, ``scipy_version``,
        ``python_version`` and ``written`` are set here, over what was given.

    Returns
    -------
    Path
        Where the record is.

    Raises
    ------
    ValueError
        If the name, an array or a value of the header cannot be kept.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"the name of a record must end in .npz; got {path.name!r}. Use {path.stem + '.npz'!r}.")
    arrays = checked_arrays(arrays)
    header = plain("header", header, "Put arrays into `arrays`, and write NaN or infinity as None or a string.")
    if not isinstance(header, dict):
        raise ValueError(f"header must be a dict; got {type(header).__name__}. Wrap it: {{'parameters': ...}}.")
    text = json.dumps(header | _provenance(), allow_nan=False, sort_keys=True)
    with atomic_file(path) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {HEADER_NAME: np.array(text), **arrays}.items():
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return path


def load_record(path):
    """Read a record; nothing in the file is ever unpickled.

    Parameters
    ----------
    path : str or Path
        A file written by `save_record`.

    Returns
    -------
    Record

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is truncated, damaged, pickled, or no record of ours; the message names the file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no record at {path}. Check the name, or make it again.")
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {info.filename.removesuffix(".npy"): _member(archive, info) for info in archive.infolist()}
        header = json.loads(str(arrays.pop(HEADER_NAME)), parse_constant=_refuse_constant)
        version = header["format_version"]
    except DAMAGE as error:
        raise ValueError(
            f"{path} must be a whole record written by save_record; it is damaged, truncated or of another kind "
            f"({type(error).__name__}: {error}). Delete it and compute it again; nothing in it was executed."
        ) from error
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} must have format version {FORMAT_VERSION}; it has {version!r}. "
            f"Read it with meanfield {header.get('meanfield_version')!r}, which wrote it."
        )
    return Record(path, arrays, header)


def checked_arrays(arrays):
    """Fresh C-ordered copies of arrays that a record can keep, under the same names.

    Raises
    ------
    ValueError
        If this is no dict, a name is not usable in an archive, or an array holds Python objects.
    """
    if not isinstance(arrays, dict):
        raise ValueError(f"arrays must be a dict of name to array; got {type(arrays).__name__}. Use {{'name': array}}.")
    result = {}
    for name, value in arrays.items():
        if not isinstance(name, str) or not name or name == HEADER_NAME or set(name) & set("\\\0"):
            raise ValueError(
                f"names of arrays must be non-empty strings without backslashes, and not {HEADER_NAME!r}; "
                f"got {name!r}. Rename it."
            )
        try:
            array = np.array(value, order="C")
        except ValueError as error:
            raise ValueError(f"array {name!r} must have rows of one length ({error}). Pad it or split it.") from error
        if array.dtype.hasobject or isinstance(value, np.ma.MaskedArray):
            raise ValueError(
                f"array {name!r} must hold numbers, booleans or strings and no mask; got {type(value).__name__} of "
                f"dtype {array.dtype}. Split it into plain arrays, one name each."
            )
        result[name] = array
    return result


def plain(name, value, cure):
    """A fresh copy of a JSON-able value, NumPy scalars turned into Python's; tuples stay tuples.

    Parameters
    ----------
    name, cure : str
        What messages begin with, and the advice that they end with.
    value : object
        None, bool, int, finite float, str, and lists, tuples and string-keyed dicts of these.

    Raises
    ------
    ValueError
        If anything else, NaN or infinity is found; the message says where.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite (strict JSON); got {value}. {cure}")
        return float(value)
    if isinstance(value, list | tuple):
        items = [plain(f"{name}[{k}]", item, cure) for k, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"keys of {name} must be strings; got {key!r}. Write {str(key)!r}. {cure}")
        return {str(key): plain(f"{name}[{key!r}]", item, cure) for key, item in value.items()}
    raise ValueError(
        f"{name} must be None, a boolean, a number, a string, or lists and dicts of these; "
        f"got {type(value).__name__}. {cure}"
    )


@contextlib.contextmanager
def atomic_file(path):
    """A binary handle to a temporary neighbour of ``path``, which takes its name once it is whole and on the disk."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    host = re.sub(r"[^\w-]", "_", platform.node())[:40] or "host"
    temporary = path.with_name(f".{path.name}.{host}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_stale_temporaries(folder):
    """Delete what writers that are no more left in a folder; returns the names.

    Stale is what a dead process of this machine or this very process wrote, or any process more than a day ago.
    """
    host = re.sub(r"[^\w-]", "_", platform.node())[:40] or "host"
    removed = []
    for path in sorted(Path(folder).glob(".*.tmp")):
        found = _TEMPORARY.fullmatch(path.name)
        if found is None:
            continue
        old = time.time() - path.stat().st_mtime > _DAY
        process = int(found["process"])
        if old or (found["host"] == host and (process == os.getpid() or not _alive(process))):
            path.unlink(missing_ok=True)
            removed.append(path.name)
    return removed


def _alive(process):
    """Whether a process of this number runs on this machine."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _member(archive, info):
    """One array of the archive, its length and checksum verified."""
    if not info.filename.endswith(".npy") or info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"unknown member {info.filename!r}")
    with archive.open(info) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        # Reading past the end is what makes zipfile compare the checksum.
        if member.read(1):
            raise ValueError(f"member {info.filename!r} is longer than its array")
    return array


def _provenance():
    """Who wrote this, and when."""
    return {
        "format_version": FORMAT_VERSION,
        "python_version": platform.python_version(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **{f"{name}_version": _version(name) for name in ("meanfield", "numpy", "scipy")},
    }


def _version(name):
    """The installed version of a package, or None in a bare checkout."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _refuse_constant(word):
    raise ValueError(f"the header is not strict JSON: it holds {word}")
