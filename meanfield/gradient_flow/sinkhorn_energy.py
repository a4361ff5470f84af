"""The functional that Sinkhorn attention descends or climbs: entropic self-transport, by its dual."""

from dataclasses import dataclass, field

import numpy as np

from ..attention.sinkhorn import SinkhornAttention
from ..checks import number
from ..measures import Gaussian
from ..parameters import Head
from ..summation.balancing import NotConvergedError
from ..velocity import AffineMap
from .base import Energy, fitting, interaction_matrix
from .pairs import log_sums, row_moments
from .spectral import EvenFunction, singular_first, singular_second, singular_sum


def _cost(s):
    """max over the correlation xi of xi s + log(1 - xi^2) / 2: what a pair of directions of strength s saves."""
    xi = _correlation(s)
    return xi * s + np.log1p(-(xi**2)) / 2


def _correlation(s):
    """xi = 2 s / (1 + sqrt(1 + 4 s^2)), the derivative of the cost."""
    return 2 * s / (1 + np.hypot(1, 2 * s))


def _softness(s):
    """The derivative of the correlation: 2 / (h (1 + h)), h = sqrt(1 + 4 s^2)."""
    h = np.hypot(1, 2 * s)
    return 2 / (h * (1 + h))


COST = EvenFunction(_cost, _correlation, _softness)


def _projection(across, down, slope, column_slope, w):
    """The rate g of the key potentials: (1 - P* P) g = P* r - c on functions of mean zero, P the balanced kernel."""
    from scipy.sparse.linalg import LinearOperator, cg

    half = np.sqrt(w)

    def apply(z):
        g = z / half
        return half * (g - down(across(g)))

    right = half * (down(slope) - column_slope)
    operator = LinearOperator((len(w), len(w)), matvec=apply, dtype=float)
    z, failed = cg(operator, right, rtol=1e-11, maxiter=1000)
    if failed:
        miss = float(np.linalg.norm(apply(z) - right) / np.linalg.norm(right))
        raise NotConvergedError(
            f"the derivative of the Sinkhorn potentials missed its equation by {miss:.3g} (relative) after 1000 "
            "iterations. Lower the scale of A: the balanced kernel is nearly a permutation.",
            miss,
        )
    return z / half


