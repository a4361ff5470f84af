"""Observables: ranks, diameters and entropies of known states, and what is refused."""

import numpy as np
import pytest

from meanfield import (
    Gaussian,
    Head,
    LinearAttention,
    MaskedAttention,
    Measure,
    MultiHeadAttention,
    SigmoidAttention,
    SoftmaxAttention,
    Sphere,
)
from meanfield.analysis import observables as ob

UNIFORM = SoftmaxAttention(Head([[0.0]], [[1.0]], [[1.0]]))


def test_eigenvalues_fall_and_are_those_of_the_covariance():
    rng = np.random.default_rng(0)
    state = Measure(rng.standard_normal((30, 4)), rng.dirichlet(np.ones(30)))
    expected = np.linalg.eigvalsh(state.covariance)[::-1]
    assert ob.covariance_eigenvalues(state) == pytest.approx(expected, rel=1e-10)
    law = Gaussian(np.zeros(4), state.covariance)
    assert ob.covariance_eigenvalues(law) == pytest.approx(expected, rel=1e-10)


def test_eigenvalues_below_the_round_off_of_the_covariance_are_kept():
    # A product of the factor with itself would lose 1e-20 beside 1.
    state = Measure([[1.0, 1e-10], [-1.0, 1e-10], [0.0, -2e-10]])
    assert ob.covariance_eigenvalues(state) == pytest.approx([2 / 3, 2e-20], rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 6, 7, 49])
def test_tokens_that_coincide_have_rank_zero(n):
    state = Measure(np.tile([[0.1, 1e8 / 3]], (n, 1)))
    assert ob.numerical_rank(state) == 0
    assert ob.effective_rank(state) == 0.0
    assert ob.diameter(state) == 0.0


def test_padding_counts_in_no_observable():
    state = Measure([[1.0, 0.0], [3.0, 0.0], [1e30, 1e30]], [0.5, 0.5, 0.0])
    assert ob.numerical_rank(state) == 1
    assert ob.diameter(state) == 2.0
    assert ob.effective_rank(state) == pytest.approx(1, rel=1e-15)


def test_ranks_count_what_their_thresholds_say():
    law = Gaussian(np.zeros(4), np.diag([4.0, 0.2, 0.05, 0.0]))
    assert ob.numerical_rank(law) == 3
    assert ob.numerical_rank(law, relative=0, absolute=0.1) == 2
    assert ob.numerical_rank(law, relative=0.1) == 1
    with pytest.raises(ValueError, match="absolute must be at least 0"):
        ob.numerical_rank(law, absolute=-1)


def test_the_effective_rank_of_equal_eigenvalues_is_their_number():
    assert ob.effective_rank(Gaussian(np.zeros(3), np.diag([2.0, 2.0, 0.0]))) == pytest.approx(2, rel=1e-14)
    shares = np.array([0.75, 0.25])
    assert ob.effective_rank(Gaussian([0, 0], np.diag([3.0, 1.0]))) == pytest.approx(
        np.exp(-(shares * np.log(shares)).sum()), rel=1e-14
    )


def test_the_diameter_is_that_of_the_space_also_far_away_and_block_by_block(monkeypatch):
    assert ob.diameter(Measure([[1e12], [1e12 + 1], [1e12 + 3]])) == 3.0
    east_north = Measure([[1.0, 0.0], [0.0, 1.0]])
    assert ob.diameter(east_north, space=Sphere()) == pytest.approx(np.pi / 2, rel=1e-15)
    cloud = Measure(np.random.default_rng(0).standard_normal((40, 2)))
    whole = ob.diameter(cloud)
    monkeypatch.setattr(ob, "BLOCK_PAIRS", 100)
    assert ob.diameter(cloud) == whole
    with pytest.raises(ValueError, match="reads tokens of a Measure; got Gaussian"):
        ob.diameter(Gaussian([0], [[1]]))


def test_the_entropy_of_uniform_rows_is_log_n_and_of_boolean_ones_zero():
    mu = Measure([[1.0], [2.0], [5.0]])
    assert ob.attention_entropy(UNIFORM, 0.0, mu) == pytest.approx(np.log(3), rel=1e-15)
    far = Measure([[100.0], [-100.0]])
    assert ob.attention_entropy(SoftmaxAttention(Head.identity(1)), 0.0, far) == 0.0
    both = MultiHeadAttention((UNIFORM, UNIFORM))
    assert ob.attention_entropy(both, 0.0, mu) == pytest.approx(np.log(3), rel=1e-15)


def test_rows_that_see_nothing_do_not_count_in_the_entropy():
    mu = Measure.positioned([0.0, 0.5, 1.0], [[1.0], [2.0], [3.0]])
    strict = MaskedAttention(UNIFORM, visible=lambda s, r: r < s)
    # Rows with none, one and two keys: (0 + log 2) / 2.
    assert ob.attention_entropy(strict, 0.0, mu) == pytest.approx(np.log(2) / 2, rel=1e-15)


@pytest.mark.parametrize(
    ("field", "mu", "message"),
    [
        (MaskedAttention(UNIFORM, visible=lambda s, r: r < s), Measure.positioned([0.0], [[1.0]]), "every row .* zero"),
        (SigmoidAttention(Head.identity(1), bias=-1000), Measure([[1.0], [2.0]]), "every row .* zero"),
        (LinearAttention(Head.identity(1)), Measure([[1.0], [-2.0]]), "not negative; got -1 from LinearAttention"),
    ],
)
def test_an_entropy_that_means_nothing_is_refused(field, mu, message):
    with pytest.raises(ValueError, match=message):
        ob.attention_entropy(field, 0.0, mu)


def test_the_rescaled_view_takes_a_free_motion_out():
    V = np.array([[0.3, 1.0], [-1.0, 0.2]])
    view = ob.rescaled(V)
    rate, frequency, t = 0.25, np.sqrt(1 - 0.05**2), 1.7
    # e^{tV} by its 2 x 2 closed form: V = rate I + N with N^2 = -frequency^2 I.
    moved = np.exp(rate * t) * (
        np.cos(frequency * t) * np.eye(2) + np.sin(frequency * t) / frequency * (V - rate * np.eye(2))
    )
    start = Measure([[1.0, 2.0], [-3.0, 0.5]])
    assert view(t, start.moved_to(start.points @ moved.T)).points == pytest.approx(start.points, rel=1e-13)
