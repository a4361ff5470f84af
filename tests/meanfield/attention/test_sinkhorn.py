"""Sinkhorn attention under the contract: marginals, huge logits, singular laws, named limits, no hidden state."""

import numpy as np
import pytest

from meanfield import Gaussian, Head, MaskedAttention, Measure, MultiHeadAttention, SinkhornAttention, SoftmaxAttention
from meanfield.summation.balancing import NotConvergedError
from tests import oracles
from tests.contracts.attention import (
    UnmaskedContract,
    close_to,
    formulas,
    loops,
    random_head,
    random_tokens,
)
from tests.contracts.gaussian import GaussianContract


class TestSinkhorn(UnmaskedContract, GaussianContract):
    oracle_matrix = loops(oracles.sinkhorn_matrix)
    gaussian_oracle = formulas(oracles.sinkhorn_gaussian)
    sample_size = 500

    def field(self, head):
        return SinkhornAttention(head, tolerance=1e-13)

    def test_the_mean_of_finitely_many_tokens_moves_by_the_values_alone(self):
        head, (tokens, weights) = random_head(60), random_tokens(60)
        mu = Measure(tokens, weights)
        assert weights @ self.field(head)(0.0, tokens, mu) == close_to(head.value @ mu.mean)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_both_marginals_of_the_matrix_are_the_weights_to_the_tolerance(symmetric, seed):
    head, (tokens, weights) = random_head(seed, scale=1.5), random_tokens(seed, n=25)
    if symmetric:
        head = Head(head.query, head.query, head.value, scale=-0.8)
    mu = Measure(tokens, weights)
    matrix = SinkhornAttention(head).matrix(0.0, mu.points, mu)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(25), abs=1e-14)
    assert weights @ matrix / weights == pytest.approx(np.ones(25), abs=2e-10)


def line(tokens, weights=None, beta=1.0, **options):
    mu = Measure(np.array(tokens)[:, None], weights)
    return SinkhornAttention(Head.identity(1, beta), **options)(0.0, mu.points, mu)[:, 0]


def test_logits_of_ten_thousand_leave_each_token_itself():
    assert line([100.0, -100.0]) == pytest.approx([100.0, -100.0], abs=1e-8)


def test_two_tokens_have_the_closed_form():
    # p = logistic((c11 + c22 - c12 - c21) / 2) = logistic(1/2), and the velocities add up to 3
    p = 1 / (1 + np.exp(-0.5))
    found = line([1.0, 2.0], tolerance=1e-13)
    assert found == pytest.approx([p + 2 * (1 - p), 1 - p + 2 * p], abs=1e-12)
    assert found == pytest.approx([1.3775406688, 1.6224593312], abs=1e-10)
    assert line([1.0, 2.0]).sum() == pytest.approx(3, abs=1e-10)


def test_two_identical_tokens_move_together():
    mu = Measure([[1.0, 2.0], [1.0, 2.0]])
    assert SinkhornAttention(Head.identity(2))(0.0, mu.points, mu) == pytest.approx(mu.points, abs=1e-9)


@pytest.mark.parametrize("beta", [10.0, 100.0])
def test_a_low_temperature_still_converges(beta):
    rng = np.random.default_rng(5)
    mu = Measure(rng.standard_normal((40, 2)))
    matrix = SinkhornAttention(Head.identity(2, beta)).matrix(0.0, mu.points, mu)
    assert matrix.sum(axis=0) == pytest.approx(np.ones(40), abs=2e-10)


def test_a_shift_of_all_tokens_belongs_to_the_potentials():
    # exact in floats; logits of 1e16 apart from the shift would be noise
    rng = np.random.default_rng(6)
    tokens = rng.integers(-8, 9, (12, 2)) / 8.0
    field = SinkhornAttention(random_head(6, d=2))
    near, far = Measure(tokens), Measure(tokens + 2.0**26)
    assert field.matrix(0.0, far.points, far) == close_to(field.matrix(0.0, near.points, near), 1e-9)


