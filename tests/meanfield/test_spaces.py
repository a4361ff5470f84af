"""Euclidean, Sphere and Positioned: tangents, retractions and distances."""

import numpy as np
import pytest

from meanfield.spaces import Euclidean, Positioned, Sphere


def unit_rows(n, d, seed):
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


# --- geodesic distance -----------------------------------------------------------------------


def test_the_distance_of_a_point_to_itself_is_zero_for_a_thousand_points():
    x = unit_rows(1000, 3, 0)
    assert Sphere().distance(x, x).tolist() == [0.0] * 1000


def test_a_tiny_angle_is_not_lost():
    # arccos(<x, y>) gives 0 here; 1e-15 is the round-off of the components
    assert Sphere().distance([1.0, 0.0], [np.cos(1e-9), np.sin(1e-9)]) == pytest.approx(1e-9, abs=1e-15)


def test_an_angle_close_to_pi_is_not_lost():
    assert np.pi - Sphere().distance([1.0, 0.0], [-np.cos(1e-9), np.sin(1e-9)]) == pytest.approx(1e-9, abs=1e-15)


@pytest.mark.parametrize("radius", [0.5, 1.0, np.sqrt(384)])
def test_the_distance_is_the_angle_times_the_radius(radius):
    angle = np.linspace(0, np.pi, 9)
    y = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    assert Sphere(radius).distance([radius, 0.0], y) == pytest.approx(radius * angle, abs=1e-14 * radius)


def test_distances_broadcast_to_a_matrix():
    x = unit_rows(4, 3, 1)
    matrix = Sphere().distance(x[:, None], x[None, :])
    assert matrix.shape == (4, 4)
    assert matrix == pytest.approx(matrix.T, abs=1e-15)
    assert Euclidean().distance(x[:, None], x[None, :])[0, 1] == pytest.approx(np.linalg.norm(x[0] - x[1]), abs=1e-15)


# --- tangents and retractions ---------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_tangent_vectors_are_orthogonal_and_projecting_twice_changes_nothing(radius):
    rng = np.random.default_rng(2)
    sphere, x = Sphere(radius), radius * unit_rows(20, 4, 3)
    v = rng.standard_normal((20, 4))
    tangent = sphere.tangent(x, v)
    assert np.abs((tangent * x).sum(1)).max() < 1e-14 * radius * 10
    assert sphere.tangent(x, tangent) == pytest.approx(tangent, abs=1e-14)
    assert np.linalg.matrix_rank(np.array([(v - tangent)[0], x[0]]), tol=1e-12) == 1


def test_the_tangent_takes_the_part_along_x_off_even_where_x_is_off_the_sphere():
    assert Sphere().tangent(np.array([[2.0, 0.0]]), np.array([[3.0, 1.0]])).tolist() == [[0.0, 1.0]]


def test_a_retraction_has_the_radius_and_keeps_the_direction():
    x = np.random.default_rng(4).standard_normal((20, 3)) * 7
    for radius in (1.0, 2.5):
        y = Sphere(radius).retract(x)
        assert np.linalg.norm(y, axis=1) == pytest.approx(np.full(20, radius), abs=1e-15 * 4 * radius)
        assert Sphere(radius).retract(y) == pytest.approx(y, abs=1e-15 * 4)
        assert (y * x).sum(1) == pytest.approx(radius * np.linalg.norm(x, axis=1), rel=1e-14)


def test_the_origin_has_no_retraction_and_says_so_by_nan_without_a_warning():
    assert np.isnan(Sphere().retract(np.zeros((1, 2)))).all()


def test_retracting_the_tangent_step_is_the_projective_step_of_shorter_length():
    # x + h v retracted = the retracted tangent step of h / (1 + h <x, v>), exactly
    x, v, h = unit_rows(10, 3, 5), 0.7 * unit_rows(10, 3, 6), 0.9
    sphere = Sphere()
    shorter = h / (1 + h * (x * v).sum(1, keepdims=True))
    assert sphere.retract(x + h * v) == pytest.approx(sphere.retract(x + shorter * sphere.tangent(x, v)), abs=1e-15 * 8)


def test_euclidean_space_changes_nothing():
    x, v = np.ones((2, 3)), np.full((2, 3), 2.0)
    assert Euclidean().tangent(x, v) is v
    assert Euclidean().retract(x) is x
    assert Euclidean().check(x) is None


# --- checks ---------------------------------------------------------------------------------------


def test_points_off_the_sphere_are_named_with_the_cure():
    with pytest.raises(ValueError, match=r"sphere of radius 1; row 1 has norm 2.*Sphere\(1\)\.retract\(points\)"):
        Sphere().check(np.array([[1.0, 0.0], [0.0, 2.0]]))


def test_single_precision_points_count_as_on_the_sphere():
    Sphere(3.0).check((3 * unit_rows(50, 5, 7)).astype(np.float32))


@pytest.mark.parametrize("radius", [0, -1.0, np.nan, np.inf, "big"])
def test_a_radius_that_is_none_is_refused(radius):
    with pytest.raises(ValueError, match="radius must be"):
        Sphere(radius)


# --- positions ------------------------------------------------------------------------------------


def test_a_positioned_space_freezes_positions_and_moves_tokens_in_its_base():
    space = Positioned(Sphere())
    x = np.array([[0.5, 2.0, 0.0]])
    assert space.tangent(x, np.array([[9.0, 3.0, 1.0]])).tolist() == [[0.0, 0.0, 1.0]]
    assert space.retract(x).tolist() == [[0.5, 1.0, 0.0]]
    assert space.distance([0.1, 1.0, 0.0], [0.9, 0.0, 1.0]) == pytest.approx(np.pi / 2, abs=1e-15)
    with pytest.raises(ValueError, match="row 0 has norm 2"):
        space.check(x)


def test_a_positioned_line_is_euclidean_beside_its_position():
    space = Positioned()
    x = np.array([[0.5, 2.0]])
    assert space.retract(x).tolist() == x.tolist()
    assert space.tangent(x, np.array([[3.0, 4.0]])).tolist() == [[0.0, 4.0]]
    assert space.check(x) is None
