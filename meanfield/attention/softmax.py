"""Softmax attention, the original."""

from dataclasses import dataclass

import numpy as np

from ..summation.exact import project
from ..velocity import AffineMap
from .base import Attention, Pairing


@dataclass(frozen=True)
class SoftmaxAttention(Attention):
    """Attention with kernel exp(<Q x, K y>), normalised over the tokens y.

    On a Gaussian N(m, S) the kernel tilts the law of y to N(m + S A x, S), so the field is the affine map
    x -> V (m + S A x), A = scale K^T Q [CACP25].

    Parameters
    ----------
    head : Head or Schedule
    """

    def pairing(self, t, x, mu):
        """q = scale Q x, k = K y, bias = log weight."""
        head = self.head.at(t)
        return Pairing(head.scale * project(x, head.query), project(mu.points, head.key), mu.relative_log_weights)

    def on_gaussian(self, t, law):
        """B = V S A, c = V m."""
        head = self.head.at(t)
        return AffineMap(head.value @ law.covariance @ head.A, np.matvec(head.value, law.mean))
