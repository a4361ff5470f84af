"""The idea everything turns on: a velocity field says how fast mass at x moves when the tokens have law mu."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from .measures import Gaussian, Measure


class NotGaussianError(ValueError):
    """Raised by a field that does not keep Gaussians Gaussian; its message names the field and the way out."""


@dataclass(frozen=True, eq=False)
class AffineMap:
    """The map x -> c + B x that a Gaussian-preserving field is on a Gaussian; maps add up.

    Parameters
    ----------
    matrix : ndarray, shape (..., d, d)
        B.
    offset : ndarray, shape (..., d)
        c.
    """

    matrix: np.ndarray
    offset: np.ndarray

    def __call__(self, x):
        """c + B x for points in rows, shape (..., m, d)."""
        return x @ np.swapaxes(self.matrix, -1, -2) + self.offset[..., None, :]

    def __add__(self, other):
        return AffineMap(self.matrix + other.matrix, self.offset + other.offset)


@runtime_checkable
class VelocityField(Protocol):
    """Any callable ``(t, x, mu) -> velocities``: a user's own field is a function of this form.

    Optional, looked up where needed: ``on_gaussian(t, law) -> AffineMap`` for the Gaussian reduction, and
    ``for_run()`` for a field that wants to carry something (Sinkhorn's potentials) from call to call of one run.
    """

    def __call__(self, t: float, x: np.ndarray, mu: Measure) -> np.ndarray:
        """Velocities at the points x (m, d), shape (m, d), when the tokens have law mu."""
        ...


def affine_on_gaussian(field, t, law: Gaussian) -> AffineMap:
    """The affine map of a field on a Gaussian.

    Raises
    ------
    NotGaussianError
        If the field has no Gaussian reduction.
    ValueError
        If the law has not the dimension of the field's head.
    """
    reduction = getattr(field, "on_gaussian", None)
    if reduction is None:
        raise not_gaussian(field)
    d = getattr(getattr(field, "head", None), "dimension", law.dimension)
    if d != law.dimension:
        raise ValueError(
            f"the law must have the head's dimension d = {d}; got d = {law.dimension}. "
            "Q and K need shape (k, d), V shape (d, d)."
        )
    return reduction(t, law)


def not_gaussian(field, why="it has no method on_gaussian(t, law) -> AffineMap"):
    """The error of a field without a Gaussian reduction, with the way out."""
    name = getattr(field, "__name__", type(field).__name__)
    return NotGaussianError(
        f"{name} does not keep Gaussians Gaussian: {why}. "
        "Simulate a sample instead: simulate(field, law.sample(n, rng), times)."
    )


def field_for_run(field):
    """The callable to use within one run: ``field.for_run()`` where a field has it, else the field itself."""
    begin = getattr(field, "for_run", None)
    return field if begin is None else begin()


@dataclass(frozen=True)
class SumField:
    """The sum of several fields, for instance attention and a feed-forward part; affine parts add up on Gaussians.

    Parameters
    ----------
    fields : tuple of callables
        At least one.
    """

    fields: tuple

    def __post_init__(self):
        fields = tuple(self.fields)
        if not fields or not all(callable(field) for field in fields):
            raise ValueError(
                f"fields must be a tuple of one or more velocity fields (t, x, mu) -> velocities; got {self.fields!r}."
            )
        object.__setattr__(self, "fields", fields)

    def __call__(self, t, x, mu):
        """The sum of the parts' velocities, shape (m, d)."""
        return sum(field(t, x, mu) for field in self.fields)

    def on_gaussian(self, t, law):
        """The sum of the parts' affine maps; NotGaussianError if a part has none."""
        first, *others = (affine_on_gaussian(field, t, law) for field in self.fields)
        return sum(others, first)

    def for_run(self):
        """The sum of the parts as they are used within one run."""
        return type(self)(tuple(field_for_run(field) for field in self.fields))
