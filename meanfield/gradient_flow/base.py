"""What an energy is: a number of a law, its first variation, and its first two derivatives along a displacement."""

import numpy as np

from ..checks import finite_array, matrix_array, points_array
from ..measures import Gaussian, Measure
from ..velocity import AffineMap


class OutsideDomainError(ValueError):
    """Raised where an energy is not finite; the message names the condition."""


class Energy:
    """An energy E(mu) of measures, of Gaussians, or of both.

    A displacement u moves the law along mu_s = (id + s u)_# mu. It is given as the array of velocities that a flow
    leaves: one row a token, shape (n, d), for a Measure; ``[m' | L']``, shape (d, 1 + r), for a Gaussian N(m, L L^T)
    with ``L = law.root``; or as an `AffineMap`, read at the tokens or applied to [m | L].

    A subclass fills in the hooks ``_measure_*(mu, ...)`` and ``_gaussian_*(mean, root, ...)`` it has formulas for.
    """

    def at(self, t):
        """The energy at time t: itself, unless it has moving parameters."""
        return self

    def time_derivative(self, t, law):
        """The explicit time part of dE/dt, the law held fixed: zero without moving parameters."""
        return 0.0

    def value(self, law):
        """E(law).

        Parameters
        ----------
        law : Measure or Gaussian

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the energy is not finite on a Gaussian (the condition is named), or has no formula for this kind of law.
        """
        if _is_gaussian(law):
            return float(self._gaussian_value(law.mean, law.root))
        return float(self._measure_value(massive(law)))

    def first_variation(self, law, x):
        """The first variation (dE/dmu)(x) at points x (m, d), shape (m,)."""
        x = points_array("x", x)
        if _is_gaussian(law):
            return self._gaussian_variation(law.mean, law.root, x)
        return self._measure_variation(massive(law), x)

    def gradient(self, law, x):
        """The gradient in x of the first variation, at points x (m, d), shape (m, d)."""
        x = points_array("x", x)
        if _is_gaussian(law):
            return self._gaussian_gradient(law.mean, law.root, x)
        return self._measure_gradient(massive(law), x)

    def derivative(self, law, displacement):
        """dE/ds along the displacement, integral of <gradient, u> dmu.

        Parameters
        ----------
        law : Measure or Gaussian
        displacement : array_like, shape (n, d) or (d, 1 + r), or AffineMap
            Of a measure or of a Gaussian; see the class.
        """
        mean_or_mu, root, u = displaced(law, displacement)
        if root is None:
            return float(self._measure_first(mean_or_mu, u))
        return float(self._gaussian_first(mean_or_mu, root, u[:, 0], u[:, 1:]))

    def second_variation(self, law, displacement):
        """d^2E/ds^2 at s = 0 along mu_s = (id + s u)_# mu; arguments as for `derivative`."""
        mean_or_mu, root, u = displaced(law, displacement)
        if root is None:
            return float(self._measure_second(mean_or_mu, u))
        return float(self._gaussian_second(mean_or_mu, root, u[:, 0], u[:, 1:]))

    def affine_gradient(self, law):
        """The gradient on a Gaussian as an `AffineMap`, where it is one; a ValueError where it is not."""
        raise ValueError(f"the gradient of {type(self).__name__} on a Gaussian is not affine. Read it by gradient.")

    def _measure_first(self, mu, u):
        return mu.weights @ np.einsum("ij,ij->i", self._measure_gradient(mu, mu.points), u)

    def _measure_value(self, mu):
        raise self._no_formula("a Measure")

    def _measure_variation(self, mu, x):
        raise self._no_formula("a Measure")

    def _measure_gradient(self, mu, x):
        raise self._no_formula("a Measure")

    def _measure_second(self, mu, u):
        raise self._no_formula("a Measure")

    def _gaussian_value(self, mean, root):
        raise self._no_formula("a Gaussian")

    def _gaussian_variation(self, mean, root, x):
        raise self._no_formula("a Gaussian")

    def _gaussian_gradient(self, mean, root, x):
        raise self._no_formula("a Gaussian")

    def _gaussian_first(self, mean, root, dm, dL):
        raise self._no_formula("a Gaussian")

    def _gaussian_second(self, mean, root, dm, dL):
        raise self._no_formula("a Gaussian")

    def _no_formula(self, kind):
        other = (
            "Use law.sample(n, rng) for a cloud of it."
            if kind == "a Gaussian"
            else "Use Gaussian(mu.mean, mu.covariance) for the normal law with its moments."
        )
        return ValueError(f"{type(self).__name__} has no formula on {kind}. {other}")


def interaction_matrix(A):
    """The matrix A of a logit x^T A^T y, from the matrix itself or from a Head."""
    matrix = matrix_array("A", getattr(A, "A", A), (None, None))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"A must be one square matrix (d, d), or one Head; got shape {matrix.shape}.")
    matrix.setflags(write=False)
    return matrix


def symmetric(A):
    """Whether A is its own transpose up to round-off."""
    return bool(np.abs(A - A.T).max() <= 1e-13 * np.abs(A).max())


def fitting(A, d):
    """Raise a ValueError unless a law of dimension d fits the matrix A."""
    if len(A) != d:
        raise ValueError(f"the law must have the dimension of A, {len(A)}; got {d}.")


def massive(mu):
    """The tokens with mass, as a Measure; the door of energies on measures."""
    if not isinstance(mu, Measure):
        raise ValueError(
            f"an energy is a function of a Measure or a Gaussian; got {type(mu).__name__}. Use Measure(points)."
        )
    if mu.has_positions:
        raise ValueError("an energy does not read positions. Use Measure(mu.tokens, mu.weights) to drop them.")
    kept = mu.weights > 0
    return mu if kept.all() else Measure(mu.points[kept], mu.weights[kept])


def _is_gaussian(law):
    if isinstance(law, Gaussian) and law.mean.ndim != 1:
        raise ValueError(f"an energy is read off one Gaussian; got a batch of shape {law.mean.shape}. Take them apart.")
    return isinstance(law, Gaussian)


def displaced(law, displacement):
    """(mean, root, [m' | L']) of a Gaussian, or (massive measure, None, u); checks the displacement."""
    if _is_gaussian(law):
        start = np.column_stack([law.mean, law.root])
        if isinstance(displacement, AffineMap):
            u = displacement.matrix @ start
            u[:, 0] += displacement.offset
        else:
            u = finite_array("displacement", displacement)
        if u.shape != start.shape:
            raise ValueError(
                f"the displacement of this Gaussian must be an AffineMap or an array [m' | L'] of shape {start.shape} "
                f"that goes with law.root; got shape {u.shape}."
            )
        return law.mean, law.root, u
    kept = massive(law)
    u = displacement(law.points) if isinstance(displacement, AffineMap) else finite_array("displacement", displacement)
    if u.shape != law.points.shape:
        raise ValueError(f"the displacement must have one row a token, shape {law.points.shape}; got shape {u.shape}.")
    return kept, None, u[law.weights > 0]
