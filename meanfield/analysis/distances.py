"""Distances between laws of tokens. W_p is the p-th root everywhere; squared values have names of their own."""

import numpy as np

from ..checks import MASS_TOLERANCE, finite_array, number
from ..measures import Gaussian
from ..spaces import Euclidean, Positioned
from ..summation.balancing import NotConvergedError
from .entropic import entropic_cost, sinkhorn_divergence
from .transport import (
    MAX_PAIRS,
    MAX_PIVOTS,
    Coupling,
    clouds,
    common_scale,
    couple,
    pair_distances,
    power_mean,
    quantile_coupling,
    rescaled,
)

__all__ = [
    "Coupling",
    "NotConvergedError",
    "bures_wasserstein",
    "conditional_wasserstein",
    "entropic_cost",
    "gaussian_to_samples",
    "optimal_coupling",
    "sinkhorn_divergence",
    "sliced_wasserstein",
    "squared_wasserstein",
    "wasserstein",
]

R_D = Euclidean()
#: Floats in one block of projections.
BLOCK = 1 << 21


def wasserstein(mu, nu, p=2, *, space=R_D, max_pairs=MAX_PAIRS, max_pivots=MAX_PIVOTS):
    """W_p(mu, nu) = (min over couplings of E distance(x, y)^p)^{1/p}, exact.

    On the line the clouds are sorted, unequal weights included. Elsewhere near clouds of equal weights go
    through scipy's assignment, all others through POT's network simplex; for p = 2 on R^d the clouds are first
    brought to the same mean and covariance, which leaves the optimal coupling as it is and makes it easy to
    find. Distances are taken of differences, so a cloud at 1e8 is right.

    Parameters
    ----------
    mu, nu : Measure
        n and m tokens of the same dimension; tokens without mass do not count.
    p : float
        The order, at least 1. (The ground distance is the space's, whatever p.)
    space : Euclidean, Sphere or any object with ``distance(x, y)`` and ``check(x)``
        Its distance is the ground distance; on a sphere the geodesic one.
    max_pairs, max_pivots : int
        Limits of the cost matrix (entries n m) and of the network simplex.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        On anything but two measures of one dimension, on positioned ones, on p < 1, on too large a cost matrix,
        and on distances whose powers cannot be held in floats.
    NotConvergedError
        If the network simplex meets its limit.
    """
    p = number("p", p, at_least=1)
    (x, a, _), (y, b, _) = clouds("wasserstein", mu, nu, space)
    x, y, exponent = common_scale(x, y) if isinstance(space, Euclidean) else (x, y, 0)
    rows, columns, masses = couple(x, a, y, b, p, space, max_pairs=max_pairs, max_pivots=max_pivots)
    return rescaled(power_mean(pair_distances(x[rows], y[columns], space), masses, p), exponent)


def squared_wasserstein(mu, nu, *, space=R_D, max_pairs=MAX_PAIRS, max_pivots=MAX_PIVOTS):
    """W_2(mu, nu)^2, the squared value under its own name; parameters and errors as in `wasserstein`."""
    root = wasserstein(mu, nu, 2, space=space, max_pairs=max_pairs, max_pivots=max_pivots)
    if root > np.sqrt(np.finfo(float).max):
        raise ValueError(f"the squared distance must fit a float; got W_2 = {root:g}. Use wasserstein instead.")
    return root * root


def optimal_coupling(mu, nu, p=2, *, space=R_D, max_pairs=MAX_PAIRS, max_pivots=MAX_PIVOTS):
    """The coupling behind `wasserstein`, as a `Coupling` of token numbers; parameters and errors as there."""
    p = number("p", p, at_least=1)
    (x, a, kept_x), (y, b, kept_y) = clouds("optimal_coupling", mu, nu, space)
    x, y, _ = common_scale(x, y) if isinstance(space, Euclidean) else (x, y, 0)
    rows, columns, masses = couple(x, a, y, b, p, space, max_pairs=max_pairs, max_pivots=max_pivots)
    return Coupling(kept_x[rows], kept_y[columns], masses, (len(mu), len(nu)))


