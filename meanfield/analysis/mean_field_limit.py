"""The mean-field limit: how fast n tokens approach the law they are drawn from, at the start and at later times."""

from dataclasses import dataclass

import numpy as np

from ..checks import finite_array, number, time_array
from ..integration.adaptive import Adaptive
from ..integration.simulate import simulate
from ..measures import Gaussian, Measure
from ..spaces import Euclidean, Positioned, Sphere
from ..velocity import NotGaussianError, affine_on_gaussian
from .distances import conditional_wasserstein, gaussian_to_samples, sliced_wasserstein, wasserstein
from .draws import AtPositions, UniformBall, drawn, first_tokens

__all__ = ["AtPositions", "MeanFieldLimit", "UniformBall", "first_tokens", "mean_field_limit", "sampling_rate"]

#: A reference cloud has this many times the tokens of the largest system, unless the caller says otherwise.
REFERENCE_FACTOR = 16
#: Pairs of tokens up to which a distance in R^d, d >= 2, is exact; beyond it all distances of a study are sliced.
MAX_PAIRS = 1_000_000
#: Seed of the reference cloud: a stream of its own, so that no system is a part of its reference.
REFERENCE_SEED = 2_501_18322


@dataclass(frozen=True, eq=False)
class MeanFieldLimit:
    """Distances W_p(mu_n(t), mu(t)) for several n, seeds and times.

    Parameters
    ----------
    times : ndarray, shape (T,)
        The output times that the reference reached.
    sizes : ndarray, shape (S,)
        Numbers n of tokens (a position, for masked fields).
    errors : ndarray, shape (K, S, T)
        One row a seed; NaN at times that a run did not reach.
    p : float
    distance : str
        Which distance it is: "exact", "sliced", "conditional", or "exact, to the Gaussian".
    reference : str
        What mu(t) is.
    rate : float
        Exponent of the sampling error of n independent tokens, see `sampling_rate`.
    outcomes : list of list of Outcome
        One a seed and size.
    """

    times: np.ndarray
    sizes: np.ndarray
    errors: np.ndarray
    p: float
    distance: str
    reference: str
    rate: float
    outcomes: list

    @property
    def mean(self):
        """Geometric mean of the errors over the seeds, shape (S, T)."""
        return np.exp(np.log(self.errors).mean(axis=0))

    def band(self, level=0.95):
        """Confidence band of `mean` by Student's t of the logarithms: (low, high), each of shape (S, T).

        Raises
        ------
        ValueError
            With one seed, which has no spread.
        """
        middle, half = _interval(np.log(self.errors), level)
        return np.exp(middle - half), np.exp(middle + half)

    @property
    def slopes(self):
        """Least-squares slope of log error in log n for each seed and time, shape (K, T); NaN where a run is missing.

        The tokens of one seed are nested, so its slopes at two times can be compared directly.
        """
        x = np.log(self.sizes)
        x = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        return np.einsum("s,kst->kt", x, np.log(self.errors))

    def slope(self, level=0.95):
        """Mean slope over the seeds and the half-width of its confidence interval, each of shape (T,)."""
        return _interval(self.slopes, level)


def sampling_rate(d, *, sliced=False):
    """Exponent r in E W_p(mu_n, mu) ~ n^r for n independent draws of a law with a density on a connected set.

    -1/2 on a line; -1/2 with a factor sqrt(log n) in d = 2; -1/d in d >= 3 (the spacing of n points); -1/2 in every
    dimension when sliced, since that is an average of distances on lines. Unbounded laws may be slower: W_2 of a normal
    sample on a line has a factor sqrt(log log n).

    Parameters
    ----------
    d : int
        Dimension of the support: that of the tokens, one less on a sphere.
    """
    d = number("d", d, at_least=0, integer=True)
    return -0.5 if sliced or d <= 2 else -1 / d