# --- limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_limit_that_is_met_is_named_with_the_miss_and_the_cure(symmetric):
    head, (tokens, weights) = random_head(7, scale=3.0), random_tokens(7, n=20)
    if symmetric:
        head = Head(head.query, head.query, head.value)
    mu = Measure(tokens, weights)
    with pytest.raises(NotConvergedError, match=r"missed its marginals by .*after \d+ kernel.*Raise max_pro") as info:
        SinkhornAttention(head, max_products=4)(0.0, tokens, mu)
    assert isinstance(info.value, ArithmeticError)
    assert info.value.miss > 1e-10


def test_a_loose_tolerance_is_kept_and_a_tight_one_is_tighter():
    head, (tokens, weights) = random_head(8), random_tokens(8, n=20)
    mu = Measure(tokens, weights)
    exact = oracles.sinkhorn_matrix(tokens, tokens, weights, head.query, head.key, head.scale)
    for tolerance in (1e-3, 1e-7, 1e-11):
        matrix = SinkhornAttention(head, tolerance=tolerance).matrix(0.0, tokens, mu)
        assert np.abs(weights @ matrix / weights - 1).max() <= 2 * tolerance
        assert np.abs(matrix - exact).max() <= 10 * tolerance


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"tolerance": 0}, "tolerance must be greater than 0; got 0"),
        ({"tolerance": np.nan}, "tolerance must be finite"),
        ({"max_products": 1}, "max_products must be at least 2; got 1"),
        ({"max_products": 2.5}, "max_products must be a whole number"),
    ],
)
def test_options_out_of_bounds_are_refused(options, found):
    with pytest.raises(ValueError, match=found):
        SinkhornAttention(Head.identity(1), **options)


# --- one run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", [True, False])
def test_within_a_run_potentials_are_carried_and_answers_are_the_same(symmetric):
    head, (tokens, weights) = random_head(9), random_tokens(9, n=20)
    if symmetric:
        head = Head(head.query, head.query, head.value)
    field = SinkhornAttention(head, tolerance=1e-12)
    warm, mu = field.for_run(), Measure(tokens, weights)
    for k in range(5):
        law = mu.moved_to(tokens * (1 + 0.01 * k))
        assert warm(0.0, law.points, law) == close_to(field(0.0, law.points, law), 1e-10)


def test_a_run_may_pass_to_a_cloud_of_another_size():
    field = SinkhornAttention(Head.identity(3))
    warm = field.for_run()
    for n in (5, 8, 3):
        tokens, weights = random_tokens(n, n=n)
        mu = Measure(tokens, weights)
        assert warm(0.0, tokens, mu) == close_to(field(0.0, tokens, mu), 1e-8)


def test_the_field_itself_remembers_nothing():
    head, (tokens, weights) = random_head(10), random_tokens(10)
    field, mu = SinkhornAttention(head), Measure(tokens, weights)
    first = field(0.0, tokens, mu)
    field(0.0, tokens * 2, mu.moved_to(tokens * 2))
    field.for_run()(0.0, tokens * 3, mu.moved_to(tokens * 3))
    assert np.array_equal(field(0.0, tokens, mu), first)


def test_a_start_close_to_the_answer_costs_fewer_products():
    head, (tokens, weights) = random_head(11), random_tokens(11, n=20)
    mu = Measure(tokens, weights)
    potential = SinkhornAttention(head).potential(0.0, mu)
    short = SinkhornAttention(head, max_products=2)
    assert short.potential(0.0, mu, start=potential) == close_to(potential, 1e-9)
    with pytest.raises(NotConvergedError, match="after 2 kernel products"):
        short.potential(0.0, mu)


def test_within_a_run_several_heads_carry_their_own_potentials():
    tokens, weights = random_tokens(12)
    field = MultiHeadAttention((SinkhornAttention(random_head(12)), SoftmaxAttention(random_head(13))))
    warm, mu = field.for_run(), Measure(tokens, weights)
    for k in range(3):
        law = mu.moved_to(tokens * (1 + 0.1 * k))
        assert warm(0.0, law.points, law) == close_to(field(0.0, law.points, law), 1e-8)


