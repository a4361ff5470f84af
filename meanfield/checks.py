"""Checks at the doors: every public constructor and front door turns its input into clean float arrays here."""

import numpy as np

#: A total mass this close to one is one up to the round-off of single precision.
MASS_TOLERANCE = 1e-6


def finite_array(name, value, ndim=None):
    """A fresh, finite float64 array made from ``value``.

    Parameters
    ----------
    name : str
        What the caller calls the value; every message starts with it.
    value : array_like
        Anything that NumPy reads as real numbers.
    ndim : int, optional
        The number of axes that must come out.

    Raises
    ------
    ValueError
        If the value is not numeric, is complex, has another number of axes, or holds NaN or infinity.
    """
    try:
        if np.ma.isMaskedArray(value):
            raise TypeError("with a mask, which says that some entries are none")
        array = np.asarray(value)
        if array.dtype == object or array.dtype.kind in "USmMV":
            raise TypeError(f"dtype {array.dtype}")
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        array = np.array(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array of real numbers; got {type(value).__name__} ({error}). "
            "Pass numbers, or rows of one length."
        ) from error
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes; got shape {array.shape}. Reshape it first.")
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(np.atleast_1d(array)))[0]
        raise ValueError(
            f"{name} must be finite; got {np.atleast_1d(array)[tuple(where)]} at index {tuple(int(i) for i in where)}. "
            "Remove or repair these entries first."
        )
    return array


def points_array(name, value):
    """A fresh float64 array of points, one a row, shape (n, d) with n, d >= 1."""
    array = finite_array(name, value)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (n, d) with n >= 1 and d >= 1; got shape {array.shape}. "
            "For one point use x[None, :]; for points on a line use x[:, None]."
        )
    return array


def mass_array(name, value, n):
    """Weights of n tokens: finite, not negative, with sum one up to single-precision round-off (then exactly scaled).

    Raises
    ------
    ValueError
        Names the argument, the sum that was found and the opt-in way to scale masses.
    """
    array = finite_array(name, value)
    if array.shape != (n,):
        raise ValueError(
            f"{name} must have shape ({n},), one weight a token; got shape {array.shape}, sum {array.sum():g}. "
            f"Leave {name} out for 1/n each."
        )
    total = float(array.sum())
    if (array < 0).any():
        worst = int(np.argmin(array))
        raise ValueError(
            f"{name} must not be negative; got {array[worst]:g} at index {worst} (sum {total:g}). "
            "Weights are masses of a probability measure."
        )
    if abs(total - 1) > MASS_TOLERANCE:
        raise ValueError(
            f"{name} must sum to 1; got sum {total:.10g}. "
            "Divide them yourself or use Measure.normalised(points, masses), which does so and says so."
        )
    return array / total


def matrix_array(name, value, shape):
    """A fresh float64 matrix whose last two axes have the given sizes; None in ``shape`` leaves a size free."""
    array = finite_array(name, value)
    fits = array.ndim >= 2 and all(want in (None, got) for got, want in zip(array.shape[-2:], shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(
            f"{name} must be a matrix of shape ({wanted}); got shape {array.shape}. "
            "In one dimension write [[a]]."
        )
    return array


def number(name, value, *, at_least=None, above=None, integer=False):
    """One finite real number (an integer if asked), within its bounds."""
    try:
        result = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be one number; got {value!r}.") from error
    except OverflowError as error:
        raise ValueError(f"{name} must be at most {np.finfo(float).max:.3g} in size; got a larger integer.") from error
    if not np.isfinite(result):
        raise ValueError(f"{name} must be finite; got {result}.")
    if integer and result != int(result):
        raise ValueError(f"{name} must be a whole number; got {value!r}.")
    if at_least is not None and result < at_least:
        raise ValueError(f"{name} must be at least {at_least:g}; got {result:g}.")
    if above is not None and result <= above:
        raise ValueError(f"{name} must be greater than {above:g}; got {result:g}.")
    return int(result) if integer else result


def time_array(name, value):
    """Output times, shape (k,) with k >= 1, finite and strictly increasing; the first one is the start."""
    array = finite_array(name, value)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"{name} must be a list of times, the first being the start; got shape {array.shape}. "
            "For a run over [0, T] use np.linspace(0, T, 11)."
        )
    if (np.diff(array) <= 0).any():
        k = int(np.argmax(np.diff(array) <= 0))
        raise ValueError(
            f"{name} must increase strictly; got {array[k]:g} then {array[k + 1]:g} at index {k}. "
            "Sort them and drop repeats, e.g. np.unique(times)."
        )
    return array
