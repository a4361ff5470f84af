"""The detector of merging: when tokens came together, from output times or by a closer look between them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise as neighbours

import numpy as np

from ..checks import number
from ..integration.simulate import simulate
from ..measures import Measure
from ..spaces import Euclidean, Sphere
from .clustering import clusters
from .merge_tree import Branch, MergeTree, Split


def _as_it_is(t, measure):
    return measure


@dataclass(frozen=True)
class MergingDetector:
    """Reads off a run when its tokens merged: called with a trajectory it returns a `MergeTree`.

    Parameters
    ----------
    gap : float
        Tokens at most this far apart belong together, and so do those that a chain of such steps joins.
    space : Euclidean or Sphere
        Whose distance is meant.
    view : callable
        ``view(t, measure) -> measure``: the coordinates to look in, for instance `rescaled` (V).
    resolution : float, optional
        Merges are known up to the distance of output times, unless this asks for more: then every interval in which the
        clusters change is run again, from its stored beginning, by the adaptive scheme, with output times this close.
        That is for runs of the ODE, not for fixed steps that stand for layers.

    Notes
    -----
    A run that ended between two output times is read up to its end. Clusters that part and meet again between two
    instants are not seen.
    """

    gap: float
    space: Euclidean | Sphere = field(default=Euclidean(), kw_only=True)
    view: Callable = field(default=_as_it_is, kw_only=True)
    resolution: float | None = field(default=None, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "gap", number("gap", self.gap, above=0))
        if self.resolution is not None:
            object.__setattr__(self, "resolution", number("resolution", self.resolution, above=0))

    def __call__(self, trajectory):
        """The merges of a trajectory of tokens."""
        moments = [(float(t), state) for t, state in trajectory.items()]
        if trajectory.last is not None and trajectory.last.time > moments[-1][0]:
            moments.append((float(trajectory.last.time), trajectory.last.state))
        if not isinstance(moments[0][1], Measure):
            raise ValueError(
                f"merging is read off a Measure; got {type(moments[0][1]).__name__}. "
                "A Gaussian has no tokens to merge: use ClusteringDetector, or simulate law.sample(n, rng)."
            )
        found = [self._clusters(*moment) for moment in moments]
        if self.resolution is not None:
            moments, found = self._refined(trajectory, moments, found)
        times = np.array([t for t, _ in moments])
        weights = moments[0][1].weights
        tokens = np.flatnonzero(weights > 0)
        labels = np.stack([one.labels[tokens] for one in found])
        branches = _branches(times, _together(labels), tokens, weights)
        return MergeTree(times, tuple(found), tokens, branches, _splits(times, labels, tokens), self.gap)

    def _clusters(self, t, measure):
        return clusters(self.view(t, measure), self.gap, space=self.space)

    def _refined(self, trajectory, moments, found):
        """Moments and clusters with those of new runs put into the intervals in which the clusters change."""
        fine_moments, fine_found = moments[:1], found[:1]
        for (before, after), (old, new) in zip(neighbours(moments), neighbours(found), strict=True):
            if not np.array_equal(old.labels, new.labels):
                inner = self._run_again(trajectory.flow, before, after)
                fine_moments += inner
                fine_found += [self._clusters(*moment) for moment in inner]
            fine_moments.append(after)
            fine_found.append(new)
        return fine_moments, fine_found

    def _run_again(self, flow, before, after):
        """States strictly inside an interval, ``resolution`` apart or closer."""
        (start, state), (end, wanted) = before, after
        pieces = int(np.ceil((end - start) / self.resolution))
        again = simulate(flow.field, state, np.linspace(start, end, pieces + 1), space=flow.space, progress=False)
        miss = np.abs(again.last.state.points - wanted.points).max()
        if again.last.time < end or miss > self.gap:
            raise ValueError(
                f"resolution needs a run that an accurate one can follow; from t = {start:g} it ended at "
                f"t = {again.last.time:g} instead of {end:g}, {miss:.3g} away from what is stored (gap {self.gap:g}). "
                "Leave resolution out, and ask the run itself for more output times."
            )
        return [(float(t), inner) for t, inner in again.items()][1:-1]


def _together(labels):
    """Blocks of tokens in one cluster from each instant up to the end, shape (k, m): coarser and coarser partitions."""
    blocks = np.empty_like(labels)
    blocks[-1] = labels[-1]
    for k in range(len(labels) - 2, -1, -1):
        pairs = np.stack([labels[k], blocks[k + 1]])
        blocks[k] = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    return blocks


def _branches(times, blocks, tokens, weights):
    """The leaves and the merges, from the nested partitions of `_together`."""
    living = np.arange(len(tokens))  # the branch each leaf is on
    births, members, children = [times[0]] * len(tokens), [np.array([k]) for k in living], [()] * len(tokens)
    deaths = [np.inf] * len(tokens)
    for t, block in zip(times, blocks, strict=True):
        for label in range(block.max() + 1):
            inside = np.flatnonzero(block == label)
            merging = np.unique(living[inside])
            if len(merging) > 1:
                for one in merging:
                    deaths[one] = t
                living[inside] = len(births)
                births.append(t)
                members.append(inside)
                children.append(tuple(int(one) for one in merging))
                deaths.append(np.inf)
    return tuple(
        Branch(tokens[inside], float(weights[tokens[inside]].sum()), float(birth), float(death), parts)
        for inside, birth, death, parts in zip(members, births, deaths, children, strict=True)
    )


def _splits(times, labels, tokens):
    """Every cluster that is not within one cluster at the next instant."""
    found = []
    for k in range(1, len(times)):
        for label in range(labels[k - 1].max() + 1):
            inside = np.flatnonzero(labels[k - 1] == label)
            parts = np.unique(labels[k, inside])
            if len(parts) > 1:
                rows = tuple(tokens[inside[labels[k, inside] == part]] for part in parts)
                found.append(Split(float(times[k]), rows))
    return tuple(found)