# --- masks and Gaussians ----------------------------------------------------------------------------


def test_a_mask_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"does not take SinkhornAttention.*identity.*see only itself"):
        MaskedAttention(SinkhornAttention(Head.identity(2)))


def test_a_doubly_stochastic_causal_matrix_is_the_identity_indeed():
    # the reason of the refusal, by plain alternating normalisation of a lower triangular kernel
    kernel = np.tril(np.exp(np.random.default_rng(14).standard_normal((4, 4))))
    for _ in range(20_000):
        kernel /= kernel.sum(axis=1, keepdims=True)
        kernel /= kernel.sum(axis=0, keepdims=True)
    assert np.abs(kernel - np.eye(4)).max() < 1e-3


@pytest.mark.parametrize("law", ["regular", "singular"])
def test_singular_logits_have_the_covariance_of_the_discrete_balancing(law):
    # the published closed form, with pinv(A^T), is wrong here; a quadrature cloud is balanced by plain matrix sweeps
    head = Head([[1.0, 0.5]], [[0.7, -0.4]], [[1.0, 0.3], [-0.2, 0.8]])
    root = np.array([[0.8, 0.0], [0.2, 0.6]]) if law == "regular" else np.array([[0.8], [0.5]])
    S, mean = root @ root.T, np.array([0.3, -0.1])
    points, weights = oracles.gaussian_cloud(mean, S, nodes=24)
    kernel = np.exp((points - mean) @ head.A.T @ (points - mean).T)
    g = np.ones(len(points))
    for _ in range(60):
        f = 1 / (kernel @ (weights * g))
        g = 1 / (kernel.T @ (weights * f))
    coupling = (weights * f)[:, None] * kernel * (weights * g)
    C = (points - mean).T @ coupling @ (points - mean)
    B = SinkhornAttention(head).on_gaussian(0.0, Gaussian(mean, S)).matrix
    growth, balanced = B @ S + S @ B.T, C @ head.value.T + head.value @ C.T
    assert growth == pytest.approx(balanced, abs=1e-10)
    wanted = oracles.sinkhorn_gaussian(mean, S, head.query, head.key, head.value, head.scale)[1]
    assert balanced == pytest.approx(wanted, abs=1e-10)


def test_huge_logits_on_a_gaussian_neither_overflow_nor_lose_the_plan():
    # as the scale grows the coupling becomes the identity: x -> V x
    map_ = SinkhornAttention(Head.identity(2, 1e200)).on_gaussian(0.0, Gaussian([1, 2], [[1.0, 0.2], [0.2, 0.5]]))
    assert map_.matrix == close_to(np.eye(2), 1e-14)
    assert map_.offset == close_to([0.0, 0.0], 1e-14)


def test_a_small_covariance_moves_as_under_softmax():
    head, S = random_head(15, d=2), 1e-6 * np.array([[1.0, 0.3], [0.3, 0.5]])
    _, softmax = oracles.softmax_gaussian(np.zeros(2), S, head.query, head.key, head.value, head.scale)
    B = SinkhornAttention(head).on_gaussian(0.0, Gaussian([0, 0], S)).matrix
    # the correction is of relative size |A S|^2
    growth = B @ S + S @ B.T
    assert growth == pytest.approx(softmax, rel=1e-9, abs=1e-20)


@pytest.mark.filterwarnings("error")
def test_logits_beyond_the_tolerance_s_round_off_are_balanced_to_their_own():
    # At |q| |k| = 1e6 a logit is known to 1e-10 only, which no iteration can undercut.
    tokens = np.random.default_rng(1).standard_normal((40, 2))
    field, mu = SinkhornAttention(Head(1e5 * np.eye(2), np.eye(2), np.eye(2))), Measure(tokens)
    assert field.matrix(0.0, tokens, mu).sum(axis=0) == pytest.approx(np.ones(40), abs=1e-8)


