"""How far attention velocities can differ: Lipschitz constants on a ball, derived variant by variant.

For laws mu, nu on the ball of radius R and points x, y in it, every rule below proves

    |Gamma_mu(x)| <= growth,   |Gamma_mu(x) - Gamma_nu(y)| <= in_point |x - y| + in_law W_1(mu, nu).

Coupling two solutions by an optimal plan of their starts and using Minkowski's inequality in L^p of the plan,
W_1 <= W_p and Gronwall's lemma, one gets the stability theorem of [CACP25] with every constant written out:

    W_p(mu_t, nu_t) <= C(t, R0) W_p(mu_0, nu_0),
    log C = int_0^t (in_point + in_law)(R_s) ds,   R' = growth(R),   R_0 = R0.

Letters: v = |V|, operator norms throughout, a = |A| R^2 with A = scale K^T Q (so |logit| <= a on the ball).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ..attention.l2 import L2Attention
from ..attention.linear import LinearAttention
from ..attention.masked import MaskedAttention, causal
from ..attention.multihead import MultiHeadAttention
from ..attention.sigmoid import SigmoidAttention
from ..attention.sinkhorn import SinkhornAttention
from ..attention.softmax import SoftmaxAttention
from ..attention.unnormalised import UnnormalisedAttention
from ..parameters import Head
from ..perceptron import AffinePerceptron, ReluPerceptron
from ..spaces import Positioned, Sphere
from ..velocity import SumField

#: A constant C above e^{VACUOUS} says nothing: from there on it is infinite.
VACUOUS = 1e4
#: Relative accuracy of the integral of the rates; far below the slack of any of these bounds.
ACCURACY = 1e-9


class NoBoundError(ValueError):
    """No Lipschitz bound is derived for a field; the message names the field and the reason."""


class Constants(NamedTuple):
    """On the ball of radius R: speed at most ``growth``, Lipschitz constants in the point and in the law (W_1)."""

    growth: float
    in_point: float
    in_law: float


class Norms(NamedTuple):
    """Operator norms of a head: V, A, G = scale K^T K, and osc = |scale| (|Q| + |K|)^2."""

    V: float
    A: float
    G: float
    osc: float


@dataclass(frozen=True, eq=False)
class LipschitzBound:
    """Constants of one field as functions of time and radius, with where they come from.

    Parameters
    ----------
    name : str
        Which bound this is.
    derivation : str
        The proof.
    constants : callable
        ``constants(t, R) -> Constants``.
    parameters : dict
        What it was computed from at the first time: norms, mask factor.
    """

    name: str
    derivation: str
    constants: Callable[[float, float], Constants]
    parameters: dict

    def rate(self, t, R, space):
        """The rate (log C)' at a radius: in_point + in_law, and growth / R more on a sphere (see `log_constant`)."""
        found = self.constants(t, R)
        return found.in_point + found.in_law + (found.growth / R if isinstance(space, Sphere) else 0.0)


def softmax(norms, R):
    """Softmax: (v R, v a, v (1 + 2 a) e^{2 a}), so that the rate is at most v (1 + 3 a) e^{2 a}.

    D_x Gamma = V Cov_p(y) A for the tilted law p ~ e^{l(x, .)} mu, and |Cov_p| <= R^2 on the ball: v a. In the law:
    with f = e^{l(x, .)} and m the tilted mean of nu, int f (z - m) dnu = 0, so for any coupling of mu and nu
    E_mu - E_nu = (1 / int f dmu) E[f(y) (y - m) - f(z) (z - m)]. The gradient of f (y - m) is at most
    f (1 + |A x| |y - m|) <= max f (1 + 2 a), and max f / int f dmu <= e^{2 a}.
    """
    a = norms.A * R**2
    return Constants(norms.V * R, norms.V * a, norms.V * (1 + 2 * a) * np.exp(2 * a))


