"""The order of a scheme, measured: the slope of log(error) against log(dt) over halvings of the step."""

import numpy as np


def slope(steps, errors):
    """The least-squares slope of log(error) against log(step)."""
    steps, errors = np.asarray(steps, float), np.asarray(errors, float)
    if not (errors > 0).all():
        raise AssertionError(f"an order needs errors above zero; got {errors}. Take a problem not solved exactly.")
    x, y = np.log(steps), np.log(errors)
    return float((x - x.mean()) @ (y - y.mean()) / ((x - x.mean()) @ (x - x.mean())))


def walk(scheme, flow, y, t0, t1, count):
    """The array after ``count`` equal steps of ``scheme(flow, t, y, dt)`` from t0 to t1, with no driver in between."""
    dt = (t1 - t0) / count
    for k in range(count):
        y = scheme(flow, t0 + k * dt, y, dt)
    return y


def measured_order(end, exact, count=16, halvings=4, floor=1e-13):
    """The measured order of a one-parameter family of numerical answers.

    Parameters
    ----------
    end : callable
        ``end(n)`` is the answer with n equal steps.
    exact : array_like
        What it should be.
    count, halvings : int
        n = count, 2 count, ..., 2^halvings count.
    floor : float
        Errors must stay above this, or round-off and not the scheme would be measured.
    """
    counts = [count * 2**k for k in range(halvings + 1)]
    errors = [float(np.abs(np.asarray(end(n)) - exact).max()) for n in counts]
    if min(errors) < floor:
        raise AssertionError(f"errors {errors} reach the round-off floor {floor:g}; start from fewer steps.")
    return slope([1 / n for n in counts], errors)


def scheme_order(scheme, flow, y, exact, t0=0.0, t1=1.0, count=16, halvings=4):
    """The measured order of ``scheme`` on a flow whose state at t1 is known to be the array ``exact``."""
    return measured_order(lambda n: walk(scheme, flow, y, t0, t1, n), exact, count, halvings)
