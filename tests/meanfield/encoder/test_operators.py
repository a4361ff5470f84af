"""The normalisations of an encoder layer: published digits, the geometry they come from, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.encoder.operators import layer_norm, project_moments, rms_norm

PRINTED = 5e-9  # half a unit of the last printed digit

#: A few numbers that are not nearly constant.
rows = st.lists(st.floats(-100, 100), min_size=2, max_size=6).filter(lambda v: np.std(v) > 1e-3).map(np.array)


def test_case_a07_layer_norm_divides_by_d_and_has_eps_inside_the_root():
    z = [1.0, 2.0, 3.0, 4.0]
    exact = [-1.34164079, -0.44721360, 0.44721360, 1.34164079]
    np.testing.assert_allclose(layer_norm(z, eps=0), exact, atol=PRINTED, rtol=0)
    np.testing.assert_allclose(layer_norm(z, eps=1e-5)[0], -1.34163542, atol=PRINTED, rtol=0)
    np.testing.assert_array_equal(layer_norm(z), layer_norm(z, eps=1e-5))


@pytest.mark.parametrize("c", [3.0, 0.1, -1e8, 0.0])
@pytest.mark.parametrize("eps", [1e-5, 1e-12, 1e-30])
def test_case_a07_layer_norm_of_a_constant_row_is_zero_to_the_last_bit(c, eps):
    np.testing.assert_array_equal(layer_norm(np.full(7, c), eps=eps), np.zeros(7))


def test_case_a07_projection_onto_mean_2_and_deviation_3():
    want = [-2.02492236, 0.65835921, 3.34164079, 6.02492236]
    np.testing.assert_allclose(project_moments([1, 2, 3, 4], 2, 3), want, atol=PRINTED, rtol=0)


@pytest.mark.parametrize("row", [[3.0, 3.0, 3.0], [0.1 + 0.2, 0.3], [0.0, 0.0], [5.0]])
def test_a_constant_row_has_no_nearest_point_of_positive_deviation(row):
    with pytest.raises(ValueError, match=r"project_moments with std = 3 needs rows that are not constant.*std=0"):
        project_moments(row, 2, 3)
    with pytest.raises(ValueError, match=r"layer_norm with eps = 0 needs rows that are not constant.*eps > 0"):
        layer_norm([[1.0] * (len(row) - 1) + [2.0], row] if len(row) > 1 else row, eps=0)
    np.testing.assert_array_equal(project_moments(row, 2, 0), np.full(len(row), 2.0))


@given(v=rows, mean=st.floats(-10, 10), std=st.floats(0, 10), seed=st.integers(0, 2**32 - 1))
def test_the_projection_lies_in_its_set_and_no_point_of_the_set_is_nearer(v, mean, std, seed):
    u = project_moments(v, mean, std)
    tolerance = 1e-9  # round-off 1e-14 of numbers up to 100, over a deviation of 1e-3 and times one of 10, is 1e-10
    assert abs(u.mean() - mean) <= tolerance
    assert abs(u.std() - std) <= tolerance
    # |u - v|^2 = d [(s2 - sqrt b)^2 + (s1 - a)^2], the distance to the set.
    squared = len(v) * ((std - v.std()) ** 2 + (mean - v.mean()) ** 2)
    np.testing.assert_allclose(((u - v) ** 2).sum(), squared, rtol=1e-9, atol=1e-9)
    other = np.random.default_rng(seed).standard_normal(len(v))
    other = mean + std * (other - other.mean()) / other.std()
    assert ((other - v) ** 2).sum() >= squared * (1 - 1e-9) - 1e-9


def test_layer_norm_is_the_projection_onto_mean_0_and_deviation_1_when_eps_is_0():
    v = np.random.default_rng(0).standard_normal((5, 8)) * 3 + 1
    np.testing.assert_allclose(layer_norm(v, eps=0), project_moments(v, 0, 1), rtol=1e-14, atol=1e-15)


def test_halving_a_row_is_four_times_eps():
    v = np.random.default_rng(1).standard_normal((5, 8))
    np.testing.assert_allclose(layer_norm(v / 2, eps=0.3), layer_norm(v, eps=1.2), rtol=1e-14, atol=1e-15)
    assert np.abs(layer_norm(v / 2, eps=0.3) - layer_norm(v, eps=0.3)).max() > 0.1


def test_gain_and_bias_act_on_features_and_every_row_stands_alone():
    v = np.random.default_rng(2).standard_normal((2, 3, 4))
    gain, bias = np.array([1.0, -2.0, 0.5, 3.0]), np.array([0.0, 1.0, -1.0, 0.5])
    got, root_mean_square = layer_norm(v, gain, bias, eps=1e-5), rms_norm(v, gain, eps=1e-5)
    for index in np.ndindex(2, 3):
        row = v[index]
        variance = sum((x - row.sum() / 4) ** 2 for x in row) / 4
        want = [g * (x - row.sum() / 4) / (variance + 1e-5) ** 0.5 + b for x, g, b in zip(row, gain, bias, strict=True)]
        np.testing.assert_allclose(got[index], want, rtol=1e-13, atol=1e-14)
        want = [g * x / (sum(y * y for y in row) / 4 + 1e-5) ** 0.5 for x, g in zip(row, gain, strict=True)]
        np.testing.assert_allclose(root_mean_square[index], want, rtol=1e-13, atol=1e-14)


def test_layer_norm_far_from_the_origin_keeps_every_digit_that_its_input_has():
    near = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(layer_norm(near + 1e12, eps=1e-5), layer_norm(near, eps=1e-5), rtol=1e-14)


@pytest.mark.parametrize(
    ("eps", "want"),
    [(0, [0.84852814, 1.13137085]), (1e-6, [0.28284271, 0.37712362]), (1e-5, [0.09428090, 0.12570787])],
)
def test_case_a08_rms_norm_depends_on_eps_inside_the_root(eps, want):
    np.testing.assert_allclose(rms_norm([3e-4, 4e-4], [1.0, 1.0], eps=eps), want, atol=PRINTED, rtol=0)


def test_case_a08_the_default_eps_of_rms_norm_is_the_documented_one():
    z = [3e-4, 4e-4]
    np.testing.assert_array_equal(rms_norm(z), rms_norm(z, eps=1e-6))
    np.testing.assert_array_equal(rms_norm(np.float32(z)), rms_norm(np.float32(z), eps=1e-6))


def test_rms_norm_of_zero_is_zero_with_eps_and_refused_without():
    np.testing.assert_array_equal(rms_norm([0.0, 0.0]), [0.0, 0.0])
    with pytest.raises(ValueError, match=r"rms_norm with eps = 0 needs rows that are not zero; got 1 zero row"):
        rms_norm([[0.0, 0.0], [1.0, 1.0]], eps=0)


def test_a_row_that_is_not_finite_gives_nan_and_leaves_the_others_alone():
    v = np.array([[1.0, np.nan, 2.0], [1.0, 2.0, 4.0]])
    for normalise in (lambda x: layer_norm(x, eps=0), rms_norm, lambda x: project_moments(x, 0, 1)):
        got = normalise(v)
        assert np.isnan(got[0]).all()
        np.testing.assert_array_equal(got[1], normalise(v[1]))


def test_the_input_is_left_as_it_was():
    v = np.array([1.0, 2.0, 4.0])
    v.setflags(write=False)
    for result in (layer_norm(v), rms_norm(v), project_moments(v, 0, 1), project_moments(v, 0, 0)):
        assert not np.shares_memory(result, v)


def test_bad_arguments_are_refused_with_their_cure():
    with pytest.raises(ValueError, match=r"std must be at least 0; got -1"):
        project_moments([1.0, 2.0], 0, -1)
    with pytest.raises(ValueError, match=r"eps must be at least 0"):
        layer_norm([1.0, 2.0], eps=-1e-5)
    with pytest.raises(ValueError, match=r"gain must have shape \(2,\).*got shape \(3,\)"):
        layer_norm([1.0, 2.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"bias must be finite; got nan"):
        layer_norm([1.0, 2.0], bias=[0.0, np.nan])
    with pytest.raises(ValueError, match=r"v must have shape \(\.\.\., d\) with d >= 1; got shape \(\)"):
        rms_norm(1.0)
    with pytest.raises(ValueError, match=r"v must be an array of real numbers; got dtype complex128"):
        rms_norm([1j, 2])
