"""What `predict` claims is never contradicted by simulation, and it stays silent where nothing is proved."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.attention import (
    L2Attention,
    LinearAttention,
    MultiHeadAttention,
    SigmoidAttention,
    SinkhornAttention,
    SoftmaxAttention,
)
from meanfield.gaussian.closed_forms import l2_counterexample_head, linear_solution
from meanfield.gaussian.predictions import predict
from meanfield.integration.simulate import simulate
from meanfield.integration.trajectory import Outcome
from meanfield.measures import Gaussian
from meanfield.parameters import Head, Schedule
from meanfield.perceptron import AffinePerceptron
from meanfield.velocity import NotGaussianError, SumField

from . import ode_oracles as ode

SEEDS = st.integers(0, 2**32 - 1)
LAW = Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])


def softmax(a, value):
    return SoftmaxAttention(Head(a, np.eye(len(a)), value))


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention, SinkhornAttention, LinearAttention])
@given(SEEDS)
@settings(max_examples=12, deadline=None)
def test_predictions_are_never_contradicted(variant, seed):
    rng = np.random.default_rng(seed)
    d = 2
    shift = rng.choice([-1.5, 0.0, 1.5])
    root = rng.standard_normal((d, d))
    value = [np.eye(d), -np.eye(d), root @ root.T + 0.1 * np.eye(d), root][rng.integers(4)]
    head = Head(rng.standard_normal((d, d)) + shift * np.eye(d), np.eye(d), value)
    mean, covariance = ode.random_moments(rng, d, rank=rng.integers(1, d + 1))
    law = Gaussian(0.3 * mean, covariance)
    verdict = predict(variant(head), law)
    assert verdict.kind == "blow-up"
    low, high = verdict.evidence["time_bounds"]
    run = simulate(variant(head), law, [0.0, 5.0], max_evaluations=4000)
    if run.outcome is Outcome.BLEW_UP:
        assert verdict.happened is not False
        assert low * (1 - 1e-6) <= run.blow_up_time <= high * (1 + 1e-6)
    elif run.outcome is Outcome.FINISHED:
        assert verdict.happened is not True or high > 5


def test_exact_times_and_ranks_of_softmax():
    verdict = predict(SoftmaxAttention(Head.identity(1)), Gaussian([1.0], [[1.0]]))
    assert verdict
    assert verdict.time == 0.5
    query = np.array([[1.0, 2.0, 0.0]])
    verdict = predict(SoftmaxAttention(Head(query, -query, np.eye(3))), Gaussian(np.zeros(3), np.eye(3)))
    assert verdict.happened is False
    assert verdict.time is None
    assert verdict.evidence["limit_rank"] == 2


def test_definite_values_that_do_not_commute_get_bounds():
    verdict = predict(softmax(np.eye(2), np.diag([1.0, 3.0])), LAW)
    low, high = verdict.evidence["time_bounds"]
    assert verdict.happened is True
    assert verdict.time is None
    run = simulate(softmax(np.eye(2), np.diag([1.0, 3.0])), LAW, [0.0, 5.0])
    assert low <= run.blow_up_time <= high
    # Signs of V and A cancel in V Sigma A.
    assert predict(softmax(-np.eye(2), -np.diag([1.0, 3.0])), LAW).evidence["time_bounds"] == (low, high)


def test_limit_rank_needs_both_the_invariant_and_the_lyapunov_function():
    query, value = np.array([[1.0, -1.0]]), np.diag([1.0, 3.0])
    for variant in (SoftmaxAttention, L2Attention):
        field = variant(Head(query, -query, value))
        assert predict(field, LAW).evidence["limit_rank"] == 1
        # S5: this singular start keeps rank one, so no rank is claimed but bounds.
        singular = predict(field, Gaussian([0, 0], np.outer([1, 2], [1, 2])))
        assert singular.happened is False
        assert singular.evidence["limit_rank"] is None
        assert singular.evidence["limit_rank_bounds"] == (0, 1)


def test_l2_is_called_global_only_with_a_reason():
    assert predict(L2Attention(Head.identity(2)), LAW).happened is False
    counterexample = predict(L2Attention(l2_counterexample_head()), LAW)
    assert counterexample.time == 3.0
    deficient = L2Attention(Head([[0.0, 1.0]], [[1.0, 0.0]], [[0.3, 0.1], [0.2, 1.0]]))
    assert predict(deficient, LAW).happened is None


def test_values_that_do_not_commute_are_undecided_with_a_lower_bound():
    verdict = predict(softmax(np.diag([1.0, -2.0]), [[1.0, 1.0], [0.0, 1.0]]), LAW)
    assert verdict.happened is None
    assert not verdict
    assert 0 < verdict.evidence["time_bounds"][0] < math.inf
    assert verdict.evidence["time_bounds"][1] == math.inf
    assert predict(SoftmaxAttention(Schedule(lambda t: Head.identity(2))), LAW).happened is None


def test_linear_attention_is_judged_by_its_second_moment():
    law = Gaussian([1.0, 0.0], 0.5 * np.eye(2))
    verdict = predict(LinearAttention(Head.identity(2)), law)
    assert verdict.time == linear_solution(Head.identity(2), law).blow_up_time == pytest.approx(1 / 3, rel=1e-14)
    contracting = predict(LinearAttention(Head.identity(2, -1.0)), law)
    assert contracting.happened is False
    assert contracting.evidence["limit_rank"] is None


def test_sums_of_fields():
    ramp = AffinePerceptron(-np.eye(2))
    attention = SoftmaxAttention(Head.identity(2, 0.5))
    assert predict(ramp, LAW).happened is False
    # s' = -2 s + s^2 along each axis: poles for eigenvalues above 2, and LAW has 1.5 at most.
    assert predict(SumField((attention, ramp)), LAW).evidence["limit_rank"] == 0
    wide = Gaussian([0, 0], np.diag([1.0, 3.0]))
    assert predict(SumField((attention, ramp)), wide).time == pytest.approx(-math.log(1 - 2 / 3) / 2, rel=1e-9)
    two = MultiHeadAttention((attention, SoftmaxAttention(Head.identity(2, 0.25))))
    assert predict(two, LAW).time == pytest.approx(1 / (1.5 * 1.5), rel=1e-13)
    assert predict(SumField((SinkhornAttention(Head.identity(2)), ramp)), LAW).happened is False
    assert predict(SumField((LinearAttention(Head.identity(2)), ramp)), LAW).happened is None


def test_laws_that_do_not_move():
    still = softmax(np.zeros((2, 2)), [[1.0, 2.0], [0.0, 1.0]])
    assert predict(still, LAW).evidence["limit_rank"] == 2
    point = Gaussian([1.0, 1.0], np.zeros((2, 2)))
    for variant in (SoftmaxAttention, L2Attention, SinkhornAttention):
        assert predict(variant(Head.identity(2)), point).happened is False
    assert predict(LinearAttention(Head.identity(2)), point).time == pytest.approx(0.25, rel=1e-14)


def test_doors_of_predict():
    with pytest.raises(NotGaussianError, match="SigmoidAttention does not keep Gaussians"):
        predict(SigmoidAttention(Head.identity(2)), LAW)
    with pytest.raises(ValueError, match="law must be one Gaussian"):
        predict(SoftmaxAttention(Head.identity(2)), np.eye(2))


def test_a_pole_along_a_direction_that_round_off_leaves_is_not_claimed():
    # w' = v |w|^2 (u^T A u) w has its pole for the exact start; a deviation of size e beside w grows like e |w|^7.
    w, A = np.array([1.0, 0.0]), np.eye(2)
    for value in (np.diag([0.1, 0.7]), [[0.1, 1.0], [0.0, 0.7]]):
        slow = predict(SoftmaxAttention(Head(A, np.eye(2), value)), Gaussian([0, 0], np.outer(w, w)))
        assert slow.happened is not False
        assert slow.time is None
    leading = SoftmaxAttention(Head(A, np.eye(2), [[0.7, 1.0], [0.0, 0.1]]))
    verdict = predict(leading, Gaussian([0, 0], np.outer(w, w)))
    # |w|^2 = 1 / (1 - 2 v t) with v = 0.7.
    assert verdict.time == pytest.approx(1 / 1.4, rel=1e-12)


def test_l2_keeps_its_map_where_i_plus_2sg_is_as_good_as_singular():
    law = Gaussian([1.0, -1.0], [[1e12, 3e11], [3e11, 1e11]])
    head = Head([[1.0, 0.5]], [[0.3, 1.0]], np.eye(2))
    affine = L2Attention(head).on_gaussian(0.0, law)
    # One row: M = S - 2 S k k^T S / (1 + 2 k^T S k), by Sherman and Morrison.
    k, S = head.key[0], law.covariance
    M = S - 2 * np.outer(S @ k, S @ k) / (1 + 2 * k @ S @ k)
    np.testing.assert_allclose(affine.matrix, 2 * M @ head.A, rtol=1e-6, atol=1e-6 * np.abs(M).max())
