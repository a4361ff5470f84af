"""Sigmoid attention: each token is let through by itself, nothing is normalised."""

from collections.abc import Callable
from dataclasses import dataclass, field

from scipy.special import expit

from ..checks import number
from .kernel import KernelAttention


@dataclass(frozen=True)
class SigmoidAttention(KernelAttention):
    """Attention with kernel 1 / (1 + exp(-(<Q x, K y> + bias))): x -> V sum_j w_j kernel_j y_j.

    Parameters
    ----------
    head : Head or Schedule
    bias : float
        Added to every logit; -log n makes the sum start out like an average.
    """

    kernel: Callable = field(default=expit, init=False, repr=False)
    bias: float = field(default=0.0, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "bias", number("bias", self.bias))
        super().__post_init__()

    def weigh(self, logits):
        """The logistic function of logits + bias, in place."""
        logits += self.bias
        return expit(logits, out=logits)