def l2(norms, R):
    """L2: (v R, 2 v a, v (1 + 4 (|A| + |G|) R^2) e^{o R^2}), o = min(|scale| (|Q| + |K|)^2, 4 |A| + |G|).

    As for softmax with the logit 2 <y, A x> - <y, G y>: D_x Gamma = 2 V Cov_p(y) A, and its gradient in y is
    2 A x - 2 G y. On the ball -scale |Q x - K y|^2 has one sign and is at most |scale| (|Q| + |K|)^2 R^2 in size, which
    is one bound of its oscillation in y; the two terms give the other, 4 |A| R^2 + |G| R^2 (scale of either sign).
    """
    oscillation = min(norms.osc, 4 * norms.A + norms.G)
    in_law = (1 + 4 * (norms.A + norms.G) * R**2) * np.exp(oscillation * R**2)
    return Constants(norms.V * R, 2 * norms.V * norms.A * R**2, norms.V * in_law)


def sinkhorn(norms, R):
    """Sinkhorn: (v R, v a, v [(1 + 4 a) e^{4 a} + a e^{4 a} (1 + e^{2 a})]).

    The field is softmax with the key potential g = g_mu beside k = e^l, so D_x Gamma = V Cov_p(y) A again: v a.
    Potentials: f = 1 / int k g dmu and g = 1 / int k f dmu extend to the ball; grad log g is minus a mean of A x, so
    |grad log(k g)| <= 2 |A| R and log(k g) varies by at most 4 a. In the law, (i) at fixed g as for softmax with these
    two numbers: (1 + 4 a) e^{4 a}. (ii) g_mu against g_nu in Hilbert's metric d = osc log: a half-step
    S_mu g = 1 / int k g dmu contracts d by kappa = tanh a (Birkhoff: the cross-ratios of k are at most e^{4 a}) and
    |log int k g dmu - log int k g dnu| <= 2 |A| R e^{4 a} W_1 =: delta, so d(S_mu g, S_nu g) <= 2 delta and the fixed
    points of the two half-steps differ by d <= 2 delta (1 + kappa) / (1 - kappa^2) = delta (1 + e^{2 a}). Tilting a law
    by a function of oscillation d moves its mean by at most R d / 2 (Cauchy-Schwarz along e^{tau phi}).
    """
    a = norms.A * R**2
    in_law = (1 + 4 * a) * np.exp(4 * a) + a * np.exp(4 * a) * (1 + np.exp(2 * a))
    return Constants(norms.V * R, norms.V * a, norms.V * in_law)


def sigmoid(norms, R, *, bias):
    """Sigmoid: (v s R, v s' a, v (s + s' a)), s and s' the largest value and slope of the logistic on [b - a, b + a].

    Gamma = V int y sigma(l + b) dmu: the derivative in x is V int y (A^T y)^T sigma' dmu, that of y sigma in y is at
    most sigma + |y| sigma' |A x|. s <= 1 and s' <= 1/4.
    """
    a = norms.A * R**2
    value = 0.5 * (1 + np.tanh((bias + a) / 2))
    steepest = max(abs(bias) - a, 0.0)
    slope = 0.25 / np.cosh(min(steepest, 700.0) / 2) ** 2
    return Constants(norms.V * value * R, norms.V * slope * a, norms.V * (value + slope * a))


def linear(norms, R):
    """Linear: (v |A| R^3, v a, 2 v a), local in time: C = (1 - 2 v |A| R0^2 t)^{-3/2}.

    Gamma = V M A x with the second moment M, |M| <= R^2 and |y y^T - z z^T| <= 2 R |y - z|. R' = v |A| R^3 ends at
    t = 1 / (2 v |A| R0^2), as linear tokens themselves may.
    """
    a = norms.A * R**2
    return Constants(norms.V * a * R, norms.V * a, 2 * norms.V * a)


def unnormalised(norms, R):
    """Unnormalised: (v R e^a, v a e^a, v (1 + a) e^a), local in time.

    Gamma = V int y e^l dmu: the derivative in x is V int y (A^T y)^T e^l dmu, that of y e^l in y at most e^l (1 + a).
    R' = v R e^a ends in finite time, as unnormalised tokens themselves may.
    """
    a = norms.A * R**2
    return Constants(norms.V * R * np.exp(a), norms.V * a * np.exp(a), norms.V * (1 + a) * np.exp(a))


