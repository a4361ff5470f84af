"""Sums of an even function over singular values, and their first two derivatives along a curve of matrices."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

#: Eigenvalues closer than this, relative to the largest, share the derivative at their middle.
TIE = 1e-5


class EvenFunction(NamedTuple):
    """A smooth even function h with its first two derivatives, elementwise."""

    value: Callable[[np.ndarray], np.ndarray]
    first: Callable[[np.ndarray], np.ndarray]
    second: Callable[[np.ndarray], np.ndarray]


def _dilated(T):
    """[[0, T], [T^T, 0]]: symmetric, with the singular values of T and their negatives (and zeros) as eigenvalues."""
    rows, columns = T.shape
    return np.block([[np.zeros((rows, rows)), T], [T.T, np.zeros((columns, columns))]])


def singular_sum(h, T):
    """sum_i h(s_i) over the singular values of T (p, q); h(0) = 0."""
    return float(np.sum(h.value(np.linalg.svd(T, compute_uv=False))))


def singular_first(h, T, T1):
    """The derivative of `singular_sum` along T' = T1: <U h'(s) W^T, T1>."""
    U, s, Wt = np.linalg.svd(T, full_matrices=False)
    return float(np.sum(((U * h.first(s)) @ Wt) * T1))


def singular_second(h, T, T1, T2):
    """The second derivative of `singular_sum` along a curve with T' = T1, T'' = T2.

    With eigenvalues l_i of the dilation, half of tr(h'(D) D'') + sum_ij h'[l_i, l_j] (D')_ij^2, h'[., .] the divided
    difference (Daleckii and Krein).
    """
    values, vectors = np.linalg.eigh(_dilated(T))
    slopes = h.first(values)
    gaps = np.subtract.outer(values, values)
    near = np.abs(gaps) <= TIE * max(np.abs(values).max(initial=0.0), np.finfo(float).tiny)
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.where(
            near, h.second(np.add.outer(values, values) / 2), np.subtract.outer(slopes, slopes) / gaps
        )
    turned = vectors.T @ _dilated(T1) @ vectors
    bent = np.einsum("ji,jk,ki->i", vectors, _dilated(T2), vectors)
    return float((slopes @ bent + np.sum(differences * turned**2)) / 2)
