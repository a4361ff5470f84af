"""Rank collapse: numerical and effective rank over time, of the covariance and of the attention matrix."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..checks import number
from ..measures import Measure
from ..verdict import Verdict
from .lasting import time_since
from .observables import covariance_eigenvalues


def covariance_spectrum(t, state):
    """Eigenvalues of the covariance of tokens or of a Gaussian, falling, shape (d,)."""
    return covariance_eigenvalues(state)


@dataclass(frozen=True)
class AttentionSpectrum:
    """Singular values of attention along a run, ``(t, measure) -> (n',)`` falling, or (heads, n') for several heads.

    Attention is an operator on functions of tokens, f -> sum_j P_ij f_j; in L^2(mu) its singular values are those of
    sqrt(w_i) P_ij / sqrt(w_j). For equal weights that is P itself; a token split in two leaves them unchanged, and
    tokens without mass do not count.

    Parameters
    ----------
    attention : attention field
        With a ``matrix``.
    """

    attention: object

    def __call__(self, t, state):
        """The singular values at one moment."""
        if not isinstance(state, Measure):
            raise ValueError(
                f"the attention matrix belongs to tokens; got {type(state).__name__}. Use law.sample(n, rng)."
            )
        massive = state.weights > 0
        root = np.sqrt(state.weights[massive])
        matrix = np.asarray(self.attention.matrix(t, state.points, state))[..., massive, :][..., massive]
        return np.linalg.svd(root[:, None] * matrix / root, compute_uv=False)


def count_above(values, *, relative=1e-10, absolute=0.0):
    """How many of falling values (..., r) exceed ``max(relative * largest, absolute)``, shape (...)."""
    return (values > np.maximum(relative * values[..., :1], absolute)).sum(axis=-1)


def effective_number(values):
    """exp of the entropy of values (..., r) divided by their sum, between 1 and r; 0 where all are zero."""
    total = values.sum(axis=-1, keepdims=True)
    shares = values / np.where(total > 0, total, 1.0)
    logarithms = np.log(np.where(shares > 0, shares, 1.0))
    return np.where(total[..., 0] > 0, np.exp(-(shares * logarithms).sum(axis=-1)), 0.0)


@dataclass(frozen=True)
class RankCollapseDetector:
    """Says whether a rank falls to ``at_most``, and since when.

    Parameters
    ----------
    at_most : int
        The rank that counts as collapse.
    spectrum : callable
        ``spectrum(t, state) -> values`` falling along the last axis: `covariance_spectrum` by default, or
        ``AttentionSpectrum(field)``, or your own. With several heads the largest rank counts.
    relative, absolute : float
        A value counts when it exceeds ``max(relative * largest, absolute)``.

    Notes
    -----
    Called with a trajectory it returns a `Verdict` of kind "rank collapse". The rank of a covariance is constant in
    finite time, and only the limit loses some [CACP25]: what is seen to fall is the numerical rank, by the thresholds
    in the evidence. The evidence also holds ``ranks`` and ``effective_ranks`` (k,) or (k, heads) at ``times``, and the
    ``spectrum`` at the end. The effective rank is the exponential of the entropy of the values divided by their sum.
    """

    at_most: int = 1
    spectrum: Callable = field(default=covariance_spectrum, kw_only=True)
    relative: float = field(default=1e-10, kw_only=True)
    absolute: float = field(default=0.0, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "at_most", number("at_most", self.at_most, at_least=0, integer=True))
        if not callable(self.spectrum) or hasattr(self.spectrum, "matrix"):
            raise ValueError(
                f"spectrum must be callable, (t, state) -> falling values; got {type(self.spectrum).__name__}. "
                "For a field use AttentionSpectrum(field)."
            )
        for name in ("relative", "absolute"):
            object.__setattr__(self, name, number(name, getattr(self, name), at_least=0))

    def __call__(self, trajectory):
        """Judge a trajectory."""
        values = np.array([self.spectrum(t, state) for t, state in trajectory.items()])
        ranks = count_above(values, relative=self.relative, absolute=self.absolute)
        largest = ranks.reshape(len(ranks), -1).max(axis=1)
        time = time_since(trajectory.times, largest <= self.at_most)
        evidence = {
            "times": trajectory.times,
            "ranks": ranks,
            "effective_ranks": effective_number(values),
            "spectrum": values[-1],
            "relative": self.relative,
            "absolute": self.absolute,
            "outcome": trajectory.outcome.name,
            "reason": f"{largest[0]} at the start, {largest[-1]} at t = {trajectory.times[-1]:g}",
        }
        return Verdict("rank collapse", time is not None, time, evidence)