@dataclass(frozen=True, eq=False)
class SinkhornEnergy(Energy):
    """F(mu) = 1/2 min over pi in Pi(mu, mu) of KL(pi | mu x mu) - E_pi[x^T A^T y], by its dual value [SABP22].

    With the log potentials f, g of the balanced kernel, F = 1/2 ∫ (f + g) dmu, its first variation is (f + g) / 2 and
    its gradient -(A^T E_pi[y | x] + A E_pi[x | y = x]) / 2; for symmetric A that is -A E_pi[y | x], so Sinkhorn
    attention with V = A descends F in W_2 and with V = -A climbs it. On N(m, S), with the singular values s of
    S^{1/2} A^T S^{1/2}: F = -1/2 m^T A m - 1/2 sum (xi s + log(1 - xi^2) / 2), xi = 2 s / (1 + sqrt(1 + 4 s^2)),
    finite for every Gaussian.

    Parameters
    ----------
    A : array_like, shape (d, d), or Head
    tolerance, max_products : float, int
        Of the balancing, as for `SinkhornAttention`. A dual value misses by the square of a marginal miss, so
        `value` balances to sqrt(tolerance) / 10 only.

    Raises
    ------
    NotConvergedError
        From a method on a Measure, when balancing meets its limit before its tolerance.
    """

    A: np.ndarray
    tolerance: float = field(default=1e-10, kw_only=True)
    max_products: int = field(default=2000, kw_only=True)
    _fine: SinkhornAttention = field(init=False, repr=False)
    _coarse: SinkhornAttention = field(init=False, repr=False)

    def __post_init__(self):
        A = interaction_matrix(self.A)
        object.__setattr__(self, "A", A)
        tolerance = number("tolerance", self.tolerance, above=0)
        head = Head(A, np.eye(len(A)), np.eye(len(A)))
        for name, miss in (("_fine", tolerance), ("_coarse", max(tolerance, np.sqrt(tolerance) / 10))):
            balanced = SinkhornAttention(head, tolerance=miss, max_products=self.max_products)
            object.__setattr__(self, name, balanced)

    def _potentials(self, mu, balanced):
        """The bias log w + g of keys and log w + f of queries, both (n,), for the logits x^T A^T y as they stand."""
        fitting(self.A, mu.dimension)
        anchor = mu.points[0]
        # The attention balances logits measured from its first token; what is linear in y goes back into g.
        g = balanced.potential(0.0, mu) - mu.points @ (self.A @ anchor)
        keys = mu.log_weights + g
        f = -log_sums(mu.points, self.A, mu.points, keys)[1]
        return keys, mu.log_weights + f

    def _measure_value(self, mu):
        keys, queries = self._potentials(mu, self._coarse)
        return mu.weights @ (keys + queries - 2 * mu.log_weights) / 2

    def _measure_variation(self, mu, x):
        keys, queries = self._potentials(mu, self._fine)
        rows = log_sums(x, self.A, mu.points, keys)[1]
        columns = log_sums(x, self.A.T, mu.points, queries)[1]
        return -(rows + columns) / 2

    def _measure_gradient(self, mu, x):
        keys, queries = self._potentials(mu, self._fine)
        rows, _ = log_sums(x, self.A, mu.points, keys, mu.points)
        columns, _ = log_sums(x, self.A.T, mu.points, queries, mu.points)
        return -(rows @ self.A + columns @ self.A.T) / 2

    def _measure_second(self, mu, u):
        """-1/2 E_pi[c'' + c' (c' + f' + g')] with the potentials' derivatives from the linearised marginals."""
        keys, queries = self._potentials(mu, self._fine)
        rows = row_moments(mu.points, u, self.A, keys)
        columns = row_moments(mu.points, u, self.A.T, queries)
        w = mu.weights

        def across(values):
            return log_sums(mu.points, self.A, mu.points, keys, values[:, None])[0][:, 0]

        def down(values):
            return log_sums(mu.points, self.A.T, mu.points, queries, values[:, None])[0][:, 0]

        g = _projection(across, down, rows.slope, columns.slope, w)
        f = -rows.slope - across(g)
        squares = w @ (rows.variance + rows.slope**2)
        return -(w @ rows.bend + squares + w @ (f * rows.slope + g * columns.slope)) / 2

    def _gaussian_value(self, mean, root):
        fitting(self.A, len(mean))
        return -(mean @ self.A @ mean + singular_sum(COST, root.T @ self.A @ root)) / 2

    def _pulled(self, root, dL):
        return root.T @ self.A @ root, dL.T @ self.A @ root + root.T @ self.A @ dL, 2 * dL.T @ self.A @ dL

    def _gaussian_first(self, mean, root, dm, dL):
        fitting(self.A, len(mean))
        T, T1, _ = self._pulled(root, dL)
        return -(dm @ self.A @ mean + mean @ self.A @ dm + singular_first(COST, T, T1)) / 2

    def _gaussian_second(self, mean, root, dm, dL):
        fitting(self.A, len(mean))
        return -(2 * dm @ self.A @ dm + singular_second(COST, *self._pulled(root, dL))) / 2

    def affine_gradient(self, law):
        """x -> -(A^T E_pi[y | x] + A E_pi[x | y = x]) / 2 on a Gaussian law."""
        fitting(self.A, law.dimension)
        matrix, offset = np.zeros_like(self.A), np.zeros(len(self.A))
        for A in (self.A, self.A.T):
            rows = SinkhornAttention(Head(A, np.eye(len(A)), A.T)).on_gaussian(0.0, law)
            matrix, offset = matrix - rows.matrix / 2, offset - rows.offset / 2
        return AffineMap(matrix, offset)

    def _gaussian_gradient(self, mean, root, x):
        return self.affine_gradient(Gaussian.from_root(mean, root))(x)

    def _gaussian_variation(self, mean, root, x):
        affine = self.affine_gradient(Gaussian.from_root(mean, root))
        z = x - mean
        shape = np.einsum("ij,ij->i", z @ affine.matrix, z) / 2 + z @ affine(mean[None])[0]
        average = np.einsum("ij,jk,ik", root.T, affine.matrix, root.T) / 2
        return self._gaussian_value(mean, root) + shape - average
