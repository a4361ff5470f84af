"""Many laws at once give what each gives alone, and fail one by one."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.gaussian.ensemble import simulate_ensemble


def random_instances(b, d, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(b, d, d)) / np.sqrt(d)
    query, key, value = scale * rng.normal(size=(3, b, d, d)) / np.sqrt(d)
    return mf.Head(query, key, value), rng.normal(size=(b, d)), roots @ np.swapaxes(roots, 1, 2)


VARIANTS = [mf.SoftmaxAttention, mf.L2Attention, mf.SinkhornAttention, mf.LinearAttention]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_instance_is_the_run_of_its_own_law(variant):
    head, means, covariances = random_instances(12, 2, seed=1, scale=0.8)
    times = [0, 0.2, 0.21, 0.5, 1]
    together = simulate_ensemble(variant(head), means, covariances, times)
    for i in range(len(together)):
        alone = mf.simulate(variant(head.take(i)), mf.Gaussian(means[i], covariances[i]), times)
        assert together.outcomes[i] is alone.outcome
        np.testing.assert_array_equal(together[i].times, alone.times)
        for ours, theirs in zip(together[i], alone, strict=True):
            # Both are within rtol = 1e-8 of the flow; near a pole the error grows with the solution's sensitivity.
            np.testing.assert_allclose(ours.covariance, theirs.covariance, rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-5, atol=1e-7)
        if alone.blow_up_time is not None:
            assert together.blow_up_times[i] == pytest.approx(alone.blow_up_time, rel=1e-7)


def test_poles_of_the_identity_value_match_their_closed_form():
    rng = np.random.default_rng(2)
    b, d = 60, 3
    roots = rng.normal(size=(b, d, d))
    covariances = roots @ np.swapaxes(roots, 1, 2)
    query = rng.normal(size=(b, d, d))
    head = mf.Head(query, np.broadcast_to(np.eye(d), (b, d, d)), np.broadcast_to(np.eye(d), (b, d, d)))
    runs = simulate_ensemble(mf.SoftmaxAttention(head), np.zeros((b, d)), covariances, [0, 10])
    # t* = 1 / lambda_max(S^(1/2) (A + A^T) S^(1/2)) with A = Q here, the eigenvalues of S (A + A^T).
    largest = np.linalg.eigvals(covariances @ (query + np.swapaxes(query, 1, 2))).real.max(axis=1)
    expected = np.where(largest > 0.1, 1 / largest, np.inf)
    np.testing.assert_allclose(runs.blow_up_times, expected, rtol=1e-6)
    blown = runs.outcomes == mf.Outcome.BLEW_UP
    assert blown.any()
    np.testing.assert_array_equal(blown, np.isfinite(expected))


def test_nan_stands_only_where_a_run_did_not_reach():
    head, means, covariances = random_instances(40, 2, seed=3, scale=1.5)
    runs = simulate_ensemble(mf.SoftmaxAttention(head), means, covariances, np.linspace(0, 2, 9))
    finite = np.isfinite(runs.arrays).all(axis=(2, 3))
    np.testing.assert_array_equal(finite, runs.reached)
    assert not runs.reached.all()
    assert np.isfinite(runs.last_arrays).all()
    # Reached times form a prefix: nothing is skipped.
    assert (np.diff(runs.reached.astype(int), axis=1) <= 0).all()


def test_a_singular_law_keeps_its_rank():
    u = np.array([3.0, 4.0]) / 5
    head = mf.Head(np.eye(2), -0.5 * np.eye(2), np.eye(2))
    runs = simulate_ensemble(mf.SoftmaxAttention(head), np.zeros((2, 2)), [np.outer(u, u), np.eye(2)], [0, 1])
    # Sigma(t) = Sigma0 (I + t Sigma0)^(-1) for A = -I/2.
    np.testing.assert_allclose(runs.covariances[0, -1], np.outer(u, u) / 2, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(runs.covariances[1, -1], np.eye(2) / 2, rtol=1e-7, atol=1e-12)
    assert np.linalg.matrix_rank(runs.last_arrays[0, :, 1:]) == 1


def test_one_head_serves_all_laws_and_a_sum_of_fields_narrows_its_batches():
    head, means, covariances = random_instances(5, 2, seed=4)
    forward = mf.AffinePerceptron([[-1.0, 0], [0, -2]], [1, 0])
    shared = mf.SumField((mf.SoftmaxAttention(mf.Head.identity(2, -0.3)), forward))
    together = simulate_ensemble(shared, means, covariances, [0, 1])
    mixed = mf.MultiHeadAttention((mf.L2Attention(head), mf.SoftmaxAttention(mf.Head.identity(2, -0.3))))
    both = simulate_ensemble(mixed, means, covariances, [0, 1])
    for i in range(5):
        law = mf.Gaussian(means[i], covariances[i])
        expected = mf.simulate(shared, law, [0, 1])[-1].covariance
        np.testing.assert_allclose(together[i][-1].covariance, expected, rtol=1e-6)
        alone = mf.MultiHeadAttention((mf.L2Attention(head.take(i)), mf.SoftmaxAttention(mf.Head.identity(2, -0.3))))
        np.testing.assert_allclose(both[i][-1].covariance, mf.simulate(alone, law, [0, 1])[-1].covariance, rtol=1e-6)


def test_a_spiral_pole_is_told_from_a_collapsed_step():
    # The size grows like (t* - t)^(-1/2) times a periodic function of log(t* - t): for part of each turn it shrinks.
    head = mf.Head(
        [[0.50690569, 0.09534349], [0.02957391, 0.96598317]],
        np.eye(2),
        [[-0.16258094, -0.35114701], [0.62178568, 0.43204352]],
    )
    law = mf.Gaussian([0, 0], [[2.76, 1.2], [1.2, 2.0]])
    run = mf.simulate(mf.SoftmaxAttention(head), law, [0, 5])
    assert run.outcome is mf.Outcome.BLEW_UP
    runs = simulate_ensemble(mf.SoftmaxAttention(head), [law.mean], [law.covariance], [0, 5])
    assert runs.outcomes[0] is mf.Outcome.BLEW_UP
    assert runs.blow_up_times[0] == pytest.approx(run.blow_up_time, rel=1e-9)


def test_limits_and_the_stopping_trace_end_only_the_instances_that_meet_them():
    covariances = np.array([[[1.0]], [[0.1]]])
    head = mf.Head.identity(1)
    runs = simulate_ensemble(mf.SoftmaxAttention(head), np.zeros((2, 1)), covariances, [0, 1], stop_trace=100)
    assert list(runs.outcomes) == [mf.Outcome.STOPPED, mf.Outcome.FINISHED]
    assert runs.covariances[1, -1, 0, 0] == pytest.approx(0.1 / (1 - 0.2), rel=1e-7)
    runs = simulate_ensemble(mf.SoftmaxAttention(head), np.zeros((2, 1)), covariances, [0, 1], max_evaluations=100)
    assert list(runs.outcomes) == [mf.Outcome.LIMIT, mf.Outcome.FINISHED]
    assert 0 < runs.last_times[0] < 0.5


def test_start_times_far_from_zero_change_nothing():
    head, means, covariances = random_instances(6, 2, seed=5)
    near = simulate_ensemble(mf.SoftmaxAttention(head), means, covariances, [0, 0.5])
    far = simulate_ensemble(mf.SoftmaxAttention(head), means, covariances, [1e9, 1e9 + 0.5])
    np.testing.assert_array_equal(near.arrays, far.arrays)


def test_bad_input_is_named_with_its_cure():
    field, eye = mf.SoftmaxAttention(mf.Head.identity(2)), np.eye(2)
    with pytest.raises(ValueError, match=r"must fit; got shapes \(1, 2\) and \(2, 2, 2\)"):
        simulate_ensemble(field, np.zeros((1, 2)), [eye, eye], [0, 1])
    with pytest.raises(ValueError, match=r"number 1 .* eigenvalue -1"):
        simulate_ensemble(field, np.zeros((2, 2)), [eye, -eye], [0, 1])
    with pytest.raises(ValueError, match="Use simulate for others"):
        simulate_ensemble(field, np.zeros((1, 2)), [eye], [0, 1], scheme=mf.Adaptive("Radau"))
    schedule = mf.Schedule(lambda t: mf.Head.identity(2, 1 + t))
    with pytest.raises(ValueError, match="constant in time"):
        simulate_ensemble(mf.SoftmaxAttention(schedule), np.zeros((1, 2)), [eye], [0, 1])
    with pytest.raises(ValueError, match=r"batch of heads must have shape \(1, k, d\)"):
        simulate_ensemble(mf.SoftmaxAttention(random_instances(3, 2, 0)[0]), np.zeros((1, 2)), [eye], [0, 1])
    with pytest.raises(mf.NotGaussianError, match="SigmoidAttention does not keep Gaussians"):
        simulate_ensemble(mf.SigmoidAttention(mf.Head.identity(2)), np.zeros((1, 2)), [eye], [0, 1])


def test_a_law_that_leaves_the_domain_of_its_field_costs_the_others_nothing():
    # L2 attention with scale -1/10 and V = -1: s' = 0.4 s^2 / (1 - s / 5) reaches s = 5 from 1 at t = 1.195, and from
    # 0.01 not before 250; at 6 there is no field to begin with.
    field = mf.L2Attention(mf.Head([[1.0]], [[1.0]], [[-1.0]], scale=-0.1))
    ensemble = mf.simulate_ensemble(field, np.zeros((3, 1)), [[[1.0]], [[0.01]], [[6.0]]], [0.0, 1.0, 20.0])
    assert ensemble.outcomes.tolist() == [mf.Outcome.NOT_FINITE, mf.Outcome.FINISHED, mf.Outcome.NOT_FINITE]
    assert ensemble.reached.tolist() == [[True, True, False], [True, True, True], [True, False, False]]
    assert ensemble.last_times[0] == pytest.approx((1 - 0.2 - 0.2 * np.log(5)) / 0.4, rel=1e-6)
