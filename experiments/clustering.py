"""Softmax tokens in rescaled coordinates z = e^{-tV} x: nested hulls, polytopes, hyperplanes, Boolean attention."""

import numpy as np
from scipy.spatial import ConvexHull

import meanfield as mf
from meanfield.analysis.clustering import clusters
from meanfield.analysis.observables import diameter, rescaled

from . import full_size

CLAIM = (
    "In rescaled coordinates softmax tokens fall onto the vertices of a shrinking polytope, or onto parallel "
    "hyperplanes, while every attention row becomes Boolean."
)

#: V of the published example with parallel hyperplanes: one simple leading eigenvalue, 1.348 [GLPR23].
HYPERPLANES = ((0.64710, 0.81912), (0.61210, 0.63263))

#: Relative accuracy of the run. e^{-tV} turns it into an absolute one on z, so it bounds what a hull may seem to grow.
TOLERANCE = 1e-10

#: A row with more than this on one entry counts as Boolean.
BOOLEAN = 0.999


def cases(quick):
    """Replicas of each of the three settings, and one long run that shows how far double precision carries."""
    common = {"n": 20, "box": 5.0, "horizon": 5.0, "outputs": 51}
    kinds = [{"kind": "polytope", "d": 2}, {"kind": "polytope", "d": 3}, {"kind": "hyperplanes", "d": 2}]
    replicas = 1 if quick else 24 if full_size() else 6
    result = [common | kind | {"replica": k} for kind in kinds for k in range(replicas)]
    if not quick:
        result.append(common | {"kind": "polytope", "d": 2, "horizon": 45.0, "outputs": 226, "replica": 0})
    return result


def run(case, rng):
    """One start, uniform in a box, moved with Q = K = I.

    Returns
    -------
    dict of arrays
        times (k,), z (k, n, d), diameter of the start, tolerance, largest_share (k, n), leaders (n,), matrices
        (3, n, n) at matrix_times (3,) with tokens sorted by leader, boolean (2,), hull_growth (k - 1,), decay; for a
        polytope volumes (k,), vertices (m, d), to_leader (k, n); for hyperplanes rate, directions (d, d), coordinates
        (k, n), levels (m,), to_level (k, n).
    """
    n, d, hyperplanes = case["n"], case["d"], case["kind"] == "hyperplanes"
    value = np.array(HYPERPLANES) if hyperplanes else np.eye(d)
    field = mf.SoftmaxAttention(mf.Head(np.eye(d), np.eye(d), value))
    start = mf.Measure(rng.uniform(-case["box"], case["box"], (n, d)))
    trajectory = mf.simulate(
        field,
        start,
        np.linspace(0.0, case["horizon"], case["outputs"]),
        scheme=mf.Adaptive(rtol=TOLERANCE, atol=TOLERANCE),
        progress=False,
    )
    view = rescaled(value)
    z = np.stack([view(t, state).points for t, state in trajectory.items()])
    weights = np.stack([field.matrix(t, state.points, state) for t, state in trajectory.items()])
    result = {"times": trajectory.times, "z": z, "diameter": diameter(start), "tolerance": TOLERANCE}
    result |= boolean_rows(trajectory.times, weights)
    if hyperplanes:
        return result | leading_coordinates(value, trajectory)
    return result | hulls(trajectory.times, z, result["leaders"])


def hulls(times, z, leaders):
    """How far each hull sticks out of the one before, the volumes, and each token's way to its leader's last place."""
    shapes = [ConvexHull(tokens) for tokens in z]
    return {
        "hull_growth": growth(z, [hull.equations[:, :-1] for hull in shapes[:-1]]),
        "volumes": np.array([hull.volume for hull in shapes]),
        "vertices": z[-1, np.unique(leaders)],
        "to_leader": (away := np.linalg.norm(z - z[-1, leaders], axis=-1)),
        "decay": decay(times, away, 1.0),
    }


def decay(times, distances, since):
    """Rate of exponential decay of the largest distance, from ``since`` until round-off: minus the fitted log slope."""
    largest = distances.max(axis=1)
    fitted = (times >= since) & (largest > 1e-9 * largest[0])
    return -np.polyfit(times[fitted], np.log(largest[fitted]), 1)[0]


def growth(z, normals):
    """Largest increase of the support function max_i <u, z_i> over the facet normals u of the hull before, (k - 1,).

    A hull inside the one before has none.
    """
    return np.array(
        [
            ((after @ facets.T).max(axis=0) - (before @ facets.T).max(axis=0)).max()
            for before, after, facets in zip(z, z[1:], normals, strict=False)
        ]
    )


def boolean_rows(times, weights):
    """How much of each row lies on its largest entry, and three matrices on the way to zeros and ones.

    The leader of a token is where its row lies at the last time when the rows were as Boolean as they ever were; the
    middle matrix is the first one whose rows have gone half of the way, on average. All rows are Boolean to within
    1 - BOOLEAN from the first to the second time of ``boolean``.
    """
    largest = weights.max(axis=-1)
    mean = largest.mean(axis=1)
    middle = int(np.argmax(mean >= (mean[0] + mean.max()) / 2))
    settled = int(np.flatnonzero(mean >= mean.max() - 1e-12)[-1])
    shown = [0, middle, settled]
    leaders = weights[settled].argmax(axis=-1)
    order = np.argsort(leaders, kind="stable")
    boolean = np.flatnonzero((largest > BOOLEAN).all(axis=1))
    return {
        "largest_share": largest,
        "leaders": leaders,
        "matrices": weights[shown][:, order][:, :, order],
        "matrix_times": times[shown],
        "boolean": times[boolean[[0, -1]]] if len(boolean) else np.full(2, np.nan),
    }


def leading_coordinates(value, trajectory):
    """Coordinates of z along phi_1, e^{-lambda_1 t} <w, x> with the left eigenvector w, and the levels they end on.

    Their hulls are intervals, nested like the hulls of V = I: along phi_1 the field is lambda_1 times that one's.
    """
    rates, right = np.linalg.eig(value)
    falling = np.argsort(-np.abs(rates))
    rate, directions = rates[falling[0]].real, right[:, falling].real
    w = np.linalg.inv(directions)[0]  # the left eigenvector with <w, phi_1> = 1
    coordinates = trajectory.arrays @ w * np.exp(-rate * trajectory.times)[:, None]
    last = mf.Measure(coordinates[-1][:, None])
    found = clusters(last, 0.02 * diameter(last))
    # The outermost token of a level, and not its mean, is where the level will be: the others still move towards it.
    levels = np.array([max(coordinates[-1, found.labels == k], key=abs) for k in range(found.count)])
    return {
        "rate": rate,
        "directions": directions,
        "coordinates": coordinates,
        "levels": np.sort(levels),
        "to_level": (away := np.abs(coordinates - levels[found.labels])),
        "decay": decay(trajectory.times, away, 2.0),
        "hull_growth": growth(coordinates[..., None], [np.array([[1.0], [-1.0]])] * (len(coordinates) - 1)),
    }
