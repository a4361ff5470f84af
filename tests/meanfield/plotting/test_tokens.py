"""Plots of tokens: every number of tokens and coordinates, equal aspect, tracks that are the run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import meanfield as mf
from meanfield.analysis.observables import rescaled
from meanfield.plotting import PAGE, box_around, letter_panels, new_figure, plot_measure, plot_trajectory, style

from .runs import blown_up, drawn, gaussian, tokens


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_a_trajectory_is_drawn_for_any_number_of_tokens_and_coordinates(n, d):
    figure = drawn(plot_trajectory(tokens(n, d)))
    (axes,) = figure.axes
    assert axes.name == ("3d" if d == 3 else "rectilinear")
    assert axes.get_xlabel().startswith("time $t$" if d == 1 else ("token coordinate", "$x")[d == 3])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_one_output_time_and_one_cloud_are_drawn(d):
    drawn(plot_trajectory(tokens(1, d, k=1)))
    drawn(plot_measure(tokens(20, d)[0]))
    drawn(plot_measure([[2.0] * d]))


def test_tracks_in_the_plane_are_the_run():
    run = tokens(2, 2)
    (axes,) = plot_trajectory(run).axes
    tracks = axes.collections[0].get_segments()
    assert_array_equal(tracks, np.swapaxes(run.arrays, 0, 1))
    assert_array_equal(axes.collections[-1].get_offsets(), run.arrays[-1])
    assert axes.get_aspect() == 1


def test_a_view_is_what_is_drawn_and_names_its_coordinates():
    run = tokens(2, 2)
    (axes,) = plot_trajectory(run, view=rescaled(np.eye(2))).axes
    assert_allclose(axes.collections[0].get_segments()[1][-1], np.exp(-1.0) * run.arrays[-1, 1], rtol=1e-12)
    assert axes.get_xlabel() == "rescaled coordinate $z_{1}$"


def test_a_blow_up_is_said_in_the_title_and_marked_in_time():
    run = blown_up("tokens")
    (axes,) = drawn(plot_trajectory(run, variant="linear")).axes
    assert axes.get_title("left").startswith("blew up at $t^*$")
    assert axes.lines[0].get_xdata()[0] == run.blow_up_time
    assert axes.get_xlim()[1] > run.blow_up_time
    assert plot_trajectory(run, title="mine").axes[0].get_title("left") == "mine"


def test_positions_and_values_colour_tokens_with_a_bar_that_says_what():
    start = mf.Measure.positioned([0.0, 0.5, 1.0], np.eye(3))
    figure = drawn(plot_trajectory(start))
    assert figure.axes[1].get_ylabel() == "position $s$"
    colours = figure.axes[0].collections[-1].get_facecolors()
    assert len(np.unique(colours, axis=0)) == 3
    with pytest.raises(ValueError, match=r"values must have shape \(3,\), one a token; got \(2,\)"):
        plot_trajectory(start, values=[1, 2])


def test_masses_are_areas_and_padding_is_hollow():
    (axes,) = plot_measure(mf.Measure([[0, 0], [1, 0], [2, 0]], [0.5, 0.25, 0.25])).axes
    assert_allclose(axes.collections[-1].get_sizes(), [16, 8, 8])
    (axes,) = plot_measure(mf.Measure([[0, 0], [1, 0]], [1.0, 0.0])).axes
    full, hollow = axes.collections[-2:]
    assert len(full.get_facecolors()) == 1
    assert len(hollow.get_facecolors()) == 0


@pytest.mark.parametrize("d", [2, 3])
def test_tokens_on_a_sphere_show_the_sphere(d):
    start = mf.Measure(np.eye(d))
    field = mf.SoftmaxAttention(mf.Head.identity(d, 1.0))
    run = mf.simulate(field, start, [0.0, 0.1], space=mf.Sphere(), progress=False)
    (axes,) = drawn(plot_trajectory(run)).axes
    line = axes.lines[0].get_data_3d() if d == 3 else axes.lines[0].get_data()
    assert_allclose(np.square(line).sum(axis=0), 1.0)


def test_panels_are_lettered_before_their_titles():
    figure = new_figure(PAGE, 2.5)
    panels = [figure.add_subplot(121), figure.add_subplot(122, projection="3d")]
    plot_trajectory(tokens(2, 2), title="flat", axes=panels[0])
    plot_trajectory(tokens(2, 3), axes=panels[1])
    letter_panels(panels)
    assert [panel.get_title("left") for panel in panels] == [r"$\bf{a}$  flat", r"$\bf{b}$"]
    drawn(figure)


def test_panels_of_one_figure_can_share_limits():
    with style():
        figure = new_figure(PAGE, 2.5)
        left, right = figure.subplots(1, 2)
    limits = box_around(tokens(20, 2).arrays)
    for axes, n in ((left, 2), (right, 20)):
        assert plot_trajectory(tokens(n, 2), limits=limits, axes=axes) is figure
    assert left.get_xlim() == right.get_xlim()
    subfigure = new_figure(PAGE, 2.5).subfigures(1, 2)[0]
    assert plot_trajectory(tokens(2, 2), axes=subfigure.add_subplot()) is subfigure.figure.get_figure(root=True)


def test_limits_hold_all_points_and_leave_a_flat_cloud_room():
    box = box_around([[0.0, 1.0], [10.0, 1.0]])
    assert (box[:, 0] < [0, 1]).all()
    assert (box[:, 1] > [10, 1]).all()
    assert box[1, 1] - box[1, 0] > 3.5
    assert (np.diff(box_around([[5.0, 5.0]])) > 0).all()


@pytest.mark.parametrize(
    ("run", "options", "said"),
    [
        (tokens(2, 4), {}, r"only 1, 2 or 3 coordinates can be drawn; the tokens have 4.*coordinates=\(0, 1\)"),
        (tokens(2, 4), {"coordinates": (0, 7)}, r"1 to 3 of the numbers 0 to 3; got \[0, 7\]"),
        (tokens(2, 2), {"limits": (1, 0)}, "limits must be .* with low < high"),
        (tokens(2, 3), {"axes": new_figure().add_subplot()}, r"projection '3d' .*add_subplot\(projection='3d'\)"),
        (tokens(2, 2), {"axes": new_figure().add_subplot(projection="3d")}, "projection None for this plot"),
        (gaussian(2), {}, "Use plot_gaussian_trajectory"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_cure(run, options, said):
    with pytest.raises(ValueError, match=said):
        plot_trajectory(run, **options)


def test_coordinates_can_be_chosen():
    run = tokens(2, 4)
    (axes,) = plot_trajectory(run, coordinates=(3, -3)).axes
    assert_array_equal(axes.collections[-1].get_offsets(), run.arrays[-1][:, [3, 1]])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("token coordinate $x_{4}$", "token coordinate $x_{2}$")