def conditional_wasserstein(mu, nu, p=2, *, space=R_D, max_pairs=MAX_PAIRS, max_pivots=MAX_PIVOTS):
    """d_p(mu, nu) = (sum_s theta(s) W_p^p(mu(.|s), nu(.|s)))^{1/p}: mass moves within its position only [CACP25].

    The distance in which masked attention is stable. It is at least W_p of the tokens without their positions.

    Parameters
    ----------
    mu, nu : Measure
        Positioned measures with the same position marginal theta: the same positions with the same masses (to
        1e-6). Tokens with equal positions form one conditional measure; their number and weights may differ
        between mu and nu.
    p, space, max_pairs, max_pivots
        As in `wasserstein`; the space is that of the tokens.

    Raises
    ------
    ValueError
        Without positions, and if the position marginals differ; otherwise as in `wasserstein`.
    """
    p = number("p", p, at_least=1)
    space = space.base if isinstance(space, Positioned) else space
    (x, a, kept_x), (y, b, kept_y) = clouds("conditional_wasserstein", mu, nu, space, positioned=True)
    groups = _positions(mu.positions[kept_x], a, nu.positions[kept_y], b)
    x, y, exponent = common_scale(x, y) if isinstance(space, Euclidean) else (x, y, 0)
    parts = []
    for theta, at_x, at_y in groups:
        a_s, b_s = a[at_x] / a[at_x].sum(), b[at_y] / b[at_y].sum()
        rows, columns, masses = couple(
            x[at_x], a_s, y[at_y], b_s, p, space, max_pairs=max_pairs, max_pivots=max_pivots
        )
        parts.append((at_x[rows], at_y[columns], theta * masses))
    rows, columns, masses = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rescaled(power_mean(pair_distances(x[rows], y[columns], space), masses, p), exponent)


