"""The front door: one call for particles and Gaussians."""

import numpy as np
import pytest

from meanfield import (
    Euclidean,
    Gaussian,
    GaussianFlow,
    Head,
    MaskedAttention,
    Measure,
    NotGaussianError,
    ParticleFlow,
    Positioned,
    SigmoidAttention,
    SoftmaxAttention,
    Sphere,
    simulate,
)

FIELD = SoftmaxAttention(Head.identity(2))


def test_the_same_call_moves_tokens_and_laws():
    tokens = simulate(FIELD, Measure([[1.0, 0.0]]), [0.0, 1.0])
    law = simulate(FIELD, Gaussian([1.0, 0.0], np.zeros((2, 2))), [0.0, 1.0])
    assert isinstance(tokens.flow, ParticleFlow)
    assert isinstance(law.flow, GaussianFlow)
    # A law without spread is one token.
    np.testing.assert_allclose(law[-1].mean, tokens[-1].points[0], rtol=1e-8)


def test_a_plain_function_is_a_field():
    run = simulate(lambda t, x, mu: mu.mean - x, Measure([[0.0], [2.0]]), [0.0, 1.0])
    np.testing.assert_allclose(run[-1].points[:, 0], [1 - np.exp(-1), 1 + np.exp(-1)], rtol=1e-7)


def test_zero_weight_tokens_are_moved_and_move_nobody():
    rng = np.random.default_rng(0)
    tokens, weights = rng.standard_normal((5, 2)), np.array([0.2, 0.3, 0.0, 0.5, 0.0])
    padded = simulate(FIELD, Measure(tokens, weights), [0.0, 1.0])[-1]
    bare = simulate(FIELD, Measure(tokens[weights > 0], weights[weights > 0]), [0.0, 1.0])[-1]
    np.testing.assert_allclose(padded.points[weights > 0], bare.points, rtol=1e-6)
    assert np.abs(padded.points[2] - tokens[2]).max() > 0.01


def test_positions_put_a_space_into_its_positioned_form():
    start = Measure.positioned([0.0, 1.0], Sphere().retract(np.array([[1.0, 1.0], [1.0, -2.0]])))
    run = simulate(MaskedAttention(FIELD), start, [0.0, 1.0], space=Sphere())
    assert run.flow.space == Positioned(Sphere())
    # On a sphere with V = I the first masked token only sees itself, and x has no tangent part.
    np.testing.assert_allclose(run[-1].tokens[0], start.tokens[0], rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(run[-1].tokens, axis=1), 1, atol=1e-12)


def test_a_field_that_bends_gaussians_says_to_sample():
    with pytest.raises(NotGaussianError, match=r"SigmoidAttention.*law\.sample\(n, rng\)"):
        simulate(SigmoidAttention(Head.identity(2)), Gaussian([0.0, 0.0], np.eye(2)), [0.0, 1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simulate(FIELD, [[1.0, 2.0]], [0, 1]), r"start must be a Measure or a Gaussian; got list.*points"),
        (
            lambda: simulate(FIELD, Gaussian([0.0, 0.0], np.eye(2)), [0, 1], space=Sphere()),
            "a Gaussian lives in Euclidean space; got Sphere",
        ),
        (lambda: simulate(FIELD, Measure([[3.0, 0.0]]), [0, 1], space=Sphere()), "points must lie on the sphere"),
        (lambda: simulate(FIELD, Measure([[3.0]]), [0, 1]), "tokens must have the head's dimension d = 2; got d = 1"),
        (lambda: simulate(3, Measure([[3.0]]), [0, 1], space=Euclidean()), "field must be callable"),
    ],
)
def test_what_does_not_fit_is_refused_at_the_door(make, message):
    with pytest.raises(ValueError, match=message):
        make()
