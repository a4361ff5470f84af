"""Gaussian flows once more, as plain ODEs integrated by SciPy: nothing here imports meanfield."""

import math

import numpy as np
from scipy.integrate import solve_ivp


def solve(rate, start, times, method="DOP853", rtol=1e-11, atol=1e-13):
    """States at the times (increasing, from 0) of y' = rate(y), any shape of y."""
    start = np.asarray(start, dtype=float)
    run = solve_ivp(
        lambda _, y: np.ravel(rate(y.reshape(start.shape))), (0.0, times[-1]), start.ravel(), method=method, rtol=rtol,
        atol=atol, t_eval=times,
    )
    assert run.success, run.message
    return run.y.T.reshape(len(times), *start.shape)


def matrix_a(query, key, scale):
    """A = scale K^T Q, entry by entry."""
    k, d = query.shape
    a = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            for r in range(k):
                a[i, j] += scale * key[r, i] * query[r, j]
    return a


def softmax_moments(y, value, a, drift=None, bias=0.0):
    """Rates of [m | Sigma], y of shape (d, 1 + d): m' = V(m + Sigma A m) + W m + b, Sigma' = B Sigma + Sigma B^T."""
    m, sigma = y[:, 0], y[:, 1:]
    drift = np.zeros_like(sigma) if drift is None else drift
    b = value @ sigma @ a + drift
    return np.column_stack([value @ m + b @ m + bias, b @ sigma + sigma @ b.T])


def l2_moments(y, query, key, value, scale):
    """Rates of [m | Sigma] for the kernel exp(-scale |Qx - Ky|^2), by the posterior precision of y given x."""
    m, sigma = y[:, 0], y[:, 1:]
    precision = np.linalg.inv(sigma)
    posterior = np.linalg.inv(precision + 2 * scale * key.T @ key)
    b = 2 * scale * value @ posterior @ key.T @ query
    return np.column_stack([value @ posterior @ precision @ m + b @ m, b @ sigma + sigma @ b.T])


def scalar_sinkhorn_coupling(s, a):
    """Covariance c of the Sinkhorn plan in one dimension: a c^2 + c - a s^2 = 0, without cancellation."""
    return 2 * a * s * s / (1 + math.sqrt(1 + 4 * a * a * s * s))


def sinkhorn_root_rate(root, value, a):
    """L' = V M A L, Sigma = L L^T, with M = S W diag(2 / (1 + sqrt(1 + 4 s^2))) W^T S and S A^T S = U diag(s) W^T."""
    values, vectors = np.linalg.eigh(root @ root.T)
    half = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    _, s, w = np.linalg.svd(half @ a.T @ half)
    m = sum(2 / (1 + math.sqrt(1 + 4 * s[i] ** 2)) * np.outer(half @ w[i], half @ w[i]) for i in range(len(s)))
    return value @ m @ a @ root


def blow_up_draw():
    """Q, K of the published blow-up figure: numpy seed 33, redrawn until K^T Q has a positive symmetric part."""
    rng = np.random.RandomState(33)
    while True:
        query, key = rng.randn(2, 2), rng.randn(2, 2)
        a = key.T @ query / math.sqrt(2)
        if np.linalg.eigvalsh(a + a.T)[0] > 0:
            return query, key


def affine_moments(y, v, a, drift):
    """Sigma' of softmax attention with V = v I plus W x, in the covariance alone."""
    b = v * y @ a + drift
    return b @ y + y @ b.T


def divergence_rate(c, b, epsilon):
    """c' of the Sinkhorn-divergence flow, as printed."""
    k = epsilon * epsilon / 16
    return 4 * (math.sqrt(c * b + k) - math.sqrt(c * c + k))


def random_moments(rng, d, rank=None):
    """A mean and a covariance of the given rank, both of order one."""
    root = rng.standard_normal((d, d if rank is None else rank)) / math.sqrt(d)
    return rng.standard_normal(d), root @ root.T


def times_before(pole, most=1.0, part=0.9):
    """Four times from 0 to the smaller of ``most`` and a part of the pole: the oracle loses a factor 10 there."""
    return np.linspace(0, min(part * pole, most), 4)
