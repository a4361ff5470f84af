"""Energy dissipation along a run: dE/dt by the chain rule and by the twisted metric, and how far they are apart."""

from dataclasses import dataclass, replace

import numpy as np

from ..checks import number
from ..flows import GaussianFlow, ParticleFlow
from ..spaces import Euclidean
from .base import Energy
from .metric import HeadsMobility, SoftmaxMobility, TwistedMetric, UnitMobility, wasserstein_metric
from .structure import STRUCTURES, GradientField, gradient_structure, mobility_matrix
from .twisted_distance import TwistedGeodesic, twisted_distance

__all__ = [
    "STRUCTURES",
    "Dissipation",
    "GradientField",
    "HeadsMobility",
    "SoftmaxMobility",
    "TwistedGeodesic",
    "TwistedMetric",
    "UnitMobility",
    "dissipation",
    "gradient_structure",
    "mobility_matrix",
    "twisted_distance",
    "wasserstein_metric",
]


@dataclass(frozen=True, eq=False)
class Dissipation:
    """dE/dt along a run, two ways; every array has one entry an output time, shape (k,).

    Parameters
    ----------
    times, energies : ndarray
    chain_rule : ndarray
        ∫ <grad dE/dmu, v> dmu, with v the velocity of the field.
    metric : ndarray
        sign <<v, v>> in the twisted metric; equal to `chain_rule` where the field is a gradient flow.
    explicit : ndarray
        The work of moving parameters up to each time, ∫ (d_t E)(mu) dt, zero for constant ones.
    residual : ndarray
        E(t) - E(0) - explicit - ∫_0^t metric: the energy-dissipation identity.
    chain_residual : ndarray
        The same with the chain rule in place of the metric: the error of quadrature and of the run alone.
    sign : int
        +1 for ascent, -1 for descent.
    """

    times: np.ndarray
    energies: np.ndarray
    chain_rule: np.ndarray
    metric: np.ndarray
    explicit: np.ndarray
    residual: np.ndarray
    chain_residual: np.ndarray
    sign: int

    @property
    def gap(self):
        """max |chain rule - metric| over the largest |metric|: round-off where the field is a gradient flow."""
        return _relative(self.chain_rule - self.metric, self.metric)

    @property
    def relative_gaps(self):
        """|chain rule - metric| / |metric| at each time, shape (k,); NaN where nothing moves."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(self.chain_rule - self.metric) / np.abs(self.metric)

    @property
    def largest_residual(self):
        """max |residual| over the range of the energy along the run."""
        return _relative(self.residual, self.energies - self.energies[0])

    @property
    def largest_chain_residual(self):
        """max |chain_residual| over the range of the energy along the run."""
        return _relative(self.chain_residual, self.energies - self.energies[0])

    @property
    def monotone(self):
        """Whether the energy moved by ``sign`` (or stood still, up to round-off) from each output time to the next."""
        slack = 1e-12 * np.abs(self.energies).max()
        return bool((self.sign * np.diff(self.energies) >= -slack).all())

    def difference_quotients(self):
        """(times, (E(t_{k+1}) - E(t_{k-1})) / (t_{k+1} - t_{k-1})): a third road, of order 2 on equal steps."""
        spans = self.times[2:] - self.times[:-2]
        return self.times[1:-1], (self.energies[2:] - self.energies[:-2]) / spans


def dissipation(field, energy, trajectory, *, degree=5):
    """The energy-dissipation identity of a field along a run.

    For v = (H / Z) grad dE/dmu: dE/dt = d_t E + ∫ <grad dE/dmu, v> dmu (chain rule) = d_t E + sign ∫ Z <|H|^{-1} v, v>
    dmu (metric) [CACP25]. Time integrals are those of a spline through the output times; the explicit part of moving
    heads is summed from the exchanges E(mu; t_{k+1}) - E(mu; t_k) at both ends of each interval (order 2), which also
    holds along rough paths.

    Parameters
    ----------
    field : velocity field
        That of the run; see `gradient_structure` for those that qualify.
    energy : Energy
    trajectory : Trajectory
        Of particles or Gaussians, with two or more output times; residuals shrink as they get closer.
    degree : int
        Of the spline, odd: 5 for smooth runs, 1 (the trapezoidal rule) for noisy heads.

    Returns
    -------
    Dissipation

    Raises
    ------
    ValueError
        If the field is no gradient flow of the energy; names the hypothesis that fails.
    """
    flow = _flow(field, energy, trajectory)
    degree = number("degree", degree, at_least=1, integer=True)
    times, states = trajectory.times, list(trajectory)
    space = getattr(flow, "space", Euclidean())
    energies, chain, norm, exchanged = [], [], [], np.zeros(len(times))
    for k, (t, y, state) in enumerate(zip(times, trajectory.arrays, states, strict=True)):
        now = energy.at(t)
        structure = gradient_structure(field, now, t=t, dimension=state.dimension, space=space)
        velocity = flow.rate(t, y)
        energies.append(now.value(state))
        chain.append(now.derivative(state, velocity))
        norm.append(structure.sign * structure.squared_norm(state, velocity))
        if k and now is not energy:
            before = energy.at(times[k - 1])
            at_start = now.value(states[k - 1]) - energies[k - 1]
            exchanged[k] = (at_start + energies[k] - before.value(state)) / 2
    energies, chain, norm, explicit = np.array(energies), np.array(chain), np.array(norm), np.cumsum(exchanged)
    moved = energies - energies[0] - explicit
    return Dissipation(
        times,
        energies,
        chain,
        norm,
        explicit,
        moved - _primitive(times, norm, degree),
        moved - _primitive(times, chain, degree),
        structure.sign,
    )


def _flow(field, energy, trajectory):
    """The flow of the run with this field, made ready for a pass along it."""
    flow = getattr(trajectory, "flow", None)
    if not isinstance(flow, ParticleFlow | GaussianFlow):
        raise ValueError(
            f"trajectory must be a run of particles or of a Gaussian; got {type(trajectory).__name__} of "
            f"{type(flow).__name__}. Use simulate(field, start, times)."
        )
    if not isinstance(energy, Energy):
        raise ValueError(f"energy must be an Energy; got {type(energy).__name__}. Use InteractionEnergy(head).")
    if len(trajectory) < 2:
        raise ValueError(f"dissipation needs two or more output times; the run has {len(trajectory)}.")
    return replace(flow, field=field).for_run()


def _primitive(times, values, degree):
    """Integrals of the spline through the values from the first time to each, shape (k,)."""
    from scipy.interpolate import make_interp_spline

    degree = min(degree, len(times) - 1)
    spline = make_interp_spline(times, values, k=degree - (degree + 1) % 2).antiderivative()
    return spline(times) - spline(times[0])


def _relative(values, scale):
    size, largest = np.abs(values).max(), np.abs(scale).max()
    return float(size / largest) if largest > 0 else float(size)
