"""Feed-forward fields: what a layer does to each token by itself, whatever the other tokens do."""

from dataclasses import dataclass

import numpy as np

from .checks import finite_array, matrix_array
from .velocity import AffineMap, not_gaussian


@dataclass(frozen=True, eq=False)
class AffinePerceptron:
    """The field x -> W x + b; it keeps Gaussians.

    Parameters
    ----------
    matrix : array_like, shape (d, d)
        W.
    bias : array_like, shape (d,), optional
        b; zero by default.
    """

    matrix: np.ndarray
    bias: np.ndarray | None = None

    def __post_init__(self):
        matrix = matrix_array("matrix", self.matrix, (None, None))
        d = matrix.shape[-1]
        matrix = matrix_array("matrix", matrix, (d, d))
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "bias", _bias("bias", self.bias, d))

    def __call__(self, t, x, mu):
        """W x + b at the points x, shape (m, d)."""
        return x @ self.matrix.T + self.bias

    def on_gaussian(self, t, law):
        """B = W, c = b."""
        return AffineMap(self.matrix, np.broadcast_to(self.bias, law.mean.shape))


@dataclass(frozen=True, eq=False)
class ReluPerceptron:
    """The field x -> W max(U x + a, 0) + b, one hidden layer; it does not keep Gaussians.

    Parameters
    ----------
    inner : array_like, shape (h, d)
        U.
    outer : array_like, shape (d, h)
        W.
    inner_bias : array_like, shape (h,), optional
        a; zero by default.
    outer_bias : array_like, shape (d,), optional
        b; zero by default.
    """

    inner: np.ndarray
    outer: np.ndarray
    inner_bias: np.ndarray | None = None
    outer_bias: np.ndarray | None = None

    def __post_init__(self):
        inner = matrix_array("inner", self.inner, (None, None))
        h, d = inner.shape[-2:]
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "outer", matrix_array("outer", self.outer, (d, h)))
        object.__setattr__(self, "inner_bias", _bias("inner_bias", self.inner_bias, h))
        object.__setattr__(self, "outer_bias", _bias("outer_bias", self.outer_bias, d))

    def __call__(self, t, x, mu):
        """W max(U x + a, 0) + b at the points x, shape (m, d)."""
        hidden = x @ self.inner.T + self.inner_bias
        return np.maximum(hidden, 0, out=hidden) @ self.outer.T + self.outer_bias

    def on_gaussian(self, t, law):
        """Always a NotGaussianError."""
        raise not_gaussian(self, "the rectifier bends the law")


def _bias(name, value, size):
    if value is None:
        return np.zeros(size)
    value = finite_array(name, value)
    if value.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},); got shape {value.shape}.")
    return value
