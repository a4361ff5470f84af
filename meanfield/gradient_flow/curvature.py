"""Where convexity fails: the lowest second derivative of an energy at a law, and over random laws."""

from dataclasses import dataclass

import numpy as np

from ..checks import finite_array, number
from ..measures import Gaussian, Measure
from .base import OutsideDomainError, massive, symmetric
from .metric import SoftmaxMobility, TwistedMetric, UnitMobility, wasserstein_metric
from .pairs import log_sums

#: Directions that are tried at a law; the quadratic form costs half their square in second variations.
MAX_DIRECTIONS = 60


@dataclass(frozen=True, eq=False)
class Curvature:
    """The lowest d^2E/ds^2 at a law over geodesics of unit speed: a negative value certifies non-convexity.

    Parameters
    ----------
    value : float
        d^2E/ds^2 along ``displacement``.
    law : Measure or Gaussian
    displacement : ndarray
        The direction, of unit speed in the metric; shape (n, d) or [m' | L'] (d, 1 + r).
    """

    value: float
    law: Measure | Gaussian
    displacement: np.ndarray

    @property
    def convex(self):
        """Whether no direction bends down, up to round-off."""
        return self.value >= -1e-10


def dirac_curvature(H, A, x):
    """The lowest d^2E/ds^2 of the interaction energy on Diracs, along geodesics of the twisted metric.

    On Diracs E = e^{x^T A x} / 2 and the metric is e^{x^T A x} <|H|^{-1} v, v>, conformal to a flat one, so that the
    second derivative along v of unit length in |H|^{-1} is <A v, v> + <|H| A x, A x>. For V = I, A = -I (H = -I) it is
    |x|^2 - 1: **negative for |x| < 1**, the energy is not convex.

    Parameters
    ----------
    H : array_like, shape (d, d)
        V A^{-1}, symmetric definite.
    A : array_like, shape (d, d)
        Symmetric.
    x : array_like, shape (d,)

    Returns
    -------
    float
    """
    metric = TwistedMetric(H, SoftmaxMobility(A))
    A, x = metric.mobility.A, finite_array("x", x, ndim=1)
    if not symmetric(A):
        raise ValueError("A must be symmetric, as for every gradient structure. Use (A + A.T) / 2.")
    root = np.linalg.cholesky(metric.sign * metric.H)
    pushed = root.T @ (A @ x)
    return float(np.linalg.eigvalsh(root.T @ A @ root)[0] + pushed @ pushed)


def twisted_acceleration(metric, mu, v):
    """x'' of the geodesic of a twisted metric that leaves the tokens x with velocities v, shape (n, d).

    With q_i = <|H|^{-1} v_i, v_i> and E_i the softmax average of token i: x_i'' = 1/2 |H| A (q_i E_i[x] + E_i[q x]) -
    v_i E_i[<A v_i, x> + <A x_i, v>]; zero for a constant mobility.

    Parameters
    ----------
    metric : TwistedMetric
        With a unit mobility, or a softmax one of symmetric A.
    mu : Measure
        All of its tokens with mass.
    v : ndarray, shape (n, d)
    """
    if isinstance(metric.mobility, UnitMobility):
        return np.zeros_like(v)
    if not isinstance(metric.mobility, SoftmaxMobility) or not symmetric(metric.mobility.A):
        raise ValueError("geodesics of a twisted metric need a unit mobility, or a softmax one of symmetric A.")
    A, x, d = metric.mobility.A, mu.points, mu.dimension
    q = np.einsum("ij,jk,ik->i", v, metric.weight, v)[:, None]
    means, _ = log_sums(x, A, x, mu.log_weights, np.concatenate([x, q * x, v], axis=1))
    near, heavy, moving = means[:, :d], means[:, d : 2 * d], means[:, 2 * d :]
    drift = np.einsum("ij,ij->i", v @ A, near) + np.einsum("ij,ij->i", x @ A, moving)
    return (q * near + heavy) @ A @ (metric.sign * metric.H) / 2 - v * drift[:, None]


