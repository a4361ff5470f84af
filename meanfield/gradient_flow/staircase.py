"""The staircase of the sphere's energy: saddle to saddle at unit speed, one pair of clusters merging after another."""

from dataclasses import dataclass

import numpy as np

from ..checks import number
from ..integration.adaptive import Adaptive
from ..integration.events import Event
from ..integration.simulate import simulate
from ..measures import Measure
from ..spaces import Sphere
from .base import massive
from .sphere import SphereEnergy

SPHERE = Sphere()
#: Angles of the published start with five tokens on the circle, in radians (L = ln 2000 / sqrt 2000) [GKPR24].
PUBLISHED_ANGLES = 0.5 * np.log(2000) / np.sqrt(2000) * np.array([0, 0.5, 2, 4, 7])
#: Arc length after which a stage without a merge is given up; no stage can be longer than a half circle.
LONGEST_STAGE = 3.2


def published_start():
    """The five tokens on the circle of the published staircase, a `Measure`."""
    return Measure(np.column_stack([np.cos(PUBLISHED_ANGLES), np.sin(PUBLISHED_ANGLES)]))


@dataclass(frozen=True)
class UnitSpeedField:
    """Unnormalised attention on the unit sphere in the time in which its W_2 speed is one: x_i' = G_i / |G|.

    G_i = P_{x_i} sum_j w_j e^{beta <x_i, x_j>} x_j, |G|^2 = sum_i w_i |G_i|^2, with the exponent of the strongest pair
    taken out: directions are right where e^{beta (<x, y> - 1)} is far below round-off, as for beta = 4000.
    For few tokens: all pairs are held.

    Parameters
    ----------
    beta : float
        Positive.
    """

    beta: float

    def __post_init__(self):
        object.__setattr__(self, "beta", number("beta", self.beta, above=0))

    def directions(self, mu):
        """(G e^{-M}, log |G|) of unnormalised attention divided by e^beta; G has shape (n, d)."""
        x, n = mu.points, len(mu)
        steps = x[None, :, :] - x[:, None, :]
        # Differences, because 1 - <x, y> of close tokens would be round-off.
        squares = np.sum(steps**2, axis=2)
        logits = -self.beta / 2 * squares
        logits[np.diag_indices(n)] = -np.inf
        strongest = logits.max()
        pull = np.einsum("ij,ijk->ik", np.exp(logits - strongest) * mu.weights, steps)
        pull = SPHERE.tangent(x, pull)
        size = np.sqrt(mu.weights @ np.sum(pull**2, axis=1))
        with np.errstate(divide="ignore"):
            return pull / size, strongest + np.log(size)

    def __call__(self, t, x, mu):
        """Velocities at the tokens x = mu.points, shape (n, d)."""
        return self.directions(mu)[0]


@dataclass(frozen=True, eq=False)
class Staircase:
    """A run from merge to merge; arrays of samples have shape (k,), arrays of merges shape (m,).

    Parameters
    ----------
    arc : ndarray
        W_2 arc length travelled.
    log_time : ndarray
        log of the time of unnormalised attention divided by e^beta; -inf at the start. Times range over e^100 and more.
    levels : ndarray
        `SphereEnergy.level` at each sample, rising.
    merge_log_times, merge_arcs : ndarray
    plateaus : ndarray, shape (m + 1,)
        sum_k m_k^2 of the cluster masses before the first merge and after each: the heights of the steps.
    last : Measure
        The clusters at the end.
    finished : bool
        Whether one cluster was reached.
    message : str
        Why the run ended if it did not.
    """

    arc: np.ndarray
    log_time: np.ndarray
    levels: np.ndarray
    merge_log_times: np.ndarray
    merge_arcs: np.ndarray
    plateaus: np.ndarray
    last: Measure
    finished: bool
    message: str


def staircase(start, beta, *, glue=1e-3, samples=60, scheme=Adaptive("DOP853", rtol=1e-9, atol=1e-12)):
    """Integrate unnormalised attention on the unit sphere at unit speed until one cluster is left.

    Two tokens closer than ``glue`` become one of their joint mass: the rest of their way would take a time
    log(1 / round-off) in which nothing else moves.

    Parameters
    ----------
    start : Measure
        A few tokens on the unit sphere, for instance `published_start`.
    beta : float
    glue : float
        The published 1e-3; below it levels miss their plateaus by about beta glue^2.
    samples : int
        Output points a stage.
    scheme : Adaptive

    Returns
    -------
    Staircase
    """
    field, energy = UnitSpeedField(beta), SphereEnergy(beta)
    glue, samples = number("glue", glue, above=0), number("samples", samples, at_least=2, integer=True)
    mu = _glued(massive(start), glue)
    SPHERE.check(mu.points)
    arcs, logs, levels = [0.0], [-np.inf], [energy.level(mu)]
    merges, plateaus, message = [], [float(mu.weights @ mu.weights)], ""
    event = Event(lambda t, state: _gap(state) - glue, terminal=True, direction=-1)
    while len(mu) > 1 and not message:
        begun = arcs[-1]
        first = simulate(field, mu, [0.0, LONGEST_STAGE], space=SPHERE, scheme=scheme, events=event, progress=False)
        length = first.last.time
        if not len(first.event_times[0]):
            message = f"no merge within arc length {length:.3g}: {first.message or 'the tokens stand still'}"
            break
        # Dense towards the merge, where the level changes fast.
        stops = length * (1 - np.linspace(1, 0, samples) ** 2)
        run = simulate(field, mu, stops, space=SPHERE, scheme=scheme, progress=False)
        for before, after, state, arc in zip(run[:-1], run[1:], run[1:], np.diff(run.times), strict=True):
            slow = _log_mean(-field.directions(before)[1], -field.directions(after)[1])
            logs.append(np.logaddexp(logs[-1], np.log(arc) + slow))
            levels.append(energy.level(state))
        arcs += list(begun + run.times[1:])
        mu = _glued(run[-1], 1.001 * glue)
        merges.append((logs[-1], arcs[-1]))
        plateaus.append(float(mu.weights @ mu.weights))
    times, places = np.array(merges).reshape(-1, 2).T
    return Staircase(
        *(np.array(column) for column in (arcs, logs, levels)),
        times,
        places,
        np.array(plateaus),
        mu,
        len(mu) == 1,
        message,
    )


def _log_mean(a, b):
    """Logarithm of the mean of exp between a and b along a line: exact where the slowness is exponential in the arc."""
    apart = abs(a - b)
    return max(a, b) + (np.log(-np.expm1(-apart) / apart) if apart > 0 else 0.0)


def _gaps(mu):
    """Distances of all pairs, infinite on the diagonal, shape (n, n)."""
    gaps = np.linalg.norm(mu.points[:, None] - mu.points[None], axis=2)
    gaps[np.diag_indices(len(mu))] = np.inf
    return gaps


def _gap(mu):
    return float(_gaps(mu).min())


def _glued(mu, glue):
    """The measure with its closest pairs replaced by their mean on the sphere, until none is closer than ``glue``."""
    while len(mu) > 1:
        gaps = _gaps(mu)
        i, j = np.unravel_index(np.argmin(gaps), gaps.shape)
        if gaps[i, j] > glue:
            break
        weights, points = mu.weights.copy(), mu.points.copy()
        mass = weights[i] + weights[j]
        points[i] = SPHERE.retract((weights[i] * points[i] + weights[j] * points[j]) / mass)
        weights[i] = mass
        mu = Measure(np.delete(points, j, axis=0), np.delete(weights, j))
    return mu
