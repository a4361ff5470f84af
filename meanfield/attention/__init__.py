"""Attention velocity fields: one file a variant, one line here."""

from dataclasses import fields as _fields

from .base import Attention
from .kernel import KernelAttention, NormalisedKernelAttention
from .l2 import L2Attention
from .linear import LinearAttention
from .masked import MaskedAttention, causal
from .multihead import MultiHeadAttention
from .sigmoid import SigmoidAttention
from .sinkhorn import SinkhornAttention
from .softmax import SoftmaxAttention
from .unnormalised import UnnormalisedAttention

#: The variants by name: the one list that CLI, sweeps, figures and colours read.
ATTENTION = {
    "softmax": SoftmaxAttention,
    "l2": L2Attention,
    "sinkhorn": SinkhornAttention,
    "sigmoid": SigmoidAttention,
    "linear": LinearAttention,
    "unnormalised": UnnormalisedAttention,
}


def make_attention(name, head, **options):
    """The attention field of a registered name.

    Parameters
    ----------
    name : str
        A key of ATTENTION.
    head : Head or Schedule
    **options
        The variant's own keyword options, e.g. ``bias`` of sigmoid, ``tolerance`` of sinkhorn.

    Raises
    ------
    ValueError
        If the name or an option is unknown; lists what there is.
    """
    if name not in ATTENTION:
        raise ValueError(f"attention must be one of {', '.join(ATTENTION)}; got {name!r}.")
    variant = ATTENTION[name]
    known = {field.name for field in _fields(variant) if field.init and field.kw_only}
    unknown = set(options) - known
    if unknown:
        have = f"its options are {', '.join(sorted(known))}" if known else "it has no options"
        raise ValueError(f"{name} attention has no option {', '.join(sorted(unknown))}; {have}.")
    return variant(head, **options)


__all__ = [
    "ATTENTION",
    "Attention",
    "KernelAttention",
    "L2Attention",
    "LinearAttention",
    "MaskedAttention",
    "MultiHeadAttention",
    "NormalisedKernelAttention",
    "SigmoidAttention",
    "SinkhornAttention",
    "SoftmaxAttention",
    "UnnormalisedAttention",
    "causal",
    "make_attention",
]
