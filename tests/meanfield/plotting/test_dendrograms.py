"""Dendrograms: a bracket a merge, a line for what is left, and refusals."""

import numpy as np
import pytest

from meanfield.plotting.dendrograms import plot_merge_tree

#: Tokens 0 and 1 merge at height 1, with 2 at height 3; token 3 is left, joined above the run.
LINKAGE = [[0, 1, 1, 2], [4, 2, 3, 3], [5, 3, 11, 4]]


def brackets(figure):
    return [np.asarray(line) for line in figure.axes[0].collections[0].get_segments()]


def test_merges_stand_at_their_times_and_what_is_left_runs_to_the_end():
    found = brackets(plot_merge_tree(LINKAGE, start=100.0, end=110.0))
    merges, left = [line for line in found if len(line) == 4], [line for line in found if len(line) == 2]
    assert [line[1:3, 0].tolist() for line in merges] == [[101, 101], [103, 103]]
    assert sorted(line[0, 0] for line in merges[1][[0, 3]].reshape(2, 1, 2)) == [100, 101]
    assert sorted(line[:, 0].tolist() for line in left) == [[100, 110], [103, 110]]
    places = {line[0, 1] for line in left} | {merges[0][0, 1], merges[0][3, 1]}
    assert len(places) == 4


def test_a_logarithmic_axis_begins_where_it_is_told():
    figure = plot_merge_tree(LINKAGE, end=10.0, tscale="log", first=2.0)
    assert figure.axes[0].get_xlim() == (2.0, 10.0)
    assert min(line[:, 0].min() for line in brackets(figure)) == 2.0
    figure.draw_without_rendering()


def test_no_tree_is_refused():
    with pytest.raises(ValueError, match=r"linkage must have shape \(m - 1, 4\).*got \(0, 4\)"):
        plot_merge_tree(np.zeros((0, 4)), end=1.0)
