"""The operators that an encoder layer is made of: here its projections and normalisations, along the last axis."""

import numpy as np

from ..checks import finite_array, number

#: A row whose spread is at most this many times its largest entry is constant up to the round-off of its own entries.
CONSTANT_SPREAD = 2 * np.finfo(np.float64).eps


def project_moments(v, mean, std):
    """The nearest point to v with a given mean and standard deviation along the last axis.

    With a the mean of v and b its biased variance, the nearest u of {mean u = s1, variance u = s2^2} is
    u = s1 + s2 (v - a) / sqrt(b) [TLLC25, Theorem 3.1]. The closed form v - (a / sqrt b)(s2 / sqrt b) + s1 that is
    printed elsewhere is not a point of that set: for (1, 2, 3, 4), s1 = 0, s2 = 1 its mean is 0.5.

    Parameters
    ----------
    v : array_like, shape (..., d)
        One vector a row. A row that is not finite gives NaN.
    mean, std : float
        s1 and s2 >= 0.

    Returns
    -------
    ndarray, shape (..., d)

    Raises
    ------
    ValueError
        If std is negative, or if std > 0 and a row is constant up to round-off: then every point of the set is as near.
    """
    v = _rows("v", v)
    mean, std = number("mean", mean), number("std", std, at_least=0)
    if std == 0:
        return np.full_like(v, mean)
    _refuse_constant(v, f"project_moments with std = {std:g}", "Use std=0, or layer_norm with eps > 0, which gives 0.")
    centred = _centred(v)
    return mean + std * (centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True)))


def layer_norm(v, gain=None, bias=None, *, eps=1e-5):
    """LayerNorm: gain * (v - a) / sqrt(b + eps) + bias, a the mean and b the biased variance along the last axis.

    The divisor of b is d, not d - 1, and eps stands inside the root. With eps = 0 and neither gain nor bias it is
    ``project_moments(v, 0, 1)``; halving v is the same as eps times four: LN_eps(v / 2) = LN_{4 eps}(v).

    Parameters
    ----------
    v : array_like, shape (..., d)
        One vector a row. A constant row gives ``bias`` (0 without one); a row that is not finite gives NaN.
    gain, bias : array_like, shape (d,), optional
        1 and 0 when left out.
    eps : float
        At least zero. The default 1e-5 is torch's; BERT and its descendants use 1e-12. Record it with every result.

    Returns
    -------
    ndarray, shape (..., d)

    Raises
    ------
    ValueError
        If gain or bias does not fit, eps is negative, or eps = 0 and a row is constant up to round-off.
    """
    v, eps = _rows("v", v), number("eps", eps, at_least=0)
    gain, bias = _feature("gain", gain, v), _feature("bias", bias, v)
    if eps == 0:
        _refuse_constant(v, "layer_norm with eps = 0", "Use eps > 0, which gives 0 there.")
    centred = _centred(v)
    return _affine(centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + eps), gain, bias)


def rms_norm(v, gain=None, *, eps=1e-6):
    """RMSNorm: gain * v / sqrt(mean(v^2) + eps) along the last axis; nothing is centred.

    Parameters
    ----------
    v : array_like, shape (..., d)
        One vector a row. A zero row gives 0; a row that is not finite gives NaN.
    gain : array_like, shape (d,), optional
        1 when left out.
    eps : float
        At least zero, inside the root. The default 1e-6 is that of Qwen3; other families use 1e-5, and torch takes its
        default from the dtype. For short vectors it decides the answer, so record it with every result.

    Returns
    -------
    ndarray, shape (..., d)

    Raises
    ------
    ValueError
        If gain does not fit, eps is negative, or eps = 0 and a row is zero.
    """
    v, eps = _rows("v", v), number("eps", eps, at_least=0)
    gain = _feature("gain", gain, v)
    mean_square = np.mean(v**2, axis=-1, keepdims=True)
    if eps == 0 and (mean_square == 0).any():
        raise ValueError(
            f"rms_norm with eps = 0 needs rows that are not zero; got {int((mean_square == 0).sum())} zero row(s). "
            "Use eps > 0, which gives 0 there."
        )
    return _affine(v / np.sqrt(mean_square + eps), gain, None)


def _rows(name, value):
    """A real float64 array with a last axis to normalise along; NaN may pass, since inside a run it ends the run."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers; got dtype {array.dtype}. Pass rows of one length.")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (..., d) with d >= 1; got shape {array.shape}. For one number write [a]."
        )
    return array.astype(np.float64, copy=False)


def _feature(name, value, v):
    """A gain or bias, one number a feature, or None."""
    if value is None:
        return None
    array = finite_array(name, value)
    if array.shape != v.shape[-1:]:
        raise ValueError(
            f"{name} must have shape {v.shape[-1:]}, one number a feature; got shape {array.shape}. "
            "For one number everywhere use np.full(d, number)."
        )
    return array


def _refuse_constant(v, what, cure):
    spread = np.ptp(v, axis=-1)
    constant = spread <= CONSTANT_SPREAD * np.abs(v).max(axis=-1)
    if constant.any():
        example = v[constant][0][0]
        raise ValueError(
            f"{what} needs rows that are not constant; got {int(constant.sum())} constant row(s), the first of "
            f"{example:g}. No direction is left to scale. {cure}"
        )


def _centred(v):
    # The first entry goes first: a constant row is then centred to exactly 0, and a row far from 0 loses nothing more.
    shifted = v - v[..., :1]
    return shifted - shifted.mean(axis=-1, keepdims=True)


def _affine(v, gain, bias):
    scaled = v if gain is None else v * gain
    return scaled if bias is None else scaled + bias
