"""Energies again, in plain loops over pairs, and derivatives by differences; imports nothing of what is tested."""

from math import exp, log

import numpy as np

from meanfield.measures import Gaussian, Measure


def pairs(x, w, function):
    """The sum of w_i w_j function(x_i, x_j)."""
    return sum(wi * wj * function(xi, xj) for xi, wi in zip(x, w, strict=True) for xj, wj in zip(x, w, strict=True))


def interaction(x, w, A):
    return 0.5 * pairs(x, w, lambda a, b: exp(a @ A.T @ b))


def log_interaction(x, w, A):
    return log(pairs(x, w, lambda a, b: exp(a @ A.T @ b)))


def log_normaliser(x, w, A):
    rows = [sum(wj * exp(xi @ A.T @ xj) for xj, wj in zip(x, w, strict=True)) for xi in x]
    return sum(wi * log(row) for wi, row in zip(w, rows, strict=True))


def quadratic(x, w, A):
    return 0.25 * pairs(x, w, lambda a, b: (a @ A @ b) ** 2)


def sigmoid(x, w, A, bias=0.3):
    return 0.5 * pairs(x, w, lambda a, b: log(1 + exp(a @ A @ b + bias)))


def sinkhorn(x, w, A, sweeps=3000):
    """The primal value: KL of the balanced plan minus its mean logit, halved."""
    kernel = np.exp(x @ A.T @ x.T)
    u = v = np.ones(len(x))
    for _ in range(sweeps):
        u = 1 / (kernel @ (w * v))
        v = 1 / (kernel.T @ (w * u))
    plan = w[:, None] * u[:, None] * kernel * v * w
    return 0.5 * float(np.sum(plan * np.log(plan / np.outer(w, w))) - np.sum(plan * (x @ A.T @ x.T)))


def moved(law, u, s):
    """The law after a displacement s u: tokens moved, or [m | L] moved."""
    if isinstance(law, Measure):
        return Measure(law.points + s * u, law.weights)
    y = np.column_stack([law.mean, law.root]) + s * u
    return Gaussian(y[:, 0], y[:, 1:] @ y[:, 1:].T)


def differences(value, h=4e-3):
    """(first, second) derivative at 0 of a function of one number, to order h^4."""
    a, b, c, d, e = (value(k * h) for k in (-2, -1, 0, 1, 2))
    return (a - 8 * b + 8 * d - e) / (12 * h), (-a + 16 * b - 30 * c + 16 * d - e) / (12 * h * h)


def slopes(function, x, h=1e-5):
    """The gradient in x (m, d) of function(x) -> (m,), by central differences."""
    columns = [(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(x.shape[1])]
    return np.stack(columns, axis=1)
