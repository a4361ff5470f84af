"""Observables: numbers and arrays read off one state, a Measure or a Gaussian, for ``trajectory.observe``."""

import numpy as np
from scipy.linalg import expm
from scipy.spatial.distance import cdist

from ..checks import matrix_array, number
from ..measures import Gaussian, Measure
from ..spaces import Euclidean

#: Pairs that are looked at in one block.
BLOCK_PAIRS = 1_000_000


def mean(state):
    """Mean of the tokens or of the law, shape (d,)."""
    return state.mean


def covariance(state):
    """Covariance of the tokens (divided by the total mass) or of the law, shape (d, d)."""
    return state.covariance


def covariance_eigenvalues(state):
    """Eigenvalues of the covariance, falling, not negative, shape (d,)."""
    if isinstance(state, Gaussian):
        factor = state.root
    else:
        kept = state.weights > 0
        factor = (state.centred[kept] * np.sqrt(state.weights[kept])[:, None]).T
    values = np.zeros(state.dimension)
    singular = np.linalg.svd(factor, compute_uv=False)
    # The squared singular values of a factor are exact where eigenvalues of the product would be lost to round-off.
    values[: len(singular)] = singular**2
    return values


def numerical_rank(state, *, relative=1e-10, absolute=0.0):
    """Number of covariance eigenvalues above ``max(relative * largest, absolute)``.

    Parameters
    ----------
    state : Measure or Gaussian
    relative, absolute : float
        Thresholds on eigenvalues, both at least 0. The published histograms use ``relative=0, absolute=0.1``.

    Returns
    -------
    int
    """
    relative = number("relative", relative, at_least=0)
    absolute = number("absolute", absolute, at_least=0)
    values = covariance_eigenvalues(state)
    return int((values > max(relative * values[0], absolute)).sum())


def effective_rank(state):
    """Exponential of the entropy of the normalised covariance eigenvalues, between 1 and d; 0 for a single point."""
    values = covariance_eigenvalues(state)
    total = values.sum()
    if total == 0:
        return 0.0
    shares = values[values > 0] / total
    return float(np.exp(-(shares * np.log(shares)).sum()))


def diameter(state, *, space=Euclidean()):
    """Largest distance between two tokens with mass.

    Parameters
    ----------
    state : Measure
    space : Euclidean or Sphere
        Whose distance is meant.
    """
    tokens = massive_tokens(state)
    largest = 0.0
    rows = max(BLOCK_PAIRS // len(tokens), 1)
    for start in range(0, len(tokens), rows):
        block = tokens[start : start + rows]
        largest = max(largest, float(pairwise(block, tokens, space).max()))
    return largest


def attention_entropy(field, t, mu):
    """Mean over the tokens of the entropy of their attention rows, in nats; between 0 (Boolean rows) and log n.

    Rows are divided by their sums first, so sigmoid and unnormalised weights count as shares; a row that sees nothing
    does not count.

    Parameters
    ----------
    field : attention field
        With a ``matrix``; for several heads the mean over heads is taken.
    t : float
    mu : Measure

    Raises
    ------
    ValueError
        If weights are negative (linear attention), where shares mean nothing, or every row sees nothing.
    """
    weights = np.asarray(field.matrix(t, mu.points, mu))
    if (weights < 0).any():
        raise ValueError(
            f"attention entropy needs weights that are not negative; got {weights.min():.3g} from "
            f"{type(field).__name__}. Linear attention has no attention entropy."
        )
    total = weights.sum(axis=-1, keepdims=True)
    shares = weights / np.where(total > 0, total, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0, -shares * np.log(shares), 0.0)
    seen = np.broadcast_to((total[..., 0] > 0) * mu.weights, shares.shape[:-1])
    if not seen.any():
        raise ValueError(
            "attention entropy needs a token that sees something; every row of the attention matrix is zero. "
            "Widen the mask, or raise the bias of the kernel."
        )
    return float((terms.sum(axis=-1) * seen).sum() / seen.sum())


def rescaled(value):
    """The view ``(t, measure) -> measure`` in rescaled coordinates z = e^{-tV} x, t counted from 0 [GLPR23].

    Parameters
    ----------
    value : array_like, shape (d, d)
        V, constant in time.
    """
    value = matrix_array("value", value, (None, None))

    def view(t, measure):
        return measure.moved_to(measure.points @ expm(-t * value).T)

    return view


def pairwise(x, y, space):
    """Distances (m, n) between rows, from differences and not from inner products."""
    if isinstance(space, Euclidean):
        return cdist(x, y)
    return space.distance(x[:, None, :], y[None, :, :])


def massive_tokens(state):
    """The tokens of a measure that have mass, shape (n', d)."""
    if not isinstance(state, Measure):
        raise ValueError(
            f"this observable reads tokens of a Measure; got {type(state).__name__}. Sample the law first."
        )
    return state.tokens[state.weights > 0]
