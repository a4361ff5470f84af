"""Boolean attention: rows that lie on one token, the leaders they lie on, and the detector of both [GLPR23]."""

from dataclasses import dataclass, field

import numpy as np

from ..checks import number
from ..measures import Measure
from ..spaces import Euclidean, Sphere
from ..verdict import Verdict
from .clustering import clusters
from .lasting import time_since


def attention_shares(attention, t, mu, *, gap=None, space=Euclidean()):
    """Rows of the attention matrix, each divided by its sum.

    Parameters
    ----------
    attention : attention field
        With a ``matrix``; several heads are several matrices.
    t : float
    mu : Measure
    gap : float, optional
        Tokens at most this far apart count as one column (`clusters`), so that coincident tokens do not share a row's
        weight between them; without it each token has its own.
    space : Euclidean or Sphere
        Whose distance the gap is.

    Returns
    -------
    shares : ndarray, shape (heads, rows, columns)
        Only rows of tokens with mass; a row that sees nothing is zero.
    columns : ndarray of int, shape (columns,)
        The first token of each column.

    Raises
    ------
    ValueError
        If weights are negative (linear attention), where shares mean nothing.
    """
    if not isinstance(mu, Measure):
        raise ValueError(f"attention rows belong to tokens; got {type(mu).__name__}. Use law.sample(n, rng).")
    massive = np.flatnonzero(mu.weights > 0)
    weights = np.asarray(attention.matrix(t, mu.points, mu))[..., massive, :]
    weights = weights.reshape(-1, *weights.shape[-2:])[..., massive]
    if (weights < 0).any():
        raise ValueError(
            f"shares of attention need weights that are not negative; got {weights.min():.3g} from "
            f"{type(attention).__name__}. Linear attention has no Boolean limit."
        )
    columns = massive
    if gap is not None:
        labels = clusters(mu, gap, space=space).labels[massive]
        columns = massive[np.unique(labels, return_index=True)[1]]
        weights = weights @ (labels[:, None] == np.arange(len(columns)))
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0), columns


def followers(attention, t, mu, *, share=0.5, gap=None, space=Euclidean()):
    """The mass that follows each token: the mass of the rows that put at least ``share`` of their weight on its column.

    A token whose column has followers is a *leader*; a token that looks at itself alone follows itself. With several
    heads the masses are averaged over them.

    Parameters
    ----------
    attention, t, mu, gap, space
        As for `attention_shares`.
    share : float
        Above 0; from 1/2 on a row follows one token at most, up to a tie.

    Returns
    -------
    ndarray, shape (n,)
        Zero for tokens that nobody follows, and within a gap for all but the first token of a column.
    """
    share = number("share", share, above=0)
    shares, columns = attention_shares(attention, t, mu, gap=gap, space=space)
    result = np.zeros(len(mu))
    result[columns] = ((shares >= share) * mu.weights[mu.weights > 0][:, None]).sum(axis=1).mean(axis=0)
    return result


def leaders(attention, t, mu, *, share=0.5, gap=None, space=Euclidean()):
    """Rows of the measure that have `followers`, rising."""
    return np.flatnonzero(followers(attention, t, mu, share=share, gap=gap, space=space) > 0)


@dataclass(frozen=True)
class BooleanAttentionDetector:
    """Says whether every row of attention ends on one token, since when, and on which ones.

    Parameters
    ----------
    attention : attention field
        The field of the run, or any other that is to be read along it.
    tolerance : float
        A row is Boolean when all but this share of its weight is on one column.
    exceptions : int
        Rows that need not be: on the line, one token at most stays undecided [GLPR23].
    gap : float, optional
        Columns of tokens this near count as one, see `attention_shares`.
    space : Euclidean or Sphere

    Notes
    -----
    Called with a trajectory it returns a `Verdict` of kind "Boolean attention". The evidence holds, at each of
    ``times``, the rows that are ``undecided`` and the number of ``leaders`` (tokens with a Boolean row on them), and
    the leaders and ``followers`` (masses) at the end.
    """

    attention: object
    tolerance: float = field(default=1e-3, kw_only=True)
    exceptions: int = field(default=0, kw_only=True)
    gap: float | None = field(default=None, kw_only=True)
    space: Euclidean | Sphere = field(default=Euclidean(), kw_only=True)

    def __post_init__(self):
        tolerance = number("tolerance", self.tolerance, above=0)
        if tolerance >= 0.5:
            raise ValueError(f"tolerance must be below 1/2, or a row may be on two tokens; got {tolerance:g}.")
        object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "exceptions", number("exceptions", self.exceptions, at_least=0, integer=True))

    def __call__(self, trajectory):
        """Judge a trajectory."""
        undecided, counts = [], []
        for t, mu in trajectory.items():
            shares, _ = attention_shares(self.attention, t, mu, gap=self.gap, space=self.space)
            boolean = shares >= 1 - self.tolerance
            seeing = shares.sum(axis=-1) > 0
            undecided.append(int((seeing & ~boolean.any(axis=-1)).sum()))
            counts.append(int(boolean.any(axis=(0, 1)).sum()))
        last, mu = trajectory.times[-1], trajectory[len(trajectory) - 1]
        following = followers(self.attention, last, mu, share=1 - self.tolerance, gap=self.gap, space=self.space)
        time = time_since(trajectory.times, np.array(undecided) <= self.exceptions)
        evidence = {
            "times": trajectory.times,
            "undecided": np.array(undecided),
            "leaders": np.array(counts),
            "leaders_at_end": np.flatnonzero(following > 0),
            "followers": following,
            "tolerance": self.tolerance,
            "outcome": trajectory.outcome.name,
            "reason": f"{undecided[0]} undecided rows at the start, {undecided[-1]} at t = {last:g}",
        }
        return Verdict("Boolean attention", time is not None, time, evidence)
