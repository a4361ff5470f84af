"""Linear attention: the logit itself is the weight, so the second moment of the tokens is all that counts."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..velocity import AffineMap
from .base import ALL_VISIBLE
from .kernel import KernelAttention


@dataclass(frozen=True)
class LinearAttention(KernelAttention):
    """Attention with kernel <Q x, K y>: x -> V M A x with the second moment M = sum_j w_j y_j y_j^T, in O(n d^2).

    Linear in x for any law, so Gaussians stay Gaussian [CACP25].

    Parameters
    ----------
    head : Head or Schedule
    """

    kernel: Callable = field(default=np.positive, init=False, repr=False)

    def weigh(self, logits):
        """The logits themselves."""
        return logits

    def velocity(self, t, x, mu, visibility):
        """V M A x; under a mask each query has its own moment, and the sum runs over pairs."""
        if visibility is not ALL_VISIBLE:
            return super().velocity(t, x, mu, visibility)
        head = self.head.at(t)
        moment = (mu.points.T * mu.weights) @ mu.points
        return x @ (head.value @ moment @ head.A).T

    def on_gaussian(self, t, law):
        """B = V (S + m m^T) A, c = 0."""
        head = self.head.at(t)
        moment = law.covariance + law.mean[..., :, None] * law.mean[..., None, :]
        return AffineMap(head.value @ moment @ head.A, np.zeros_like(law.mean))
