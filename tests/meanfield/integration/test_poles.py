"""Blow-up: t* where there is a pole, nothing where there is only growth, whatever the solver."""

import numpy as np
import pytest
from scipy.special import exp1

from meanfield import (
    Adaptive,
    Gaussian,
    Head,
    L2Attention,
    LinearAttention,
    Measure,
    Outcome,
    SinkhornAttention,
    SoftmaxAttention,
    UnnormalisedAttention,
    simulate,
    simulate_ensemble,
)
from meanfield.integration import METHODS
from meanfield.integration.poles import PoleWatch

GROWING = {
    "exp": lambda t, x, mu: 3 * x,
    "power 5": lambda t, x, mu: 5 * x / (t + 1e-3),
    "exp of a square": lambda t, x, mu: 2 * t * x,
    "logarithm above a line": lambda t, x, mu: x * np.log(np.abs(x) + 2),
    "constant": lambda t, x, mu: np.ones_like(x),
    "from rest": lambda t, x, mu: 1e6 * t * np.ones_like(x),
    "decay with a jump of scale": lambda t, x, mu: np.where(t < 1, -20 * x, 20 * x),
}


def scalar_softmax():
    return SoftmaxAttention(Head.identity(1)), Gaussian([1.0], [[1.0]])


def l2_counterexample():
    # K has rank one: T* = (1/2 + Sigma_11) / Sigma_12 = 3 [S9].
    head = Head([[0.0, 1.0]], [[1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]])
    return L2Attention(head), Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])


def linear_tokens():
    # Second moment 1/2 on the line, V = A = 1: 1 / (2 * 1/2).
    return LinearAttention(Head.identity(1)), Measure([[0.5], [np.sqrt(0.75)]])


def one_unnormalised_token():
    return UnnormalisedAttention(Head.identity(2)), Measure([[0.6, 0.8]])


POLES = {
    "softmax": (scalar_softmax, 0.5),
    "l2": (l2_counterexample, 3.0),
    "linear": (linear_tokens, 1.0),
    "unnormalised": (one_unnormalised_token, exp1(1.0) / 2),
}


#: Third-order steps and implicit ones are many at rtol = 1e-8, so these two run at a tenth of the accuracy.
SOLVERS = {method: 1e-7 if method in ("RK23", "Radau") else 1e-8 for method in METHODS}


@pytest.mark.parametrize("name", POLES)
@pytest.mark.parametrize("method", SOLVERS)
def test_the_time_of_blow_up_is_right_to_two_hundred_tolerances_for_every_solver(method, name):
    make, pole = POLES[name]
    rtol = SOLVERS[method]
    run = simulate(*make(), [0.0, 0.5 * pole, 1.5 * pole], scheme=Adaptive(method, rtol=rtol))
    assert run.outcome is Outcome.BLEW_UP
    assert run.times.tolist() == [0.0, 0.5 * pole]
    assert run.blow_up_time == pytest.approx(pole, rel=200 * rtol)
    assert f"t* = {run.blow_up_time:.10g}" in run.message


def test_the_default_solver_finds_the_pole_to_1e_8():
    # Measured 1e-9 at rtol 1e-8.
    for make, pole in POLES.values():
        assert simulate(*make(), [0.0, 2 * pole]).blow_up_time == pytest.approx(pole, rel=1e-8)


@pytest.mark.parametrize("method", ["DOP853", "RK45", "BDF", "LSODA"])
def test_outputs_before_the_pole_are_kept_and_none_is_made_up_after_it(method):
    # Sigma = 1 / (1 - 2t), alpha = e^t (1 - 2t)^{-1/2}.
    run = simulate(*scalar_softmax(), [0.0, 0.25, 0.49, 0.6, 1.0], scheme=Adaptive(method))
    assert run.times.tolist() == [0.0, 0.25, 0.49]
    variances, means = run.observe(lambda law: law.covariance[0, 0]), run.observe(lambda law: law.mean[0])
    # The error in t* of 1e-6 or less, magnified by the slope 2 Sigma at Sigma = 50.
    np.testing.assert_allclose(variances, [1, 2, 50], rtol=1e-4)
    np.testing.assert_allclose(means, [1, 1.8158861587, 11.5422186817], rtol=1e-4)
    assert run.outcome is Outcome.BLEW_UP
    assert run.blow_up_time == pytest.approx(0.5, abs=1e-6)
    assert run.statistics.evaluations <= 20_000
    assert 0.49 < run.last.time < 0.5 + 1e-6
    assert np.isfinite(run.last.state.covariance).all()


def test_no_pole_of_100_random_laws_is_missed_and_none_is_off():
    rng = np.random.default_rng(0)
    for k in range(100):
        d = 1 + k % 3
        A, W = rng.standard_normal((d, d)), rng.standard_normal((d, d))
        law = Gaussian(rng.standard_normal(d), W @ W.T + 0.01 * np.eye(d))
        rate = np.linalg.eigvals(law.covariance @ (A + A.T)).real.max()
        # Scaled to a pole at 1, or to none at all: T* = 1 / lambda_max(Sigma0 (A + A^T)).
        field = SoftmaxAttention(Head(A / abs(rate), np.eye(d), np.eye(d)))
        run = simulate(field, law, [0.0, 2.0], scheme=Adaptive(rtol=1e-5, atol=1e-8))
        if rate > 0:
            assert run.outcome is Outcome.BLEW_UP
            assert run.blow_up_time == pytest.approx(1, abs=1e-4)
        else:
            assert run.outcome is Outcome.FINISHED


