"""Wasserstein stability: how far two solutions drift apart, against a proved bound and against measured estimates."""

from dataclasses import dataclass

import numpy as np

from ..checks import number, time_array
from ..integration.adaptive import Adaptive
from ..integration.simulate import simulate
from ..integration.trajectory import Outcome, Trajectory
from ..measures import Measure
from ..spaces import Euclidean, Positioned, Sphere
from ..summation.balancing import NotConvergedError
from ..velocity import field_for_run
from .distances import conditional_wasserstein, optimal_coupling, wasserstein
from .lipschitz import LipschitzBound, NoBoundError, lipschitz_bound, log_constant

#: Coordinates of all tokens up to which `local_lipschitz` is part of a stability run.
MAX_COLUMNS = 128
#: Relative step of the finite differences: their error, a few 1e-6, is far below what the estimate is read to.
STEP = 1e-6


@dataclass(frozen=True, eq=False)
class Stability:
    """Two solutions, the ratio of their distance to that of their starts, and what bounds it.

    Parameters
    ----------
    times : ndarray, shape (k,)
        The output times that both runs reached.
    distances : ndarray, shape (k,)
        W_p(mu_t, nu_t), or the conditional distance for positioned measures.
    quotients : ndarray, shape (k,)
        Along an optimal coupling of mu_t and nu_t: |Gamma_mu(x) - Gamma_nu(y)|_{L^p} / W_p(mu_t, nu_t), the Lipschitz
        quotient of the velocity in (point, law) that this pair sees; zero where the distance is, NaN where an inner
        iteration of the field missed its tolerance.
    local_lipschitz : ndarray, shape (k,), or None
        The larger of the two `local_lipschitz` at mu_t and nu_t; None beyond ``max_columns`` coordinates.
    lipschitz : LipschitzBound or None
        The derived constants; None if there are none.
    log_bound : ndarray, shape (k,), or None
        log C(t, R0); infinite where the bound has ended.
    reason : str
        Why there is no bound; empty if there is one.
    radius : float
        R0, the radius about the origin of the ball that holds both starts.
    p : float
    first, second : Trajectory
        The two runs, with their outcomes.
    """

    times: np.ndarray
    distances: np.ndarray
    quotients: np.ndarray
    local_lipschitz: np.ndarray | None
    lipschitz: LipschitzBound | None
    log_bound: np.ndarray | None
    reason: str
    radius: float
    p: float
    first: Trajectory
    second: Trajectory

    @property
    def ratios(self):
        """W_p(mu_t, nu_t) / W_p(mu_0, nu_0), shape (k,)."""
        return self.distances / self.distances[0]

    @property
    def bound(self):
        """C(t, R0), infinite where it does not fit a float, shape (k,); None if no bound is derived."""
        if self.log_bound is None:
            return None
        with np.errstate(over="ignore"):
            return np.exp(self.log_bound)

    @property
    def gronwall(self):
        """exp of the integral of the quotients (trapezoidal rule over the output times), shape (k,).

        With the exact integral it is never below the ratio: d/dt W_p is at most the quotient times W_p.
        """
        return _grown(self.times, self.quotients)

    @property
    def local_estimate(self):
        """exp of the integral of `local_lipschitz`, shape (k,), or None.

        The growth, in the worst direction at every time, that small changes of the tokens can have: an estimate of
        C along these runs, not a bound at a finite distance.
        """
        return None if self.local_lipschitz is None else _grown(self.times, self.local_lipschitz)

    @property
    def outcomes(self):
        """How the two runs ended."""
        return self.first.outcome, self.second.outcome

    @property
    def finished(self):
        """Whether both runs reached the last time."""
        return all(outcome is Outcome.FINISHED for outcome in self.outcomes)


def stability(
    field,
    mu0,
    nu0,
    times,
    p=2,
    *,
    space=Euclidean(),
    scheme=Adaptive(),
    dt=None,
    mask_factor=None,
    max_columns=MAX_COLUMNS,
):
    """Move two laws along one field and compare the growth of their distance with C(t, R0).

    The bound is W_p(mu_t, nu_t) <= C(t, R0) W_p(mu_0, nu_0) for the solutions of the ODE, derived in
    `meanfield.analysis.lipschitz` for every attention variant, several heads, masks (conditional distance) and spheres
    (geodesic distance) [CACP25]. It is doubly exponential in time for normalised kernels, and local in time for linear
    and unnormalised attention.

    Parameters
    ----------
    field : velocity field
    mu0, nu0 : Measure
        Both with positions or both without; with them, of the same position marginal.
    times : array_like, shape (k,)
        Output times; the first is the start.
    p : float
        Order of the distance, at least 1.
    space : Euclidean, Sphere or Positioned
        Where the tokens live; its distance is the ground distance.
    scheme, dt
        As in `simulate`. A fixed step is compared with the same bound, although that is one of the ODE.
    mask_factor : callable, optional
        What a mask costs, `lipschitz.visible_factor` by default; see `lipschitz.lipschitz_bound`.
    max_columns : int
        `local_lipschitz` is computed while the tokens have at most this many coordinates in all.

    Returns
    -------
    Stability
        Runs that end early are results: everything is given up to the last time that both reached.

    Raises
    ------
    ValueError
        On bad input, differing position marginals, and two starts at distance zero.
    """
    p = number("p", p, at_least=1)
    times = time_array("times", times)
    max_columns = number("max_columns", max_columns, at_least=0, integer=True)
    base = space.base if isinstance(space, Positioned) else space
    start = _distance(mu0, nu0, p, base)
    if start == 0:
        raise ValueError(
            "mu0 and nu0 must differ; their distance is 0, and so is that of their solutions. Move one token."
        )
    runs = [simulate(field, law, times, space=space, scheme=scheme, dt=dt, progress=False) for law in (mu0, nu0)]
    reached = min(map(len, runs))
    pairs = list(zip(times, runs[0], runs[1], strict=False))
    distances = np.array([start] + [_distance(mu, nu, p, base) for _, mu, nu in pairs[1:]])
    quotients = np.array(
        [_measured(_quotient, field, t, mu, nu, p, base, W) for (t, mu, nu), W in zip(pairs, distances, strict=True)]
    )
    local = None
    if max(law.tokens.size for law in (mu0, nu0)) <= max_columns:
        local = np.array([_measured(_larger_local, field, t, mu, nu, base) for t, mu, nu in pairs])
    radius = max(np.linalg.norm(law.tokens[law.weights > 0], axis=1).max() for law in (mu0, nu0))
    found, log_bound, reason = None, None, ""
    try:
        found = lipschitz_bound(field, mu0, p, mask_factor=mask_factor)
        log_bound, _ = log_constant(found, times[:reached], float(radius), base)
    except NoBoundError as error:
        reason = str(error)
    return Stability(
        times[:reached], distances, quotients, local, found, log_bound, reason, float(radius), p, *runs
    )