def mean_field_limit(
    field,
    law,
    sizes,
    times,
    *,
    seeds=8,
    p=2,
    reference=None,
    space=Euclidean(),
    scheme=Adaptive(),
    dt=None,
    max_pairs=MAX_PAIRS,
    directions=64,
    reference_seed=REFERENCE_SEED,
):
    """Move n tokens and their law, and measure W_p(mu_n(t), mu(t)) against n.

    By stability, W_p(mu_n(t), mu(t)) <= C(t, R0) W_p(mu_n(0), mu(0)) for compactly supported laws: the slope in n is
    that of sampling at every time [CACP25]. For unbounded laws this may fail, as near the blow-up of a Gaussian.

    Parameters
    ----------
    field : velocity field
    law : Gaussian or callable
        A law, or ``law(n, rng) -> Measure`` drawing n independent tokens of equal weight: UniformBall(d, radius), or
        AtPositions(draw, positions) for masked fields (then n is the number of tokens a position).
    sizes : list of int
        Increasing. The tokens of a seed are nested: the n-token system is the first n tokens of the largest one.
    times : array_like, shape (T,)
    seeds : int or list of int
        A number of seeds 0, 1, ..., or the seeds; each is one draw, shared by all fields it is used with.
    p : float
        Order of the distance.
    reference : int or Measure, optional
        Tokens of the reference cloud, 16 times the largest size by default, or the cloud itself (a fine grid of
        quantiles is far better than draws on a line). A Gaussian law under a field that keeps Gaussians is moved by
        its own ODEs instead: compared exactly for d = 1 and p = 2 when ``reference`` is left out, else by a cloud of
        that many tokens that is drawn from it at each time (the same normal numbers throughout).
    space : Euclidean, Sphere or Positioned
        On a sphere the draws are retracted first.
    scheme, dt
        As in `simulate`.
    max_pairs : int
        In d >= 2, when the largest size times the reference exceeds it, all distances are sliced.
    directions : int
        Of the sliced distance; drawn once.
    reference_seed : int
        Of the reference cloud and of the directions.

    Returns
    -------
    MeanFieldLimit
        Its errors include that of the reference cloud, about (n / reference)^{-rate} of the sampling error.

    Raises
    ------
    ValueError
        On bad input.
    """
    p = number("p", p, at_least=1)
    times, sizes = time_array("times", times), _sizes(sizes)
    base = space.base if isinstance(space, Positioned) else space
    if isinstance(seeds, int):
        seeds = range(number("seeds", seeds, at_least=1, integer=True))
    move = _Mover(field, times, space, scheme, dt)
    draw = law.sample if isinstance(law, Gaussian) else law
    rng = np.random.default_rng(reference_seed)
    truth = _reference(move, law, draw, sizes[-1], p, reference, rng)
    if isinstance(truth, _Cloud):
        truth.choose_distance(base, sizes[-1], max_pairs, directions, rng)
    errors, outcomes = [], []
    for seed in seeds:
        everyone = drawn(draw, sizes[-1], np.random.default_rng(seed))
        runs = [move(first_tokens(everyone, n)) for n in sizes]
        errors.append([_errors(truth, run) for run in runs])
        outcomes.append([run.outcome for run in runs])
    d = len(truth.states[0].mean) - isinstance(base, Sphere)
    rate = sampling_rate(d, sliced=truth.distance_name == "sliced")
    reached = len(truth.states)
    return MeanFieldLimit(
        times[:reached], sizes, np.array(errors), p, truth.distance_name, truth.words, rate, outcomes
    )


@dataclass(frozen=True, eq=False)
class _Mover:
    """Moves any start along one field over the times of one study."""

    field: object
    times: np.ndarray
    space: object
    scheme: object
    dt: float | None

    def __call__(self, start):
        if isinstance(start, Measure):
            start = Measure(self._placed(start), start.weights, has_positions=start.has_positions)
        options = {"scheme": self.scheme, "dt": self.dt, "progress": False}
        space = Euclidean() if isinstance(start, Gaussian) else self.space
        return simulate(self.field, start, self.times, space=space, **options)

    def _placed(self, start):
        wrap = start.has_positions and not isinstance(self.space, Positioned)
        return (Positioned(self.space) if wrap else self.space).retract(start.points)


