"""L2 and Sinkhorn attention in one dimension: implicit solutions, inverted to the last digit."""

import math
from dataclasses import dataclass

import numpy as np

from ..measures import Gaussian
from .closed_forms_doors import constant_head, elapsed_times, fitting_law, representable


def increasing_root(function, target, low, high):
    """x in [low, high] with function(x) = target, elementwise, to the last digit: Newton kept inside its bracket.

    Parameters
    ----------
    function : callable
        x (k,) -> (values (k,), slopes (k,)), strictly increasing in each component.
    target, low, high : ndarray, shape (k,)
        function(low) <= target <= function(high), up to round-off.

    Returns
    -------
    ndarray, shape (k,)
    """
    low, high = low.copy(), high.copy()
    x = low.copy()
    for _ in range(200):
        values, slopes = function(x)
        low = np.where(values <= target, x, low)
        high = np.where(values >= target, x, high)
        trial = x - (values - target) / slopes
        trial = np.where((trial >= low) & (trial <= high), trial, low + (high - low) / 2)
        if np.all(np.abs(trial - x) <= 2 * np.finfo(float).eps * np.abs(trial)):
            return trial
        x = trial
    return x


@dataclass(frozen=True)
class ScalarL2Solution:
    """Variance and mean of N(m, s) under L2 attention in one dimension: s' = 4 v a s^2 / (1 + 2 g s), a = A, g = G.

    With r = log(s / s0) the solution is implicit, 1 - e^{-r} + 2 g s0 r = 4 v a s0 t [S11], and
    m(t) = m0 exp(v t + (1 - g / a) r / 2). It exists for all times.

    Parameters
    ----------
    mean0, variance0 : float
        m0 and s0 >= 0.
    value, slope, stiffness : float
        v, a = scale <k, q> and g = scale |k|^2 >= 0.
    """

    mean0: float
    variance0: float
    value: float
    slope: float
    stiffness: float
    blow_up_time: float = math.inf

    def _log_growth(self, times):
        """r = log(s / s0) at the times."""
        target = 4 * self.value * self.slope * self.variance0 * times
        c = 2 * self.stiffness * self.variance0

        def function(r):
            with np.errstate(over="ignore"):
                return -np.expm1(-r) + c * r, np.exp(-r) + c

        with np.errstate(divide="ignore", invalid="ignore"):
            growth_cap = np.minimum(target / c if c > 0 else np.inf, np.where(target < 1, -np.log1p(-target), np.inf))
        low = np.where(target > 0, target / (1 + c), np.maximum(-np.log1p(np.abs(target)), target / (1 + c)))
        high = np.where(target > 0, growth_cap, 0.0)
        return increasing_root(function, target, low, np.maximum(high, low))

    def variance(self, times):
        """s(t), the shape of ``times``."""
        times = elapsed_times(times)
        with np.errstate(over="ignore"):
            return representable("the variance", self.variance0 * np.exp(self._log_growth(times)))

    def mean(self, times):
        """m(t), the shape of ``times``."""
        times = elapsed_times(times)
        if self.slope == 0:
            exponent = self.value * times / (1 + 2 * self.stiffness * self.variance0)
        else:
            exponent = self.value * times + (1 - self.stiffness / self.slope) * self._log_growth(times) / 2
        with np.errstate(over="ignore"):
            return representable("the mean", self.mean0 * np.exp(exponent))

    def at(self, t):
        """The law at time t."""
        return Gaussian([float(self.mean(t))], [[float(self.variance(t))]])


def scalar_l2(head, law):
    """L2 attention on N(m, s) in one dimension, solved: a `ScalarL2Solution`.

    Parameters
    ----------
    head : Head
        Constant, dimension 1 (Q and K may have several rows), scale >= 0.
    law : Gaussian
        Dimension 1; variance 0 is allowed.

    Raises
    ------
    ValueError
        In other dimensions, or for a negative scale (the kernel exp(-scale |Qx - Ky|^2) then has no finite integral
        against every Gaussian).
    """
    head = constant_head(head)
    law = fitting_law(head, law, dimension=1)
    if head.scale < 0:
        raise ValueError(f"the L2 closed form needs scale >= 0; got {head.scale:g}. Change the sign of Q instead.")
    mean, variance, value = (float(x.flat[0]) for x in (law.mean, law.covariance, head.value))
    return ScalarL2Solution(mean, variance, value, slope=float(head.A[0, 0]), stiffness=float(head.G[0, 0]))


@dataclass(frozen=True)
class ScalarSinkhornSolution:
    """Variance and mean of N(m, s) under Sinkhorn attention in one dimension: s' = (v/a)(sqrt(1 + 4 a^2 s^2) - 1).

    With theta = arcsinh(2 |a| s): theta - coth(theta / 2) grows linearly, at the rate 2 v sign(a) [S10];
    m(t) = e^{v t} m0. It exists for all times.
    """

    mean0: float
    variance0: float
    value: float
    slope: float
    blow_up_time: float = math.inf

    def variance(self, times):
        """s(t), the shape of ``times``."""
        times = elapsed_times(times)
        a = abs(self.slope)
        theta0 = math.asinh(2 * a * self.variance0)
        if theta0 == 0 or self.value == 0:
            return np.full(times.shape, self.variance0)
        drift = 2 * self.value * math.copysign(1.0, self.slope) * times
        target = theta0 - 1 / math.tanh(theta0 / 2) + drift

        def function(theta):
            half = np.sinh(np.minimum(theta / 2, 300.0))
            with np.errstate(over="ignore"):
                return theta - 1 / np.tanh(theta / 2), 1 + 0.5 / half / half

        # While x grows, 1 < coth(x/2) <= coth(theta0/2).
        # From coth(x/2) > 2/x the root is above the positive root of x^2 - target x - 2.
        size = np.hypot(target, math.sqrt(8))
        decayed = np.minimum(theta0, np.where(target > 0, (size + target) / 2, 4 / (size + np.abs(target))))
        low = np.where(drift > 0, np.maximum(theta0, target + 1), decayed)
        high = np.where(drift > 0, theta0 + drift, theta0)
        theta = np.where(drift == 0, theta0, increasing_root(function, target, low, high))
        with np.errstate(over="ignore"):
            values = np.where(drift == 0, self.variance0, np.sinh(theta) / (2 * a))
        return representable("the variance", values)

    def mean(self, times):
        """m(t) = e^{v t} m0, the shape of ``times``."""
        with np.errstate(over="ignore"):
            return representable("the mean", self.mean0 * np.exp(self.value * elapsed_times(times)))

    def at(self, t):
        """The law at time t."""
        return Gaussian([float(self.mean(t))], [[float(self.variance(t))]])


def scalar_sinkhorn(head, law):
    """Sinkhorn attention (entropic strength 1) on N(m, s) in one dimension, solved: a `ScalarSinkhornSolution`.

    Parameters
    ----------
    head : Head
        Constant, dimension 1 (Q and K may have several rows).
    law : Gaussian
        Dimension 1; variance 0 is allowed.

    Raises
    ------
    ValueError
        In other dimensions.
    """
    head = constant_head(head)
    law = fitting_law(head, law, dimension=1)
    return ScalarSinkhornSolution(
        float(law.mean[0]), float(law.covariance[0, 0]), float(head.value[0, 0]), float(head.A[0, 0])
    )
