"""Doors of the closed forms: constant heads, laws that fit them, and times that lie before the pole."""

import math

import numpy as np

from ..checks import finite_array
from ..measures import Gaussian
from ..parameters import Head

#: Relative size below which a defect of an algebraic condition (symmetry, commutation) is round-off.
ROUND_OFF = 1e-12

#: A time this close to the pole, relatively, is at the pole: no digit of the solution is left there.
POLE_MARGIN = 1e-14


def constant_head(head):
    """The head itself, if it is one constant head; a ValueError for a `Schedule` or a batch of heads."""
    if not isinstance(head, Head):
        raise ValueError(
            f"a closed form needs one constant Head; got {type(head).__name__}. "
            "Freeze a schedule with schedule.at(t), or use simulate()."
        )
    if head.query.ndim != 2:
        raise ValueError(
            f"a closed form needs one head; got a batch of shape {head.query.shape[:-2]}. Call it once a head."
        )
    return head


def fitting_law(head, law, dimension=None):
    """The Gaussian itself, if it has the dimension of the head (and the one asked for)."""
    if not isinstance(law, Gaussian) or law.mean.ndim != 1:
        raise ValueError(f"law must be one Gaussian(mean, covariance); got {type(law).__name__}.")
    if law.dimension != head.dimension:
        raise ValueError(f"law must have dimension {head.dimension} like the head; got {law.dimension}.")
    if dimension is not None and law.dimension != dimension:
        raise ValueError(
            f"this closed form needs tokens in dimension {dimension}; got {law.dimension}. Use simulate() instead."
        )
    return law


def elapsed_times(times, blow_up_time=math.inf):
    """Times since the start, any shape, all before the pole.

    Raises
    ------
    ValueError
        If a time is negative, or at or past ``blow_up_time``, which the message names: no solution exists there.
    """
    times = finite_array("times", times)
    if times.size and times.min() < 0:
        raise ValueError(f"times must not be negative, they count from the start; got {times.min():g}.")
    if times.size and times.max() >= blow_up_time * (1 - POLE_MARGIN):
        raise past_the_pole(times.max(), blow_up_time)
    return times


def past_the_pole(time, blow_up_time):
    """The ValueError that says that ``time`` is not before the blow-up time t*."""
    return ValueError(
        f"times must be smaller than the blow-up time t* = {blow_up_time:.15g}; got {time:.15g}. "
        "The solution ends at t*: ask for earlier times."
    )


def representable(name, values):
    """The values, if none has left the range of floats; an OverflowError otherwise (growth without a pole)."""
    if not np.isfinite(values).all():
        raise OverflowError(
            f"{name} exceeds the largest float, {np.finfo(float).max:.3g}, without a pole. Ask for earlier times."
        )
    return values


def multiple_of_identity(head):
    """The number v of V = v I; a ValueError if V is no multiple of the identity."""
    value = head.value
    v = float(np.trace(value)) / head.dimension
    defect = np.abs(value - v * np.eye(head.dimension)).max()
    if defect > ROUND_OFF * max(np.abs(value).max(), abs(v)):
        raise ValueError(
            f"this closed form needs V = v I; got V that differs from {v:g} I by {defect:g}. Use simulate() instead."
        )
    return v


def norm(matrix):
    """Spectral norm, 0 for an empty matrix."""
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0
