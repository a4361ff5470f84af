"""Every field's formula once more, in plain loops and by other routes; imports nothing of meanfield.

All functions read ``Q, K (k, d)``, ``V (d, d)`` and ``scale`` as bare arrays; a logit is ``scale * <Q x, K y>``.
``points (n, d)`` are tokens, ``weights (n,)`` their masses, ``x (m, d)`` the places where the field is asked for, and
``visible`` a boolean (m, n) array or None. A matrix has entry ``M[i, j]`` with velocity_i = sum_j M[i, j] V y_j.
"""

import itertools
import math

import numpy as np


def dot(a, b):
    """<a, b> with one rounding."""
    return math.fsum(float(p) * float(q) for p, q in zip(a, b, strict=True))


def times(matrix, vector):
    """The product of a matrix and a vector."""
    return [dot(row, vector) for row in matrix]


def logit(x, y, Q, K, scale):
    """scale * <Q x, K y>."""
    return scale * dot(times(Q, x), times(K, y))


def minus_squared_distance(x, y, Q, K, scale):
    """-scale * |Q x - K y|^2, from the difference itself."""
    return -scale * math.fsum((a - b) ** 2 for a, b in zip(times(Q, x), times(K, y), strict=True))


def sees(visible, i, j, weights):
    """Whether query i takes token j into its sum: it is visible and has mass."""
    return weights[j] > 0 and (visible is None or bool(visible[i][j]))


def causal(query_positions, key_positions):
    """The boolean matrix s_j <= s_i."""
    return np.array([[bool(s <= r) for s in key_positions] for r in query_positions])


def normalised_matrix(score, x, points, weights, visible=None):
    """w_j e^{score_ij} / sum_l w_l e^{score_il}, the row maximum taken out first; a blind row is zero."""
    matrix = np.zeros((len(x), len(points)))
    for i in range(len(x)):
        seen = [j for j in range(len(points)) if sees(visible, i, j, weights)]
        if not seen:
            continue
        scores = {j: score(x[i], points[j], j) for j in seen}
        top = max(scores.values())
        terms = {j: weights[j] * math.exp(scores[j] - top) for j in seen}
        total = math.fsum(terms.values())
        for j in seen:
            matrix[i, j] = terms[j] / total
    return matrix


def kernel_matrix(kernel, x, points, weights, visible=None):
    """w_j kernel(x_i, y_j) for kernels that are not normalised."""
    matrix = np.zeros((len(x), len(points)))
    for i in range(len(x)):
        for j in range(len(points)):
            if sees(visible, i, j, weights):
                matrix[i, j] = weights[j] * kernel(x[i], points[j])
    return matrix


def softmax_average(queries, keys, values, bias, sees_key):
    """Row by row: the e^{<q, k_j> + b_j}-weighted mean of the values and the log of the summed weights.

    ``sees_key(i, j)`` says whether query i takes key j; a query that takes none has mean 0 and log normaliser -inf.
    """
    means, logs = np.zeros((len(queries), len(values[0]))), np.full(len(queries), -np.inf)
    for i, q in enumerate(queries):
        scores = {j: dot(q, k) + bias[j] for j, k in enumerate(keys) if bias[j] > -np.inf and sees_key(i, j)}
        if not scores:
            continue
        top = max(scores.values())
        terms = {j: math.exp(score - top) for j, score in scores.items()}
        total = math.fsum(terms.values())
        logs[i] = top + math.log(total)
        for c in range(len(values[0])):
            means[i, c] = math.fsum(term * values[j][c] for j, term in terms.items()) / total
    return means, logs


def softmax_matrix(x, points, weights, Q, K, scale, visible=None):
    """Kernel e^{l}, rows normalised."""
    return normalised_matrix(lambda p, y, j: logit(p, y, Q, K, scale), x, points, weights, visible)


def l2_matrix(x, points, weights, Q, K, scale, visible=None):
    """Kernel e^{-scale |Qx - Ky|^2}, rows normalised."""
    return normalised_matrix(lambda p, y, j: minus_squared_distance(p, y, Q, K, scale), x, points, weights, visible)


def sinkhorn_potential(points, weights, Q, K, scale, tolerance=1e-13, sweeps=100_000):
    """The key potential g: sweeps of plain log sums until both marginals hold; None where there is no mass."""
    alive = [j for j in range(len(points)) if weights[j] > 0]
    score = {(i, j): logit(points[i], points[j], Q, K, scale) for i in alive for j in alive}

    def log_sum(terms):
        top = max(terms)
        return top + math.log(math.fsum(math.exp(term - top) for term in terms))

    g = dict.fromkeys(alive, 0.0)
    log_w = {j: math.log(weights[j]) for j in alive}
    for _ in range(sweeps):
        f = {i: -log_sum([score[i, j] + g[j] + log_w[j] for j in alive]) for i in alive}
        new = {j: -log_sum([score[i, j] + f[i] + log_w[i] for i in alive]) for j in alive}
        miss = max(abs(new[j] - g[j]) for j in alive)
        g = new
        if miss < tolerance:
            return [g.get(j) for j in range(len(points))]
    raise ArithmeticError(f"the oracle's own Sinkhorn loop is still off by {miss:g}")


