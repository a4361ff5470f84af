"""What a run leaves behind: states at the output times, how it ended, events, and what it cost."""

import enum
import operator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..flows import ParticleFlow
from ..measures import Measure


class Outcome(enum.Enum):
    """How a run ended. All but FINISHED and STOPPED are failures of the mathematics, with everything before kept."""

    FINISHED = "finished"
    STOPPED = "stopped by an event"
    BLEW_UP = "blew up in finite time"
    NOT_FINITE = "the velocity stopped being finite"
    NOT_CONVERGED = "an inner iteration missed its tolerance"
    STALLED = "the step collapsed without a pole"
    LIMIT = "a limit on evaluations or seconds was met"


class Moment(NamedTuple):
    """A time and the state there."""

    time: float
    state: object


class Statistics(NamedTuple):
    """Evaluations of the field, accepted steps, and seconds of a run."""

    evaluations: int = 0
    steps: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A run, as far as it came.

    Parameters
    ----------
    times : ndarray, shape (k,)
        The output times that were reached.
    arrays : ndarray, shape (k, n, d) or (k, d, 1 + r)
        Points of the tokens, or [mean | square root of the covariance].
    flow : flow
        Turns arrays into states.
    outcome : Outcome
    message : str
        Which limit was met, or what failed, with numbers.
    last : Moment
        Time and state where the run ended, whatever the outcome.
    blow_up_time : float or None
        t* when the outcome is BLEW_UP.
    event_times : list of ndarray
        One array an event.
    statistics : Statistics

    Notes
    -----
    ``trajectory[k]`` is the state at ``times[k]``, ``trajectory[i:j]`` a list of states; iteration runs over states,
    `items` over (time, state). The arrays are read-only.
    """

    times: np.ndarray
    arrays: np.ndarray
    flow: object
    outcome: Outcome
    message: str = ""
    last: Moment | None = None
    blow_up_time: float | None = None
    event_times: list = field(default_factory=list)
    statistics: Statistics = Statistics()

    def __post_init__(self):
        for array in (self.times, self.arrays, *self.event_times):
            array.setflags(write=False)

    @classmethod
    def from_hidden_states(cls, layers, *, weights=None):
        """The layers of a real model as a trajectory: layer k is the state at time k.

        Parameters
        ----------
        layers : list of array_like, shape (n, d) each
            Token states after the embedding and after each layer.
        weights : array_like, shape (n,), optional
        """
        measures = [Measure(layer, weights) for layer in layers]
        if not measures or len({measure.points.shape for measure in measures}) > 1:
            raise ValueError(
                "layers must be a list of arrays of one shape (n, d); got "
                f"{[measure.points.shape for measure in measures]}. Cut padding tokens off first."
            )
        flow = ParticleFlow(_no_field, measures[0])
        times = np.arange(len(measures), dtype=float)
        return cls(
            times,
            np.stack([measure.points for measure in measures]),
            flow,
            Outcome.FINISHED,
            "hidden states of a model",
            Moment(float(times[-1]), measures[-1]),
        )

    def __len__(self):
        return len(self.times)

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self.flow.state(array) for array in self.arrays[k]]
        return self.flow.state(self.arrays[operator.index(k)])

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def items(self):
        """Pairs (time, state)."""
        return zip(self.times, self, strict=True)

    def observe(self, function):
        """An observable along the run: ``function(state)`` stacked over the output times, shape (k, ...)."""
        return np.array([function(state) for state in self])

    def to_xarray(self):
        """The arrays as an xarray.Dataset with named axes; needs the extra ``xarray``.

        Raises
        ------
        ImportError
            If xarray is not installed; says how to get it.
        """
        try:
            import xarray
        except ImportError as error:
            raise ImportError("to_xarray needs xarray: pip install 'meanfield[xarray]'.") from error
        described = {"outcome": self.outcome.name, "message": self.message}
        if self.blow_up_time is not None:
            described["blow_up_time"] = self.blow_up_time
        if isinstance(self.last.state, Measure):
            variables = {"points": (("time", "token", "coordinate"), self.arrays)}
        else:
            covariances = self.arrays[:, :, 1:] @ np.swapaxes(self.arrays[:, :, 1:], 1, 2)
            variables = {
                "mean": (("time", "coordinate"), self.arrays[:, :, 0]),
                "covariance": (("time", "coordinate", "coordinate_"), covariances),
            }
        return xarray.Dataset(variables, coords={"time": self.times}, attrs=described)


def _no_field(t, x, mu):
    raise ValueError("hidden states of a model have no velocity field: they were read, not integrated.")
