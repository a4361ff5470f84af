"""What a head of attention is made of, constant (`Head`) or moving in time (`Schedule`); both answer ``.at(t)``."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .checks import matrix_array, number


@dataclass(frozen=True, eq=False)
class Head:
    """One head: logit l(x, y) = scale * <Q x, K y> = x^T A^T y with A = scale * K^T Q, and values V y.

    Parameters
    ----------
    query, key : array_like, shape (k, d)
        Q and K. Nothing is divided by sqrt(k) unless ``scale`` says so.
    value : array_like, shape (d, d)
        V.
    scale : float
        The inverse temperature.

    Raises
    ------
    ValueError
        If the three matrices do not fit one another.

    Notes
    -----
    Leading batch axes (b, k, d) are allowed, for ensembles of Gaussians only.
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    scale: float = 1.0

    def __post_init__(self):
        query = matrix_array("query", self.query, (None, None))
        key = matrix_array("key", self.key, query.shape[-2:])
        d = query.shape[-1]
        value = matrix_array("value", self.value, (d, d))
        for name, array in (("query", query), ("key", key), ("value", value)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "scale", number("scale", self.scale))

    @classmethod
    def identity(cls, d, beta=1.0):
        """Q = K = V = I in dimension d, inverse temperature beta."""
        d = number("d", d, at_least=1, integer=True)
        eye = np.eye(d)
        return cls(eye, eye, eye, scale=beta)

    def at(self, t):
        """The head at time t: itself."""
        return self

    @property
    def dimension(self):
        """Dimension d of the tokens."""
        return self.query.shape[-1]

    def take(self, indices):
        """The heads of some instances of a batch, unchecked."""
        taken = object.__new__(Head)
        taken.__dict__.update(
            query=self.query[indices], key=self.key[indices], value=self.value[indices], scale=self.scale
        )
        return taken

    @cached_property
    def A(self):
        """scale * K^T Q, shape (d, d): the logit is x^T A^T y."""
        return _locked(self.scale * np.swapaxes(self.key, -1, -2) @ self.query)

    @cached_property
    def G(self):
        """scale * K^T K, shape (d, d)."""
        return _locked(self.scale * np.swapaxes(self.key, -1, -2) @ self.key)


def _locked(array):
    """The array, read-only: it is made once and given to everybody who asks."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Schedule:
    """Parameters that move in time.

    Parameters
    ----------
    of_time : callable
        ``of_time(t) -> Head``. Adaptive schemes need it continuous, or output times at its jumps.
    """

    of_time: Callable[[float], Head]

    def __post_init__(self):
        if not callable(self.of_time):
            raise ValueError(f"of_time must be callable, t -> Head; got {type(self.of_time).__name__}.")

    def at(self, t):
        """The head at time t.

        Raises
        ------
        ValueError
            If the callable does not return a `Head`.
        """
        head = self.of_time(t)
        if not isinstance(head, Head):
            raise ValueError(f"a Schedule must return a Head; at t = {t:g} it returned {type(head).__name__}.")
        return head