def test_a_hopeless_miss_is_an_error_and_no_overflow():
    tokens = np.random.default_rng(1).standard_normal((40, 2))
    field = SinkhornAttention(Head(-1e5 * np.eye(2), np.eye(2), np.eye(2)), max_products=20)
    with np.errstate(over="raise"), pytest.raises(NotConvergedError, match="missed its marginals by"):
        field(0.0, tokens, Measure(tokens))


@pytest.mark.parametrize("kind", ["repelling", "turning", "random"])
@pytest.mark.parametrize("size", [1e2, 1e4])
def test_large_logits_of_any_head_are_balanced_by_annealing(kind, size):
    # Kernels without a heavy diagonal: at 1e4 almost an assignment problem, where plain sweeps crawl.
    rng = np.random.default_rng(4)
    A = {"repelling": -np.eye(2), "turning": [[0.0, 1.0], [-1.0, 0.0]], "random": rng.standard_normal((2, 2))}[kind]
    tokens, weights = 3 + rng.standard_normal((12, 2)), rng.dirichlet(np.ones(12))
    mu = Measure(tokens, weights)
    P = SinkhornAttention(Head(size * np.array(A), np.eye(2), np.eye(2))).matrix(0.0, tokens, mu)
    assert P.sum(axis=1) == pytest.approx(np.ones(12), abs=1e-12)
    # The tolerance, or the round-off of logits up to 2e5.
    assert weights @ P == pytest.approx(weights, rel=1e-9)


@pytest.mark.parametrize("size", [30.0, 1e5])
def test_annealed_pairs_have_the_closed_form_of_two_tokens(size):
    x = np.array([[0.3, -0.2], [-0.7, 0.4]])
    A = size * np.array([[0.2, 1.0], [-1.0, -0.3]])
    logits = x @ A.T @ x.T
    p = 1 / (1 + np.exp(-(logits[0, 0] + logits[1, 1] - logits[0, 1] - logits[1, 0]) / 2))
    P = SinkhornAttention(Head(A, np.eye(2), np.eye(2))).matrix(0.0, x, Measure(x))
    assert pytest.approx(np.array([[p, 1 - p], [1 - p, p]]), abs=1e-9) == P


def test_annealing_may_not_be_afforded_and_then_says_so(monkeypatch):
    monkeypatch.setattr("meanfield.summation.balancing.NEWTON_PAIRS", 0)
    tokens = np.random.default_rng(4).standard_normal((12, 2))
    with pytest.raises(NotConvergedError, match="after 600 kernel products"):
        SinkhornAttention(Head(-1e3 * np.eye(2), np.eye(2), np.eye(2)), max_products=600)(0.0, tokens, Measure(tokens))


@pytest.mark.parametrize("seed", range(4))
def test_the_columns_of_a_symmetric_kernel_keep_the_tolerance_too(seed):
    # Rows are exact in the matrix; what they were off by is then off in the columns as well.
    tokens = np.random.default_rng(seed).standard_normal((40, 2))
    field = SinkhornAttention(Head(-10 * np.eye(2), np.eye(2), np.eye(2)), tolerance=1e-8)
    miss = np.abs(field.matrix(0.0, tokens, Measure(tokens)).sum(axis=0) - 1).max()
    assert miss <= 1.01e-8


@pytest.mark.parametrize("n", [3, 4])
def test_what_is_called_balanced_is_balanced_however_the_iteration_ran(n):
    # Accelerated potentials may run away to where no digit is left, and then look as if they stood still.
    rng = np.random.default_rng(n)
    for _ in range(30):
        tokens = rng.standard_normal((n, 2))
        field = SinkhornAttention(Head(1e4 * rng.standard_normal((2, 2)), np.eye(2), np.eye(2)))
        P = field.matrix(0.0, tokens, Measure(tokens))
        # The round-off of logits up to 5e5, twice.
        assert P.sum(axis=0) == pytest.approx(np.ones(n), abs=4e-9)
