"""Many cases at once, and the files that keep them."""

from .cases import CaseResult, Status
from .parallel import SweepError, run_cases
from .records import Record, load_record, save_record
from .summary import summary_rows, write_summary

__all__ = [
    "CaseResult",
    "Record",
    "Status",
    "SweepError",
    "load_record",
    "run_cases",
    "save_record",
    "summary_rows",
    "write_summary",
]
