"""Affine maps, the Gaussian reduction of a field, and sums of fields."""

import numpy as np
import pytest

from meanfield import AffinePerceptron, Gaussian, Head, Measure, NotGaussianError, SinkhornAttention, SoftmaxAttention
from meanfield.velocity import AffineMap, SumField, VelocityField, affine_on_gaussian, field_for_run

LAW = Gaussian([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]])
TOKENS = Measure([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])


def shear(t, x, mu):
    return t * x[:, ::-1]


def test_an_affine_map_takes_each_row_to_its_matrix_times_the_row_plus_the_offset():
    B, c = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0])
    got = AffineMap(B, c)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert got.tolist() == [[11.0, 23.0], [12.0, 24.0]]


def test_a_batch_of_affine_maps_acts_on_a_batch_of_points():
    B = np.stack([np.eye(2), 2 * np.eye(2)])
    got = AffineMap(B, np.array([[0.0, 1.0], [5.0, 0.0]]))(np.ones((2, 1, 2)))
    assert got.tolist() == [[[1.0, 2.0]], [[7.0, 2.0]]]


def test_affine_maps_add_up():
    total = AffineMap(np.eye(2), np.ones(2)) + AffineMap(np.ones((2, 2)), np.array([1.0, 2.0]))
    assert total.matrix.tolist() == [[2.0, 1.0], [1.0, 2.0]]
    assert total.offset.tolist() == [2.0, 3.0]


def test_a_plain_function_is_a_velocity_field_without_a_gaussian_reduction():
    assert isinstance(shear, VelocityField)
    with pytest.raises(NotGaussianError, match=r"shear does not keep Gaussians Gaussian.*law\.sample"):
        affine_on_gaussian(shear, 0.0, LAW)


def test_a_sum_of_fields_adds_velocities_and_affine_maps():
    attention, layer = SoftmaxAttention(Head.identity(2)), AffinePerceptron(np.eye(2), [1.0, 0.0])
    total, x = SumField((attention, layer)), np.array([[0.5, 0.5]])
    np.testing.assert_array_equal(total(0.0, x, TOKENS), attention(0.0, x, TOKENS) + layer(0.0, x, TOKENS))
    reduced = total.on_gaussian(0.0, LAW)
    np.testing.assert_array_equal(reduced.matrix, LAW.covariance + np.eye(2))
    np.testing.assert_array_equal(reduced.offset, LAW.mean + np.array([1.0, 0.0]))


def test_a_sum_with_a_part_that_bends_gaussians_has_no_reduction():
    with pytest.raises(NotGaussianError, match="shear"):
        SumField((AffinePerceptron(np.eye(2)), shear)).on_gaussian(0.0, LAW)


def test_a_sum_is_made_ready_for_a_run_part_by_part():
    sinkhorn = SinkhornAttention(Head.identity(2))
    ready = field_for_run(SumField((sinkhorn, shear)))
    assert ready.fields[0] is not sinkhorn
    assert ready.fields[1] is shear
    # The warm start moves the balanced potential within its tolerance of 1e-10.
    np.testing.assert_allclose(
        ready(1.0, TOKENS.points, TOKENS), SumField((sinkhorn, shear))(1.0, TOKENS.points, TOKENS), rtol=1e-9
    )


@pytest.mark.parametrize("fields", [(), (1.0,), (shear, None)])
def test_a_sum_of_what_is_no_field_is_refused(fields):
    with pytest.raises(ValueError, match="fields must be a tuple of one or more velocity fields"):
        SumField(fields)


def test_a_law_of_another_dimension_is_refused_with_both_dimensions():
    field = SumField((SoftmaxAttention(Head.identity(3)), AffinePerceptron(np.eye(3))))
    with pytest.raises(ValueError, match="head's dimension d = 3; got d = 2"):
        affine_on_gaussian(field, 0.0, Gaussian([0, 0], np.eye(2)))
