"""What a detector says of a trajectory, or a theorem of parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """A judgement with its evidence.

    Parameters
    ----------
    kind : str
        What was asked, e.g. "blow-up" or "clustering".
    happened : bool or None
        The answer; None when it is undecided.
    time : float or None
        When it happened, in the time of the trajectory; None if it did not or no time is known.
    evidence : mapping
        The numbers and sentences that the answer rests on.
    """

    kind: str
    happened: bool | None
    time: float | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "evidence", MappingProxyType(dict(self.evidence)))

    def __bool__(self):
        return self.happened is True

    def __reduce__(self):
        return Verdict, (self.kind, self.happened, self.time, dict(self.evidence))
