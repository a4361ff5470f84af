"""Corners of hulls that are known: polygons, simplices, flat clouds, and geodesic hulls on the sphere."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import meanfield as mf
from meanfield.analysis.hull_vertices import hull_vertices, vertex_distances


def rows(points):
    return {tuple(np.round(point, 9)) for point in points}


def test_corners_of_a_square_without_what_lies_inside_or_on_an_edge():
    square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    found = hull_vertices(mf.Measure([[0.5, 0.5], *square, [0.3, 0], [0.2, 0.9]]))
    assert rows(found) == rows(square)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_they_are_those_of_qhull(offset):
    points = np.random.default_rng(3).normal(size=(60, 3)) + offset
    assert rows(hull_vertices(mf.Measure(points))) == rows(points[ConvexHull(points).vertices])


def test_a_flat_cloud_in_many_dimensions_has_the_corners_of_its_plane():
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(3, 40))
    inside = rng.dirichlet([1, 1, 1], size=20) @ corners
    found = hull_vertices(mf.Measure(np.concatenate([inside, corners])))
    assert rows(found) == rows(corners)


def test_a_corner_that_is_there_twice_or_has_no_mass_counts_once_or_never():
    points = [[0.0], [0.0], [1.0], [2.0], [9.0]]
    assert hull_vertices(mf.Measure(points, [0.25, 0.25, 0.25, 0.25, 0])).tolist() == [[0.0], [2.0]]
    assert hull_vertices(mf.Measure([[3.0], [3.0]])).tolist() == [[3.0]]


def test_distances_to_the_nearest_corner():
    measure = mf.Measure([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.0]])
    np.testing.assert_allclose(vertex_distances(measure.points, measure), [0, 0, 0, np.sqrt(2)])


def test_on_the_sphere_the_hull_is_geodesic():
    corners = np.eye(3)
    inside = mf.Sphere().retract(np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 0.0]]))  # in the middle and on an edge
    measure = mf.Measure(np.concatenate([inside, corners]))
    assert rows(hull_vertices(measure, space=mf.Sphere())) == rows(corners)
    found = vertex_distances(np.array([[2.0, 2.0, 0.0], [0.0, 0.0, 3.0]]), measure, space=mf.Sphere())
    np.testing.assert_allclose(found, [np.pi / 4, 0], atol=1e-15)


def test_tokens_all_around_a_sphere_have_no_corner():
    angles = np.linspace(0, 2 * np.pi, 7)[:-1]
    circle = mf.Measure(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    assert hull_vertices(circle, space=mf.Sphere()).shape == (0, 2)
    np.testing.assert_array_equal(vertex_distances(np.array([[1.0, 0.0]]), circle, space=mf.Sphere()), [np.inf])
