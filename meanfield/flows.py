"""Flows: a velocity field turned into an ODE on one array, for particles, for Gaussians, and split into parts.

Every flow offers ``start`` (its state at the beginning), ``pack(state) -> array``, ``state(array) -> state``,
``rate(t, y)``, ``retract(y)``, ``growing(y)`` (the part of y that can blow up), ``for_run()`` (the flow as it is used
within one run) and ``smooth`` (whether y' = rate(t, y) is all there is to it).
"""

from dataclasses import dataclass, replace

import numpy as np

from .measures import Gaussian, Measure
from .spaces import Euclidean, Positioned, Sphere
from .velocity import affine_on_gaussian, field_for_run


@dataclass(frozen=True, eq=False)
class ParticleFlow:
    """Tokens moved by a field: y holds the points (n, d), y' = tangent part of field(t, y, mu).

    Parameters
    ----------
    field : callable
        ``field(t, x, mu) -> (m, d)``.
    start : Measure
        Where the tokens begin; its weights stay.
    space : Euclidean, Sphere or Positioned
        A measure with positions moves in Positioned(space), which is put around a plain space by itself.

    Raises
    ------
    ValueError
        If the start does not lie in the space, or the field cannot be called or returns another shape.
    """

    field: object
    start: Measure
    space: Euclidean | Sphere | Positioned = Euclidean()

    smooth = True

    def __post_init__(self):
        if isinstance(self.field, type) or not callable(self.field):
            raise ValueError(
                f"field must be callable, (t, x, mu) -> velocities; got {self.field!r}. "
                "Use a field such as SoftmaxAttention(head), not its class, or a function."
            )
        if not isinstance(self.start, Measure):
            raise ValueError(f"start must be a Measure; got {type(self.start).__name__}. Use Measure(points).")
        if not isinstance(self.space, Euclidean | Sphere | Positioned):
            raise ValueError(f"space must be Euclidean(), Sphere(radius) or Positioned(...); got {self.space!r}.")
        space = self.space
        if self.start.has_positions and not isinstance(space, Positioned):
            space = Positioned(space)
        if isinstance(space, Positioned) and not self.start.has_positions:
            raise ValueError(
                "a Positioned space needs a measure with positions. Use Measure.positioned(positions, tokens)."
            )
        object.__setattr__(self, "space", space)
        space.check(self.start.points)

    def pack(self, state):
        """The points of a measure, shape (n, d), in the space up to round-off."""
        return np.array(self.space.retract(state.points))

    def state(self, y):
        """The measure with these points."""
        return self.start.moved_to(y)

    def rate(self, t, y):
        """The velocity of every token, shape (n, d)."""
        # Copies both ways: a field may work in place, and may give back its own buffer.
        x = y.copy()
        velocity = self.field(t, x, self.start.moved_to(x))
        if np.shape(velocity) != y.shape or np.iscomplexobj(velocity):
            raise ValueError(
                f"a velocity field must return one real velocity a point, shape {y.shape}; got "
                f"{np.asarray(velocity).dtype} of shape {np.shape(velocity)}. "
                "It is called as field(t, x, mu) with x = mu.points."
            )
        return self.space.tangent(y, np.array(velocity, dtype=float))

    def retract(self, y):
        """The nearest points of the space."""
        return self.space.retract(y)

    def growing(self, y):
        """The tokens without their positions."""
        return y[:, 1:] if self.start.has_positions else y

    def for_run(self):
        """The flow with its field made ready for one run (warm potentials)."""
        return replace(self, field=field_for_run(self.field))


@dataclass(frozen=True, eq=False)
class GaussianFlow:
    """A Gaussian law moved by a field that is affine on Gaussians: y = [m | L] (d, 1 + r), S = L L^T.

    With x -> c + B x on N(m, S): m' = c + B m and L' = B L, so that S stays positive semi-definite and of constant
    rank by construction [CACP25].

    Parameters
    ----------
    field : object
        With ``on_gaussian(t, law) -> AffineMap``.
    start : Gaussian

    Raises
    ------
    NotGaussianError
        If the field does not keep Gaussians; says what to do instead.
    """

    field: object
    start: Gaussian

    smooth = True

    def __post_init__(self):
        if not isinstance(self.start, Gaussian):
            raise ValueError(
                f"start must be a Gaussian; got {type(self.start).__name__}. Use Gaussian(mean, covariance)."
            )

    def pack(self, state):
        """[m | L] with L the root of the covariance, shape (d, 1 + rank)."""
        return np.concatenate([state.mean[:, None], state.root], axis=1)

    def state(self, y):
        """The Gaussian N(m, L L^T)."""
        return Gaussian.from_root(y[:, 0], y[:, 1:])

    def rate(self, t, y):
        """[c + B m | B L]; NaN once the covariance has overflowed, whatever a field makes of that."""
        law = self.state(y.copy())
        if not np.isfinite(law.covariance).all():
            return np.full_like(y, np.nan)
        affine = affine_on_gaussian(self.field, t, law)
        d = len(y)
        if np.shape(getattr(affine, "matrix", None)) != (d, d) or np.shape(affine.offset) != (d,):
            raise ValueError(
                f"on_gaussian must return an AffineMap with matrix ({d}, {d}) and offset ({d},); got {affine!r}."
            )
        rate = affine.matrix @ y
        rate[:, 0] += affine.offset
        return rate

    def retract(self, y):
        """y itself: every [m | L] is a Gaussian."""
        return y

    def growing(self, y):
        """The square root L: where the covariance blows up the mean follows (it seldom does so alone)."""
        return y[:, 1:]

    def for_run(self):
        """The flow itself: closed forms carry nothing from call to call."""
        return self


@dataclass(frozen=True, eq=False)
class SplitFlow:
    """Several flows on the same state, taken in turn by a splitting scheme; each part has its own space.

    Parameters
    ----------
    parts : tuple of flows
        The first one's start is the start.
    """

    parts: tuple

    def __post_init__(self):
        parts = tuple(self.parts)
        if not parts or not all(hasattr(part, "rate") for part in parts):
            raise ValueError(
                f"parts must be a tuple of one or more flows, such as ParticleFlow(field, start); got {parts!r}."
            )
        kinds = {type(part.start).__name__ for part in parts}
        if len(kinds) > 1:
            raise ValueError(f"the parts of a split flow must share their state; got starts of kinds {sorted(kinds)}.")
        shapes = {np.shape(part.pack(part.start)) for part in parts}
        if len(shapes) > 1:
            raise ValueError(f"the parts of a split flow must share their state; got arrays shaped {sorted(shapes)}.")
        object.__setattr__(self, "parts", parts)

    @property
    def smooth(self):
        """Whether every part is nothing but its ODE in flat space, so that the sum of the rates is the whole motion."""
        return all(part.smooth for part in self.parts) and all(
            isinstance(getattr(part, "space", Euclidean()), Euclidean) for part in self.parts
        )

    @property
    def start(self):
        """The start of the first part."""
        return self.parts[0].start

    def pack(self, state):
        """As the first part packs."""
        return self.parts[0].pack(state)

    def state(self, y):
        """As the first part reads."""
        return self.parts[0].state(y)

    def rate(self, t, y):
        """The sum of the parts' rates."""
        return sum(part.rate(t, y) for part in self.parts)

    def retract(self, y):
        """y itself: each part retracts within its own sub-step."""
        return y

    def growing(self, y):
        """As the first part says."""
        return self.parts[0].growing(y)

    def for_run(self):
        """All parts made ready for one run."""
        return replace(self, parts=tuple(part.for_run() for part in self.parts))
