"""The abstract attention field: queries, keys and a key bias in, velocities and attention matrices out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..checks import number
from ..measures import Measure
from ..parameters import Head, Schedule
from ..summation.exact import project
from ..summation.select import SUMMATIONS, softmax_mean
from ..velocity import not_gaussian


class Pairing(NamedTuple):
    """The two sides of a kernel: queries (m, k), keys (n, k), and a bias of each key (n,)."""

    queries: np.ndarray
    keys: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True, eq=False)
class Visibility:
    """Which tokens a query sees: the first ``counts[i]`` ones, or what ``mask(rows)`` shows, or (by default) all."""

    counts: np.ndarray | None = None
    mask: Callable[[slice], np.ndarray] | None = None

    def block_mask(self, n):
        """The mask as a block function whatever its form, or None for "all"."""
        if self.counts is None:
            return self.mask
        counts = self.counts
        return lambda rows: np.arange(n) < counts[rows, None]


ALL_VISIBLE = Visibility()


@dataclass(frozen=True)
class Attention(ABC):
    """An attention velocity field with a normalised kernel exp(<q, k> + b).

    A variant states its two sides in `pairing`; velocity, matrix, masks and heads follow. A variant that keeps
    Gaussians overrides `on_gaussian`.

    Parameters
    ----------
    head : Head or Schedule
        Q, K, V and the inverse temperature, constant or in time.
    summation : {"auto", "exact", "separable"}
        How kernel sums are done: "separable" costs near-linear time for queries and keys of dimension up to 3, "auto"
        takes it where it is cheaper.
    accuracy : float
        Largest relative error of a separable sum.
    """

    head: Head | Schedule
    summation: str = field(default="auto", kw_only=True)
    accuracy: float = field(default=1e-10, kw_only=True)

    def __post_init__(self):
        if not callable(getattr(self.head, "at", None)):
            raise ValueError(
                f"head must be a Head or a Schedule; got {type(self.head).__name__}. "
                "Use Head(query, key, value, scale) or Head.identity(d, beta)."
            )
        if self.summation not in SUMMATIONS:
            raise ValueError(f"summation must be one of {', '.join(SUMMATIONS)}; got {self.summation!r}.")
        object.__setattr__(self, "accuracy", number("accuracy", self.accuracy, above=0))

    def __call__(self, t, x, mu):
        """Velocities at the points x.

        Parameters
        ----------
        t : float
        x : ndarray, shape (m, d)
            Any points, tokens or not.
        mu : Measure
            The law of the tokens.

        Returns
        -------
        ndarray, shape (m, d)

        Raises
        ------
        ValueError
            If shapes do not fit the head, or the measure has positions (then use MaskedAttention).
        """
        self._check(t, x, mu)
        return self.velocity(t, x, mu, ALL_VISIBLE)

    def matrix(self, t, x, mu):
        """The attention matrix, shape (m, n): ``velocity = matrix @ tokens @ V.T``."""
        self._check(t, x, mu)
        return self.dense(t, x, mu, None)

    def on_gaussian(self, t, law):
        """The affine map of this field on a Gaussian law.

        Raises
        ------
        NotGaussianError
            If this variant does not keep Gaussians; the message says what to do instead.
        """
        raise not_gaussian(self, "its velocity on a Gaussian is not affine")

    def for_run(self):
        """The field as it is used within one run; a variant with inner iterations returns one that starts them warm."""
        return self

    @abstractmethod
    def pairing(self, t, x, mu):
        """The two sides of the kernel at points x (m, d) and tokens of mu, as a `Pairing`; nothing is checked here."""

    def velocity(self, t, x, mu, visibility):
        """Velocities (m, d) under a `Visibility`; nothing is checked here."""
        return self.averaged(t, mu, self.pairing(t, x, mu), visibility)

    def averaged(self, t, mu, pairing, visibility):
        """V times the softmax averages of the tokens for a `Pairing`, shape (m, d)."""
        means, _ = self.sums(pairing, mu.points, visibility)
        return project(means, self.head.at(t).value)

    def sums(self, pairing, values, visibility):
        """Softmax averages of values (n, p) and log normalisers for a `Pairing`, by the summation of this field."""
        queries, keys, bias = pairing
        return softmax_mean(
            queries,
            keys,
            values,
            bias,
            causal=visibility.counts,
            visible=visibility.mask,
            summation=self.summation,
            accuracy=self.accuracy,
        )

    def dense(self, t, x, mu, mask):
        """The attention matrix (m, n) under a boolean mask (m, n) or None; nothing is checked here."""
        logits = self.logits(t, mu, self.pairing(t, x, mu))
        if mask is not None:
            logits[~mask] = -np.inf
        highest = logits.max(axis=1, keepdims=True)
        weights = np.exp(logits - np.where(highest == -np.inf, 0.0, highest))
        total = weights.sum(axis=1, keepdims=True)
        return weights / np.where(total > 0, total, 1.0)

    def logits(self, t, mu, pairing):
        """Logits plus bias up to a constant of each row, shape (m, n)."""
        queries, keys, bias = pairing
        # A shift of the keys changes no row, and keeps logits small for clouds far from the origin.
        return queries @ (keys - keys[np.argmax(bias > -np.inf)]).T + bias

    def _check(self, t, x, mu):
        if not isinstance(mu, Measure):
            raise ValueError(f"mu must be a Measure; got {type(mu).__name__}. Use Measure(points).")
        if mu.has_positions:
            raise ValueError(
                f"{type(self).__name__} does not read positions, and the measure has them. "
                "Use MaskedAttention(field) for a masked field, or Measure(mu.tokens, mu.weights) to drop them."
            )
        check_dimension(self, self.head.at(t), x, mu.points.shape[1])


def check_dimension(field, head, x, d):
    """Raise a ValueError unless points x (m, d), tokens of dimension d and the head fit together."""
    if head.query.ndim != 2:
        raise ValueError(
            f"{type(field).__name__} moves particles with one head; got a batch of heads of shape {head.query.shape}. "
            "Batches belong to simulate_ensemble."
        )
    if d != head.dimension:
        raise ValueError(
            f"tokens must have the head's dimension d = {head.dimension}; got d = {d}. "
            "Q and K need shape (k, d), V shape (d, d)."
        )
    if getattr(x, "ndim", None) != 2 or x.shape[1] != d:
        raise ValueError(
            f"x must have shape (m, {d}); got {getattr(x, 'shape', type(x).__name__)}. For one point use x[None, :]."
        )
