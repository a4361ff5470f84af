"""The door checks: each message says what must hold, what came, and the cure."""

import numpy as np
import pytest

from meanfield import checks


def test_a_finite_array_is_a_fresh_float_copy():
    value = np.array([1, 2])
    array = checks.finite_array("x", value)
    assert array.dtype == np.float64
    array[0] = 5
    assert value[0] == 1
    same = np.array([1.0])
    assert checks.finite_array("x", same) is not same


@pytest.mark.parametrize("value", ["word", [1j], [[1.0], [1.0, 2.0]], None, [np.datetime64("2020-01-01")], [{}]])
def test_what_is_no_real_number_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^tokens must be an array of real numbers; got .*rows of one length"):
        checks.finite_array("tokens", value)


def test_the_first_entry_that_is_not_finite_is_named():
    with pytest.raises(ValueError, match=r"tokens must be finite; got inf at index \(1, 2\)"):
        checks.finite_array("tokens", [[0, 0, 0], [0, 0, np.inf]])


def test_a_scalar_that_is_not_finite_is_named_too():
    with pytest.raises(ValueError, match="beta must be finite; got nan"):
        checks.finite_array("beta", np.nan)


def test_the_number_of_axes_is_held():
    with pytest.raises(ValueError, match=r"x must have 1 axes; got shape \(1, 2\)"):
        checks.finite_array("x", [[1, 2]], ndim=1)


@pytest.mark.parametrize("value", [1.0, [1.0, 2.0], [], [[]], np.zeros((1, 1, 1))])
def test_points_that_are_no_rows_are_refused_with_both_cures(value):
    with pytest.raises(ValueError, match=r"x must have shape \(n, d\).*For one point use x\[None, :\]"):
        checks.points_array("x", value)


def test_mass_is_scaled_to_one_only_within_single_precision():
    assert checks.mass_array("w", [0.5, 0.5 + 9e-7], 2).sum() == pytest.approx(1, abs=1e-15)
    with pytest.raises(ValueError, match=r"w must sum to 1; got sum 1\.000002"):
        checks.mass_array("w", [0.5, 0.500002], 2)


def test_a_negative_mass_is_named_even_when_the_sum_is_one():
    with pytest.raises(ValueError, match=r"w must not be negative; got -0\.25 at index 1 \(sum 1\)"):
        checks.mass_array("w", [1.25, -0.25], 2)


def test_a_matrix_of_another_shape_is_refused():
    assert checks.matrix_array("m", np.ones((2, 3)), (None, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"m must be a matrix of shape \(any, 2\); got shape \(2, 3\)"):
        checks.matrix_array("m", np.ones((2, 3)), (None, 2))


@pytest.mark.parametrize(
    ("value", "bounds", "found"),
    [
        ("two", {}, "steps must be one number; got 'two'"),
        ([1, 2], {}, "steps must be one number"),
        (np.nan, {}, "steps must be finite; got nan"),
        (10**400, {}, "steps must be at most 1.8e\\+308 in size"),
        (2.5, {"integer": True}, "steps must be a whole number; got 2.5"),
        (0, {"at_least": 1}, "steps must be at least 1; got 0"),
        (0, {"above": 0}, "steps must be greater than 0; got 0"),
    ],
)
def test_a_number_out_of_bounds_is_refused(value, bounds, found):
    with pytest.raises(ValueError, match=found):
        checks.number("steps", value, **bounds)


def test_a_number_within_bounds_comes_back_as_asked():
    assert checks.number("n", 3.0, at_least=3, integer=True) == 3
    assert isinstance(checks.number("n", np.int64(3), integer=True), int)
    assert checks.number("r", "2.5", above=0) == 2.5


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (3.0, r"times must be a list of times.*np\.linspace\(0, T, 11\)"),
        ([], "times must be a list of times"),
        ([[0, 1]], "times must be a list of times"),
        ([0, 1, 1], r"times must increase strictly; got 1 then 1 at index 1.*np\.unique"),
        ([0, 2, 1], "times must increase strictly; got 2 then 1 at index 1"),
        ([0, np.inf], "times must be finite"),
    ],
)
def test_times_that_do_not_increase_are_refused(value, found):
    with pytest.raises(ValueError, match=found):
        checks.time_array("times", value)


def test_one_time_is_enough():
    assert checks.time_array("times", [2]).tolist() == [2.0]


def test_a_mask_over_entries_is_refused_instead_of_dropped():
    with pytest.raises(ValueError, match="points must be an array of real numbers; got MaskedArray"):
        checks.points_array("points", np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]]))
