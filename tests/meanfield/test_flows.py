"""Flows: packing, rates, the square root of the covariance, and what a flow refuses."""

import numpy as np
import pytest

from meanfield import (
    AffineMap,
    AffinePerceptron,
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
    SinkhornAttention,
    SoftmaxAttention,
    Sphere,
    SplitFlow,
)

TOKENS = Measure([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]], [0.5, 0.3, 0.2])
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def grow(t, x, mu):
    return x + t


def test_particles_pack_to_their_points_and_keep_their_weights():
    flow = ParticleFlow(grow, TOKENS)
    y = flow.pack(TOKENS)
    np.testing.assert_array_equal(y, TOKENS.points)
    moved = flow.state(2 * y)
    np.testing.assert_array_equal(moved.points, 2 * TOKENS.points)
    assert moved.weights is TOKENS.weights


def test_the_rate_of_particles_is_the_field_at_the_tokens_themselves():
    field = SoftmaxAttention(Head.identity(2))
    rate = ParticleFlow(field, TOKENS).rate(0.0, TOKENS.points)
    np.testing.assert_array_equal(rate, field(0.0, TOKENS.points, TOKENS))


def test_the_rate_on_a_sphere_is_tangent():
    start = Measure(Sphere().retract(TOKENS.points))
    rate = ParticleFlow(grow, start, Sphere()).rate(0.3, start.points)
    # Round-off of an inner product of numbers of size one.
    assert np.abs(np.einsum("ij,ij->i", rate, start.points)).max() < 1e-15
    assert np.abs(rate).max() > 0.1


def test_a_field_that_works_in_place_changes_neither_the_state_nor_the_start():
    def in_place(t, x, mu):
        x *= -1
        return x

    flow = ParticleFlow(in_place, TOKENS)
    y = flow.pack(TOKENS)
    np.testing.assert_array_equal(flow.rate(0.0, y), -TOKENS.points)
    np.testing.assert_array_equal(y, TOKENS.points)


def test_a_field_that_gives_back_its_own_buffer_does_not_spoil_earlier_rates():
    buffer = np.empty((3, 2))

    def reused(t, x, mu):
        buffer[:] = t * x
        return buffer

    flow = ParticleFlow(reused, TOKENS)
    first = flow.rate(1.0, TOKENS.points)
    flow.rate(2.0, TOKENS.points)
    np.testing.assert_array_equal(first, TOKENS.points)


def test_integer_velocities_become_floats():
    assert ParticleFlow(lambda t, x, mu: np.ones((3, 2), int), TOKENS).rate(0.0, TOKENS.points).dtype == float


@pytest.mark.parametrize("given", [np.zeros((2, 3)), np.zeros(3), 1.0, None, np.zeros((3, 2), complex)])
def test_a_field_of_another_shape_or_kind_is_refused_with_the_shape_it_needs(given):
    with pytest.raises(ValueError, match=r"one real velocity a point, shape \(3, 2\); got .*field\(t, x, mu\)"):
        ParticleFlow(lambda t, x, mu: given, TOKENS).rate(0.0, TOKENS.points)


def test_a_measure_with_positions_moves_in_a_positioned_space_and_its_positions_stay():
    start = Measure.positioned([0.0, 0.5], [[1.0, 2.0], [3.0, 4.0]])
    flow = ParticleFlow(MaskedAttention(SoftmaxAttention(Head.identity(2))), start)
    assert flow.space == Positioned(Euclidean())
    rate = flow.rate(0.0, start.points)
    assert rate[:, 0].tolist() == [0.0, 0.0]
    assert rate[0, 1:].tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(flow.growing(start.points), start.tokens)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ParticleFlow(3, TOKENS), "field must be callable"),
        (lambda: ParticleFlow(SoftmaxAttention, TOKENS), r"such as SoftmaxAttention\(head\), not its class"),
        (lambda: ParticleFlow(grow, TOKENS.points), r"start must be a Measure; got ndarray.*Measure\(points\)"),
        (lambda: ParticleFlow(grow, TOKENS, Positioned()), "needs a measure with positions"),
        (lambda: ParticleFlow(grow, TOKENS, Sphere()), "points must lie on the sphere of radius 1"),
        (lambda: GaussianFlow(grow, TOKENS), "start must be a Gaussian; got Measure"),
        (lambda: SplitFlow(()), "one or more flows"),
        (lambda: SplitFlow((grow,)), "one or more flows"),
    ],
)
def test_what_makes_no_flow_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_gaussian_packs_to_its_mean_beside_a_root_of_its_covariance():
    law = Gaussian([1.0, 2.0], [[4.0, 2.0], [2.0, 3.0]])
    flow = GaussianFlow(AffinePerceptron(np.eye(2)), law)
    back = flow.state(flow.pack(law))
    np.testing.assert_array_equal(back.mean, law.mean)
    # One product of a 2 x 2 root with itself: a few units of round-off on entries of size four.
    np.testing.assert_allclose(back.covariance, law.covariance, atol=4e-15)