#: The rule of each variant, and whether it divides by the mass that it sees (which is what a mask then changes).
RULES = {
    SoftmaxAttention: (softmax, True),
    L2Attention: (l2, True),
    SinkhornAttention: (sinkhorn, True),
    SigmoidAttention: (sigmoid, False),
    LinearAttention: (linear, False),
    UnnormalisedAttention: (unnormalised, False),
}

SUMS = "A sum of fields: the constants of its parts add up."

FEED_FORWARD = "A feed-forward part moves each token by itself: its Lipschitz constant is that of its matrices."

MASKED = """Masked: mass moves within its position only, so the distance is d_p = (int theta(ds) W_p^p(.|s))^{1/p}.

A query at s sees the mass Theta(s). An average over what it sees differs by in_law times the mean of the displacements
D(r) of the visible positions r, (1 / Theta(s)) int D dtheta, and Minkowski asks for the norm h of D -> this mean on
L^p(theta): h <= S^{1/p} with S = max_r sum over the s that see r of theta(s) / Theta(s), by Jensen and exchange of
sums. For the causal mask S <= 1 + log(1 / theta({first})), and also h <= p / (p - 1) whatever theta (Hardy: with w the
masses and u = averages, w_n u_n^p - p/(p-1) w_n D_n u_n^{p-1} <= (W_{n-1} u_{n-1}^p - W_n u_n^p) / (p - 1) by Young,
which telescopes; then Hoelder). h is at most 1 / theta({0}), the constant that Theta >= theta({0}) alone gives
[CACP25]. Fields that do not divide by the visible mass have h = 1."""


def lipschitz_bound(field, law, p=2, *, mask_factor=None):
    """The derived constants of a field.

    Parameters
    ----------
    field : velocity field
        Any of ATTENTION, masked or not, sums of these (several heads) and feed-forward parts.
    law : Measure
        Its weights, and its positions for a mask; where the tokens are does not matter.
    p : float
        The order of the distance, which the factor of a mask depends on.
    mask_factor : callable, optional
        ``mask_factor(field, law, p) -> h`` instead of `visible_factor`, for instance `sink_factor`.

    Returns
    -------
    LipschitzBound

    Raises
    ------
    NoBoundError
        For fields without a derivation.
    """
    mask_factor = visible_factor if mask_factor is None else mask_factor
    if isinstance(field, MultiHeadAttention) or type(field) is SumField:
        parts = [lipschitz_bound(part, law, p, mask_factor=mask_factor) for part in field.fields]
        return LipschitzBound(
            " + ".join(part.name for part in parts),
            "\n\n".join(dict.fromkeys([SUMS, *(part.derivation for part in parts)])),
            partial(_sum, tuple(part.constants for part in parts)),
            {f"{k}.{name}": value for k, part in enumerate(parts) for name, value in part.parameters.items()},
        )
    if isinstance(field, MaskedAttention):
        inner = lipschitz_bound(field.inner, law, p)
        h = mask_factor(field, law, p) if RULES[type(field.inner)][1] else 1.0
        derivation = f"{MASKED}\n\n{inner.derivation}"
        found = {**inner.parameters, "mask factor": h}
        return LipschitzBound(f"masked {inner.name}", derivation, partial(_scaled, inner.constants, h), found)
    if isinstance(field, AffinePerceptron | ReluPerceptron):
        return LipschitzBound("feed-forward", FEED_FORWARD, partial(_feed_forward, *_feed_forward_norms(field)), {})
    if type(field) not in RULES:
        raise NoBoundError(
            f"no stability bound is derived for {getattr(field, '__name__', type(field).__name__)}: its kernel is not "
            f"one of {', '.join(kind.__name__ for kind in RULES)}. The measured estimates hold all the same."
        )
    rule, _ = RULES[type(field)]
    options = {"bias": field.bias} if isinstance(field, SigmoidAttention) else {}
    fixed = norms_of(field.head) if isinstance(field.head, Head) else None
    found = {"|V|": fixed.V, "|A|": fixed.A} if fixed else {}
    constants = partial(_constants, rule, field.head, fixed, options)
    return LipschitzBound(rule.__name__, inspect.cleandoc(rule.__doc__), constants, found | options)


