"""The tree of merges: which tokens came together for good, when, for how long, and which clusters split again."""

from dataclasses import dataclass

import numpy as np

from ..checks import number
from .lasting import time_since


@dataclass(frozen=True, eq=False)
class Branch:
    """Tokens that stay together from ``birth`` on, up to the merge with others at ``death``.

    Attributes
    ----------
    tokens : ndarray of int
        Rows of the measure.
    mass : float
    birth, death : float
        Times; death is infinite for clusters that are left at the end.
    children : tuple of int
        The branches that merged into this one, two or more; none for a single token.
    """

    tokens: np.ndarray
    mass: float
    birth: float
    death: float
    children: tuple[int, ...]

    @property
    def persistence(self):
        """How long it lived; infinite if it is left at the end."""
        return self.death - self.birth


@dataclass(frozen=True, eq=False)
class Split:
    """A cluster that was one at the instant before ``time`` and is several at ``time``: arrays of rows in ``parts``."""

    time: float
    parts: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class MergeTree:
    """Which tokens merged, and when.

    Two tokens have *merged for good* at the first instant from which on they are in one cluster up to the end. These
    times are an ultrametric whatever the clusters do in between, hence a tree; what it leaves out, clusters that split
    again, is in ``splits``.

    Attributes
    ----------
    instants : ndarray, shape (k,)
        The times that were looked at: the output times, and more where the tree was refined.
    clusters : tuple of Clusters
        What there was at each instant, with masses and centres.
    tokens : ndarray of int, shape (m,)
        Rows of the measure that have mass: the leaves of the tree.
    branches : tuple of Branch
        The m leaves, then one for each merge, by birth.
    splits : tuple of Split
    gap : float
    """

    instants: np.ndarray
    clusters: tuple
    tokens: np.ndarray
    branches: tuple
    splits: tuple
    gap: float

    @property
    def counts(self):
        """Number of clusters at each instant, shape (k,)."""
        return np.array([found.count for found in self.clusters])

    @property
    def merges(self):
        """The branches that are merges, by birth."""
        return self.branches[len(self.tokens) :]

    @property
    def times(self):
        """Times of the merges for good, rising; a merge of r branches in one instant counts r - 1 times.

        As many as tokens, less the clusters left at the end. A merge lies in (time - resolution, time].
        """
        return np.array([branch.birth for branch in self.merges for _ in branch.children[1:]])

    @property
    def resolution(self):
        """How well each of the ``times`` is known: the distance to the instant before; zero at the start."""
        before = np.maximum(np.searchsorted(self.instants, self.times) - 1, 0)
        return self.times - self.instants[before]

    @property
    def persistence(self):
        """How long each of the ``branches`` lived, infinite for those left at the end."""
        return np.array([branch.persistence for branch in self.branches])

    @property
    def consensus_time(self):
        """Since when all mass is in one cluster for good, or None."""
        return time_since(self.instants, self.counts == 1)

    def clusters_at(self, t):
        """The `Clusters` at the last instant not after t, with labels, masses and centres."""
        t = number("t", t)
        if not self.instants[0] <= t <= self.instants[-1]:
            raise ValueError(
                f"t must lie in the run, {self.instants[0]:g} to {self.instants[-1]:g}; got {t:g}. "
                "Simulate up to that time first."
            )
        return self.clusters[int(np.searchsorted(self.instants, t, side="right")) - 1]

    def linkage(self, *, roof=None):
        """The tree in the form of scipy.cluster.hierarchy: rows [a, b, height, tokens], heights from the start on.

        Leaf k is row ``tokens[k]`` of the measure. Merges of several branches in one instant are written as pairs of
        one height.

        Parameters
        ----------
        roof : float, optional
            The height at which clusters left at the end are joined, as scipy knows no forest: above the length of the
            run, by default by a tenth of it.

        Returns
        -------
        ndarray, shape (m - 1, 4)
        """
        start, length = self.instants[0], self.instants[-1] - self.instants[0]
        roof = 1.1 * length if roof is None else number("roof", roof, above=length)
        names, sizes, rows = [], [], []
        for index, branch in enumerate(self.branches):
            sizes.append(len(branch.tokens))
            parts = [(names[child], sizes[child]) for child in branch.children]
            names.append(_join(parts, branch.birth - start, self.tokens, rows) if parts else index)
        left = [k for k, branch in enumerate(self.branches) if np.isinf(branch.death)]
        _join([(names[k], sizes[k]) for k in left], roof, self.tokens, rows)
        return np.array(rows, dtype=float).reshape(-1, 4)

    def arrays(self):
        """What a record keeps: instants, counts, times, resolution, linkage, split times, consensus_time (or inf)."""
        return {
            "instants": self.instants,
            "counts": self.counts,
            "times": self.times,
            "resolution": self.resolution,
            "linkage": self.linkage(),
            "splits": np.array([split.time for split in self.splits]),
            "consensus_time": np.inf if self.consensus_time is None else self.consensus_time,
        }


def _join(parts, height, tokens, rows):
    """Write pairs that join the parts (name, size) one after the other; returns the name of the whole."""
    (name, size), *others = parts
    for other, more in others:
        size += more
        rows.append((name, other, height, size))
        name = len(tokens) + len(rows) - 1
    return name
