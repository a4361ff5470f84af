"""Mean-field dynamics of Transformers: interacting tokens, their Gaussian reduction, clustering and blow-up."""

from .analysis.blow_up import BlowUpDetector
from .analysis.boolean_attention import BooleanAttentionDetector
from .analysis.clustering import ClusteringDetector, clusters
from .analysis.merging import MergingDetector
from .analysis.metastability import MetastabilityDetector
from .analysis.rank_collapse import RankCollapseDetector
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
from .flows import GaussianFlow, ParticleFlow, SplitFlow
from .gaussian.ensemble import simulate_ensemble
from .integration import (
    EULER,
    HEUN,
    RK4,
    SCHEMES,
    Adaptive,
    Event,
    LieTrotter,
    Outcome,
    Strang,
    Trajectory,
    integrate,
    simulate,
)
from .measures import Gaussian, Measure
from .parameters import Head, Schedule
from .perceptron import AffinePerceptron, ReluPerceptron
from .spaces import Euclidean, Positioned, Sphere
from .summation.balancing import NotConvergedError
from .sweeps.parallel import run_cases
from .velocity import AffineMap, NotGaussianError, SumField, VelocityField
from .verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "ATTENTION",
    "EULER",
    "HEUN",
    "RK4",
    "SCHEMES",
    "Adaptive",
    "AffineMap",
    "AffinePerceptron",
    "Attention",
    "BlowUpDetector",
    "BooleanAttentionDetector",
    "ClusteringDetector",
    "Euclidean",
    "Event",
    "Gaussian",
    "GaussianFlow",
    "Head",
    "KernelAttention",
    "L2Attention",
    "LieTrotter",
    "LinearAttention",
    "MaskedAttention",
    "Measure",
    "MergingDetector",
    "MetastabilityDetector",
    "MultiHeadAttention",
    "NormalisedKernelAttention",
    "NotConvergedError",
    "NotGaussianError",
    "Outcome",
    "ParticleFlow",
    "Positioned",
    "RankCollapseDetector",
    "ReluPerceptron",
    "Schedule",
    "SigmoidAttention",
    "SinkhornAttention",
    "SoftmaxAttention",
    "Sphere",
    "SplitFlow",
    "Strang",
    "SumField",
    "Trajectory",
    "UnnormalisedAttention",
    "VelocityField",
    "Verdict",
    "clusters",
    "integrate",
    "make_attention",
    "run_cases",
    "simulate",
    "simulate_ensemble",
]
