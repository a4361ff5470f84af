"""The record of a whole experiment: its claim, its cases and what came out of each, in one file that figures read."""

from dataclasses import dataclass, field

from .cases import canonical_json, plain_case
from .records import load_record, save_record


@dataclass(frozen=True, eq=False)
class Study:
    """What an experiment left: arrays case by case, and the cases that failed.

    Parameters
    ----------
    name, claim : str
        The experiment and the sentence it stands for.
    quick : bool
        Whether these are the few small cases of a quick run.
    seed : int
        The root of every case's random numbers.
    cases : list of dict
        Parameters of the cases that finished.
    arrays : list of dict
        Their named arrays, in the order of ``cases``.
    failed : list of dict
        ``{"case": parameters, "message": reason}`` for each other case.
    seconds : float
        Time spent in the cases, summed over the workers.
    """

    name: str
    claim: str
    quick: bool
    seed: int
    cases: list
    arrays: list
    failed: list = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self):
        if len(self.cases) != len(self.arrays):
            raise ValueError(
                f"cases and arrays must match; got {len(self.cases)} cases and {len(self.arrays)} sets of arrays."
            )

    def select(self, **parameters):
        """Arrays of the cases whose parameters have these values, in the order of the cases.

        Returns
        -------
        list of dict
            At least one.

        Raises
        ------
        ValueError
            If no case matches: a figure with a silent hole in it would be worse.
        """
        wanted = {name: canonical_json(value) for name, value in plain_case(parameters).items()}
        found = [
            arrays
            for case, arrays in zip(self.cases, self.arrays, strict=True)
            if all(name in case and canonical_json(case[name]) == value for name, value in wanted.items())
        ]
        if not found:
            known = {name: sorted({str(case.get(name)) for case in self.cases}) for name in wanted}
            raise ValueError(f"{self.name} has no case with {parameters}; its cases have {known}.")
        return found


def save_study(path, study):
    """Write a study to one record, whole or not at all."""
    arrays = {f"{k}.{name}": array for k, case in enumerate(study.arrays) for name, array in case.items()}
    header = {
        "experiment": study.name,
        "claim": study.claim,
        "quick": study.quick,
        "seed": study.seed,
        "cases": study.cases,
        "failed": study.failed,
        "seconds": study.seconds,
    }
    save_record(path, arrays, header)


def load_study(path):
    """Read what `save_study` wrote.

    Raises
    ------
    ValueError
        If the file is no record, or a record of something else.
    """
    record = load_record(path)
    header = record.header
    if "experiment" not in header:
        raise ValueError(f"{path} must be the record of an experiment; its header has {sorted(header)}.")
    arrays = [{} for _ in header["cases"]]
    for key, array in record.arrays.items():
        k, name = key.split(".", 1)
        arrays[int(k)][name] = array
    return Study(
        name=header["experiment"],
        claim=header["claim"],
        quick=header["quick"],
        seed=header["seed"],
        cases=header["cases"],
        arrays=arrays,
        failed=header["failed"],
        seconds=header["seconds"],
    )


def table(columns, rows):
    """Text of a table: one line a row, columns padded, numbers right-aligned."""
    cells = [[f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    numeric = [all(isinstance(row[j], int | float) for row in rows) for j in range(len(columns))]
    width = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = []
    for line in (columns, ["-" * w for w in width], *cells):
        padded = [
            cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(line, width, numeric, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
