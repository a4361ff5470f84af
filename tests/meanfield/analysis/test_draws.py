"""Samplers and nested draws."""

import numpy as np
import pytest

from meanfield.analysis.draws import AtPositions, UniformBall, drawn, first_tokens
from meanfield.measures import Gaussian, Measure


def test_a_uniform_ball_has_the_moments_of_one():
    for d in (1, 2, 5):
        x = UniformBall(d, 2.0)(4000, np.random.default_rng(d)).points
        lengths = np.linalg.norm(x, axis=1)
        assert lengths.max() <= 2.0
        # E|x|^2 = R^2 d / (d + 2); four standard errors, each at most 2 / sqrt(n)
        assert np.mean(lengths**2) == pytest.approx(4 * d / (d + 2), abs=8 / 4000**0.5)
        assert np.abs(x.mean(axis=0)).max() < 8 / 4000**0.5


def test_positions_get_independent_tokens_and_their_masses():
    law = AtPositions(UniformBall(2), [0.5, 0.0], [0.3, 0.7])(3, np.random.default_rng(0))
    assert law.positions.tolist() == [0.5] * 3 + [0.0] * 3
    np.testing.assert_allclose(law.weights, [0.1] * 3 + [0.7 / 3] * 3)
    assert len(np.unique(law.tokens)) == 12
    equal = AtPositions(UniformBall(1), [0.0, 1.0])(5, np.random.default_rng(0))
    np.testing.assert_allclose(equal.weights, 0.1)


def test_systems_of_one_draw_are_nested():
    law = Gaussian([0.0, 1.0], np.eye(2)).sample(8, np.random.default_rng(0))
    for n in (1, 3, 8):
        np.testing.assert_array_equal(first_tokens(law, n).points, law.points[:n])
    law = AtPositions(UniformBall(1), [1.0, 0.0], [0.25, 0.75])(4, np.random.default_rng(0))
    few = first_tokens(law, 2)
    np.testing.assert_array_equal(few.points, law.points[[0, 1, 4, 5]])
    np.testing.assert_allclose(few.weights, [0.125, 0.125, 0.375, 0.375])
    assert few.has_positions
    shuffled = Measure(law.points[[4, 0, 5, 1]], law.weights[[4, 0, 5, 1]] * 2, has_positions=True)
    np.testing.assert_array_equal(first_tokens(shuffled, 1).points, law.points[[4, 0]])


def test_bad_draws_are_refused_with_the_way_out():
    alone = Measure.positioned([0.0, 0.5, 1.0], np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"n = 2 tokens at each position; one has 1. Draw with AtPositions"):
        first_tokens(alone, 2)
    with pytest.raises(ValueError, match=r"it gave ndarray.*UniformBall"):
        drawn(lambda n, rng: rng.random((n, 1)), 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"it gave Measure of 2 for n = 3"):
        drawn(lambda n, rng: Measure(np.eye(2)), 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="radius must be greater than 0"):
        UniformBall(2, -1.0)
    with pytest.raises(ValueError, match="masses must sum to 1"):
        AtPositions(UniformBall(1), [0.0, 1.0], [0.5, 0.6])
