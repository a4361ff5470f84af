"""Masks: a wrapper that lets each token see only some of the others, by their positions."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..measures import Measure
from ..velocity import not_gaussian
from .base import Attention, Visibility, check_dimension
from .sinkhorn import SinkhornAttention


def causal(s, r):
    """The default mask: a query at position s sees a key at position r when r <= s, ties and itself included."""
    return r <= s


@dataclass(frozen=True)
class MaskedAttention:
    """Attention restricted to visible tokens; positions are frozen [CACP25].

    Reads a measure with positions: rows [s | x]. Velocities have rows [0 | v].

    Parameters
    ----------
    inner : Attention
        Any attention field but Sinkhorn's.
    visible : callable
        ``visible(s, r) -> bool (m, n)`` on query positions (m, 1) and key positions (1, n). The default is causal;
        a sliding window is ``lambda s, r: (r <= s) & (s - r < 0.1)``. A token that sees nothing has velocity zero.

    Raises
    ------
    ValueError
        For Sinkhorn attention: a doubly stochastic causal matrix is the identity.
    """

    inner: Attention
    visible: Callable[[np.ndarray, np.ndarray], np.ndarray] = field(default=causal, kw_only=True)

    def __post_init__(self):
        if isinstance(self.inner, SinkhornAttention):
            raise ValueError(
                "MaskedAttention does not take SinkhornAttention: a causal matrix with both marginals balanced is the "
                "identity (block-diagonal for tied positions), so every token would see only itself. "
                "Mask SoftmaxAttention or L2Attention instead."
            )
        if not isinstance(self.inner, Attention):
            raise ValueError(
                f"inner must be an attention field; got {type(self.inner).__name__}. "
                "For several heads mask each: MultiHeadAttention([MaskedAttention(head_field), ...])."
            )
        if not callable(self.visible):
            raise ValueError(f"visible must be callable, (s, r) -> bool array; got {type(self.visible).__name__}.")

    @property
    def head(self):
        """The head of the inner field."""
        return self.inner.head

    def __call__(self, t, x, mu):
        """Velocities [0 | v] at the rows [s | x], shape (m, 1 + d).

        Raises
        ------
        ValueError
            If the measure has no positions, or shapes do not fit.
        """
        self._check(t, x, mu)
        tokens = x[:, 1:]
        if self.visible is causal:
            order = np.argsort(mu.positions, kind="stable")
            counts = np.searchsorted(mu.positions[order], x[:, 0], side="right")
            law, visibility = _tokens_of(mu, order), Visibility(counts=counts)
        else:
            law, visibility = _tokens_of(mu, slice(None)), Visibility(mask=lambda rows: self._mask(x[rows, 0], mu))
        moving = self.inner.velocity(t, tokens, law, visibility)
        return np.concatenate([np.zeros((len(x), 1)), moving], axis=1)

    def matrix(self, t, x, mu):
        """The attention matrix (m, n) of the inner field, zero where masked; rows of normalised kernels sum to one."""
        self._check(t, x, mu)
        return self.inner.dense(t, x[:, 1:], _tokens_of(mu, slice(None)), self._mask(x[:, 0], mu))

    def on_gaussian(self, t, law):
        """Always a NotGaussianError: each position has its own law."""
        raise not_gaussian(self, "a Gaussian has no positions, and tokens at different positions see different laws")

    def _mask(self, s, mu):
        shown = np.asarray(self.visible(s[:, None], mu.positions[None, :]))
        shape = len(s), len(mu)
        # A mask that looks at keys alone, or at queries alone, gives a row or a column.
        if shown.dtype != bool or shown.shape not in (shape, (1, len(mu)), (len(s), 1)):
            raise ValueError(
                f"visible(s, r) must return booleans of shape {shape} from positions (m, 1) and (1, n); "
                f"got {shown.dtype} of shape {shown.shape}. Combine comparisons with & and |, not with and/or."
            )
        return np.broadcast_to(shown, shape)

    def _check(self, t, x, mu):
        if not isinstance(mu, Measure) or not mu.has_positions:
            raise ValueError(
                "MaskedAttention needs a measure with positions. "
                "Use Measure.positioned(positions, tokens), for instance with positions np.arange(n) / n."
            )
        if getattr(x, "ndim", None) != 2 or x.shape[1] != mu.points.shape[1]:
            raise ValueError(
                f"x must have rows [s | x] of length {mu.points.shape[1]}; got shape {getattr(x, 'shape', None)}. "
                "Put the position in the first column."
            )
        check_dimension(self.inner, self.head.at(t), x[:, 1:], mu.dimension)


def _tokens_of(mu, order):
    """The measure of the tokens alone in the given order, unchecked."""
    law = object.__new__(Measure)
    law.__dict__.update(points=mu.points[order, 1:], weights=mu.weights[order], has_positions=False)
    return law
