"""The kernel sum that everybody calls: exact or near-linear, chosen by what it would cost."""

import numpy as np

from . import exact
from .separable import LARGEST_DIMENSION, LARGEST_GRID, LARGEST_REACH, plan_separable, separable_sums

#: The names of the choice: by cost, always pair by pair, always by separation.
SUMMATIONS = ("auto", "exact", "separable")
#: Nanoseconds of a pair in the exact sum, measured once: the exponential, and a product per coordinate and column.
PAIR, PRODUCT = 5.0, 0.1
#: Below this many pairs nothing beats the exact sum, and no plan is made.
FEW_PAIRS = 250_000


def softmax_mean(
    queries, keys, values, key_bias, *, causal=None, visible=None, summation="auto", accuracy=1e-10
):
    """Softmax averages of the values and the logarithms of their normalisers, as `exact.softmax_mean` defines them.

    Parameters
    ----------
    queries, keys, values, key_bias, causal, visible
        As for `exact.softmax_mean`.
    summation : {"auto", "exact", "separable"}
        "auto" takes the cheaper one; the choice depends on shapes and spread only, never on a clock.
    accuracy : float
        Largest relative error that a separable sum may have (of a normaliser; of a mean, relative to the spread of
        the values). Round-off is 1e-13 at best.

    Returns
    -------
    means : ndarray, shape (m, p)
    log_normaliser : ndarray, shape (m,)

    Raises
    ------
    ValueError
        If "separable" is asked for and cannot be had: more than three coordinates, a mask, or a spread too large.
    """
    m, n = len(queries), len(keys)
    masked = causal is not None or visible is not None
    if summation == "exact" or (summation == "auto" and (masked or m * n < FEW_PAIRS)):
        return exact.softmax_mean(queries, keys, values, key_bias, causal=causal, visible=visible)
    if summation == "separable" and (masked or keys.shape[1] > LARGEST_DIMENSION):
        raise ValueError(
            f"a separable sum needs keys of dimension at most {LARGEST_DIMENSION} and no mask; got dimension "
            f"{keys.shape[1]}{' and a mask' if masked else ''}. Use summation='auto'."
        )
    found = _separable(queries, keys, values, key_bias, summation, accuracy)
    return exact.softmax_mean(queries, keys, values, key_bias) if found is None else found


def _separable(queries, keys, values, key_bias, summation, accuracy):
    """The separable sum, or None where the exact one is meant."""
    kept = key_bias > -np.inf
    if not kept.any() or not (np.isfinite(queries).all() and np.isfinite(keys).all()):
        return None
    keys, bias = keys[kept], key_bias[kept]
    # Shifting the keys cancels in the mean, shifting the queries becomes a bias on the keys: both make the reach small.
    key_centre, query_centre = _middle(keys), _middle(queries)
    keys, queries_moved = keys - key_centre, queries - query_centre
    bias = bias + keys @ query_centre
    p = 0 if values is None else values.shape[1]
    plan = plan_separable(queries_moved, keys, bias, p + 1, accuracy)
    if plan is None:
        if summation == "separable":
            raise ValueError(
                f"a separable sum needs a spread sum_c max|q_c| max|k_c| and biases within {LARGEST_REACH:g}, an "
                f"accuracy of 1e-13 at best, and a grid of at most {LARGEST_GRID:g} entries (it grows with the spread "
                f"to the power of the dimension); got {np.abs(queries_moved).max(0) @ np.abs(keys).max(0):.3g}, "
                f"{np.ptp(bias):.3g} and {accuracy:g} in dimension {keys.shape[1]}. Use summation='auto'."
            )
        return None
    pair = PAIR + PRODUCT * (keys.shape[1] + p + 1)
    if summation == "auto" and plan.cost >= pair * len(queries) * len(keys):
        return None
    columns = np.ones((len(keys), p + 1))
    if values is not None:
        base = values[kept][0].copy()
        np.subtract(values[kept], base, out=columns[:, :-1])
    sums, shift = separable_sums(queries_moved, keys, columns, bias, plan)
    mass = sums[:, -1]
    means = sums[:, :-1] / mass[:, None]
    if values is not None:
        means += base
    return means, np.log(mass) + shift + exact.project(queries, key_centre[None])[:, 0]


def _middle(points):
    """The middle of the bounding box: it makes the reach smallest."""
    return (points.min(axis=0) + points.max(axis=0)) / 2
