"""Mean-field dynamics of Transformers: interacting tokens, their Gaussian reduction, clustering and blow-up."""

from .measures import Gaussian, Measure
from .parameters import Head, Schedule
from .spaces import Euclidean, Positioned, Sphere

__version__ = "0.1.0"

__all__ = ["Euclidean", "Gaussian", "Head", "Measure", "Positioned", "Schedule", "Sphere"]