def sinkhorn_matrix(x, points, weights, Q, K, scale, visible=None):
    """w_j f(x) e^{l} g(y_j) with both marginals mu; at an x that is no token f(x) makes the row sum to one."""
    if visible is not None:
        raise AssertionError("there is no masked Sinkhorn attention")
    g = sinkhorn_potential(points, weights, Q, K, scale)
    return normalised_matrix(lambda p, y, j: logit(p, y, Q, K, scale) + g[j], x, points, weights)


def logistic(z):
    """1 / (1 + e^{-z})."""
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def sigmoid_matrix(x, points, weights, Q, K, scale, visible=None, bias=0.0):
    """w_j / (1 + e^{-(l + bias)})."""
    return kernel_matrix(lambda p, y: logistic(logit(p, y, Q, K, scale) + bias), x, points, weights, visible)


def linear_matrix(x, points, weights, Q, K, scale, visible=None):
    """w_j l."""
    return kernel_matrix(lambda p, y: logit(p, y, Q, K, scale), x, points, weights, visible)


def unnormalised_matrix(x, points, weights, Q, K, scale, visible=None):
    """w_j e^{l}."""
    return kernel_matrix(lambda p, y: math.exp(logit(p, y, Q, K, scale)), x, points, weights, visible)


def velocity(matrix, points, V):
    """sum_j M[i, j] V y_j, one exactly rounded sum an entry."""
    values = [times(V, y) for y in points]
    return np.array([[dot(row, [value[c] for value in values]) for c in range(len(V))] for row in matrix])


def multi_head(parts):
    """The sum of the velocities of several heads."""
    m, d = np.shape(parts[0])
    return np.array([[math.fsum(part[i][c] for part in parts) for c in range(d)] for i in range(m)])


# --- Gaussians: right-hand sides in covariance form [CACP25, S1] ---------------------------------------------


def symmetric_pair(half):
    """H + H^T."""
    return half + half.T


def softmax_gaussian(mean, S, Q, K, V, scale):
    """mean' = V (I + S A) mean and S' = V S A S + transpose."""
    A = scale * K.T @ Q
    return V @ (mean + S @ A @ mean), symmetric_pair(V @ S @ A @ S)


def l2_gaussian(mean, S, Q, K, V, scale):
    """mean' = V (I + 2 S G)^{-1} (mean + 2 S A mean) and S' = 2 V (I + 2 S G)^{-1} S A S + transpose."""
    A, G = scale * K.T @ Q, scale * K.T @ K
    tilt = np.linalg.inv(np.eye(len(S)) + 2 * S @ G)
    return V @ tilt @ (mean + 2 * S @ A @ mean), symmetric_pair(2 * V @ tilt @ S @ A @ S)


def linear_gaussian(mean, S, Q, K, V, scale):
    """mean' = V M A mean and S' = V M A S + transpose, M the second moment."""
    A, M = scale * K.T @ Q, S + np.outer(mean, mean)
    return V @ M @ A @ mean, symmetric_pair(V @ M @ A @ S)


def sinkhorn_gaussian(mean, S, Q, K, V, scale, sweeps=20_000):
    """mean' = V mean and S' = V C^T + C V^T, C from Sinkhorn sweeps on the two precisions.

    In coordinates z of the support (y = mean + L z, z standard normal) the coupling is the normal law of precision
    [[F, -a^T], [-a, U]], a = L^T A L; both marginals are standard when F = I + a^T U^{-1} a and U = I + a F^{-1} a^T.
    Then E[z_y | z_x] = U^{-1} a z_x, so C = E[(x - mean)(y - mean)^T] = L a^T U^{-1} L^T.
    """
    A = scale * K.T @ Q
    values, vectors = np.linalg.eigh(S)
    keep = values > 1e-13 * values.max()
    L = vectors[:, keep] * np.sqrt(values[keep])
    a, identity = L.T @ A @ L, np.eye(keep.sum())
    U = identity
    for _ in range(sweeps):
        F = identity + a.T @ np.linalg.inv(U) @ a
        new = identity + a @ np.linalg.inv(F) @ a.T
        if np.abs(new - U).max() <= 1e-15 * np.abs(new).max():
            break
        U = new
    C = L @ a.T @ np.linalg.inv(new) @ L.T
    return V @ mean, symmetric_pair(C @ V.T)


def gaussian_cloud(mean, S, nodes):
    """Gauss-Hermite points and weights of N(mean, S) on its support: a weighted cloud that stands for the law.

    For an integrand that is a Gaussian in disguise (the kernels here) the error falls geometrically with ``nodes``.
    """
    values, vectors = np.linalg.eigh(S)
    keep = values > 1e-13 * values.max()
    L = vectors[:, keep] * np.sqrt(values[keep])
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    grid = list(itertools.product(range(nodes), repeat=int(keep.sum())))
    points = np.array([mean + L @ np.array([z[i] for i in index]) for index in grid])
    weights = np.array([math.prod(w[i] for i in index) for index in grid])
    return points, weights / weights.sum()
