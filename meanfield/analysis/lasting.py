"""Since when something holds for good: the one question that detectors ask of a list of output times."""

import numpy as np


def time_since(times, holds):
    """The first of ``times`` (k,) from which on ``holds`` (k,) is true up to the end, as a float; None if it is not."""
    holds = np.asarray(holds, dtype=bool)
    if not holds[-1]:
        return None
    return float(times[0 if holds.all() else len(holds) - int(np.argmin(holds[::-1]))])
