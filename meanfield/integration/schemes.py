"""Fixed-step schemes: Runge-Kutta methods with retraction, and splittings. A fixed step is a layer, not the ODE.

A scheme is called as ``scheme(flow, t, y, dt) -> y`` and states its ``order`` (on smooth flows).
"""

from dataclasses import dataclass, field

import numpy as np

from ..flows import SplitFlow


@dataclass(frozen=True)
class RungeKutta:
    """An explicit Runge-Kutta method; later stages and the result are retracted, the first stage is not.

    An encoder layer does not normalise its input, so the rate of the first stage is taken at y as it is.

    Parameters
    ----------
    name : str
    order : int
    stages : tuple of tuples
        Row i holds the coefficients of stage i + 1 (strictly lower triangle); nodes are the row sums.
    weights : tuple of float
    """

    name: str
    order: int
    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]

    def __post_init__(self):
        A = np.zeros((len(self.weights), len(self.weights)))
        for i, row in enumerate(self.stages):
            A[i + 1, : len(row)] = row
        b, c = np.array(self.weights), A.sum(axis=1)
        # The order conditions up to four, one list an order: a mistyped coefficient stops the import.
        conditions = [
            [b.sum() - 1],
            [b @ c - 1 / 2],
            [b @ c**2 - 1 / 3, b @ A @ c - 1 / 6],
            [b @ c**3 - 1 / 4, (b * c) @ A @ c - 1 / 8, b @ A @ c**2 - 1 / 12, b @ A @ A @ c - 1 / 24],
        ]
        for condition in conditions[: self.order]:
            if np.abs(condition).max() > 1e-14:
                raise ValueError(f"the coefficients of {self.name} do not give order {self.order}.")

    def __call__(self, flow, t, y, dt):
        """One step of size dt from (t, y)."""
        rates = [flow.rate(t, y)]
        for row in self.stages:
            increment = sum(a * k for a, k in zip(row, rates, strict=True) if a)
            rates.append(flow.rate(t + sum(row) * dt, flow.retract(y + dt * increment)))
        return flow.retract(y + dt * sum(b * k for b, k in zip(self.weights, rates, strict=True)))

    def __repr__(self):
        return self.name


EULER = RungeKutta("EULER", 1, (), (1.0,))
HEUN = RungeKutta("HEUN", 2, ((1.0,),), (0.5, 0.5))
RK4 = RungeKutta("RK4", 4, ((0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6))


@dataclass(frozen=True)
class LieTrotter:
    """Lie splitting: the parts of a SplitFlow one after the other, each by the inner scheme. Order 1.

    Parameters
    ----------
    inner : scheme
        EULER makes one step one encoder layer.
    """

    inner: RungeKutta = EULER
    order: int = field(default=1, init=False)

    def __call__(self, flow, t, y, dt):
        """One step of size dt from (t, y)."""
        for part in _parts(flow, "LieTrotter"):
            y = self.inner(part, t, y, dt)
        return y


@dataclass(frozen=True)
class Strang:
    """Strang splitting: half steps of all parts but the last, a whole step of the last, half steps back. Order 2.

    Order 2 holds for smooth parts with an inner scheme of order 2 or more; projections reduce it to 1.

    Parameters
    ----------
    inner : scheme
    """

    inner: RungeKutta = HEUN
    order: int = field(default=2, init=False)

    def __post_init__(self):
        if self.inner.order < 2:
            raise ValueError(f"Strang needs an inner scheme of order 2 or more; got {self.inner!r}. Use HEUN or RK4.")

    def __call__(self, flow, t, y, dt):
        """One step of size dt from (t, y)."""
        *first, last = _parts(flow, "Strang")
        for part in first:
            y = self.inner(part, t, y, dt / 2)
        y = self.inner(last, t, y, dt)
        for part in reversed(first):
            y = self.inner(part, t + dt / 2, y, dt / 2)
        return y


def _parts(flow, name):
    if not isinstance(flow, SplitFlow):
        raise ValueError(f"{name} splits a SplitFlow; this flow has no parts. Use EULER, HEUN, RK4 or Adaptive().")
    return flow.parts


#: The fixed-step schemes by name (splittings with their default inner scheme).
SCHEMES = {"euler": EULER, "heun": HEUN, "rk4": RK4, "lie": LieTrotter(), "strang": Strang()}
