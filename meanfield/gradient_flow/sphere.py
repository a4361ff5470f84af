"""The energy of self-attention on the sphere, whose staircase of values counts the clusters."""

from dataclasses import dataclass

import numpy as np

from ..checks import number
from ..spaces import Sphere
from .base import Energy, massive
from .interaction import InteractionEnergy

UNIT_SPHERE = Sphere()


@dataclass(frozen=True, eq=False)
class SphereEnergy(Energy):
    """E(mu) = 1/(2 beta) ∬ e^{beta <x, y>} dmu dmu for tokens on a sphere [GLPR25].

    Unnormalised attention (USA) with beta is its steepest ascent in W_2, softmax attention (SA) its steepest ascent in
    the metric weighted by the normaliser Z: both raise it. Gradients are tangent, displacements run along great
    circles.

    Parameters
    ----------
    beta : float
        Not zero.
    space : Sphere
    """

    beta: float
    space: Sphere = UNIT_SPHERE

    def __post_init__(self):
        beta = number("beta", self.beta)
        if beta == 0:
            raise ValueError("beta must not be zero, where the energy is constant; got 0. Take a small beta instead.")
        object.__setattr__(self, "beta", beta)

    def plain(self, d):
        """The `InteractionEnergy` with A = beta I in dimension d; this energy is 1 / beta times it."""
        return InteractionEnergy(self.beta * np.eye(d))

    def log_value(self, mu):
        """log(2 |beta| E), finite where E is not representable."""
        return self.plain(mu.dimension).log_value(self._on_sphere(massive(mu))) + float(np.log(2))

    def level(self, mu):
        """E divided by its value at one cluster, in (0, 1] for beta > 0: the staircase's height.

        Where tokens form tight clusters of masses m_k, far apart for beta, this is sum_k m_k^2 [GKPR24].
        """
        return float(np.exp(self.log_value(mu) - self.beta * self.space.radius**2))

    def _on_sphere(self, mu):
        self.space.check(mu.points)
        return mu

    def _measure_value(self, mu):
        return self.plain(mu.dimension)._measure_value(self._on_sphere(mu)) / self.beta

    def _measure_variation(self, mu, x):
        return self.plain(mu.dimension)._measure_variation(self._on_sphere(mu), x) / self.beta

    def _measure_gradient(self, mu, x):
        gradient = self.plain(mu.dimension)._measure_gradient(self._on_sphere(mu), x) / self.beta
        return self.space.tangent(x, gradient)

    def _measure_second(self, mu, u):
        plain, u = self.plain(mu.dimension), self.space.tangent(mu.points, u)
        inner = np.einsum("ij,ij->i", plain._measure_gradient(self._on_sphere(mu), mu.points), mu.points)
        # A great circle bends towards the centre: x'' = -|u|^2 x / r^2.
        bent = mu.weights @ (inner * np.einsum("ij,ij->i", u, u)) / self.space.radius**2
        return (plain._measure_second(mu, u) - bent) / self.beta
