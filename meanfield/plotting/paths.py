"""What plots read off a result: a run of tokens or of a Gaussian, from a Trajectory or from the arrays of a record."""

from typing import NamedTuple

import numpy as np

from ..checks import finite_array, points_array, time_array
from ..integration.trajectory import Outcome, Trajectory
from ..measures import Gaussian, Measure
from ..spaces import Euclidean


class TokenPath(NamedTuple):
    """Tokens over time: times (k,), tokens (k, n, d) without positions, weights (n,), positions (n,) or None."""

    times: np.ndarray
    tokens: np.ndarray
    weights: np.ndarray
    positions: np.ndarray | None
    space: object
    blow_up_time: float | None
    ending: str


class GaussianPath(NamedTuple):
    """A Gaussian over time: times (k,), laws (k of them), t* or None, and how it ended if not at its last time."""

    times: np.ndarray
    laws: list
    blow_up_time: float | None
    ending: str


def token_path(run, view=None):
    """Read a run of tokens.

    Parameters
    ----------
    run : Trajectory, Measure, or pair (times (k,), points (k, n, d))
        A single Measure is a run of one time, 0.
    view : callable, optional
        ``view(t, measure) -> measure``: the coordinates to look in, for instance `rescaled` (V).

    Raises
    ------
    ValueError
        If it is a run of a Gaussian or of another shape.
    """
    if isinstance(run, Measure):
        times, states, described = np.zeros(1), [run], {}
    elif isinstance(run, Trajectory):
        times, states, described = run.times, list(run), _described(run)
    else:
        (times, states), described = _from_arrays(run), {}
    if not isinstance(states[0], Measure):
        raise ValueError(
            f"this plot needs a run of tokens; got a run of {type(states[0]).__name__}. "
            "Use plot_gaussian_trajectory, or sample the law first."
        )
    if view is not None:
        states = [view(t, state) for t, state in zip(times, states, strict=True)]
    space = described.get("space", Euclidean()) if view is None else Euclidean()
    return TokenPath(
        times,
        np.stack([state.tokens for state in states]),
        states[0].weights,
        states[0].positions if states[0].has_positions else None,
        getattr(space, "base", space),
        described.get("blow_up_time"),
        described.get("ending", ""),
    )


def gaussian_path(run):
    """Read a run of a Gaussian.

    Parameters
    ----------
    run : Trajectory, Gaussian, or triple (times (k,), means (k, d), covariances (k, d, d))
        A single Gaussian is a run of one time, 0.
    """
    if isinstance(run, Gaussian):
        return GaussianPath(np.zeros(1), [run], None, "")
    if isinstance(run, Trajectory):
        if isinstance(run.last.state, Measure):
            raise ValueError("this plot needs a run of a Gaussian; got a run of tokens. Use plot_trajectory.")
        described = _described(run)
        return GaussianPath(run.times, list(run), described["blow_up_time"], described["ending"])
    times, means, covariances = _parts(run, 3, "a triple (times, means (k, d), covariances (k, d, d))")
    times = time_array("times", times)
    means, covariances = finite_array("means", means, 2), finite_array("covariances", covariances, 3)
    if not len(times) == len(means) == len(covariances):
        raise ValueError(
            f"times, means and covariances must have one entry a time; got {len(times)}, {len(means)} and "
            f"{len(covariances)}. Cut them to the times that were reached."
        )
    return GaussianPath(times, [Gaussian(m, s) for m, s in zip(means, covariances, strict=True)], None, "")


def covariance_path(run):
    """Covariances along a run, shape (k, d, d): from a Trajectory of a Gaussian, a Gaussian, or the array itself."""
    if isinstance(run, Trajectory | Gaussian):
        return np.stack([law.covariance for law in gaussian_path(run).laws])
    covariances = finite_array("covariances", run)
    if covariances.ndim != 3 or covariances.shape[1] != covariances.shape[2]:
        raise ValueError(
            f"a path of covariances must have shape (k, d, d); got {covariances.shape}. For one matrix use S[None]."
        )
    return covariances


def _from_arrays(run):
    times, points = _parts(run, 2, "a pair (times, points (k, n, d))")
    times = time_array("times", times)
    points = finite_array("points", points, 3)
    if len(points) != len(times):
        raise ValueError(
            f"points must have shape ({len(times)}, n, d), one cloud a time; got {points.shape}. "
            "Cut both to the times that were reached."
        )
    start = Measure(points_array("points", points[0]))
    return times, [start.moved_to(cloud) for cloud in points]


def _parts(run, count, wanted):
    if not isinstance(run, tuple | list) or len(run) != count:
        raise ValueError(f"a run must be a Trajectory or {wanted}; got {type(run).__name__}.")
    return run


def _described(trajectory):
    """Space, t* and, for a run that ended early, a few words on how."""
    ending = ""
    if trajectory.outcome is Outcome.BLEW_UP:
        ending = f"blew up at $t^*$ = {trajectory.blow_up_time:.4g}"
    elif trajectory.outcome is not Outcome.FINISHED:
        ending = f"{trajectory.outcome.value} at $t$ = {trajectory.last.time:.4g}"
    space = getattr(trajectory.flow, "space", Euclidean())
    return {"space": space, "blow_up_time": trajectory.blow_up_time, "ending": ending}
