"""The gradient flow of the Sinkhorn divergence of Gaussians with commuting covariances, one eigenvalue at a time."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from ..checks import number
from ..measures import Gaussian
from .closed_forms_doors import elapsed_times, norm

#: Relative tolerance of the one-dimensional integrations; they are smooth and not stiff in the variables used.
TOLERANCE = 1e-13


def _common_eigenvectors(first, second):
    """An orthogonal matrix (d, d) that diagonalises both; a ValueError if there is none."""
    scales = [max(norm(matrix), np.finfo(float).tiny) for matrix in (first, second)]
    worst = np.inf
    # Where eigenvalues of one coincide the other decides; an accidental tie of the sum is gone with another factor.
    for factor in (0.0, 0.6180339887, 1.7320508076, math.inf):
        mixed = second if math.isinf(factor) else first / scales[0] + factor * second / scales[1]
        vectors = np.linalg.eigh(mixed)[1]
        turned = [vectors.T @ matrix @ vectors / scale for matrix, scale in zip((first, second), scales, strict=True)]
        worst = min(worst, max(np.abs(matrix - np.diag(np.diag(matrix))).max() for matrix in turned))
        if worst <= 1e-10:
            return vectors
    raise ValueError(
        "the Sinkhorn-divergence flow has a closed form only for commuting covariances; the two cannot be diagonalised "
        f"together (relative remainder {worst:g}). Use simulation for these."
    )


def _eigenvalue_at(c0, target, kappa, times):
    """c(t) of c' = 4 (sqrt(c b + kappa^2) - sqrt(c^2 + kappa^2)), b = target, at increasing times (k,).

    With y = log(c / |c - b|) / b (1 / c for b = 0), y' = 4 / (sqrt(c b + kappa^2) + sqrt(c^2 + kappa^2)): there is no
    cancellation, and y' tends to a constant. Below the target the variable is z = b y, above it log y.
    """
    if c0 in (0.0, target) or times[-1] == 0:
        return np.full(len(times), c0)

    def speed(c):
        return 4 / (math.hypot(math.sqrt(c * target), kappa) + math.hypot(c, kappa))

    if c0 < target:
        start = math.log(c0 / (target - c0))

        def value(z):
            return target / (1 + math.exp(-z)) if z > 0 else target * math.exp(z) / (1 + math.exp(z))

        def rate(_, z):
            return [target * speed(value(z[0]))]

    else:
        ratio = target / c0
        gap = -math.log1p(-ratio) if ratio < 0.5 else -math.log((c0 - target) / c0)
        start = math.log(gap / target if gap > 0 else 1 / c0)

        def value(log_y):
            y = math.exp(log_y)
            return target / -math.expm1(-target * y) if target * y > 0 else 1 / y

        def rate(_, log_y):
            return [speed(value(log_y[0])) / math.exp(log_y[0])]

    run = solve_ivp(rate, (0.0, times[-1]), [start], method="DOP853", t_eval=times, rtol=TOLERANCE, atol=TOLERANCE)
    if not run.success:
        raise ArithmeticError(f"the eigenvalue flow from {c0:g} to {target:g} failed: {run.message}")
    return np.array([value(x) for x in run.y[0]])


@dataclass(frozen=True, eq=False)
class SinkhornDivergenceSolution:
    """mu' = div(mu grad(f_{mu,mu*} - f_mu)) from one Gaussian to another with commuting covariances, cost |x - y|^2.

    Each common eigenvalue obeys c' = 4 (sqrt(c b + eps^2/16) - sqrt(c^2 + eps^2/16)), b the target's [S15]; the
    mean obeys m' = -2 (m - m*). An eigenvalue 0 is stuck; small ones grow like e^{8 b t / eps}; with b = 0 they decay
    like eps / (8 t).

    Parameters
    ----------
    source, target : Gaussian
    vectors : ndarray, shape (d, d)
        Common eigenvectors in columns.
    source_values, target_values : ndarray, shape (d,)
    epsilon : float
        Strength of the KL term, positive.
    """

    source: Gaussian
    target: Gaussian
    vectors: np.ndarray
    source_values: np.ndarray
    target_values: np.ndarray
    epsilon: float
    blow_up_time: float = math.inf

    def eigenvalues(self, times):
        """The eigenvalues along ``vectors``, shape times.shape + (d,)."""
        times = elapsed_times(times)
        stops, where = np.unique(times, return_inverse=True)
        columns = [
            _eigenvalue_at(c, b, self.epsilon / 4, stops)
            for c, b in zip(self.source_values.tolist(), self.target_values.tolist(), strict=True)
        ]
        return np.stack(columns, axis=-1)[where.reshape(times.shape)]

    def covariance(self, times):
        """The covariance, shape times.shape + (d, d)."""
        return (self.vectors * self.eigenvalues(times)[..., None, :]) @ self.vectors.T

    def mean(self, times):
        """The mean m* + e^{-2t} (m0 - m*), shape times.shape + (d,)."""
        times = elapsed_times(times)
        return self.target.mean + np.exp(-2 * times)[..., None] * (self.source.mean - self.target.mean)

    def at(self, t):
        """The law at time t."""
        return Gaussian(self.mean(t), self.covariance(t))


def sinkhorn_divergence_flow(source, target, epsilon):
    """The flow of the Sinkhorn divergence S_eps(., target) from ``source``: a `SinkhornDivergenceSolution`.

    Parameters
    ----------
    source, target : Gaussian
        Of one dimension, with covariances that commute; singular ones are allowed.
    epsilon : float
        Strength of the KL term in min <|x - y|^2, pi> + epsilon KL(pi | mu x nu), positive.

    Raises
    ------
    ValueError
        If the covariances do not commute, dimensions differ or epsilon is not positive.
    """
    for name, law in (("source", source), ("target", target)):
        if not isinstance(law, Gaussian) or law.mean.ndim != 1:
            raise ValueError(f"{name} must be one Gaussian(mean, covariance); got {type(law).__name__}.")
    if source.dimension != target.dimension:
        raise ValueError(f"source and target must have one dimension; got {source.dimension} and {target.dimension}.")
    epsilon = number("epsilon", epsilon, above=0)
    vectors = _common_eigenvectors(source.covariance, target.covariance)
    values = []
    for law in (source, target):
        diagonal = np.einsum("ij,ik,kj->j", vectors, law.covariance, vectors)
        cut = law.dimension * np.finfo(float).eps * diagonal.max(initial=0.0)
        values.append(np.where(diagonal > cut, diagonal, 0.0))
    return SinkhornDivergenceSolution(source, target, vectors, *values, epsilon)
