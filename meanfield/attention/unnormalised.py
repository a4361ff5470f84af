"""Unnormalised attention: the exponential kernel without its denominator, which can blow up on finitely many tokens."""

from dataclasses import dataclass

import numpy as np

from ..summation.exact import project
from .base import Attention, Pairing


@dataclass(frozen=True)
class UnnormalisedAttention(Attention):
    """Attention with kernel exp(<Q x, K y>): x -> V sum_j w_j exp(<Q x, K y_j>) y_j.

    On a Gaussian the velocity is V (m + S A x) exp(x^T A^T m + x^T A^T S A x / 2): not affine.

    Parameters
    ----------
    head : Head or Schedule
    """

    def pairing(self, t, x, mu):
        """q = scale Q x, k = K y, bias = log weight."""
        head = self.head.at(t)
        return Pairing(head.scale * project(x, head.query), project(mu.points, head.key), mu.log_weights)

    def velocity(self, t, x, mu, visibility):
        """The softmax mean times its normaliser; infinite where the normaliser overflows, which ends a run."""
        means, log_total = self.sums(self.pairing(t, x, mu), mu.points, visibility)
        with np.errstate(over="ignore", invalid="ignore"):
            return project(means * np.exp(log_total)[:, None], self.head.at(t).value)

    def dense(self, t, x, mu, mask):
        """The matrix w_j exp(<Q x_i, K y_j>), zero where masked."""
        queries, keys, bias = self.pairing(t, x, mu)
        with np.errstate(over="ignore"):
            weights = np.exp(queries @ keys.T + bias)
        return weights if mask is None else np.where(mask, weights, 0.0)
