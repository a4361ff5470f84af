"""The figure on the attention sink, from three masses."""

from experiments import masked_stability
from figures import masked_stability as figure_module
from tests.figures.studies import study_of, texts


def test_it_draws_all_masses_with_zero_at_the_left_end():
    small = {"n": 4, "replicas": 1, "horizon": 0.2}
    cases = [small | {"mass": mass, "p": p} for p in (1, 2) for mass in (0.0, 0.1, 1.0)]
    study = study_of(masked_stability, cases)
    figure = figure_module.draw(study)
    factor = study.select(mass=0.0, p=2)[0]["mask_factor"]
    assert f"({factor:.2f} with no sink at all)" in texts(figure)
    left = figure.axes[0].get_xticks()[0]
    assert all(min(line.get_xdata()) >= left for line in figure.axes[0].lines if line.get_marker() != "None")
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()] == ["0", "0.01", "0.1", "1"]