def global_law(rng):
    """A random field and law of which it is proved that they never blow up [S4, S9, S10]."""
    d = int(rng.integers(1, 4))
    Q, K, V, W = rng.standard_normal((4, d, d))
    law = Gaussian(rng.standard_normal(d), W @ W.T)
    kind = rng.integers(4)
    if kind == 0:
        return SoftmaxAttention(Head(Q, -Q, np.eye(d))), law
    if kind == 1:
        return SoftmaxAttention(Head(Q, -Q, V @ V.T + 0.1 * np.eye(d))), law
    if kind == 2:
        return SinkhornAttention(Head(Q, K, V)), law
    return L2Attention(Head(Q, K + 2 * np.eye(d), V)), law


def test_none_of_200_random_laws_that_exist_for_ever_is_called_a_blow_up():
    rng = np.random.default_rng(1)
    outcomes = [
        simulate(*global_law(rng), [0.0, 4.0], scheme=Adaptive(rtol=1e-4, atol=1e-6), max_evaluations=1000).outcome
        for _ in range(200)
    ]
    assert set(outcomes) <= {Outcome.FINISHED, Outcome.LIMIT}
    # A limit says nothing about poles, so most runs must have met none.
    assert outcomes.count(Outcome.FINISHED) >= 180


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("method", ["DOP853", "LSODA", "Radau"])
def test_growth_is_not_a_pole(method, name):
    run = simulate(GROWING[name], Measure([[1.0], [0.3]]), [0.0, 2.0], scheme=Adaptive(method, rtol=1e-6))
    assert run.outcome is Outcome.FINISHED


def test_growth_to_1e43_is_not_a_pole():
    run = simulate(SoftmaxAttention(Head.identity(1)), Measure([[1.0]]), [0.0, 99.0])
    assert run.outcome is Outcome.FINISHED
    assert run[-1].points[0, 0] == pytest.approx(np.exp(99), rel=1e-5)
    assert run[-1].points[0, 0] > 1e42


def test_a_late_clock_costs_and_finds_the_same():
    early = simulate(*scalar_softmax(), [0.0, 0.25, 1.0])
    late = simulate(*scalar_softmax(), 1e9 + np.array([0.0, 0.25, 1.0]))
    assert late.statistics.evaluations == early.statistics.evaluations
    # The spacing of doubles at 1e9 is 1.2e-7.
    assert late.blow_up_time - 1e9 == pytest.approx(early.blow_up_time, abs=1.2e-7)
    np.testing.assert_array_equal(late.arrays, early.arrays)
    assert late.times.tolist() == [1e9, 1e9 + 0.25]


def test_a_run_that_ends_short_of_the_pole_is_finished():
    run = simulate(*scalar_softmax(), [0.0, 0.5 - 1e-7])
    assert run.outcome is Outcome.FINISHED
    assert run.blow_up_time is None


def test_tokens_never_blow_up_where_their_gaussian_limit_does():
    field, law = scalar_softmax()
    start = law.sample(50, np.random.default_rng(2))
    assert simulate(field, start, [0.0, 1.0]).outcome is Outcome.FINISHED


def test_the_watch_forgets_its_history_when_the_state_shrinks():
    watch = PoleWatch()
    for k in range(30):
        gap = 4.0**-k
        watch.step(1 - gap, np.array([1 / gap]), np.array([1 / gap**2]))
    assert watch.confirmed
    assert watch.estimate() == pytest.approx(1, abs=1e-12)
    watch.step(1.0, np.array([1.0]), np.array([-1.0]))
    assert not watch.confirmed


@pytest.mark.parametrize("covariance", [np.zeros((2, 2)), np.diag([0.0, 1.0])], ids=["point", "spread beside it"])
def test_a_mean_that_blows_up_alone_is_a_blow_up_too(covariance):
    # Linear attention with A = diag(1, 0): m' = (m_1^2 + S_11) m_1, and S_11 = 0 stays zero, so t* = 1 / 2 [S12].
    field = LinearAttention(Head(np.diag([1.0, 0.0]), np.eye(2), np.eye(2)))
    law = Gaussian([1.0, 0.0], covariance)
    run = simulate(field, law, [0.0, 0.25, 1.0])
    assert run.outcome is Outcome.BLEW_UP
    assert run.blow_up_time == pytest.approx(0.5, rel=1e-7)
    assert run[-1].mean[0] == pytest.approx(np.sqrt(2), rel=1e-7)
    many = simulate_ensemble(field, [law.mean], [law.covariance], [0.0, 0.25, 1.0])
    assert many.blow_up_times[0] == pytest.approx(0.5, rel=1e-7)


def test_a_rate_that_goes_to_infinity_at_a_finite_state_is_no_pole():
    # x' = 1 / (1 - x) from 0: x = 1 - (1 - 2t)^{1/2} ends at x = 1, t = 1/2, and goes nowhere from there.
    run = simulate(lambda t, x, mu: 1 / (1 - x), Measure([[0.0]]), [0.0, 0.25, 1.0])
    assert run.outcome is Outcome.STALLED
    np.testing.assert_array_equal(run.times, [0.0, 0.25])
    assert run.last.time == pytest.approx(0.5, rel=1e-6)
