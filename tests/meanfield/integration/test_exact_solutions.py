"""What is exactly true, met by the whole chain field - flow - solver to 1e-6 at the default rtol of 1e-8."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

from meanfield import (
    EULER,
    RK4,
    Adaptive,
    Gaussian,
    Head,
    L2Attention,
    LinearAttention,
    MaskedAttention,
    Measure,
    SigmoidAttention,
    SinkhornAttention,
    SoftmaxAttention,
    Sphere,
    simulate,
)
from meanfield.integration import METHODS

#: Global error of a smooth run at rtol = 1e-8: a hundred tolerances.
CLOSE = 1e-6


def random_head(rng, d, V=None):
    Q, K, W = rng.standard_normal((3, d, d))
    return Head(Q, K, W if V is None else V)


def random_law(rng, d):
    W = rng.standard_normal((d, d))
    return Gaussian(rng.standard_normal(d), W @ W.T / d + 0.1 * np.eye(d))


def symmetric_power(S, power):
    values, vectors = np.linalg.eigh(S)
    return (vectors * values**power) @ vectors.T


@pytest.mark.parametrize("seed", range(3))
def test_softmax_with_v_identity_adds_a_linear_term_to_the_precision_up_to_its_pole(seed):
    rng = np.random.default_rng(seed)
    head, law = random_head(rng, 3, np.eye(3)), random_law(rng, 3)
    pair, root = head.A + head.A.T, symmetric_power(law.covariance, 0.5)
    pole = 1 / np.linalg.eigvalsh(root @ pair @ root)[-1]
    times = pole * np.array([0.0, 0.3, 0.6, 0.9])
    run = simulate(SoftmaxAttention(head), law, times)
    for t, state in run.items():
        exact = root @ np.linalg.inv(np.eye(3) - t * root @ pair @ root) @ root
        np.testing.assert_allclose(state.covariance, exact, atol=CLOSE * np.abs(exact).max())


def test_a_singular_start_keeps_its_line_and_halves():
    # Sigma0 = u u^T, A = -I/2: Sigma(1) = Sigma0 / 2.
    u, head = np.array([3.0, 4.0]) / 5, Head(-0.5 * np.eye(2), np.eye(2), np.eye(2))
    run = simulate(SoftmaxAttention(head), Gaussian([0, 0], np.outer(u, u)), [0, 1])
    np.testing.assert_allclose(run[-1].covariance, [[0.18, 0.24], [0.24, 0.32]], atol=CLOSE)
    assert np.linalg.eigvalsh(run[-1].covariance)[0] >= -1e-12
    assert np.linalg.matrix_rank(run[-1].root) == 1


def test_a_law_that_is_a_point_stays_one_and_moves_with_e_to_the_t_v():
    V = np.array([[0.2, -1.0], [1.0, 0.1]])
    for variant in (SoftmaxAttention, L2Attention, SinkhornAttention):
        run = simulate(variant(Head(np.eye(2), np.eye(2), V)), Gaussian([1.0, 2.0], np.zeros((2, 2))), [0.0, 1.0])
        np.testing.assert_allclose(run[-1].mean, expm(V) @ [1.0, 2.0], rtol=CLOSE)
        assert run[-1].covariance.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("seed", range(2))
def test_the_mean_with_v_identity_and_symmetric_a_is_carried_by_the_same_root(seed):
    rng = np.random.default_rng(10 + seed)
    A, law = rng.standard_normal((3, 3)), random_law(rng, 3)
    A = (A + A.T) / 2
    root = symmetric_power(law.covariance, 0.5)
    M = root @ A @ root
    t = 0.4 / np.linalg.eigvalsh(M)[-1]
    exact = np.exp(t) * root @ symmetric_power(np.eye(3) - 2 * t * M, -0.5) @ np.linalg.solve(root, law.mean)
    run = simulate(SoftmaxAttention(Head(A, np.eye(3), np.eye(3))), law, [0.0, t])
    np.testing.assert_allclose(run[-1].mean, exact, atol=CLOSE * np.abs(exact).max())


@pytest.mark.parametrize(("v", "q", "k"), [(1.0, 0.8, 1.2), (-0.7, 0.8, 1.2), (1.0, -1.5, 0.5)])
def test_a_scalar_law_under_l2_attention_obeys_its_implicit_solution(v, q, k):
    # 1/s - 2 k^2 ln s = 1/s0 - 2 k^2 ln s0 - 4 v k q t [S11].
    s0, times = 0.7, np.linspace(0.0, 2.0, 5)
    run = simulate(L2Attention(Head([[q]], [[k]], [[v]])), Gaussian([0.3], [[s0]]), times)

    def left(log_s):
        return np.exp(-log_s) - 2 * k**2 * log_s

    for t, state in run.items():
        exact = np.exp(brentq(lambda r, t=t: left(r) - left(np.log(s0)) + 4 * v * k * q * t, -20, 20, xtol=1e-13))
        assert state.covariance[0, 0] == pytest.approx(exact, rel=CLOSE)


@pytest.mark.parametrize(("v", "a"), [(0.8, 1.5), (-0.8, 1.5), (0.8, -1.5)])
def test_a_scalar_law_under_sinkhorn_attention_obeys_its_implicit_solution(v, a):
    # theta - coth(theta / 2) = const + 2 |v| sgn(v a) t with theta = arcsinh(2 |a| s) [S10].
    s0, times = 0.7, np.linspace(0.0, 2.0, 5)
    run = simulate(SinkhornAttention(Head([[a]], [[1.0]], [[v]])), Gaussian([0.3], [[s0]]), times)

    def left(theta):
        return theta - 1 / np.tanh(theta / 2)

    first = left(np.arcsinh(2 * abs(a) * s0))
    for t, state in run.items():
        target = first + 2 * abs(v) * np.sign(v * a) * t
        theta = brentq(lambda x, target=target: left(x) - target, 1e-6, 60, xtol=1e-13)
        assert state.covariance[0, 0] == pytest.approx(np.sinh(theta) / (2 * abs(a)), rel=CLOSE)
        assert state.mean[0] == pytest.approx(0.3 * np.exp(v * t), rel=CLOSE)


def test_finitely_many_tokens_under_linear_attention_have_a_linear_inverse_moment():
    rng = np.random.default_rng(4)
    head, start = random_head(rng, 3, np.eye(3)), Measure(rng.standard_normal((7, 3)), rng.dirichlet(np.ones(7)))
    pair = head.A + head.A.T

    def moment(state):
        return (state.points.T * state.weights) @ state.points

    root = symmetric_power(moment(start), 0.5)
    T = 0.8 / np.linalg.eigvalsh(root @ pair @ root)[-1]
    run = simulate(LinearAttention(head), start, [0.0, T / 2, T])
    for t, state in run.items():
        exact = np.linalg.inv(np.linalg.inv(moment(start)) - t * pair)
        np.testing.assert_allclose(moment(state), exact, atol=CLOSE * np.abs(exact).max())


@pytest.mark.parametrize("scheme", [*map(Adaptive, METHODS), RK4], ids=repr)
def test_two_orthogonal_tokens_on_the_circle_close_in_like_tanh_and_stay_on_it(scheme):
    # A user's report.
    times = np.linspace(0.0, 1.0, 5)
    run = simulate(
        SoftmaxAttention(Head.identity(2, beta=0.0)),
        Measure([[1.0, 0.0], [0.0, 1.0]]),
        times,
        space=Sphere(),
        scheme=scheme,
        dt=0.01 if scheme is RK4 else None,
    )
    cosines = run.observe(lambda mu: mu.points[0] @ mu.points[1])
    np.testing.assert_allclose(cosines, np.tanh(times), atol=CLOSE)
    assert np.abs(np.linalg.norm(run.arrays, axis=2) - 1).max() < 1e-12


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention, SinkhornAttention, SigmoidAttention])
def test_tokens_stay_within_r0_e_to_the_norm_of_v_times_t(variant):
    rng = np.random.default_rng(5)
    head, start = random_head(rng, 2), Measure(rng.uniform(-2, 2, (12, 2)))
    bound = np.linalg.norm(start.points, axis=1).max() * np.exp(np.linalg.norm(head.value, 2) * np.linspace(0, 1, 6))
    run = simulate(variant(head), start, np.linspace(0, 1, 6), scheme=Adaptive(rtol=1e-6))
    radii = run.observe(lambda mu: np.linalg.norm(mu.points, axis=1).max())
    assert (radii <= bound * (1 + 1e-5)).all()


def test_the_first_masked_token_is_alone_and_moves_with_e_to_the_t_v():
    rng = np.random.default_rng(6)
    V = np.array([[0.3, -1.0], [0.8, 0.2]])
    start = Measure.positioned(np.arange(5) / 5, rng.standard_normal((5, 2)))
    times = np.linspace(0.0, 2.0, 4)
    run = simulate(MaskedAttention(SoftmaxAttention(random_head(rng, 2, V))), start, times)
    for t, state in run.items():
        np.testing.assert_allclose(state.tokens[0], expm(t * V) @ start.tokens[0], rtol=CLOSE, atol=CLOSE)
        np.testing.assert_array_equal(state.positions, start.positions)


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention, SigmoidAttention, LinearAttention])
def test_moving_the_last_token_leaves_a_run_of_the_earlier_ones_unchanged_to_the_last_bit(variant):
    rng = np.random.default_rng(7)
    tokens, field = rng.standard_normal((6, 2)), MaskedAttention(variant(random_head(rng, 2)))
    starts = [Measure.positioned(np.arange(7.0), np.vstack([tokens, last])) for last in ([5.0, -3.0], [-0.1, 8.0])]
    runs = [simulate(field, start, [0.0, 0.5], scheme=EULER, dt=0.05) for start in starts]
    np.testing.assert_array_equal(runs[1].arrays[-1, :6], runs[0].arrays[-1, :6])
    assert np.abs(runs[1].arrays[-1, 6] - runs[0].arrays[-1, 6]).max() > 1


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention])
def test_appending_a_later_token_leaves_a_run_of_the_earlier_ones_unchanged_to_the_last_bit(variant):
    rng = np.random.default_rng(8)
    tokens, field = rng.standard_normal((6, 2)), MaskedAttention(variant(random_head(rng, 2)))
    few = Measure.positioned(np.arange(6.0), tokens)
    more = Measure.positioned(np.arange(7.0), np.vstack([tokens, [5.0, -3.0]]))
    runs = [simulate(field, start, [0.0, 0.5], scheme=RK4, dt=0.05) for start in (few, more)]
    np.testing.assert_array_equal(runs[1].arrays[-1, :6], runs[0].arrays[-1])


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention, SinkhornAttention, LinearAttention])
def test_the_rank_is_constant_and_the_covariance_never_indefinite(variant):
    rng = np.random.default_rng(9)
    W = rng.standard_normal((4, 2))
    law = Gaussian(np.zeros(4), W @ W.T)
    head = Head(rng.standard_normal((4, 4)), rng.standard_normal((4, 4)), rng.standard_normal((4, 4)), scale=0.05)
    run = simulate(variant(head), law, np.linspace(0.0, 1.0, 6))
    assert len(run) == 6
    assert [state.root.shape for state in run] == [(4, 2)] * 6
    assert [np.linalg.matrix_rank(state.covariance, rtol=1e-10) for state in run] == [2] * 6
    lowest = run.observe(lambda state: np.linalg.eigvalsh(state.covariance)[0] / np.trace(state.covariance))
    # The eigenvalue solver's own round-off.
    assert lowest.min() > -1e-15


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention, SinkhornAttention])
def test_the_precision_on_the_kernel_of_q_is_invariant(variant):
    # Z spans ker Q: Z^T Sigma(t)^{-1} Z does not move, whatever V and K [S2].
    rng = np.random.default_rng(11)
    Q, law = rng.standard_normal((1, 3)), random_law(rng, 3)
    Z = np.linalg.svd(Q)[2][1:].T
    run = simulate(variant(Head(Q, rng.standard_normal((1, 3)), rng.standard_normal((3, 3)))), law, [0.0, 0.1, 0.2])
    frozen = run.observe(lambda state: Z.T @ np.linalg.solve(state.covariance, Z))
    assert np.abs(run[2].covariance - run[0].covariance).max() > 0.01
    np.testing.assert_allclose(frozen[1:], frozen[:1].repeat(2, axis=0), atol=CLOSE * np.abs(frozen).max())


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention])
def test_two_equal_tokens_stay_equal(variant):
    # A user's report.
    run = simulate(variant(Head.identity(2)), Measure([[1.0, 2.0], [1.0, 2.0]]), [0.0, 1.0])
    np.testing.assert_allclose(run[-1].points, np.e * np.array([[1.0, 2.0], [1.0, 2.0]]), rtol=1e-8)
    assert np.abs(run[-1].points[0] - run[-1].points[1]).max() <= 1e-12


@pytest.mark.parametrize("variant", [SoftmaxAttention, L2Attention, SinkhornAttention])
def test_one_token_grows_like_e_to_the_t_also_from_an_integer_start(variant):
    # A user's report.
    run = simulate(variant(Head.identity(1)), Measure(np.array([[1]])), [0, 1])
    assert run[-1].points[0, 0] == pytest.approx(np.e, rel=1e-8)
    assert run[-1].covariance.tolist() == [[0.0]]