def norms_of(head):
    """Operator norms of one head."""
    V, A, G, Q, K = (float(np.linalg.norm(matrix, 2)) for matrix in (head.value, head.A, head.G, head.query, head.key))
    return Norms(V, A, G, abs(head.scale) * (Q + K) ** 2)


def visible_factor(field, law, p):
    """The factor h of a mask, from the masses of the positions: min(S^{1/p}, and p / (p - 1) for the causal mask)."""
    places, theta = _marginal(law)
    sees = np.asarray(field.visible(places[:, None], places[None, :]))
    seen = sees @ theta
    share = np.divide(theta, seen, out=np.zeros_like(theta), where=seen > 0)
    schur = float((share @ sees).max()) ** (1 / p)
    return min(schur, p / (p - 1)) if field.visible is causal and p > 1 else schur


def sink_factor(field, law, p):
    """The factor 1 / theta({0}) of an attention sink at the least position: what Theta >= theta({0}) alone gives."""
    places, theta = _marginal(law, massive=False)
    with np.errstate(divide="ignore"):
        return float(np.divide(1.0, theta[np.argmin(places)]))


def log_constant(bound, times, radius, space):
    """log C(t, R0) and the radius of the ball at each time, by integrating R' = growth and (log C)' = rate.

    On a sphere R is its radius and the rate is in_point + in_law + growth / R in the geodesic distance: along a
    geodesic with velocity w the tangent field P_x Gamma changes by <w, DGamma w> - <x, Gamma> |w|^2 / R^2 (first
    variation of length; at antipodes the least over the geodesics), and projections do not increase differences.

    Parameters
    ----------
    bound : LipschitzBound
    times : ndarray, shape (k,)
    radius : float
        R0: both starts lie in the ball of this radius.
    space : Euclidean, Sphere or Positioned

    Returns
    -------
    log_C, R : ndarray, shape (k,)
        Infinite from where R or log C has run away: a bound that is local in time ends there.
    """
    from scipy.integrate import solve_ivp

    space = space.base if isinstance(space, Positioned) else space
    begin = times[0]

    def rate(s, y):
        R = radius * np.exp(y[0])
        growing = 0.0 if isinstance(space, Sphere) else bound.constants(begin + s, R).growth / R
        return np.array([growing, bound.rate(begin + s, R, space)])

    def vacuous(s, y):
        return max(y[0] / 100, y[1] / VACUOUS) - 1

    vacuous.terminal = True
    result = np.full((2, len(times)), np.inf)
    result[:, 0] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        if len(times) > 1 and max(rate(0.0, np.zeros(2))) * (times[1] - begin) < VACUOUS:
            outputs, options = times - begin, {"method": "DOP853", "rtol": ACCURACY, "atol": ACCURACY}
            run = solve_ivp(rate, (0.0, outputs[-1]), np.zeros(2), t_eval=outputs, events=vacuous, **options)
            result[:, : len(run.t)] = run.y
        return result[1], radius * np.exp(result[0])


def _constants(rule, head, fixed, options, t, R):
    return rule(norms_of(head.at(t)) if fixed is None else fixed, R, **options)


def _sum(parts, t, R):
    return Constants(*map(sum, zip(*(part(t, R) for part in parts), strict=True)))


def _scaled(inner, factor, t, R):
    found = inner(t, R)
    return found._replace(in_law=factor * found.in_law)


def _feed_forward_norms(field):
    if isinstance(field, AffinePerceptron):
        return np.linalg.norm(field.matrix, 2), np.linalg.norm(field.bias)
    outer = np.linalg.norm(field.outer, 2)
    lipschitz = outer * np.linalg.norm(field.inner, 2)
    return lipschitz, outer * np.linalg.norm(field.inner_bias) + np.linalg.norm(field.outer_bias)


def _feed_forward(lipschitz, at_zero, t, R):
    return Constants(float(lipschitz * R + at_zero), float(lipschitz), 0.0)


def _marginal(law, *, massive=True):
    """Positions and their masses; positions without mass are left out unless asked for."""
    places, at = np.unique(law.positions, return_inverse=True)
    theta = np.bincount(at, law.weights)
    kept = theta > 0 if massive else slice(None)
    return places[kept], theta[kept]