def local_lipschitz(field, t, mu, *, space=Euclidean(), step=STEP):
    """The Lipschitz constant of (points, law) -> velocity at a law, over all small moves of its tokens.

    The operator norm in L^2(mu) of the Jacobian of all velocities in all tokens, by central differences of the field:
    2 n d evaluations. On a sphere tokens move in their tangent spaces (covariant derivative).

    Parameters
    ----------
    field : velocity field
    t : float
    mu : Measure
        Tokens without mass are left out.
    space : Euclidean or Sphere
        Of the tokens.
    step : float
        Relative to the largest token.

    Returns
    -------
    float
    """
    massive = mu.weights > 0
    mu = Measure(mu.points[massive], mu.weights[massive], has_positions=mu.has_positions)
    x, fixed = np.array(mu.tokens), mu.points[:, : mu.points.shape[1] - mu.dimension]
    h, field = step * (np.abs(x).max() or 1.0), field_for_run(field)

    def velocity(y):
        return _velocities(field, t, mu.moved_to(np.column_stack([fixed, y])), space)

    # Mass-weighted coordinates make L^2(mu) Euclidean: a unit direction moves token i by 1 / sqrt(w_i).
    root = np.sqrt(mu.weights)
    columns = []
    for i, j in np.ndindex(x.shape):
        direction = np.zeros_like(x)
        direction[i, j] = 1.0
        move = h * space.tangent(x, direction)
        change = velocity(space.retract(x + move)) - velocity(space.retract(x - move))
        columns.append((space.tangent(x, change) * (root / root[i])[:, None]).ravel() / (2 * h))
    return float(np.linalg.norm(np.array(columns), 2))


def _measured(estimate, *given):
    """An estimate, or NaN where the field has no velocity because an inner iteration missed its tolerance."""
    try:
        return estimate(*given)
    except NotConvergedError:
        return np.nan


def _larger_local(field, t, mu, nu, space):
    return max(local_lipschitz(field, t, law, space=space) for law in (mu, nu))


def _grown(times, rates):
    steps = np.diff(times) * (rates[1:] + rates[:-1]) / 2
    with np.errstate(over="ignore"):
        return np.exp(np.concatenate([[0.0], np.cumsum(steps)]))


def _distance(mu, nu, p, space):
    positioned = isinstance(mu, Measure) and mu.has_positions
    return (conditional_wasserstein if positioned else wasserstein)(mu, nu, p, space=space)


def _velocities(field, t, mu, space):
    """Tangent velocities of the tokens, without positions, shape (n, d)."""
    moving = np.asarray(field(t, np.array(mu.points), mu))
    return space.tangent(mu.tokens, moving[:, mu.points.shape[1] - mu.dimension :])


def _coupled(mu, nu, p, space):
    """Token numbers and masses of an optimal coupling; of a conditional one, position by position."""
    if not mu.has_positions:
        plan = optimal_coupling(mu, nu, p, space=space)
        return plan.rows, plan.columns, plan.masses
    parts = []
    for s in np.unique(mu.positions[mu.weights > 0]):
        i, j = (np.flatnonzero((law.positions == s) & (law.weights > 0)) for law in (mu, nu))
        here, there = Measure.normalised(mu.tokens[i], mu.weights[i]), Measure.normalised(nu.tokens[j], nu.weights[j])
        plan = optimal_coupling(here, there, p, space=space)
        parts.append((i[plan.rows], j[plan.columns], mu.weights[i].sum() * plan.masses))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _quotient(field, t, mu, nu, p, space, distance):
    """|Gamma_mu(x) - Gamma_nu(y)| in L^p of an optimal coupling over the distance; zero if the distance is."""
    if distance == 0:
        return 0.0
    rows, columns, masses = _coupled(mu, nu, p, space)
    velocity, other = (_velocities(field, t, law, space) for law in (mu, nu))
    change = _transported(velocity[rows], mu.tokens[rows], nu.tokens[columns], space) - other[columns]
    return float((masses @ np.linalg.norm(change, axis=1) ** p) ** (1 / p) / distance)


def _transported(v, x, y, space):
    """Tangent vectors v at x carried to y along the geodesic: v - <v, y> (x + y) / (R^2 + <x, y>) on a sphere."""
    if not isinstance(space, Sphere):
        return v
    along = np.einsum("ij,ij->i", v, y) / (space.radius**2 + np.einsum("ij,ij->i", x, y))
    return v - along[:, None] * (x + y)
