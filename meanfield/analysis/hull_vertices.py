"""Corners of the convex hull of tokens, on R^d of any dimension and on the sphere, and the way of clusters to them."""

import numpy as np
from scipy.optimize import nnls

from ..spaces import Euclidean, Sphere
from .observables import massive_tokens, pairwise

#: A token this far (of the cloud's size) from the hull of the others, or nearer, is no corner.
FLAT = 1e-9


def hull_vertices(measure, *, space=Euclidean()):
    """The corners of the convex hull of the tokens with mass.

    A token is a corner when it is no combination with positive coefficients of the others: of [1 | x] on R^d, of x
    itself on a sphere, where the hull is the geodesic one. One non-negative least-squares problem a token: meant for
    up to some thousands of them.

    Parameters
    ----------
    measure : Measure
        Positions are not counted. Of coincident corners one is kept.
    space : Euclidean or Sphere

    Returns
    -------
    ndarray, shape (corners, d)
        At least one on R^d. None on a sphere when no open hemisphere holds the tokens: their hull is all of it, or
        has no corner.
    """
    tokens = massive_tokens(measure)
    rays = _rays(tokens, space)
    if rays is None:
        return tokens[:0]
    kept = np.arange(len(tokens))
    for k in range(len(tokens)):
        others = kept[kept != k]
        if len(others) and nnls(rays[others].T, rays[k])[1] <= FLAT:
            kept = others
    return tokens[kept]


def vertex_distances(points, measure, *, space=Euclidean()):
    """Distance of each point to the nearest of the `hull_vertices` of a measure.

    Parameters
    ----------
    points : ndarray, shape (m, d)
        For instance the centres of clusters; on a sphere they are retracted to it first.
    measure : Measure
    space : Euclidean or Sphere

    Returns
    -------
    ndarray, shape (m,)
        Infinite where the hull has no corner.
    """
    return pairwise(space.retract(points), hull_vertices(measure, space=space), space).min(axis=1, initial=np.inf)


def _rays(tokens, space):
    """Rows whose cone the hull is a section of; None if that cone holds a line, which a hull on R^d never does."""
    if isinstance(space, Sphere):
        rays = tokens / space.radius
        # 0 in the hull of the rays: weights w >= 0 with sum_j w_j = 1 and sum_j w_j x_j = 0.
        system = np.vstack([rays.T, np.ones(len(rays))])
        return None if nnls(system, np.append(np.zeros(rays.shape[1]), 1.0))[1] <= FLAT else rays
    centred = tokens - tokens.mean(axis=0)
    size = np.abs(centred).max()
    return np.column_stack([np.ones(len(tokens)), centred / size if size > 0 else centred])
