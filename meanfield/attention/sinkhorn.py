"""Sinkhorn attention: the kernel is balanced to both marginals before it moves the tokens."""

from dataclasses import dataclass, field

import numpy as np

from ..checks import number
from ..summation.balancing import balance
from ..summation.exact import project
from ..velocity import AffineMap
from .base import ALL_VISIBLE, Attention, Pairing


@dataclass(frozen=True)
class SinkhornAttention(Attention):
    """Attention with kernel f(x) exp(<Q x, K y>) g(y) whose two marginals are both the law of the tokens.

    With the key potential log g at hand this is softmax with that potential as key bias, at any point x [SABP22].
    On N(m, S): x -> V (m + M A (x - m)), M = S^{1/2} W diag(2 / (1 + sqrt(1 + 4 s^2))) W^T S^{1/2} with the singular
    values S^{1/2} A^T S^{1/2} = U diag(s) W^T: the mean moves by V alone, and S and A may be singular [CACP25].

    Parameters
    ----------
    head : Head or Schedule
    tolerance : float
        Largest accepted miss max |marginal / weight - 1|. 1e-10 keeps its noise below a solver's rtol of 1e-8. Logits
        of 1e5 and more have a larger round-off, which is then accepted.
    max_products : int
        Limit on kernel products in one balancing; a plain sweep is two.

    Raises
    ------
    NotConvergedError
        From a velocity, when the limit is met before the tolerance. Inside a run this ends it with
        Outcome.NOT_CONVERGED and everything up to then kept.
    """

    tolerance: float = field(default=1e-10, kw_only=True)
    max_products: int = field(default=2000, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "tolerance", number("tolerance", self.tolerance, above=0))
        object.__setattr__(self, "max_products", number("max_products", self.max_products, at_least=2, integer=True))

    def potential(self, t, mu, *, start=None):
        """The log potential of the keys (up to a constant), zero for tokens without mass.

        Parameters
        ----------
        t : float
        mu : Measure
        start : ndarray, shape (n,), optional
            Where the iteration starts, for instance the potential at an earlier time.

        Returns
        -------
        ndarray, shape (n,)
        """
        if start is not None and len(start) != len(mu):
            raise ValueError(
                f"start must have one potential a token, length {len(mu)}; got {len(start)}. "
                "Leave it out to start cold."
            )
        queries, keys = self._sides(t, mu.points, mu)
        massive = mu.weights > 0
        A = self.head.at(t).A
        found = balance(
            queries[massive],
            keys[massive],
            mu.log_weights[massive],
            symmetric=bool(np.abs(A - A.T).max() <= 1e-14 * np.abs(A).max()),
            tolerance=self.tolerance,
            max_products=self.max_products,
            summation=self.summation,
            start=None if start is None else start[massive],
        )
        potential = np.zeros(len(mu))
        potential[massive] = found.potential
        return potential

    def _sides(self, t, x, mu):
        """Queries and keys measured from one token: rank-one parts of the logits belong to the potentials."""
        head = self.head.at(t)
        anchor = mu.points[np.argmax(mu.weights > 0)]
        return head.scale * project(x - anchor, head.query), project(mu.points - anchor, head.key)

    def pairing(self, t, x, mu):
        """q = scale Q (x - y_0), k = K (y - y_0), bias = log weight + potential; balances first."""
        return self._paired(t, x, mu, self.potential(t, mu))

    def _paired(self, t, x, mu, potential):
        queries, keys = self._sides(t, x, mu)
        return Pairing(queries, keys, mu.relative_log_weights + potential)

    def for_run(self):
        """A field for one run, whose balancing starts from the potential of the call before."""
        return _WarmSinkhorn(self)

    def on_gaussian(self, t, law):
        """B = V M A, c = V (m - M A m)."""
        head = self.head.at(t)
        if not np.isfinite(law.covariance).all():
            return AffineMap(np.full_like(law.covariance, np.nan), np.full_like(law.mean, np.nan))
        values, vectors = np.linalg.eigh(law.covariance)
        cut = law.dimension * np.finfo(float).eps * np.maximum(values[..., -1:], 0)
        half = np.where(values > cut, np.sqrt(np.maximum(values, 0)), 0)
        root = (vectors * half[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        _, s, Wt = np.linalg.svd(root @ np.swapaxes(head.A, -1, -2) @ root)
        # 2 / (1 + sqrt(1 + 4 s^2)) without overflow for huge s.
        side = Wt @ root
        M = np.swapaxes(side, -1, -2) @ ((2 / (1 + np.hypot(1, 2 * s)))[..., None] * side)
        B = head.value @ M @ head.A
        return AffineMap(B, np.matvec(head.value, law.mean) - np.matvec(B, law.mean))


class _WarmSinkhorn:
    """Sinkhorn attention within one run: the potential is carried from call to call, here and not in the field."""

    def __init__(self, field):
        self._field = field
        self._potential = None

    def __call__(self, t, x, mu):
        field = self._field
        field._check(t, x, mu)
        same = self._potential is not None and len(self._potential) == len(mu)
        self._potential = field.potential(t, mu, start=self._potential if same else None)
        return field.averaged(t, mu, field._paired(t, x, mu, self._potential), ALL_VISIBLE)
