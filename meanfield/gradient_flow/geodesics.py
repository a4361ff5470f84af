"""Displacement geodesics of clouds and of Gaussians, and what an energy does along them."""

from dataclasses import dataclass

import numpy as np

from ..analysis.distances import optimal_coupling
from ..checks import finite_array
from ..measures import Gaussian, Measure
from .base import massive
from .curvature import Curvature, Search, dirac_curvature, lowest_curvature, search_non_convexity, twisted_acceleration

__all__ = [
    "BuresGeodesic",
    "Curvature",
    "EnergyAlong",
    "MeasureGeodesic",
    "Search",
    "dirac_curvature",
    "displacement_geodesic",
    "energy_along",
    "lowest_curvature",
    "search_non_convexity",
    "twisted_acceleration",
]


@dataclass(frozen=True, eq=False)
class MeasureGeodesic:
    """The W_2 geodesic of two clouds: each piece of mass of the optimal coupling moves straight.

    Parameters
    ----------
    start, end : ndarray, shape (k, d)
        Where the pieces begin and end.
    weights : ndarray, shape (k,)
    """

    start: np.ndarray
    end: np.ndarray
    weights: np.ndarray

    @property
    def displacement(self):
        """The constant velocity of each piece, shape (k, d): what energies take at every ``at(s)``."""
        return self.end - self.start

    @property
    def length(self):
        """W_2 of the two ends."""
        return float(np.sqrt(self.weights @ np.sum(self.displacement**2, axis=1)))

    def at(self, s):
        """The cloud at parameter s in [0, 1]."""
        return Measure(self.start + s * self.displacement, self.weights)


@dataclass(frozen=True, eq=False)
class BuresGeodesic:
    """The W_2 geodesic of two Gaussians: mean and aligned square roots move straight, S(s) = L(s) L(s)^T.

    L_1 is turned by the orthogonal U that makes |L_0 - L_1 U| least, which also covers singular covariances.

    Parameters
    ----------
    start, end : ndarray, shape (d, 1 + r)
        [m | L] at both ends, aligned.
    """

    start: np.ndarray
    end: np.ndarray

    @property
    def displacement(self):
        """[m' | L'], constant, shape (d, 1 + r): what energies take at every ``at(s)``."""
        return self.end - self.start

    @property
    def length(self):
        """The Bures-Wasserstein distance of the two ends."""
        return float(np.linalg.norm(self.displacement))

    def at(self, s):
        """The law at parameter s in [0, 1]."""
        y = self.start + s * self.displacement
        return Gaussian.from_root(y[:, 0], y[:, 1:])


def displacement_geodesic(first, second):
    """The geodesic of W_2 between two Measures or between two Gaussians.

    Parameters
    ----------
    first, second : Measure or Gaussian
        Of one kind and dimension.

    Returns
    -------
    MeasureGeodesic or BuresGeodesic

    Raises
    ------
    ValueError
        If kinds or dimensions differ.
    """
    if isinstance(first, Gaussian) and isinstance(second, Gaussian):
        return _bures(first, second)
    if isinstance(first, Measure) and isinstance(second, Measure):
        first, second = massive(first), massive(second)
        coupling = optimal_coupling(first, second)
        return MeasureGeodesic(first.points[coupling.rows], second.points[coupling.columns], coupling.masses)
    raise ValueError(
        f"a geodesic joins two Measures or two Gaussians; got {type(first).__name__} and {type(second).__name__}. "
        "Sample the Gaussian, or take the Gaussian with the measure's mean and covariance."
    )


def _bures(first, second):
    if first.dimension != second.dimension:
        raise ValueError(f"both laws must have one dimension; got {first.dimension} and {second.dimension}.")
    columns = max(first.root.shape[1], second.root.shape[1])
    L0, L1 = (np.pad(law.root, ((0, 0), (0, columns - law.root.shape[1]))) for law in (first, second))
    left, _, right = np.linalg.svd(L1.T @ L0)
    return BuresGeodesic(np.column_stack([first.mean, L0]), np.column_stack([second.mean, L1 @ left @ right]))


@dataclass(frozen=True, eq=False)
class EnergyAlong:
    """An energy along a geodesic mu_s, s in [0, 1]; arrays of shape (k,).

    Parameters
    ----------
    s : ndarray
    values, first, second : ndarray
        E(mu_s), dE/ds and d^2E/ds^2, exact and not by differences.
    length : float
        Of the geodesic: second / length^2 is per unit of arc.
    """

    s: np.ndarray
    values: np.ndarray
    first: np.ndarray
    second: np.ndarray
    length: float

    @property
    def lowest(self):
        """The most negative (or least) d^2E/ds^2 per unit of arc."""
        return float(self.second.min() / self.length**2)

    @property
    def where(self):
        """The parameter s of the lowest second derivative."""
        return float(self.s[np.argmin(self.second)])

    @property
    def convex(self):
        """Whether no second derivative was negative beyond round-off."""
        return bool(self.second.min() >= -1e-12 * np.abs(self.second).max())

    @property
    def chord_gap(self):
        """max over s of E(mu_s) minus the chord between the ends: positive certifies non-convexity by values alone."""
        chord = self.values[0] + (self.s - self.s[0]) / (self.s[-1] - self.s[0]) * (self.values[-1] - self.values[0])
        return float((self.values - chord).max())


def energy_along(energy, geodesic, s=None):
    """Value and two derivatives of an energy along a displacement geodesic.

    Parameters
    ----------
    energy : Energy
    geodesic : MeasureGeodesic or BuresGeodesic
    s : array_like, shape (k,), optional
        Parameters, k >= 2; 41 equal ones in [0, 1] by default.

    Returns
    -------
    EnergyAlong
    """
    s = np.linspace(0, 1, 41) if s is None else finite_array("s", s, ndim=1)
    if len(s) < 2:
        raise ValueError(f"s must hold two or more parameters; got {len(s)}. Leave it out for 41 of them.")
    u = geodesic.displacement
    laws = [geodesic.at(value) for value in s]
    return EnergyAlong(
        s,
        np.array([energy.value(law) for law in laws]),
        np.array([energy.derivative(law, u) for law in laws]),
        np.array([energy.second_variation(law, u) for law in laws]),
        geodesic.length,
    )
