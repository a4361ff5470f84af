"""Clusters of tokens, as connected components that no order of the tokens can change, and their detector."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..checks import number
from ..measures import Gaussian, Measure
from ..spaces import Euclidean, Sphere
from ..verdict import Verdict
from .observables import BLOCK_PAIRS, covariance_eigenvalues, diameter, pairwise


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of a measure.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        Cluster of each token, numbered by the smallest index in it; -1 for tokens without mass.
    masses : ndarray, shape (count,)
    centres : ndarray, shape (count, d)
        Mean token of each cluster (not retracted to a sphere).
    """

    labels: np.ndarray
    masses: np.ndarray
    centres: np.ndarray

    @property
    def count(self):
        """Number of clusters."""
        return len(self.masses)

    @property
    def sizes(self):
        """Tokens in each cluster, shape (count,)."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.count)

    def __len__(self):
        return self.count

    def __array__(self, dtype=None, copy=None):
        return np.array(self.labels, dtype=dtype, copy=copy)


def clusters(measure, gap, *, space=Euclidean()):
    """Connected components of the tokens under "distance at most gap".

    Parameters
    ----------
    measure : Measure
        Positions are not counted; tokens without mass belong to no cluster.
    gap : float
        Greater than zero.
    space : Euclidean or Sphere
        Whose distance is meant (geodesic on a sphere).

    Returns
    -------
    Clusters
        Independent of the order of the tokens, up to their numbering by smallest index.
    """
    if not isinstance(measure, Measure):
        raise ValueError(f"clusters are found in a Measure; got {type(measure).__name__}. Use Measure(points).")
    gap = number("gap", gap, above=0)
    massive = np.flatnonzero(measure.weights > 0)
    tokens = measure.tokens[massive]
    labels = np.full(len(measure), -1)
    labels[massive] = found = _components(tokens, gap, space)
    masses = np.bincount(found, weights=measure.weights[massive])
    sums = np.stack([np.bincount(found, weights=measure.weights[massive] * column) for column in tokens.T], axis=1)
    return Clusters(labels, masses, sums / masses[:, None])


def cluster_count(measure, gap, *, space=Euclidean()):
    """Number of `clusters`."""
    return clusters(measure, gap, space=space).count


def _components(tokens, gap, space):
    """Labels by flooding: each token is compared once with those not yet reached, so clusters never cost n^2 memory."""
    labels = np.empty(len(tokens), dtype=int)
    waiting = np.arange(len(tokens))
    count = 0
    while len(waiting):
        front, waiting = waiting[:1], waiting[1:]
        labels[front] = count
        while len(front) and len(waiting):
            batch = max(BLOCK_PAIRS // len(waiting), 1)
            now, front = front[:batch], front[batch:]
            touched = (pairwise(tokens[now], tokens[waiting], space) <= gap).any(axis=0)
            labels[waiting[touched]] = count
            front = np.concatenate([front, waiting[touched]])
            waiting = waiting[~touched]
        count += 1
    return labels


def _as_it_is(t, measure):
    return measure


@dataclass(frozen=True)
class ClusteringDetector:
    """Says whether tokens end in few clusters, or a Gaussian in few directions, and since when.

    Parameters
    ----------
    gap : float
        Tokens at most this far apart belong together; a direction of a Gaussian whose standard deviation is at most
        this has collapsed.
    at_most : int
        Clusters, or directions left, that count as clustering. For tokens 1 by default (consensus).
    space : Euclidean or Sphere
    view : callable
        ``view(t, measure) -> measure``: the coordinates to look in, for instance `rescaled` (V).

    Notes
    -----
    Called with a trajectory it returns a `Verdict` of kind "clustering": ``time`` is the first output time from
    which on the count stays at or below ``at_most``; the evidence holds the counts at all output times.
    """

    gap: float
    at_most: int = 1
    space: Euclidean | Sphere = field(default=Euclidean(), kw_only=True)
    view: Callable = field(default=_as_it_is, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "gap", number("gap", self.gap, above=0))
        object.__setattr__(self, "at_most", number("at_most", self.at_most, at_least=0, integer=True))

    def __call__(self, trajectory):
        """Judge a trajectory."""
        counts = np.array([self._count(t, state) for t, state in trajectory.items()])
        few = counts <= self.at_most
        happened = bool(few[-1])
        since = len(few) - int(np.argmin(few[::-1])) if not few.all() else 0
        evidence = {
            "times": trajectory.times,
            "counts": counts,
            "gap": self.gap,
            "at_most": self.at_most,
            "outcome": trajectory.outcome.name,
            "reason": f"{counts[0]} at the start, {counts[-1]} at t = {trajectory.times[-1]:g}",
        }
        last = trajectory[len(trajectory) - 1]
        if isinstance(last, Measure):
            last = self.view(trajectory.times[-1], last)
            evidence["clusters"] = clusters(last, self.gap, space=self.space)
            evidence["diameter"] = diameter(last, space=self.space)
        else:
            evidence["eigenvalues"] = covariance_eigenvalues(last)
        return Verdict("clustering", happened, float(trajectory.times[since]) if happened else None, evidence)

    def _count(self, t, state):
        if isinstance(state, Gaussian):
            return int((np.sqrt(covariance_eigenvalues(state)) > self.gap).sum())
        return cluster_count(self.view(t, state), self.gap, space=self.space)
