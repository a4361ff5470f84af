"""The twisted distance of two clouds: the least action over discretised paths, refined until it stands still."""

from dataclasses import dataclass

import numpy as np

from ..analysis.distances import optimal_coupling
from ..checks import number
from ..measures import Measure
from .base import fitting, massive
from .metric import SoftmaxMobility, TwistedMetric, UnitMobility

#: Pieces of mass in a path; an action costs their square times the number of segments.
MAX_PIECES = 400


@dataclass(frozen=True, eq=False)
class TwistedGeodesic:
    """A path of least action between two clouds, and how its length settles as the path is refined.

    Parameters
    ----------
    distance : float
        The square root of the least action found on the finest path.
    path : ndarray, shape (K + 1, n, d)
        Positions of the n pieces of mass at times 0, 1/K, ..., 1.
    weights : ndarray, shape (n,)
        Their masses.
    segments, distances : ndarray, shape (levels,)
        K of each refinement, and the distance found there: errors fall like 1 / K^2.
    gradients : ndarray, shape (levels,)
        Largest entry of the action's gradient at the end of each, over the action.
    straight : float
        The length of the straight path with the same coupling: what was gained by bending.
    converged : bool
        Whether every level met its tolerance.
    """

    distance: float
    path: np.ndarray
    weights: np.ndarray
    segments: np.ndarray
    distances: np.ndarray
    gradients: np.ndarray
    straight: float
    converged: bool

    @property
    def extrapolated(self):
        """The distance with the 1 / K^2 error of the last two refinements removed."""
        if len(self.distances) < 2:
            return self.distance
        return float(self.distances[-1] + (self.distances[-1] - self.distances[-2]) / 3)

    def at(self, k):
        """The cloud at node k of the path, a `Measure`."""
        return Measure(self.path[k], self.weights)


def twisted_distance(mu, nu, metric, *, segments=(4, 8, 16), tolerance=1e-7, max_iterations=2000):
    """d(mu, nu)^2 = inf over paths of ∫_0^1 ∫ Z_{mu_t}(x) <|H|^{-1} v, v> dmu_t dt, by least action [CACP25].

    Mass is paired by the optimal coupling for the cost <|H|^{-1} (x - y), x - y>, and each piece moves along a
    polygon; the action takes Z at the middle of each segment (error 1 / K^2) and is minimised over the inner nodes by
    L-BFGS with its exact gradient, from coarse to fine. The action is not convex and the pairing is fixed, so the
    result bounds the distance from above; it **is** W_2 (in the coordinates of |H|^{-1}) when Z is constant, e.g.
    A = 0, and is exact in d = 1 as far as the local minimum is the global one.

    Parameters
    ----------
    mu, nu : Measure
        At most 200 tokens each is what this is made for.
    metric : TwistedMetric
        With a softmax or unit mobility.
    segments : tuple of int
        K of each refinement, rising.
    tolerance : float
        On the gradient of the action, relative to the action.
    max_iterations : int
        Of L-BFGS at each refinement.

    Returns
    -------
    TwistedGeodesic

    Raises
    ------
    ValueError
        On clouds too large, other mobilities, or an action that overflows.
    """
    if not isinstance(metric, TwistedMetric) or not isinstance(metric.mobility, SoftmaxMobility | UnitMobility):
        raise ValueError(
            "metric must be a TwistedMetric with a softmax or unit mobility; got "
            f"{type(getattr(metric, 'mobility', metric)).__name__}. For W_2 use wasserstein_metric(d)."
        )
    levels = [number("segments", K, at_least=1, integer=True) for K in np.atleast_1d(segments)]
    if not levels or sorted(set(levels)) != levels:
        raise ValueError(f"segments must rise, for instance (4, 8, 16); got {segments!r}.")
    tolerance = number("tolerance", tolerance, above=0)
    max_iterations = number("max_iterations", max_iterations, at_least=1, integer=True)
    action = _Action(metric, *_paired(mu, nu, metric.weight))
    nodes = np.stack([action.start, action.end])
    straight = action.straight(levels[-1])
    if not np.isfinite(straight):
        raise ValueError("the mobility e^{x^T A^T y} overflows between these clouds. Scale A or the tokens down.")
    distances, gradients = [], []
    for K in levels:
        nodes = _refined(nodes, K)
        nodes, value, slope = _minimised(action, nodes, tolerance, max_iterations)
        distances.append(np.sqrt(value))
        gradients.append(slope)
    return TwistedGeodesic(
        float(distances[-1]),
        nodes,
        action.weights,
        np.array(levels),
        np.array(distances),
        np.array(gradients),
        float(np.sqrt(straight)),
        bool(max(gradients) <= 10 * tolerance),
    )


