"""Head and Schedule: the conventions A = scale K^T Q and G = scale K^T K, and what does not fit."""

import numpy as np
import pytest

from meanfield.parameters import Head, Schedule


def draw(seed, k=2, d=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, d)), rng.standard_normal((k, d)), rng.standard_normal((d, d))


def test_the_logit_is_scale_times_query_times_key_and_x_a_transposed_y():
    Q, K, V = draw(0)
    head = Head(Q, K, V, scale=0.3)
    x, y = np.random.default_rng(1).standard_normal((2, 3))
    assert x @ head.A.T @ y == pytest.approx(0.3 * (Q @ x) @ (K @ y), abs=1e-14)
    assert x @ head.G @ y == pytest.approx(0.3 * (K @ x) @ (K @ y), abs=1e-14)


def test_nothing_is_divided_by_the_root_of_the_width():
    assert Head(np.eye(4), np.eye(4), np.eye(4)).A.tolist() == np.eye(4).tolist()


def test_the_identity_head_has_the_inverse_temperature_as_scale():
    head = Head.identity(2, 3.0)
    assert head.A.tolist() == (3 * np.eye(2)).tolist()
    assert head.value.tolist() == np.eye(2).tolist()
    assert head.dimension == 2


def test_what_is_computed_once_cannot_be_changed_either():
    head = Head.identity(2)
    for product in (head.A, head.G):
        with pytest.raises(ValueError, match="read-only"):
            product[0, 0] = 5


def test_matrices_are_read_only_copies():
    Q, K, V = draw(2)
    head = Head(Q, K, V)
    Q[0, 0] = 99.0
    assert head.query[0, 0] != 99.0
    with pytest.raises(ValueError, match="read-only"):
        head.value[0, 0] = 1.0


@pytest.mark.parametrize(
    ("query", "key", "value", "found"),
    [
        (np.ones((2, 3)), np.ones((1, 3)), np.eye(3), r"key must be a matrix of shape \(2, 3\); got shape \(1, 3\)"),
        (np.ones((2, 3)), np.ones((2, 2)), np.eye(3), r"key must be a matrix of shape \(2, 3\); got shape \(2, 2\)"),
        (np.ones((2, 3)), np.ones((2, 3)), np.eye(2), r"value must be a matrix of shape \(3, 3\); got shape \(2, 2\)"),
        (1.0, 1.0, 1.0, r"query must be a matrix.*In one dimension write \[\[a\]\]"),
        (np.ones(3), np.ones(3), np.eye(3), r"query must be a matrix of shape \(any, any\); got shape \(3,\)"),
        ([[np.nan]], [[1.0]], [[1.0]], "query must be finite"),
        ([[1.0]], [["k"]], [[1.0]], "key must be an array of real numbers"),
    ],
)
def test_matrices_that_do_not_fit_are_named(query, key, value, found):
    with pytest.raises(ValueError, match=found):
        Head(query, key, value)


@pytest.mark.parametrize("scale", [np.nan, np.inf, "hot"])
def test_a_scale_that_is_no_number_is_refused(scale):
    with pytest.raises(ValueError, match="scale must be"):
        Head.identity(1, scale)


@pytest.mark.parametrize("d", [0, 1.5])
def test_an_identity_head_needs_a_dimension(d):
    with pytest.raises(ValueError, match="d must be"):
        Head.identity(d)


def test_heads_may_be_batched_for_ensembles():
    rng = np.random.default_rng(3)
    Q, K, V = rng.standard_normal((5, 2, 3)), rng.standard_normal((5, 2, 3)), rng.standard_normal((5, 3, 3))
    head = Head(Q, K, V, scale=2.0)
    assert head.A[3] == pytest.approx(2 * K[3].T @ Q[3], abs=1e-14)
    assert head.dimension == 3


def test_a_head_is_the_same_at_all_times_and_a_schedule_is_not():
    head = Head.identity(2)
    assert head.at(7.0) is head
    schedule = Schedule(lambda t: Head.identity(1, 1 + t))
    assert schedule.at(0.5).scale == 1.5


def test_a_schedule_must_return_a_head():
    with pytest.raises(ValueError, match=r"a Schedule must return a Head; at t = 2 it returned ndarray"):
        Schedule(lambda t: np.eye(2)).at(2.0)


def test_a_schedule_must_be_callable():
    with pytest.raises(ValueError, match="of_time must be callable, t -> Head; got Head"):
        Schedule(Head.identity(1))
