"""Attention matrices: shown as they are, with names that are the tokens'."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from meanfield.plotting import plot_attention

from .runs import drawn


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (20, 20), (60, 60), (3, 7)])
def test_matrices_of_every_shape_are_drawn_as_they_are(shape):
    matrix = np.random.default_rng(2).random(shape)
    panel, bar = drawn(plot_attention(matrix)).axes
    assert_array_equal(panel.images[0].get_array(), matrix)
    assert panel.images[0].get_cmap().name == "cividis"
    assert bar.get_ylabel() == "attention weight $P_{ij}$"


def test_names_stand_at_rows_and_columns_and_dollars_are_no_formula():
    (axes,) = drawn(plot_attention(np.eye(2), labels=["$5", "cat_"], scale=None)).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == [r"\$5", "cat_"]
    assert [text.get_text() for text in axes.get_xticklabels()] == [r"\$5", "cat_"]


def test_many_names_are_thinned_out_and_none_is_wrong():
    (axes,) = drawn(plot_attention(np.eye(60), labels=[f"w{k}" for k in range(60)], scale=None)).axes
    for tick, text in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True):
        assert text.get_text() == f"w{tick:.0f}"


def test_a_zero_matrix_and_shared_limits_have_a_scale():
    assert plot_attention(np.zeros((2, 2))).axes[0].images[0].get_clim() == (0, 1)
    assert plot_attention(np.eye(2), limits=(0, 3)).axes[0].images[0].get_clim() == (0, 3)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="For several heads draw one panel a head"):
        plot_attention(np.zeros((2, 3, 3)))
    with pytest.raises(ValueError, match="labels must name each of the 2 tokens; got 1 names"):
        plot_attention(np.eye(2), labels=["a"])
    with pytest.raises(ValueError, match="key_labels must name each of the 3 tokens"):
        plot_attention(np.zeros((2, 3)), key_labels=["a"])