def _paired(mu, nu, weight):
    """Starts, ends and masses of the pieces, paired in the coordinates where the weight is the identity."""
    mu, nu = massive(mu), massive(nu)
    fitting(weight, mu.dimension)
    fitting(weight, nu.dimension)
    root = np.linalg.cholesky(weight)
    coupling = optimal_coupling(Measure(mu.points @ root, mu.weights), Measure(nu.points @ root, nu.weights))
    if len(coupling.masses) > MAX_PIECES:
        raise ValueError(
            f"a path of {len(coupling.masses)} pieces of mass is too many (at most {MAX_PIECES}); the clouds have "
            f"{len(mu)} and {len(nu)} tokens. Take 200 or fewer of each."
        )
    return mu.points[coupling.rows], nu.points[coupling.columns], coupling.masses


def _refined(nodes, K):
    """The polygon read at K + 1 equal times."""
    old = np.linspace(0, 1, len(nodes))
    flat = nodes.reshape(len(nodes), -1)
    new = np.linspace(0, 1, K + 1)
    return np.stack([np.interp(new, old, column) for column in flat.T], axis=1).reshape(K + 1, *nodes.shape[1:])


def _minimised(action, nodes, tolerance, max_iterations):
    """Nodes of least action with fixed ends, the action, and its largest slope relative to the action."""
    from scipy.optimize import minimize

    if len(nodes) == 2:
        return nodes, action(nodes)[0], 0.0
    scale = max(action(nodes)[0], np.finfo(float).tiny)
    inner = nodes[1:-1]
    # In units of mass every piece counts alike for the minimiser.
    roots = np.sqrt(action.weights)[:, None]

    def function(z):
        moved = np.concatenate([nodes[:1], z.reshape(inner.shape) / roots, nodes[-1:]])
        value, slope = action(moved)
        return value / scale, (slope / roots).ravel() / scale

    found = minimize(
        function,
        (inner * roots).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxfun": 2 * max_iterations, "gtol": tolerance, "ftol": 0, "maxcor": 20},
    )
    nodes = np.concatenate([nodes[:1], found.x.reshape(inner.shape) / roots, nodes[-1:]])
    return nodes, found.fun * scale, float(np.abs(found.jac).max() / max(found.fun, np.finfo(float).tiny))


class _Action:
    """K sum_k sum_i w_i Z_i <W (x_i^{k+1} - x_i^k), same>, Z at the middle of segment k, and its gradient."""

    def __init__(self, metric, start, end, weights):
        self.start, self.end, self.weights = start, end, weights
        self.W = metric.weight
        A = getattr(metric.mobility, "A", np.zeros_like(self.W))
        self.A, self.constant = A, not A.any()

    def straight(self, K):
        """The action of the straight path in K segments."""
        return self(_refined(np.stack([self.start, self.end]), K))[0]

    def __call__(self, nodes):
        K, w = len(nodes) - 1, self.weights
        steps, middles = np.diff(nodes, axis=0), (nodes[1:] + nodes[:-1]) / 2
        pushed = steps @ self.W
        q = np.einsum("kid,kid->ki", pushed, steps)
        slope = np.zeros_like(nodes)
        if self.constant:
            Z = np.ones_like(q)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                kernel = np.exp(middles @ self.A.T @ np.swapaxes(middles, 1, 2))
                Z = kernel @ w
                # Row i of the action depends on x_i through its own logits, row j through x_i as a key.
                weighted = w * q
                pull = (q * w)[..., None] * (kernel @ (w[:, None] * middles) @ self.A)
                push = w[:, None] * (np.swapaxes(kernel, 1, 2) @ (weighted[..., None] * middles) @ self.A.T)
                bend = K * (pull + push) / 2
            slope[1:] += bend
            slope[:-1] += bend
        drive = 2 * K * (w * Z)[..., None] * pushed
        slope[1:] += drive
        slope[:-1] -= drive
        return float(K * np.sum(w * Z * q)), slope[1:-1]