def lowest_curvature(energy, law, *, metric=None):
    """The least d^2E/ds^2 over all geodesics of unit speed through a law.

    A second derivative along geodesics is a quadratic form of their velocity: it is put together by polarisation and
    its lowest eigenvalue relative to the metric taken. Velocities of a measure are free at each token (near distinct
    tokens every one of them is optimal for a while); those of a Gaussian are c + B (x - m) with B symmetric, so that
    the law stays Gaussian along its Bures geodesic.

    Parameters
    ----------
    energy : Energy
    law : Measure or Gaussian
        n d, or d + d (d + 1) / 2, at most 60; a Gaussian of full rank.
    metric : TwistedMetric, optional
        That of W_2 by default. A Gaussian takes no other.

    Returns
    -------
    Curvature
    """
    d = law.dimension
    if isinstance(law, Gaussian):
        if metric is not None:
            raise ValueError("geodesics of a twisted metric leave the Gaussians. Leave metric out, or use a Measure.")
        basis = _gaussian_basis(law)
    else:
        law = massive(law)
        basis = np.eye(len(law) * d).reshape(-1, len(law), d)
    if len(basis) > MAX_DIRECTIONS:
        raise ValueError(
            f"a quadratic form in {len(basis)} directions is too large (at most {MAX_DIRECTIONS}). Use fewer tokens, "
            "or energy.second_variation along directions of your choice."
        )
    metric = wasserstein_metric(d) if metric is None else metric

    def bend(u):
        bent = energy.second_variation(law, u)
        if isinstance(metric.mobility, UnitMobility):
            return bent
        return bent + energy.derivative(law, twisted_acceleration(metric, law, u))

    forms = [_form(function, basis) for function in (bend, lambda u: metric.squared_norm(law, u))]
    from scipy.linalg import eigh

    values, vectors = eigh(*forms, subset_by_index=[0, 0])
    return Curvature(float(values[0]), law, np.tensordot(vectors[:, 0], basis, 1))


def _gaussian_basis(law):
    """The displacements [m' | L'] of c + B (x - m), B symmetric, shape (d + d (d + 1) / 2, d, 1 + d)."""
    d, root = law.dimension, law.root
    if np.linalg.matrix_rank(root) < d:
        raise ValueError(f"the law must have full rank; got rank {np.linalg.matrix_rank(root)} in dimension {d}.")
    basis = []
    for i in range(d):
        basis.append(np.column_stack([np.eye(d)[i], np.zeros_like(root)]))
        for j in range(i, d):
            B = np.zeros((d, d))
            B[i, j] = B[j, i] = 1.0
            basis.append(np.column_stack([np.zeros(d), B @ root]))
    return np.array(basis)


def _form(function, basis):
    """The symmetric matrix of a quadratic form on a basis, by polarisation."""
    n = len(basis)
    form = np.diag([function(u) for u in basis])
    for i in range(n):
        for j in range(i):
            form[i, j] = form[j, i] = (function(basis[i] + basis[j]) - form[i, i] - form[j, j]) / 2
    return form


@dataclass(frozen=True, eq=False)
class Search:
    """The most negative second derivatives over random laws.

    Parameters
    ----------
    measure, gaussian : Curvature or None
        The lowest found among measures and among Gaussians; None where no law of that kind was in the domain.
    measure_values, gaussian_values : ndarray
        The lowest second derivative at each law.
    outside : int
        Gaussians drawn where the energy is infinite: left out.
    """

    measure: Curvature | None
    gaussian: Curvature | None
    measure_values: np.ndarray
    gaussian_values: np.ndarray
    outside: int

    @property
    def lowest(self):
        """The lower one of the two."""
        return min((found for found in (self.measure, self.gaussian) if found is not None), key=lambda c: c.value)


def search_non_convexity(energy, rng, *, dimension, draws=20, gaussian_draws=None, tokens=3, spread=1.0, metric=None):
    """The most negative second derivative of an energy over random measures and Gaussians.

    Parameters
    ----------
    energy : Energy
    rng : numpy.random.Generator
    dimension : int
    draws, gaussian_draws : int
        Numbers of measures and of Gaussians (as many by default; 0 for an energy without a formula on them). Tokens
        and means are normal with standard deviation ``spread``; covariances are Wishart with mean spread^2 I.
    tokens : int
    spread : float
    metric : TwistedMetric, optional
        For the measures; Gaussians are always taken along Bures geodesics.

    Returns
    -------
    Search
    """
    d = number("dimension", dimension, at_least=1, integer=True)
    draws = number("draws", draws, at_least=1, integer=True)
    if gaussian_draws is None:
        gaussian_draws = draws
    tokens = number("tokens", tokens, at_least=1, integer=True)
    spread = number("spread", spread, above=0)
    measures, gaussians, outside = [], [], 0
    for _ in range(draws):
        mu = Measure(spread * rng.standard_normal((tokens, d)))
        measures.append(lowest_curvature(energy, mu, metric=metric))
    for _ in range(number("gaussian_draws", gaussian_draws, at_least=0, integer=True)):
        root = spread * rng.standard_normal((d, d + 1)) / np.sqrt(d + 1)
        law = Gaussian(spread * rng.standard_normal(d), root @ root.T)
        try:
            gaussians.append(lowest_curvature(energy, law))
        except OutsideDomainError:
            outside += 1
    ranked = [min(found, key=lambda c: c.value, default=None) for found in (measures, gaussians)]
    values = [np.array([c.value for c in found]) for found in (measures, gaussians)]
    return Search(*ranked, *values, outside)