@pytest.mark.parametrize(("covariance", "rank"), [([[1.0, 1.0], [1.0, 1.0]], 1), ([[0.0, 0.0], [0.0, 0.0]], 0)])
def test_a_singular_law_packs_to_as_many_columns_as_its_rank(covariance, rank):
    law = Gaussian([1.0, 2.0], covariance)
    flow = GaussianFlow(AffinePerceptron(np.eye(2)), law)
    assert flow.pack(law).shape == (2, 1 + rank)
    np.testing.assert_allclose(flow.state(flow.pack(law)).covariance, covariance, atol=1e-15)


def test_the_rate_of_a_gaussian_is_c_plus_b_m_beside_b_l():
    B, c = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([5.0, 7.0])
    flow = GaussianFlow(AffinePerceptron(B, c), Gaussian([1.0, 1.0], np.eye(2)))
    y = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 2.0]])
    np.testing.assert_array_equal(flow.rate(0.0, y), [[8.0, 1.0, 4.0], [10.0, 0.0, 6.0]])
    np.testing.assert_array_equal(flow.growing(y), y[:, 1:])


def test_a_field_that_bends_gaussians_is_refused_by_name():
    law = Gaussian([0.0, 0.0], np.eye(2))
    with pytest.raises(NotGaussianError, match="SigmoidAttention does not keep Gaussians Gaussian"):
        GaussianFlow(SigmoidAttention(Head.identity(2)), law).rate(0.0, np.eye(2, 3))


@pytest.mark.parametrize("given", [AffineMap(np.eye(3), np.zeros(2)), AffineMap(np.eye(2), np.zeros(3)), np.eye(2)])
def test_a_reduction_that_is_no_fitting_affine_map_is_refused(given):
    class Odd:
        def on_gaussian(self, t, law):
            return given

    flow = GaussianFlow(Odd(), Gaussian([0.0, 0.0], np.eye(2)))
    with pytest.raises(ValueError, match=r"on_gaussian must return an AffineMap with matrix \(2, 2\)"):
        flow.rate(0.0, np.eye(2, 3))


def test_the_rate_of_a_split_flow_is_the_sum_of_its_parts():
    parts = ParticleFlow(grow, TOKENS), ParticleFlow(AffinePerceptron(TURN), TOKENS)
    total = SplitFlow(parts).rate(0.7, TOKENS.points)
    np.testing.assert_array_equal(total, parts[0].rate(0.7, TOKENS.points) + parts[1].rate(0.7, TOKENS.points))


def test_a_split_flow_is_smooth_only_when_no_part_projects():
    on_sphere = Measure(Sphere().retract(TOKENS.points), TOKENS.weights)
    flat, curved = ParticleFlow(grow, on_sphere), ParticleFlow(grow, on_sphere, Sphere())
    assert SplitFlow((flat, flat)).smooth
    assert not SplitFlow((flat, curved)).smooth


def test_a_split_flow_begins_packs_and_reads_as_its_first_part():
    first, second = ParticleFlow(grow, TOKENS), ParticleFlow(grow, Measure(TOKENS.points))
    flow = SplitFlow((first, second))
    assert flow.start is TOKENS
    assert flow.state(flow.pack(TOKENS)).weights is TOKENS.weights
    assert flow.retract(TOKENS.points) is TOKENS.points


def test_parts_that_do_not_share_their_state_are_refused():
    other = ParticleFlow(grow, Measure([[1.0, 2.0]]))
    with pytest.raises(ValueError, match=r"share their state; got arrays shaped \[\(1, 2\), \(3, 2\)\]"):
        SplitFlow((ParticleFlow(grow, TOKENS), other))
    law = GaussianFlow(AffinePerceptron(np.eye(2)), Gaussian([0.0, 0.0], np.ones((2, 2))))
    with pytest.raises(ValueError, match="starts of kinds"):
        SplitFlow((ParticleFlow(grow, Measure(np.ones((2, 2)))), law))


def test_only_a_field_with_an_inner_iteration_changes_for_a_run():
    warm, plain = SinkhornAttention(Head.identity(2)), SoftmaxAttention(Head.identity(2))
    split = SplitFlow((ParticleFlow(warm, TOKENS), ParticleFlow(plain, TOKENS))).for_run()
    assert split.parts[0].field is not warm
    assert split.parts[1].field is plain
