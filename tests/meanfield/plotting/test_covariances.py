"""Ellipses: level sets of the law, for every rank, along runs and beside tokens."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import meanfield as mf
from meanfield.plotting import ellipse, plot_ellipses, plot_gaussian_trajectory, plot_measure

from .runs import blown_up, drawn, gaussian, tokens


@pytest.mark.parametrize("d", [2, 3])
def test_an_ellipse_is_the_level_set_at_its_deviations(d):
    root = np.random.default_rng(1).standard_normal((d, d))
    law = mf.Gaussian(np.arange(d), root @ root.T)
    curves = ellipse(law, 2.0)
    assert len(curves) == (1 if d == 2 else 3)
    away = curves - law.mean
    assert_allclose(np.einsum("cpi,ij,cpj->cp", away, np.linalg.inv(law.covariance), away), 4.0, rtol=1e-9)


def test_singular_laws_give_a_segment_or_a_point():
    (segment,) = ellipse(mf.Gaussian([1, 1], [[4, 0], [0, 0]]))
    assert_allclose(segment[:, 1], 1, atol=1e-12)
    assert_allclose([segment[:, 0].min(), segment[:, 0].max()], [-1, 3])
    assert_allclose(ellipse(mf.Gaussian([1, 2], np.zeros((2, 2)))), np.broadcast_to([1.0, 2.0], (1, 97, 2)))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_runs_and_laws_of_every_rank_are_drawn(rank, d):
    run = gaussian(rank, d)
    drawn(plot_gaussian_trajectory(run, count=2))
    plot_ellipses(run[0], title="law")


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_one_output_time_is_drawn(rank):
    drawn(plot_gaussian_trajectory(gaussian(rank, k=1)))


def test_ellipses_stand_at_the_first_and_the_last_time_with_time_as_colour():
    run = gaussian(2)
    panel, bar = drawn(plot_gaussian_trajectory(run, count=2)).axes
    dots = [line for line in panel.lines if line.get_marker() == "o"]
    assert_allclose([dot.get_xydata()[0] for dot in dots], [run[0].mean, run[3].mean])
    assert dots[0].get_color() != dots[1].get_color()
    assert bar.get_ylabel() == "time $t$"


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("k", [1, 4])
def test_one_dimension_is_drawn_over_time(rank, k):
    (axes,) = drawn(plot_gaussian_trajectory(gaussian(rank, 1, k), limits=(-3, 5))).axes
    assert axes.get_xlabel() == "time $t$"
    assert axes.get_ylim() == (-3, 5)


def test_a_blow_up_is_said_and_marked():
    (axes,) = drawn(plot_gaussian_trajectory(blown_up("gaussian"))).axes
    assert axes.get_title("left") == "blew up at $t^*$ = 0.5"  # V = I, A = 1: Sigma^{-1} = 1 - 2 t


def test_ellipses_stand_beside_tokens_in_their_panel_and_keep_its_limits():
    cloud = tokens(20, 2)[0]
    figure = plot_measure(cloud)
    before = figure.axes[0].get_xlim()
    assert plot_ellipses(cloud, variant="l2", axes=figure.axes[0]) is figure
    assert figure.axes[0].get_xlim() == before
    assert_allclose(figure.axes[0].lines[-1].get_xydata()[0], cloud.mean)


def test_four_dimensions_are_refused_with_the_cure():
    law = mf.Gaussian(np.zeros(4), np.eye(4))
    for plot in (plot_ellipses, plot_gaussian_trajectory):
        with pytest.raises(ValueError, match=r"in 2 or 3 dimensions; got 4. Take a marginal, Gaussian\(m\[:2\]"):
            plot(law)
