"""L2 attention: the kernel falls with the distance of query and key."""

from dataclasses import dataclass

import numpy as np

from ..summation.exact import project, softmax_mean_of
from ..velocity import AffineMap, not_gaussian
from .base import Attention, Pairing

#: Where expanding |q - k|^2 loses more than this, the differences are formed one by one.
CANCELLATION = 1e-11


@dataclass(frozen=True)
class L2Attention(Attention):
    """Attention with kernel exp(-scale |Q x - K y|^2), normalised over the tokens y (no factor 1/2).

    The term in |Q x|^2 cancels, so this is softmax with q = 2 scale Q x and the bias -scale |K y|^2 on the keys.
    On N(m, S): x -> V (I + 2 S G)^{-1} (m + 2 S A x) with A = scale K^T Q, G = scale K^T K [CACP25].

    Parameters
    ----------
    head : Head or Schedule
    """

    def pairing(self, t, x, mu):
        """q = 2 scale (Q x - c), k = K y - c, bias = log weight - scale |k|^2; c is the first key with mass."""
        head = self.head.at(t)
        keys, queries = project(mu.points, head.key), project(x, head.query)
        # Measured from a key of the cloud: |Q x - K y|^2 depends on differences only, also for clouds at 1e8.
        centre = keys[np.argmax(mu.weights > 0)].copy()
        keys -= centre
        queries -= centre
        bias = mu.relative_log_weights - head.scale * np.einsum("ij,ij->i", keys, keys)
        return Pairing(2 * head.scale * queries, keys, bias)

    def averaged(self, t, mu, pairing, visibility):
        """V times the averages; an outlying token that makes |k|^2 cancel takes the road of plain differences."""
        if not self._cancels(pairing):
            return super().averaged(t, mu, pairing, visibility)
        logits = self._differences(t, mu, pairing)
        visible = visibility.block_mask(len(mu))
        means, _ = softmax_mean_of(logits, len(pairing.queries), mu.points, visible=visible)
        return project(means, self.head.at(t).value)

    def logits(self, t, mu, pairing):
        """-scale |Q x - K y|^2 + log weight, up to a constant of each row, shape (m, n)."""
        if not self._cancels(pairing):
            return super().logits(t, mu, pairing)
        return self._differences(t, mu, pairing)(slice(None))

    def _cancels(self, pairing):
        lengths = pairing.bias[pairing.bias > -np.inf]
        return np.finfo(float).eps * np.abs(lengths).max(initial=0.0) > CANCELLATION

    def _differences(self, t, mu, pairing):
        scale = self.head.at(t).scale
        queries, log_weights = pairing.queries / (2 * scale), mu.relative_log_weights

        def logits(rows):
            distances = sum(
                np.subtract.outer(q, k) ** 2 for q, k in zip(queries[rows].T, pairing.keys.T, strict=True)
            )
            return log_weights - scale * distances

        return logits

    def on_gaussian(self, t, law):
        """B = 2 V M A, c = V (m - 2 M G m) with M = (I + 2 S G)^{-1} S; S may be singular.

        M is formed as L U diag(1 / (1 + 2 scale s^2)) U^T L^T from the root S = L L^T and the singular values s of
        K L = P diag(s) U^T: directions that K does not see stay exact where I + 2 S G is as good as singular.

        Raises
        ------
        NotGaussianError
            If a negative scale makes the kernel grow faster than the law decays. (In a batch of laws such a law gets
            NaN, so that it costs the others nothing.)
        """
        head = self.head.at(t)
        _, seen, turned = np.linalg.svd(head.key @ law.root)
        tilt = np.ones(turned.shape[:-1])
        tilt[..., : seen.shape[-1]] += 2 * head.scale * seen**2
        outgrown = ~(tilt > 0).all(axis=-1)
        if tilt.ndim == 1 and outgrown:
            raise not_gaussian(self, "its scale is negative and its kernel outgrows the law (1 + 2 scale s^2 <= 0)")
        tilt[outgrown] = np.nan
        side = law.root @ np.swapaxes(turned, -1, -2)
        M = (side / tilt[..., None, :]) @ np.swapaxes(side, -1, -2)
        mean = law.mean - 2 * np.matvec(M @ head.G, law.mean)
        return AffineMap(2 * head.value @ M @ head.A, np.matvec(head.value, mean))
