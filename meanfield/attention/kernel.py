"""Attention with any kernel of the logit: the sum itself, or the sum divided by its total weight."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..summation.exact import kernel_sum, narrowed, project
from .base import Attention, Pairing


@dataclass(frozen=True)
class KernelAttention(Attention):
    """Attention without normalisation: x -> V sum_j w_j kernel(<Q x, K y_j>) y_j.

    Parameters
    ----------
    head : Head or Schedule
    kernel : callable
        ``kernel(logits) -> weights``, elementwise on an array of any shape, scale included in the logits.

    Raises
    ------
    ValueError
        If the kernel is not callable, or (on first use) does not keep the shape.

    Notes
    -----
    A named variant subclasses this and overrides `weigh`.
    """

    kernel: Callable[[np.ndarray], np.ndarray]

    def __post_init__(self):
        super().__post_init__()
        if self.summation == "separable":
            raise ValueError(
                f"{type(self).__name__} has no separable sum: its kernel is no exponential. Use summation='auto'."
            )
        if not callable(self.kernel):
            raise ValueError(f"kernel must be callable, logits -> weights; got {type(self.kernel).__name__}.")

    def weigh(self, logits):
        """The kernel of a block of logits; the block is scratch and may be overwritten."""
        shape = logits.shape
        weights = np.asarray(self.kernel(logits))
        if weights.shape != shape:
            raise ValueError(
                f"kernel must act elementwise; got shape {weights.shape} from logits of shape {shape}. "
                "Use NumPy functions, which broadcast."
            )
        return weights

    def pairing(self, t, x, mu):
        """q = scale Q x, k = K y, no bias."""
        head = self.head.at(t)
        return Pairing(head.scale * project(x, head.query), project(mu.points, head.key), np.zeros(len(mu)))

    def velocity(self, t, x, mu, visibility):
        """V times the kernel sum of w_j y_j over the visible tokens."""
        return project(self._sums(t, x, mu, visibility)[:, :-1], self.head.at(t).value)

    def _sums(self, t, x, mu, visibility):
        """Kernel sums of w_j y_j and of w_j over the visible tokens with mass, shape (m, d + 1)."""
        queries, keys, _ = self.pairing(t, x, mu)
        values = mu.weights[:, None] * np.column_stack([mu.points, np.ones(len(mu))])
        visible = visibility.block_mask(len(mu))
        massive = mu.weights > 0
        if not massive.all():
            keys, values = keys[massive], values[massive]
            visible = None if visible is None else narrowed(visible, massive)
        return kernel_sum(queries, keys, values, self.weigh, visible=visible)

    def dense(self, t, x, mu, mask):
        """The matrix w_j kernel(<Q x_i, K y_j>), zero where masked."""
        queries, keys, _ = self.pairing(t, x, mu)
        massive = mu.weights > 0
        weights = np.zeros((len(x), len(mu)))
        weights[:, massive] = self.weigh(queries @ keys[massive].T) * mu.weights[massive]
        return weights if mask is None else np.where(mask, weights, 0.0)


@dataclass(frozen=True)
class NormalisedKernelAttention(KernelAttention):
    """Attention with a kernel divided by its total: x -> V sum_j p_j y_j, p_j = w_j kernel_j / sum_l w_l kernel_l.

    With ``kernel=np.exp`` this is softmax attention, without its protection against overflow.

    Parameters
    ----------
    head : Head or Schedule
    kernel : callable
        ``kernel(logits) -> weights``; a query whose weights add up to zero has velocity zero.
    """

    def velocity(self, t, x, mu, visibility):
        """V times the weighted mean of the visible tokens."""
        sums = self._sums(t, x, mu, visibility)
        total = sums[:, -1:]
        return project(sums[:, :-1] / np.where(total == 0, 1.0, total), self.head.at(t).value)

    def dense(self, t, x, mu, mask):
        """The rows of weights divided by their sums."""
        weights = super().dense(t, x, mu, mask)
        total = weights.sum(axis=1, keepdims=True)
        return weights / np.where(total == 0, 1.0, total)
