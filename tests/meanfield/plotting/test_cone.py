"""The published coordinates of 2 x 2 covariances, and the disc and cone drawn in them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from meanfield.plotting import cone_coordinates, disc_coordinates, plot_cone, plot_disc

from .runs import drawn, gaussian, tokens


def test_cone_coordinates_are_the_published_ones():
    assert_array_equal(cone_coordinates([[5.0, 2.0], [2.0, 1.0]]), [4.0, 4.0, 6.0])
    assert_array_equal(disc_coordinates([[5.0, 2.0], [2.0, 1.0]]), [4 / 6, 4 / 6])


def test_the_disc_holds_every_shape_with_rank_one_on_its_rim_and_the_identity_in_its_centre():
    roots = np.random.default_rng(3).standard_normal((50, 2, 2))
    inside = np.linalg.norm(disc_coordinates(roots @ np.swapaxes(roots, 1, 2)), axis=1)
    assert (inside < 1).all()
    rim = roots[:, :, :1] @ np.swapaxes(roots[:, :, :1], 1, 2)
    assert_allclose(np.linalg.norm(disc_coordinates(rim), axis=1), 1.0, rtol=1e-12)
    assert_array_equal(disc_coordinates(3 * np.eye(2)), [0.0, 0.0])
    assert np.isnan(disc_coordinates(np.zeros((2, 2)))).all()


@pytest.mark.parametrize("plot", [plot_disc, plot_cone])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_runs_of_every_rank_are_drawn(plot, rank):
    drawn(plot([gaussian(rank), gaussian(rank, k=1)]))


@pytest.mark.parametrize("plot", [plot_disc, plot_cone])
def test_fates_have_colours_markers_and_a_legend(plot):
    paths = np.stack([np.eye(2) * [[1], [k]] for k in (0.2, 0.5, 2.0)])[:, None]
    (axes,) = drawn(plot(paths, groups=["a line", "a line", "blow-up"])).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a line", "blow-up"]
    with pytest.raises(ValueError, match="groups must name each of the 3 runs; got 1"):
        plot(paths, groups=["a"])


def test_ends_in_the_disc_are_the_ends_of_the_runs():
    run = gaussian(2)
    (axes,) = plot_disc([run]).axes
    assert_allclose(axes.collections[-1].get_offsets()[0], disc_coordinates(run[3].covariance))


def test_the_cone_is_cut_at_its_top():
    path = np.arange(1.0, 6)[:, None, None] * np.eye(2)
    (axes,) = drawn(plot_cone([path], top=6.5)).axes
    assert axes.get_zlim()[1] == pytest.approx(6.5, rel=0.05)
    assert_allclose(axes.collections[-1]._offsets3d[2], [6.0])
    with pytest.raises(ValueError, match="top must be greater than 0"):
        plot_cone([path], top=0)


def test_other_sizes_and_tokens_are_refused():
    with pytest.raises(ValueError, match=r"hold 2 x 2 covariances, .* got \(1, 3, 3\)"):
        plot_disc([np.eye(3)[None]])
    with pytest.raises(ValueError, match="needs a run of a Gaussian"):
        plot_cone([tokens(2, 2)])
