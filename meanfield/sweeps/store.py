"""A folder with one atomic record a finished case; what is not whole and ours is named and computed again."""

import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from .cases import CaseResult, Status, canonical_json, case_hash
from .records import atomic_file, load_record, remove_stale_temporaries, save_record

#: Longest readable part of a file name.
SLUG_LENGTH = 60


@dataclass(frozen=True)
class Store:
    """Records of one task's cases in one folder; use another folder for another task.

    Parameters
    ----------
    folder : Path
        Made where it is missing. What dead writers left half-written in it is removed.
    seed : int
        Seed of the sweep; records of other seeds live beside and are not touched.
    """

    folder: Path
    seed: int

    def __post_init__(self):
        folder = Path(self.folder)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"store must be a folder; {folder} is a file. Name another place.")
        folder.mkdir(parents=True, exist_ok=True)
        remove_stale_temporaries(folder)
        object.__setattr__(self, "folder", folder)

    def path(self, case):
        """File of a case: its parameters as far as they can be read in a name, then 16 digits of its hash."""
        return self.folder / f"{slug(case)}-{case_hash(case, self.seed)[:16]}.npz"

    def load(self, case):
        """The finished case, or None; a file that is there but cannot be used is named in a warning."""
        path = self.path(case)
        try:
            record = load_record(path)
            header = record.header
            if header.get("case_hash") != case_hash(case, self.seed):
                raise ValueError(f"{path} is the record of something else: its header names another case or seed.")
            seconds = float(header["seconds"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            warnings.warn(f"store: {error} The case is computed again.", stacklevel=2)
            return None
        return CaseResult(case, Status.LOADED, record.arrays, "", seconds)

    def save(self, result):
        """Keep a finished case as a record, a failed one as a note (.failed.json) that the next success removes."""
        path = self.path(result.case)
        note = path.with_suffix(".failed.json")
        header = {
            "parameters": result.case,
            "seed": self.seed,
            "case_hash": case_hash(result.case, self.seed),
            "seconds": result.seconds,
        }
        if result.failed:
            with atomic_file(note) as handle:
                handle.write(json.dumps(header | {"message": result.message}, indent=1, allow_nan=False).encode())
        else:
            save_record(path, result.arrays, header)
            note.unlink(missing_ok=True)


def slug(case):
    """The parameters as a file name, e.g. ``beta=2_n=64``, cut to a length that every file system takes."""
    text = "_".join(f"{key}={canonical_json(case[key])}" for key in sorted(case))
    return re.sub(r"[^A-Za-z0-9=_.+-]+", "", text)[:SLUG_LENGTH].lstrip(".-") or "case"
