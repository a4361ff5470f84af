"""The published pictures are drawn, scheme above and flow below, with captions made from the record."""

import pytest

from experiments import gaussian_covariances as experiment
from figures import gaussian_covariances as figure
from figures.style import style
from tests.figures.studies import study_of, texts


@pytest.fixture(scope="module")
def study():
    return study_of(experiment, [case | {"points": 4, "iterations": 300} for case in experiment.cases(True)])


@pytest.fixture(scope="module")
def drawn(study):
    with style():
        figures = figure.draw(study)
        figures["line_and_plane"].draw_without_rendering()
    return figures


def test_every_picture_has_a_panel_for_the_scheme_and_one_for_the_flow(study, drawn):
    assert list(drawn) == list(figure.FIGURES)
    for name, pictures in figure.FIGURES.items():
        count = sum(case["picture"] in pictures for case in study.cases)
        assert len(drawn[name].axes) == 2 * count


def test_captions_state_counts_blow_up_times_and_what_the_published_code_does(study, drawn):
    said = {name: " ".join(texts(one).split()) for name, one in drawn.items()}
    arrays = study.select(picture="blow_up", variant="softmax")[0]
    assert f"{float(arrays['centre_blow_up_time']):.5f}" in said["blow_up"]
    assert f"t* = {arrays['blow_up_times'].min():.3g}" in said["blow_up"]
    assert "one softmax step has moved the grid" in said["zero"]
    assert "published softmax picture shows the L2 runs" in said["two_lines"]
    assert "no row and does nothing" in said["line_and_plane"]
    assert "one head, so this is softmax again" in said["both"]


def test_differing_counts_are_told_apart():
    case = {"high": 1e3}
    arrays = {
        "published_status": [0, 1],
        "exact_status": [0, 0],
        "blow_up_times": [float("inf")] * 2,
        "centre_blow_up_time": float("nan"),
        "published": [[[[1, 0], [0, 1]]]] * 2,
        "exact": [[[[1, 0], [0, 1.5]]]] * 2,
    }
    told = figure.fates(case, {name: figure.np.array(value) for name, value in arrays.items()})
    assert "scheme 1 converge, 1 pass trace 1000; flow 2 converge" in told
    assert "differ by at most 2e-01" in told
