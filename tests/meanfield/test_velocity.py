"""Velocity fields of any origin: a user's own function, sums of fields, affine maps."""

import numpy as np
import pytest

from meanfield import (
    AffineMap,
    Gaussian,
    Head,
    LinearAttention,
    Measure,
    NotGaussianError,
    SoftmaxAttention,
    SumField,
    VelocityField,
)
from meanfield.velocity import affine_on_gaussian, field_for_run


def towards_the_mean(t, x, mu):
    """A user's own field."""
    return (1 + t) * (mu.mean - x)


def test_a_function_of_three_arguments_is_a_velocity_field():
    mu = Measure([[0.0], [2.0]])
    assert isinstance(towards_the_mean, VelocityField)
    assert SumField((towards_the_mean, towards_the_mean))(1.0, mu.points, mu)[:, 0].tolist() == [4.0, -4.0]
    assert field_for_run(towards_the_mean) is towards_the_mean


def test_a_function_without_a_gaussian_form_is_named_with_the_way_out():
    with pytest.raises(NotGaussianError, match=r"^towards_the_mean does not keep .*on_gaussian\(t, law\).*law\.sample"):
        affine_on_gaussian(towards_the_mean, 0.0, Gaussian([0.0], [[1.0]]))


def test_the_error_is_a_value_error_so_that_callers_need_no_new_name():
    assert issubclass(NotGaussianError, ValueError)


def test_an_affine_map_acts_on_rows_and_maps_add_up():
    first = AffineMap(np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([1.0, 0.0]))
    second = AffineMap(np.eye(2), np.zeros(2))
    x = np.array([[3.0, 5.0]])
    assert first(x).tolist() == [[6.0, 6.0]]
    assert (first + second)(x).tolist() == [[9.0, 11.0]]


def test_a_batch_of_maps_acts_on_a_batch_of_points():
    maps = AffineMap(np.array([np.eye(2), 2 * np.eye(2)]), np.array([[0.0, 1.0], [0.0, 0.0]]))
    x = np.ones((2, 3, 2))
    assert maps(x)[0].tolist() == [[1.0, 2.0]] * 3
    assert maps(x)[1].tolist() == [[2.0, 2.0]] * 3


def test_a_sum_of_fields_adds_velocities_and_affine_maps():
    mu, law = Measure([[0.5, 1.0], [2.0, -1.0]]), Gaussian([0.5, 0.2], [[1.0, 0.1], [0.1, 0.5]])
    softmax, linear = SoftmaxAttention(Head.identity(2)), LinearAttention(Head.identity(2))
    both = SumField((softmax, linear))
    apart = softmax(0.0, mu.points, mu) + linear(0.0, mu.points, mu)
    assert both(0.0, mu.points, mu) == pytest.approx(apart, abs=1e-15)
    parts = softmax.on_gaussian(0.0, law).matrix + linear.on_gaussian(0.0, law).matrix
    assert both.on_gaussian(0.0, law).matrix == pytest.approx(parts, abs=1e-15)


@pytest.mark.parametrize("fields", [(), (None,), (towards_the_mean, 3)])
def test_a_sum_of_nothing_or_of_no_fields_is_refused(fields):
    with pytest.raises(ValueError, match="fields must be a tuple of one or more velocity fields"):
        SumField(fields)
