"""Quantities that Gaussian flows keep or move monotonically, as numbers of (head, law), to be checked along a flow."""

import numpy as np

from .closed_forms_doors import ROUND_OFF, constant_head, fitting_law, norm


def kernel_of_query(head):
    """An orthonormal basis Z of ker Q, shape (d, m), the same at each call."""
    _, values, rows = np.linalg.svd(constant_head(head).query)
    rank = int((values > max(head.query.shape) * np.finfo(float).eps * values.max(initial=0.0)).sum())
    return rows[rank:].T


def frozen_directions(head, law):
    """An orthonormal basis of ker Q intersected with range(Sigma), shape (d, m): no limit of the flow loses its rank m.

    For Sigma > 0 it is all of ker Q.

    Parameters
    ----------
    head : Head
    law : Gaussian
    """
    kernel = kernel_of_query(head)
    root = fitting_law(head, law).root
    if root.shape[1] == head.dimension:
        return kernel
    span = np.linalg.svd(root, full_matrices=False)[0]
    # A direction of the kernel lies in the range if the sine of its angle to it vanishes.
    _, sines, rows = np.linalg.svd(kernel - span @ (span.T @ kernel), full_matrices=False)
    return kernel @ rows[sines <= 1e-10].T


def kernel_invariant(head, law, *, directions=None):
    """Z^T Sigma^{-1} Z with Z spanning ker Q: constant under softmax, L2, Sinkhorn and linear attention, for any V.

    The field sees x through Q x only, so B Z = 0 and the flow map leaves Z where it is [S2]. For linear
    attention the covariance of the centred law, or the second moment, is meant.

    Parameters
    ----------
    head : Head
        Of one field; several heads share the invariant for directions in the kernel of all their Q.
    law : Gaussian
    directions : array_like, shape (d, m), optional
        Z; its columns must lie in ker Q and in the range of Sigma. By default a basis of ker Q. For a singular law pass
        ``frozen_directions(head, start)``, the same along the whole flow.

    Returns
    -------
    ndarray, shape (m, m)

    Raises
    ------
    ValueError
        If a direction is not in ker Q or not in the range of Sigma (the inverse is then infinite).
    """
    head = constant_head(head)
    root = fitting_law(head, law).root
    z = kernel_of_query(head) if directions is None else np.asarray(directions, dtype=float)
    if norm(head.query @ z) > 1e-10 * norm(head.query) * norm(z):
        raise ValueError(
            f"directions must lie in ker Q; got |Q Z| = {norm(head.query @ z):g}. Use frozen_directions(head, law)."
        )
    coordinates = np.linalg.lstsq(root, z, rcond=None)[0]
    miss = norm(root @ coordinates - z)
    if miss > 1e-6 * norm(z):
        raise ValueError(
            f"directions must lie in the range of the covariance; they miss it by {miss:g}. "
            "Use directions=frozen_directions(head, law)."
        )
    return coordinates.T @ coordinates


def log_determinant(law):
    """log det Sigma; a ValueError for a singular covariance."""
    root = law.root
    sign, value = np.linalg.slogdet(root @ root.T) if root.shape[1] == law.dimension else (0.0, 0.0)
    if sign <= 0:
        raise ValueError(f"log det needs a regular covariance; got rank {root.shape[1]} in dimension {law.dimension}.")
    return float(value)


def log_determinant_rate(head, law):
    """d/dt log det Sigma = tr((A V + V^T A^T) Sigma) under softmax attention [S7].

    Parameters
    ----------
    head : Head
    law : Gaussian

    Notes
    -----
    Any field with an affine map B on the law has the rate 2 tr B.
    """
    head = constant_head(head)
    return 2 * float(np.trace(head.A @ head.value @ fitting_law(head, law).covariance))


def positive_value(head):
    """V, if it is symmetric positive definite; a ValueError otherwise."""
    value = constant_head(head).value
    defect = norm(value - value.T)
    lowest = np.linalg.eigvalsh((value + value.T) / 2)[0]
    if defect > ROUND_OFF * norm(value) or lowest <= ROUND_OFF * norm(value):
        raise ValueError(
            f"this needs V symmetric positive definite; got asymmetry {defect:g} and smallest eigenvalue {lowest:g}. "
            "For V negative definite change the signs of V and of Q."
        )
    return value


def lyapunov(head, law):
    """tr(V^{-1} Sigma) for V symmetric positive definite: it does not increase where A + A^T <= 0 [S5].

    Softmax and linear attention (the second moment); L2 with K = -c Q too.

    Parameters
    ----------
    head : Head
    law : Gaussian
    """
    return float(np.trace(np.linalg.solve(positive_value(head), fitting_law(head, law).covariance)))


def lyapunov_rate(head, law):
    """d/dt tr(V^{-1} Sigma) = tr(Sigma (A + A^T) Sigma) under softmax attention, V symmetric positive definite."""
    positive_value(head)
    covariance = fitting_law(head, law).covariance
    return 2 * float(np.trace(covariance @ head.A @ covariance))
