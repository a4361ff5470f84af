"""The maps of blow-up and the random laws that proofs and simulations are compared on."""

import numpy as np
import pytest

from experiments import blow_up_map
from experiments.blow_up_map import BLEW_UP, FINISHED, contradicted, random_parameters, run
from meanfield.verdict import Verdict

INF = np.inf
MAP = {"part": "map", "field": "softmax", "horizon": 6.0, "evaluations": 3_000}


def test_the_comparison_covers_five_thousand_laws_and_two_hundred_when_quick():
    for quick, least in ((True, 200), (False, 5_000)):
        assert sum(case.get("count", 0) for case in blow_up_map.cases(quick)) >= least


@pytest.mark.parametrize(
    ("bounds", "blow_up", "last", "wrong"),
    [
        ((2.0, 2.0), 2.0 + 1e-7, 2.0, False),
        ((2.0, 2.0), 2.0 + 1e-5, 2.0, True),
        ((1.0, 3.0), 0.9, 0.9, True),
        ((1.0, 3.0), INF, 2.9, False),
        ((1.0, 3.0), INF, 3.1, True),
        ((INF, INF), 5.0, 5.0, True),
        ((INF, INF), INF, 30.0, False),
        ((1.0, INF), INF, 30.0, False),
        ((1.0, INF), 0.5, 0.5, True),
    ],
)
def test_a_pole_outside_the_bounds_or_none_after_them_contradicts(bounds, blow_up, last, wrong):
    assert contradicted(np.array([bounds]), np.array([blow_up]), np.array([last])).tolist() == [wrong]


@pytest.mark.parametrize("kind", blow_up_map.KINDS)
def test_each_kind_has_the_form_it_is_named_after(kind):
    head, _, covariances = random_parameters(kind, 8, np.random.default_rng(1))
    Q, K, V, A = head.query, head.key, head.value, head.A
    small = 1e-12 * np.abs(V).max()
    if kind == "scalar":
        np.testing.assert_array_equal(np.abs(V), np.broadcast_to(np.eye(2), V.shape))
    elif kind == "definite":
        assert (np.linalg.eigvalsh(V) > 0).all()
        values = np.linalg.eigvalsh(A + np.swapaxes(A, 1, 2))
        assert (values[:, 0] * values[:, 1] > 0).all()
    elif kind == "tied":
        assert Q.shape == (8, 1, 2)
        assert ((Q * K).sum(-1) < 0).all()
        np.testing.assert_allclose(np.linalg.det(np.concatenate([Q, K], axis=1)), 0, atol=1e-12 * np.abs(K).max())
    elif kind == "one row":
        np.testing.assert_allclose(K @ V, 0, atol=small)
        np.testing.assert_allclose(np.linalg.det(np.concatenate([Q @ V, Q], axis=1)), 0, atol=small * np.abs(Q).max())
    elif kind == "rank one":
        moved = V @ covariances
        own = np.trace(moved, axis1=1, axis2=2) / np.trace(covariances, axis1=1, axis2=2)
        np.testing.assert_allclose(moved, own[:, None, None] * covariances, atol=small * np.abs(moved).max())


@pytest.mark.parametrize(("kind", "field"), [("scalar", "softmax"), ("definite", "linear"), ("tied", "l2")])
def test_random_laws_of_a_kind_contradict_nothing(kind, field):
    case = {"part": "random", "kind": kind, "field": field, "count": 6, "horizon": 10.0, "evaluations": 3_000}
    arrays = run(case, np.random.default_rng(2))
    assert not arrays["contradicted"].any()
    assert (arrays["proved"] >= 0).all()
    # In units of the earliest blow-up time nothing blows up before one.
    assert (arrays["blow_up_times"] > 1 - 1e-6).all()


def test_a_false_claim_is_counted_as_a_contradiction(monkeypatch):
    claim = Verdict("blow-up", False, None, {"time_bounds": (INF, INF)})
    monkeypatch.setattr(blow_up_map, "predict", lambda field, law: claim)
    case = MAP | {"plane": "tilted, expanding", "grid": 2}
    assert run(case, None)["contradicted"].all()


def test_the_plane_reaches_the_identity_where_the_pole_is_known():
    case = MAP | {"plane": "tilted, contracting", "grid": 3}
    arrays = run(case, None)
    # Row r = 1 is V = I and A contracts: global. In row r = -1, angle 0, V = diag(1, -1).
    outcomes, proved = arrays["outcomes"].reshape(3, 3), arrays["proved"].reshape(3, 3)
    assert (outcomes[2] == FINISHED).all()
    assert (proved[2] == 0).all()
    assert (outcomes[0] == BLEW_UP).all()
    assert (proved[0] == -1).all()
    case["plane"] = "tilted, expanding"
    A, S = np.array(blow_up_map.A), np.array(blow_up_map.COVARIANCE)
    pole = 1 / np.linalg.eigvals((A + A.T) @ S).real.max()
    # rtol 1e-8 gives blow-up times to 1e-6
    np.testing.assert_allclose(run(case, None)["blow_up_times"].reshape(3, 3)[2], pole, rtol=1e-6)
