"""What do W_2 between two clouds and sliced distances cost, beside POT and scipy's assignment?"""

import numpy as np

from meanfield.analysis.distances import sliced_wasserstein, wasserstein
from meanfield.measures import Measure

from .harness import Contest, Method

QUESTION = "What do distances between two clouds of n tokens cost?"
QUICK_SIZES, FULL_SIZES = (250, 500, 1000), (250, 500, 1000, 2000, 4000)
QUICK_LONG, FULL_LONG = (1000, 10_000, 30_000), (1000, 10_000, 100_000, 1_000_000)
#: Directions of the sliced distance.
DIRECTIONS = {False: 50, True: 200}
#: Largest n at which scipy's assignment of far clouds is waited for.
ASSIGNABLE = {"far": 2000, "near": 4000}
#: Pivots allowed to POT's network simplex.
PIVOTS = 100_000_000


def contests(full):
    """Unrelated and nearby clouds in the plane; the line; sliced distances in three dimensions."""
    for name, moved in (("far", far), ("near", near)):
        for n in FULL_SIZES if full else QUICK_SIZES:
            yield exact_contest(name, *moved(np.random.default_rng(n), n))
    for n in FULL_LONG if full else QUICK_LONG:
        yield line_contest(np.random.default_rng(n), n)
    for n in FULL_LONG if full else QUICK_LONG:
        yield sliced_contest(np.random.default_rng(n), n, DIRECTIONS[full])


def far(rng, n):
    """Two unrelated normal clouds, the second shifted and stretched."""
    return rng.standard_normal((n, 2)), rng.standard_normal((n, 2)) @ np.array([[2.0, 0.0], [1.0, 0.5]]) + 3.0


def near(rng, n):
    """A cloud and the same cloud after a small step."""
    x = rng.standard_normal((n, 2))
    return x, x + 0.1 / np.sqrt(n) * rng.standard_normal((n, 2))


def exact_contest(name, x, y):
    """W_2 in the plane; the reference is scipy's assignment where it is waited for, otherwise POT's plan."""
    n = len(x)
    reference = with_assignment(x, y)() if n <= min(500, ASSIGNABLE[name]) else with_simplex(x, y)()
    methods = [
        Method("ours", lambda: ours(x, y)),
        Method("POT emd2", lambda: with_simplex(x, y), needs="ot"),
    ]
    if n <= ASSIGNABLE[name]:
        methods.append(Method("scipy assignment", lambda: with_assignment(x, y), needs="scipy"))
    return Contest(f"W_2, {name} clouds, d = 2", n, methods, lambda answer: abs(answer / reference - 1))


def ours(x, y):
    """Through the door for measures."""
    mu, nu = Measure(x), Measure(y)
    return lambda: wasserstein(mu, nu)


def with_simplex(x, y):
    """POT's network simplex on the matrix of squared distances."""
    import ot

    def distance():
        weights = np.full(len(x), 1 / len(x))
        return np.sqrt(ot.emd2(weights, weights, ot.dist(x, y), numItermax=PIVOTS))

    return distance


def with_assignment(x, y):
    """scipy's Jonker-Volgenant assignment on the same matrix."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    def distance():
        costs = cdist(x, y, "sqeuclidean")
        return np.sqrt(costs[linear_sum_assignment(costs)].mean())

    return distance


def line_contest(rng, n):
    """W_2 on the line."""
    x, y = rng.standard_normal((n, 1)), 2 * rng.standard_normal((n, 1)) + 1
    reference = np.sqrt(np.mean((np.sort(x[:, 0]) - np.sort(y[:, 0])) ** 2))

    def with_pot():
        import ot

        return lambda: np.sqrt(ot.wasserstein_1d(x[:, 0], y[:, 0], p=2))

    methods = [Method("ours", lambda: ours(x, y)), Method("POT wasserstein_1d", with_pot, needs="ot")]
    return Contest("W_2, d = 1", n, methods, lambda answer: abs(answer / reference - 1))


def sliced_contest(rng, n, count):
    """Sliced W_2 in three dimensions along the same directions; the reference sorts one direction at a time."""
    x, y = rng.standard_normal((n, 3)), rng.standard_normal((n, 3)) * [1.0, 2.0, 0.5] + 1
    directions = rng.standard_normal((count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reference = np.sqrt(np.mean([np.mean((np.sort(x @ u) - np.sort(y @ u)) ** 2) for u in directions]))
    mu, nu = Measure(x), Measure(y)

    def with_pot():
        import ot

        return lambda: ot.sliced_wasserstein_distance(x, y, projections=directions.T)

    methods = [
        Method("ours", lambda: lambda: sliced_wasserstein(mu, nu, directions=directions)),
        Method("POT sliced", with_pot, needs="ot"),
    ]
    return Contest(f"sliced W_2, d = 3, L = {count}", n, methods, lambda answer: abs(answer / reference - 1))


def remarks(rows):
    """Peers that are ahead of ours."""
    return [
        f"{row.method} is ahead of ours at {row.case}, n = {row.size:,}: {row.ratio:.2f}"
        for row in rows
        if row.method != "ours" and row.ratio < 1
    ]
