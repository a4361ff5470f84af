"""Hulls: right corners for every rank, nested when theory says so."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from meanfield.analysis.observables import rescaled
from meanfield.plotting import hull_faces, plot_hulls

from .runs import drawn, tokens

SQUARE = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])


def test_the_hull_of_a_square_is_its_corners():
    (corners,) = hull_faces(SQUARE)
    assert sorted(map(tuple, corners)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_the_hull_of_a_cube_is_twelve_triangles():
    cube = np.stack(np.meshgrid([0.0, 1], [0.0, 1], [0.0, 1]), axis=-1).reshape(-1, 3)
    assert [face.shape for face in hull_faces(cube)] == [(3, 3)] * 12


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_flat_clouds_give_a_polygon_a_segment_or_a_point(size):
    tilted = np.column_stack([SQUARE, SQUARE.sum(axis=1)]) * size + size
    (polygon,) = hull_faces(tilted)
    assert len(polygon) == 4
    (segment,) = hull_faces(np.outer([0.0, 1, 3, 2], [1.0, 2, 3]) * size)
    assert_array_equal(np.sort(segment, axis=0), np.array([[0.0, 0, 0], [3, 6, 9]]) * size)
    (point,) = hull_faces(np.full((5, 2), size))
    assert_array_equal(point, [[size, size]])


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_hulls_are_drawn_for_any_number_of_tokens(n, d):
    drawn(plot_hulls(tokens(n, d), view=rescaled(np.eye(d))))


def test_one_output_time_is_one_hull():
    drawn(plot_hulls(tokens(20, 2, k=1)))


def test_a_line_is_refused():
    with pytest.raises(ValueError, match="hulls are drawn of 2 or 3 coordinates; got 1"):
        plot_hulls(tokens(2, 1))
