"""Curves: lines are the values, slopes are least squares, names stand at the ends and never on each other."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import meanfield as mf
from meanfield.plotting import (
    LOOKS,
    EndLabels,
    looks,
    plot_cluster_counts,
    plot_convergence,
    plot_observables,
    power_law,
)
from meanfield.plotting.labels import spread

from .runs import drawn, tokens

TIMES = np.linspace(0, 1, 11)


def names(axes):
    """The direct labels of a panel."""
    (labels,) = [artist for artist in axes.artists if isinstance(artist, EndLabels)]
    return labels


def test_lines_are_the_values_in_the_looks_of_the_variants():
    (axes,) = drawn(plot_observables({"l2": (TIMES, TIMES**2), "mine": (TIMES, TIMES)})).axes
    assert_array_equal(axes.lines[0].get_xydata(), np.stack([TIMES, TIMES**2], axis=1))
    assert (axes.lines[0].get_color(), axes.lines[0].get_marker()) == LOOKS["l2"][:2]
    assert axes.lines[1].get_color() != axes.lines[0].get_color()
    assert [text.get_text() for text in names(axes).texts] == ["L2", "mine"]


def test_twenty_names_have_twenty_looks():
    drawn_as = looks(["masked", *(f"run {k}" for k in range(20))])
    assert len(set(drawn_as.values())) == 21
    assert drawn_as["masked"] == LOOKS["masked"]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_names_of_lines_that_end_together_do_not_overlap(scale):
    figure = drawn(plot_observables(dict.fromkeys(LOOKS, (TIMES, 1 + 0 * TIMES)), yscale=scale))
    renderer = figure._get_renderer()
    boxes = sorted((text.get_window_extent(renderer) for text in names(figure.axes[0]).texts), key=lambda box: box.y0)
    assert len(boxes) == 8
    for lower, upper in itertools.pairwise(boxes):
        assert upper.y0 >= lower.y0 + 0.9 * lower.height
    assert max(box.x1 for box in boxes) <= figure.bbox.x1, "the layout leaves room for names"


@given(st.lists(st.floats(0, 100), min_size=1, max_size=9))
@settings(max_examples=50, deadline=None)
def test_spreading_keeps_order_gap_and_room(heights):
    order, places = spread(heights, 10.0, 0.0, 100.0)
    assert (np.diff(places) >= 10 - 1e-9).all()
    assert places.min() >= 0
    assert places.max() <= 100 + 1e-9
    assert (np.diff(np.array(heights)[order]) >= 0).all()


def test_names_with_room_stay_level_with_their_lines():
    assert_allclose(spread([80.0, 10.0, 40.0], 10.0, 0.0, 100.0)[1], [10, 40, 80])


@pytest.mark.parametrize("values", [0.0, -1.0, np.nan])
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_values_that_no_axis_can_hold_leave_a_gap_or_a_linear_axis_and_no_warning(values, scale):
    drawn(plot_observables({"a": (TIMES, np.full(11, values)), "b": (TIMES, TIMES)}, yscale=scale))
    drawn(plot_observables({"a": (TIMES, np.full(11, values))}, yscale=scale))


def test_one_output_time_is_a_point():
    drawn(plot_observables({"a": ([0.0], [1.0])}, xscale="log"))


def test_references_and_verdicts_are_drawn_and_what_did_not_happen_is_not():
    verdicts = [mf.Verdict("blow-up", True, 0.7), mf.Verdict("clustering", False)]
    exact = {"theory": (TIMES, TIMES)}
    (axes,) = drawn(plot_observables({"a": (TIMES, TIMES)}, references=exact, verdicts=verdicts)).axes
    assert [text.get_text() for text in axes.texts] == ["blow-up, $t$ = 0.7"]
    assert axes.lines[-1].get_xdata()[0] == 0.7
    assert [text.get_text() for text in names(axes).texts] == ["a", "theory"]


def test_curves_of_two_lengths_are_refused():
    with pytest.raises(ValueError, match=r"curve 'a' must be .* got \(2,\) and \(3,\). Cut both"):
        plot_observables({"a": ([0, 1], [1, 2, 3])})


def test_cluster_counts_come_from_verdicts_and_arrays():
    run = tokens(20, 2)
    verdict = mf.ClusteringDetector(0.1)(run)
    (axes,) = drawn(plot_cluster_counts({"softmax": verdict, "other": (run.times, [4, 3, 2, 1])})).axes
    assert_allclose(axes.lines[0].get_ydata(), verdict.evidence["counts"], atol=0.5)
    assert axes.get_ylim()[0] <= 0
    assert [text.get_text() for text in names(axes).texts] == ["softmax", "other"]


def test_a_power_law_is_found_exactly():
    n = np.array([10.0, 100, 1000])
    assert_allclose(power_law(n, 3 * n**-0.5), (-0.5, 3.0), rtol=1e-12)
    with pytest.raises(ValueError, match="positive x and y of one length with two different x"):
        power_law([1.0, 1.0], [1.0, 2.0])


def test_convergence_shows_fitted_and_predicted_slope():
    n = 2 ** np.arange(6, 11)
    noise = np.exp(np.array([-0.1, 0.1]))
    figure = drawn(plot_convergence({"mean": (n, n[:, None] ** -0.4 * noise), "covariance": (n, 2.0 / n)}))
    said = [text.get_text() for text in names(figure.axes[0]).texts]
    minus = "\N{MINUS SIGN}"
    assert said == [f"mean\nslope {minus}0.40", f"covariance\nslope {minus}1.00", f"predicted\nslope {minus}1/2"]
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"


def test_convergence_at_one_n_has_no_slope_and_zero_errors_are_refused():
    drawn(plot_convergence({"mean": ([10], [0.1])}, predicted=-1 / 3))
    with pytest.raises(ValueError, match="errors of mean must be positive for log axes; got 0"):
        plot_convergence({"mean": ([10, 20], [0.1, 0.0])})
