"""Energies of laws of tokens, gathered from their rooms: interactions, Sinkhorn's functional, functionals of Gaussians.

Every one is an `Energy`: ``value(law)``, ``first_variation(law, x)``, ``gradient(law, x)``, ``derivative(law, u)``,
``second_variation(law, u)``, and ``at(t)``, ``time_derivative(t, law)`` for moving parameters.
"""

from .base import Energy, OutsideDomainError
from .functionals import BuresEnergy, NegativeEntropy, RelativeEntropy, SinkhornDivergenceEnergy
from .interaction import InteractionEnergy, LogInteractionEnergy, LogNormaliserEnergy
from .kernel_energies import QuadraticEnergy, SigmoidEnergy
from .sinkhorn_energy import SinkhornEnergy
from .sphere import SphereEnergy

__all__ = [
    "BuresEnergy",
    "Energy",
    "InteractionEnergy",
    "LogInteractionEnergy",
    "LogNormaliserEnergy",
    "NegativeEntropy",
    "OutsideDomainError",
    "QuadraticEnergy",
    "RelativeEntropy",
    "SigmoidEnergy",
    "SinkhornDivergenceEnergy",
    "SinkhornEnergy",
    "SphereEnergy",
]
