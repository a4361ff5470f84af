"""Pairs of tokens with the weight e^{x^T A^T y}: their sums over a measure, their integrals over a Gaussian."""

from typing import NamedTuple

import numpy as np

from ..summation.select import softmax_mean
from .base import OutsideDomainError


class RowMoments(NamedTuple):
    """Over the row softmax_j(x_i^T A^T x_j + b_j): mean and variance of c'_ij, mean of c''_ij, and log normaliser.

    c_ij(s) is the logit x^T A^T y along the displacement; all have shape (n,).
    """

    slope: np.ndarray
    variance: np.ndarray
    bend: np.ndarray
    log_total: np.ndarray


def log_sums(x, A, y, bias, values=None):
    """Softmax averages of values (n, p) and log normalisers over logits x^T A^T y + bias, as `softmax_mean` gives."""
    return softmax_mean(x @ A.T, y, values, bias)


def row_moments(x, u, A, bias):
    """The `RowMoments` at the tokens x (n, d) that move with velocities u (n, d).

    c' = <A u_i, x_j> + <A x_i, u_j> and c'' = 2 <A u_i, u_j>: their moments are those of the 2d numbers [x_j | u_j],
    so that no array of pairs is made.
    """
    # Measured from one token, so that second moments are those of the cloud and not of its place.
    centre = x.mean(axis=0)
    columns = np.concatenate([x - centre, u], axis=1)
    k = columns.shape[1]
    upper = np.triu_indices(k)
    products = columns[:, upper[0]] * columns[:, upper[1]]
    means, log_total = log_sums(x, A, x, bias, np.concatenate([columns, products], axis=1))
    first, second = means[:, :k], np.empty((len(x), k, k))
    second[:, upper[0], upper[1]] = means[:, k:]
    second[:, upper[1], upper[0]] = means[:, k:]
    Au = u @ A.T
    weights = np.concatenate([Au, x @ A.T], axis=1)
    offset = Au @ centre
    slope = np.einsum("ij,ij->i", weights, first)
    variance = np.einsum("ij,ijk,ik->i", weights, second, weights) - slope**2
    bend = 2 * np.einsum("ij,ij->i", Au, first[:, k // 2 :])
    return RowMoments(slope + offset, variance, bend, log_total)


class LogPairs(NamedTuple):
    """log of the sum of w_i w_j e^{x_i^T A^T x_j} with its first two derivatives along a displacement."""

    value: float
    first: float
    second: float


def log_pairs_of_measure(mu, A, u):
    """The `LogPairs` of a measure that moves with velocities u (n, d)."""
    rows = row_moments(mu.points, u, A, mu.log_weights)
    logs = mu.log_weights + rows.log_total
    value = np.logaddexp.reduce(logs)
    p = np.exp(logs - value)
    first = p @ rows.slope
    return LogPairs(value, first, p @ (rows.variance + (rows.slope - first) ** 2 + rows.bend))


def blocks(L, A, R):
    """The symmetric matrix [[0, L^T A^T R], [R^T A L, 0]] of size 2r."""
    corner = L.T @ A.T @ R
    zero = np.zeros((len(corner), len(corner)))
    return np.block([[zero, corner], [corner.T, zero]])


class Tilted(NamedTuple):
    """The law of pairs N(m, L L^T)^2 weighted by e^{x^T A^T y}, in coordinates x = m + L xi, y = m + L eta.

    (xi, eta) is normal with covariance (I - D)^{-1} and mean (I - D)^{-1} p; ``value`` is the log of the total weight.
    """

    value: float
    covariance: np.ndarray
    slope: np.ndarray


def tilted(mean, root, A):
    """The `Tilted` law: D = [[0, T^T], [T, 0]] with T = L^T A L, p = [L^T A^T m, L^T A m].

    Raises
    ------
    ValueError
        Unless |T| = |S^{1/2} A S^{1/2}| < 1, where the integral is finite.
    """
    T = root.T @ A @ root
    size = np.linalg.norm(T, 2) if T.size else 0.0
    if not size < 1:
        raise OutsideDomainError(
            "the integral of e^{x^T A^T y} over pairs of a Gaussian N(m, S) is finite only where "
            f"|S^(1/2) A S^(1/2)| < 1; got {size:.6g}. Shrink the covariance or A, use LogNormaliserEnergy, or sample."
        )
    D = blocks(root, A, root)
    p = np.concatenate([root.T @ (A.T @ mean), root.T @ (A @ mean)])
    covariance = np.linalg.inv(np.eye(len(D)) - D)
    log_determinant = np.linalg.slogdet(np.eye(len(D)) - D)[1]
    value = mean @ A @ mean + p @ covariance @ p / 2 - log_determinant / 2
    return Tilted(value, covariance, p)


def log_pairs_of_gaussian(mean, root, A, dm, dL):
    """The `LogPairs` of N(m, L L^T) moving with (m', L'): derivatives of m^T A m + p^T R p / 2 - log det(I - D) / 2."""
    value, R, p = tilted(mean, root, A)
    half = blocks(dL, A, root)
    D1 = half + blocks(root, A, dL)
    D2 = 2 * blocks(dL, A, dL)

    def pushed(L, m):
        return np.concatenate([L.T @ (A.T @ m), L.T @ (A @ m)])

    p1, p2 = pushed(dL, mean) + pushed(root, dm), 2 * pushed(dL, dm)
    tilt = R @ p
    bent = D1 @ tilt
    RD1 = R @ D1
    first = mean @ A @ dm + dm @ A @ mean + p1 @ tilt + tilt @ bent / 2 + np.trace(RD1) / 2
    second = 2 * dm @ A @ dm + p2 @ tilt + (p1 + bent) @ R @ (p1 + bent) + tilt @ D2 @ tilt / 2
    second += np.einsum("ij,ji", R, D2) / 2 + np.einsum("ij,ji", RD1, RD1) / 2
    return LogPairs(value, first, second)
