"""Where tokens live: R^d, a sphere, or either of them with a frozen position beside it. Rows are points."""

from dataclasses import dataclass

import numpy as np

from .checks import number


@dataclass(frozen=True)
class Euclidean:
    """R^d: every direction is tangent and nothing is retracted."""

    def tangent(self, x, v):
        """The part of v that is tangent at x: v itself."""
        return v

    def retract(self, x):
        """The nearest point of the space: x itself."""
        return x

    def distance(self, x, y):
        """|x - y| along the last axis; leading axes broadcast."""
        return np.linalg.norm(np.asarray(x) - np.asarray(y), axis=-1)

    def check(self, x):
        """Every finite point lies in R^d."""


@dataclass(frozen=True)
class Sphere:
    """The sphere of a given radius about the origin, with its geodesic distance.

    Parameters
    ----------
    radius : float
        Greater than zero; RMS-normalised tokens live on radius sqrt(d).
    """

    radius: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "radius", number("radius", self.radius, above=0))

    def tangent(self, x, v):
        """v without its part along x: v - x <x, v> / <x, x>."""
        along = np.einsum("...i,...i", x, v) / np.einsum("...i,...i", x, x)
        return v - x * along[..., None]

    def retract(self, x):
        """x scaled to the radius (the projective retraction). Not defined at the origin, where it gives NaN."""
        norm = np.linalg.norm(x, axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return x * (self.radius / norm)

    def distance(self, x, y):
        """Geodesic distance along the last axis; leading axes broadcast.

        Computed as 2 radius atan2(|x - y|, |x + y|) on unit vectors: exact near 0 and near pi, where arccos is not.
        """
        x, y = np.asarray(x) / self.radius, np.asarray(y) / self.radius
        return 2 * self.radius * np.arctan2(np.linalg.norm(x - y, axis=-1), np.linalg.norm(x + y, axis=-1))

    def check(self, x):
        """Raise a ValueError if a row is off the sphere by more than 1e-6 of the radius."""
        norms = np.linalg.norm(x, axis=-1)
        worst = int(np.argmax(np.abs(norms - self.radius)))
        if abs(norms[worst] - self.radius) > 1e-6 * self.radius:
            raise ValueError(
                f"points must lie on the sphere of radius {self.radius:g}; row {worst} has norm {norms[worst]:.6g}. "
                f"Use Sphere({self.radius:g}).retract(points) first."
            )


@dataclass(frozen=True)
class Positioned:
    """Rows [s | x]: x moves in the base space, the position s is frozen.

    Distances are those of x in the base space; positions are not counted.
    """

    base: Euclidean | Sphere = Euclidean()

    def _joined(self, x, moved):
        return np.concatenate([x[..., :1], moved], axis=-1)

    def tangent(self, x, v):
        """The tangent part of v in the base space, and no motion of the position."""
        return self._joined(np.zeros_like(x), self.base.tangent(x[..., 1:], v[..., 1:]))

    def retract(self, x):
        """Retract x in the base space and keep the position."""
        return self._joined(x, self.base.retract(x[..., 1:]))

    def distance(self, x, y):
        """Distance of the tokens in the base space, whatever their positions."""
        return self.base.distance(np.asarray(x)[..., 1:], np.asarray(y)[..., 1:])

    def check(self, x):
        """Check the tokens against the base space."""
        self.base.check(x[..., 1:])
