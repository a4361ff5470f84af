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
    """The cross covariance C of the Sinkhorn plan in one dimension: the root of a C^2 + C / ... from C = s a (s - C^2/s)."""
    # a C^2 + C - a s^2 = 0, in the form that does not cancel.
    return 2 * a * s * s / (1 + math.sqrt(1 + 4 * a * a * s * s))


def sinkhorn_covariance_rate(sigma, value, a):
    """V C^T + C V^T with C found by the fixed point C = Sigma A^T (Sigma - C^T Sigma^{-1} C), damped."""
    c = np.zeros_like(sigma)
    inverse = np.linalg.inv(sigma)
    for _ in range(2000):
        new = sigma @ a.T @ (sigma - c.T @ inverse @ c)
        if np.abs(new - c).max() < 1e-14 * np.abs(sigma).max():
            break
        c = (c + new) / 2
    return value @ c.T + c @ value.T


def blow_up_draw():
    """Q, K of the published blow-up figure: numpy seed 33, redrawn until K^T Q / sqrt 2 has a positive symmetric part."""
    rng = np.random.RandomState(33)
    while True:
        query, key = rng.randn(2, 2), rng.randn(2, 2)
        a = key.T @ query / math.sqrt(2)
        if np.linalg.eigvalsh(a + a.T)[0] > 0:
            return query, key
