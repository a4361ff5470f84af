"""Several heads at once: their velocities add up."""

from dataclasses import dataclass

import numpy as np

from ..velocity import SumField


@dataclass(frozen=True)
class MultiHeadAttention(SumField):
    """The sum of several attention fields, each with its own head, mask and variant.

    A head's output projection W_h belongs into its value matrix: V_h := W_h V_h.

    Parameters
    ----------
    fields : tuple of attention fields
        Masked heads are masked one by one.

    Raises
    ------
    ValueError
        If a part has no attention matrix (a feed-forward part: add it with SumField).
    """

    def __post_init__(self):
        super().__post_init__()
        for field in self.fields:
            if not callable(getattr(field, "matrix", None)):
                raise ValueError(
                    f"every head must be an attention field with a matrix; got {type(field).__name__}. "
                    "Add other fields with SumField((attention, field))."
                )

    def matrix(self, t, x, mu):
        """The attention matrices of all heads, shape (H, m, n)."""
        return np.stack([field.matrix(t, x, mu) for field in self.fields])

    def for_run(self):
        """The sum of the heads as they are used within one run."""
        return SumField(self.fields).for_run()