def sliced_wasserstein(mu, nu, p=2, *, directions=100, rng=None):
    """SW_p(mu, nu) = (mean over directions u of W_p^p(<u, mu>, <u, nu>))^{1/p}, the one-dimensional distances exact.

    Costs two sorts a direction and a few buffers of n floats, so it serves where the cost matrix of
    `wasserstein` does not fit.

    Parameters
    ----------
    mu, nu : Measure
    p : float
        At least 1.
    directions : int or array_like, shape (L, d)
        A number of directions to draw uniformly, or the directions; only where they point counts, not their
        lengths.
    rng : numpy.random.Generator
        Needed when directions are drawn, except in one dimension, where there is only one.

    Raises
    ------
    ValueError
        On a zero direction or a wrong shape, and on a number of directions without ``rng``; otherwise as in
        `wasserstein`.
    """
    p = number("p", p, at_least=1)
    (x, a, _), (y, b, _) = clouds("sliced_wasserstein", mu, nu, R_D)
    directions = _directions(directions, rng, x.shape[1])
    x, y, exponent = common_scale(x, y)
    origin = (a @ x + b @ y) / 2
    x, y = x - origin, y - origin
    plan = quantile_coupling(a, b) if np.ptp(a) == 0 and np.ptp(b) == 0 else None
    rows = max(1, BLOCK // (len(x) + len(y)))
    values = np.empty(len(directions))
    for start in range(0, len(directions), rows):
        block = directions[start : start + rows]
        along_x, along_y = block @ x.T, block @ y.T
        if plan is None:
            values[start : start + rows] = [_on_line(u, a, v, b, p) for u, v in zip(along_x, along_y, strict=True)]
        else:
            along_x.sort(axis=1)
            along_y.sort(axis=1)
            if len(a) != len(b):
                along_x, along_y = along_x[:, plan[0]], along_y[:, plan[1]]
            along_x -= along_y
            values[start : start + rows] = power_mean(np.abs(along_x, out=along_x), plan[2], p)
    return rescaled(power_mean(values, np.full(len(values), 1 / len(values)), p), exponent)


def bures_wasserstein(first, second):
    """W_2 of two Gaussians: (|m0 - m1|^2 + min over orthogonal U of |L0 - L1 U|_F^2)^{1/2}, S = L L^T.

    The second term is tr S0 + tr S1 - 2 tr (S0^{1/2} S1 S0^{1/2})^{1/2}, written as the distance of two square
    roots, U from the singular vectors of L1^T L0: no difference of large traces, no square root of a product,
    singular covariances included.

    Parameters
    ----------
    first, second : Gaussian
        Of the same dimension.

    Raises
    ------
    ValueError
        If these are no Gaussians of one dimension.
    """
    for name, law in (("first", first), ("second", second)):
        _require_gaussian("bures_wasserstein", name, law)
    if first.dimension != second.dimension:
        raise ValueError(f"both laws must have the same dimension; got {first.dimension} and {second.dimension}.")
    return _procrustes(first.mean, first.root, second.mean, second.root)


def gaussian_to_samples(law, mu):
    """W_2 between a Gaussian and a cloud: exact in one dimension, Gelbrich's lower bound above.

    In one dimension the quantile coupling gives W_2^2 = (m - mean)^2 + s^2 + var - 2 s sum_i (x_i -
    mean)(phi(z_{i-1}) - phi(z_i)), z_i the standard normal quantile of the mass up to the i-th point. In d >= 2
    no closed form exists: the value is the Bures-Wasserstein distance of the first two moments, **never more
    than W_2**, and zero exactly when the moments agree (it does not see other differences). For W_2 itself
    compare with a large sample, ``wasserstein(mu, law.sample(n, rng))``.

    Parameters
    ----------
    law : Gaussian
    mu : Measure
        Without positions, of the same dimension.

    Raises
    ------
    ValueError
        On other kinds of arguments and on different dimensions.
    """
    _require_gaussian("gaussian_to_samples", "law", law)
    (x, a, _), _ = clouds("gaussian_to_samples", mu, mu, R_D)
    if x.shape[1] != law.dimension:
        raise ValueError(f"law and mu must have the same dimension; got {law.dimension} and {x.shape[1]}.")
    x = x - law.mean
    mean = a @ x
    x -= mean
    if law.dimension > 1:
        triangle = np.linalg.qr(x * np.sqrt(a)[:, None], mode="r")
        return _procrustes(np.zeros(len(mean)), law.root, mean, triangle.T)
    from scipy.special import ndtri

    order = np.argsort(x[:, 0])
    deviation = float(np.sqrt(law.covariance[0, 0]))
    quantiles = ndtri(np.minimum(np.cumsum(a[order])[:-1], 1.0))
    density = np.concatenate([[0.0], np.exp(-(quantiles**2) / 2) / np.sqrt(2 * np.pi), [0.0]])
    covariance = x[order, 0] @ -np.diff(density)
    return float(np.sqrt(mean[0] ** 2 + deviation**2 + a @ x[:, 0] ** 2 - 2 * deviation * covariance))


def _positions(s, a, r, b):
    """(theta, tokens of mu, tokens of nu) for each position; a ValueError if the position marginals differ."""
    (places, at_s), (others, at_r) = np.unique(s, return_inverse=True), np.unique(r, return_inverse=True)
    theta, other_theta = np.bincount(at_s, a), np.bincount(at_r, b)
    if not np.array_equal(places, others):
        lone = np.setxor1d(places, others)
        raise ValueError(
            f"mu and nu must have the same positions; {lone.size} occur in one only, the first being {lone[0]:g}. "
            "Mass cannot move between positions: give both the same ones, or compare the tokens alone by "
            "wasserstein(Measure(mu.tokens, mu.weights), Measure(nu.tokens, nu.weights))."
        )
    worst = int(np.argmax(np.abs(theta - other_theta)))
    if abs(theta[worst] - other_theta[worst]) > MASS_TOLERANCE:
        raise ValueError(
            f"mu and nu must have the same mass at every position; at {places[worst]:g} they have {theta[worst]:g} and "
            f"{other_theta[worst]:g}. Mass cannot move between positions: reweight, or compare the tokens alone."
        )
    tokens_x = np.split(np.argsort(at_s, kind="stable"), np.cumsum(np.bincount(at_s))[:-1])
    tokens_y = np.split(np.argsort(at_r, kind="stable"), np.cumsum(np.bincount(at_r))[:-1])
    return list(zip((theta + other_theta) / 2, tokens_x, tokens_y, strict=True))


def _on_line(u, a, v, b, p):
    """W_p of two weighted clouds on a line."""
    order_u, order_v = np.argsort(u), np.argsort(v)
    rows, columns, masses = quantile_coupling(a[order_u], b[order_v])
    return power_mean(np.abs(u[order_u[rows]] - v[order_v[columns]]), masses, p)


def _directions(directions, rng, d):
    """Unit directions, shape (L, d): those given, scaled to length one, or a number of them drawn uniformly."""
    if np.ndim(directions) == 0:
        count = number("directions", directions, at_least=1, integer=True)
        if d == 1:
            return np.ones((1, 1))
        if rng is None:
            raise ValueError(
                f"{count} directions in dimension {d} must be drawn from a generator; got none. "
                "Pass rng=np.random.default_rng(seed), or an array of directions of shape (L, d)."
            )
        directions = rng.standard_normal((count, d))
    directions = finite_array("directions", directions)
    if directions.ndim != 2 or directions.shape[1] != d or len(directions) == 0:
        raise ValueError(
            f"directions must have shape (L, {d}), one a row, or be a number; got shape {directions.shape}. "
            "For one direction use u[None, :]."
        )
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    if not lengths.all():
        raise ValueError(f"directions must not be zero; row {int(np.argmin(lengths))} is. Remove it.")
    return directions / lengths


def _require_gaussian(caller, name, law):
    if not isinstance(law, Gaussian) or law.mean.ndim != 1:
        raise ValueError(
            f"{caller} needs {name} to be one Gaussian; got {type(law).__name__}. "
            "Build it as Gaussian(mean, covariance); for samples on both sides use wasserstein."
        )


def _procrustes(mean, root, other_mean, other_root):
    """(|m0 - m1|^2 + min over orthogonal U of |L0 - L1 U|_F^2)^{1/2}; roots of any numbers of columns."""
    columns = max(root.shape[1], other_root.shape[1], 1)
    root, other_root = (np.pad(L, ((0, 0), (0, columns - L.shape[1]))) for L in (root, other_root))
    left, _, right = np.linalg.svd(other_root.T @ root)
    return float(np.hypot(np.linalg.norm(mean - other_mean), np.linalg.norm(root - other_root @ (left @ right))))
