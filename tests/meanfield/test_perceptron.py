"""Feed-forward fields: affine and with one rectified hidden layer."""

import numpy as np
import pytest

from meanfield import AffinePerceptron, Gaussian, Measure, NotGaussianError, ReluPerceptron, simulate

W = np.array([[1.0, 2.0], [0.0, -1.0]])
TOKENS = Measure([[1.0, 1.0], [2.0, -3.0]])


def test_the_affine_field_is_w_x_plus_b_whatever_the_tokens():
    field = AffinePerceptron(W, [1.0, 0.5])
    assert field(0.0, np.array([[3.0, 4.0]]), TOKENS).tolist() == [[12.0, -3.5]]


def test_the_affine_field_without_bias_keeps_the_origin():
    assert AffinePerceptron(W)(0.0, np.zeros((1, 2)), TOKENS).tolist() == [[0.0, 0.0]]


def test_the_affine_field_is_its_own_gaussian_reduction():
    reduced = AffinePerceptron(W, [1.0, 0.5]).on_gaussian(0.0, Gaussian([1.0, 1.0], np.eye(2)))
    np.testing.assert_array_equal(reduced.matrix, W)
    np.testing.assert_array_equal(reduced.offset, [1.0, 0.5])


def test_a_scalar_affine_law_moves_as_its_ode_says():
    # m' = w m + b and s' = 2 w s.
    run = simulate(AffinePerceptron([[-2.0]], [1.0]), Gaussian([3.0], [[4.0]]), [0.0, 1.0])
    law = run[-1]
    assert law.mean[0] == pytest.approx(0.5 + 2.5 * np.exp(-2), rel=1e-7)
    assert law.covariance[0, 0] == pytest.approx(4 * np.exp(-4), rel=1e-7)


def test_the_rectified_field_is_w_times_the_positive_part_plus_b():
    inner, outer = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], [[1.0, 10.0, 100.0], [0.0, 0.0, 1.0]]
    field = ReluPerceptron(inner, outer, [0, 0, 1], [0.5, 0])
    assert field(0.0, np.array([[2.0, -3.0], [-2.0, 3.0]]), TOKENS).tolist() == [[2.5, 0.0], [330.5, 3.0]]


def test_the_rectified_field_leaves_the_points_alone():
    x = np.array([[-1.0, 2.0]])
    ReluPerceptron(np.eye(2), np.eye(2))(0.0, x, TOKENS)
    assert x.tolist() == [[-1.0, 2.0]]


def test_the_rectified_field_has_no_gaussian_reduction_and_says_what_to_do():
    with pytest.raises(NotGaussianError, match="ReluPerceptron does not keep Gaussians Gaussian: the rectifier"):
        ReluPerceptron(np.eye(2), np.eye(2)).on_gaussian(0.0, Gaussian([0.0, 0.0], np.eye(2)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AffinePerceptron([[1.0, 2.0]]), "matrix must be a matrix of shape"),
        (lambda: AffinePerceptron(W, [1.0]), r"bias must have shape \(2,\)"),
        (lambda: ReluPerceptron(np.ones((3, 2)), np.ones((3, 2))), r"outer must be a matrix of shape \(2, 3\)"),
        (lambda: ReluPerceptron(np.ones((3, 2)), np.ones((2, 3)), [1.0]), r"inner_bias must have shape \(3,\)"),
        (lambda: ReluPerceptron(np.eye(2), np.eye(2), None, [[1.0]]), r"outer_bias must have shape \(2,\)"),
        (lambda: AffinePerceptron([[np.nan]]), "matrix must be finite"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
