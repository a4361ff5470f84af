"""Mean-field dynamics of Transformers: interacting tokens, their Gaussian reduction, clustering and blow-up."""

from .attention import (
    ATTENTION,
    Attention,
    KernelAttention,
    L2Attention,
    LinearAttention,
    MaskedAttention,
    MultiHeadAttention,
    NormalisedKernelAttention,
    SigmoidAttention,
    SinkhornAttention,
    SoftmaxAttention,
    UnnormalisedAttention,
    make_attention,
)
from .measures import Gaussian, Measure
from .parameters import Head, Schedule
from .perceptron import AffinePerceptron, ReluPerceptron
from .spaces import Euclidean, Positioned, Sphere
from .velocity import AffineMap, NotGaussianError, SumField, VelocityField
from .verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "ATTENTION",
    "AffineMap",
    "AffinePerceptron",
    "Attention",
    "Euclidean",
    "Gaussian",
    "Head",
    "KernelAttention",
    "L2Attention",
    "LinearAttention",
    "MaskedAttention",
    "Measure",
    "MultiHeadAttention",
    "NormalisedKernelAttention",
    "NotGaussianError",
    "Positioned",
    "ReluPerceptron",
    "Schedule",
    "SigmoidAttention",
    "SinkhornAttention",
    "SoftmaxAttention",
    "Sphere",
    "SumField",
    "UnnormalisedAttention",
    "VelocityField",
    "Verdict",
    "make_attention",
]
