"""The random matrices and the starts of the authors of [CACP25], from their seeds: numpy's old global generator.

Each function makes its own RandomState, whose numbers are those of ``numpy.random.seed`` and ``numpy.random.randn``;
the global one is left alone.
"""

import numpy as np

#: Draws of each dimension in the histograms, whatever part of them is used.
DRAWS = 100

#: Most starts that one dimension of the histograms can use up.
STARTS = 1000


def contracting():
    """Q, K = -Q and V = W W^T of the figures "to zero", seed 35."""
    random = np.random.RandomState(35)
    Q = random.rand(2, 2)
    W = random.randn(2, 2)
    return Q, -Q, W @ W.T


def one_row():
    """A unit row q, K = -q and V = I of the figures "to a line" and "to a plane", seed 36."""
    q = np.random.RandomState(36).randn(1, 2)
    q = q / np.linalg.norm(q)
    return q, -q, np.eye(2)


def opposite_signs(*, seed, skipped=0):
    """Q, K with eigenvalues of A + A^T of opposite signs, seed 36; V from ``seed`` after ``skipped`` normal numbers."""
    Q, K = redrawn(36, lambda values: values[0] * values[1] < 0)
    random = np.random.RandomState(seed)
    random.randn(skipped)
    return Q, K, random.randn(2, 2)


def expanding():
    """Q, K with A + A^T > 0 and V = I of the figures "blow-up", seed 33."""
    return *redrawn(33, lambda values: values[0] > 0), np.eye(2)


def redrawn(seed, accepted):
    """Q, K (2, 2), drawn again until the eigenvalues of K^T Q + transpose are accepted."""
    random = np.random.RandomState(seed)
    while True:
        Q, K = random.randn(2, 2), random.randn(2, 2)
        A = K.T @ Q
        if accepted(np.linalg.eigvalsh(A + A.T)):
            return Q, K


def grid(points, half):
    """Covariances of trace one on a grid of (stretch, tilt) in [-half, half]^2, inside the cone, shape (n, 2, 2)."""
    side = np.linspace(-half, half, points)
    u, w = (array.ravel() for array in np.meshgrid(side, side, indexing="ij"))
    inside = 1 - u**2 > w**2
    u, w = u[inside], w[inside]
    return np.moveaxis(np.array([[(u + 1) / 2, w / 2], [w / 2, (1 - u) / 2]]), -1, 0)


def histogram_heads(variant, value, d):
    """Q (100, d // 2, d) from seed 40, and V (100, d, d): I, or W^T W from seed 26 (softmax) or 27 (L2)."""
    dimensions = (3, 4, 5)
    random = np.random.RandomState(40)
    queries = {e: np.stack([random.randn(e // 2, e) for _ in range(DRAWS)]) for e in dimensions}
    if value == "identity":
        return queries[d], np.broadcast_to(np.eye(d), (DRAWS, d, d))
    random = np.random.RandomState({"softmax": 26, "l2": 27}[variant])
    factors = {e: np.stack([random.randn(e, e) for _ in range(DRAWS)]) for e in dimensions}
    return queries[d], np.swapaxes(factors[d], 1, 2) @ factors[d]


def histogram_starts(d):
    """The starts W W^T of one dimension in the order in which they are used up, seed 41, shape (1000, d, d)."""
    W = np.random.RandomState(41).randn(STARTS, d, d)
    return W @ np.swapaxes(W, 1, 2)