class _ExactGaussian:
    """A Gaussian on the line as its own reference."""

    distance_name, words = "exact, to the Gaussian", "the Gaussian"

    def __init__(self, run):
        self.states = list(run)

    def distance(self, k, mu):
        return gaussian_to_samples(self.states[k], mu)


class _Cloud:
    """A large cloud as reference, with one distance for all sizes."""

    def __init__(self, states, p, words):
        self.states, self.p, self.words = list(states), p, words

    def choose_distance(self, space, largest, max_pairs, directions, rng):
        """Exact up to ``max_pairs`` pairs and on lines, sliced beyond; conditional for positioned clouds."""
        p, cloud = self.p, self.states[0]
        if cloud.has_positions:
            self.distance_name = "conditional"
            self._between = lambda mu, nu: conditional_wasserstein(mu, nu, p, space=space)
        elif isinstance(space, Sphere) or cloud.dimension == 1 or largest * len(cloud) <= max_pairs:
            self.distance_name = "exact"
            self._between = lambda mu, nu: wasserstein(mu, nu, p, space=space)
        else:
            self.distance_name = "sliced"
            along = rng.standard_normal((number("directions", directions, at_least=1, integer=True), cloud.dimension))
            self._between = lambda mu, nu: sliced_wasserstein(mu, nu, p, directions=along)

    def distance(self, k, mu):
        return self._between(mu, self.states[k])


def _reference(move, law, draw, largest, p, reference, rng):
    """What mu(t) is: the Gaussian itself, draws from it at each time, or a large system of tokens."""
    if isinstance(reference, Measure):
        return _Cloud(move(reference), p, f"{len(reference)} given tokens")
    if reference is not None:
        reference = number("reference", reference, at_least=largest + 1, integer=True)
    count = REFERENCE_FACTOR * largest if reference is None else reference
    if isinstance(law, Gaussian) and isinstance(move.space, Euclidean):
        try:
            affine_on_gaussian(move.field, move.times[0], law)
        except NotGaussianError:
            return _system(move, draw, count, p, rng)
        run = move(law)
        if law.dimension == 1 and p == 2 and reference is None:
            return _ExactGaussian(run)
        xi = rng.standard_normal((count, law.root.shape[1]))
        clouds = (Measure(state.mean + xi @ state.root.T) for state in run)
        return _Cloud(clouds, p, f"{count} draws from the Gaussian at each time")
    return _system(move, draw, count, p, rng)


def _system(move, draw, count, p, rng):
    return _Cloud(move(drawn(draw, count, rng)), p, f"{count} tokens")


def _errors(truth, run):
    """Distances to the reference at its times; NaN where the run did not get."""
    found = np.full(len(truth.states), np.nan)
    for k in range(min(len(found), len(run))):
        found[k] = truth.distance(k, run[k])
    return found


def _interval(values, level):
    """Mean over the first axis and the half-width of its confidence interval by Student's t."""
    from scipy.special import stdtrit

    level, count = number("level", level, above=0), len(values)
    if count < 2 or level >= 1:
        raise ValueError(f"a confidence interval needs two seeds and a level below 1; got {count} and {level:g}.")
    spread = values.std(axis=0, ddof=1) / np.sqrt(count)
    return values.mean(axis=0), stdtrit(count - 1, (1 + level) / 2) * spread


def _sizes(sizes):
    array = finite_array("sizes", sizes, 1)
    if len(array) < 2 or (array < 1).any() or (array % 1 != 0).any() or (np.diff(array) <= 0).any():
        raise ValueError(
            f"sizes must be two or more increasing whole numbers of tokens; got {array.tolist()}. "
            "For instance [16, 64, 256]."
        )
    return array.astype(int)
