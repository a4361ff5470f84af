"""The clustering experiment: nested hulls, tokens at their leaders, Boolean rows, parallel hyperplanes."""

import numpy as np
import pytest

from experiments import clustering

CASES = {(case["kind"], case["d"]): case for case in clustering.cases(True)}


@pytest.fixture(scope="module")
def results():
    return {key: clustering.run(case, np.random.default_rng(5)) for key, case in CASES.items()}


@pytest.mark.parametrize("key", CASES)
def test_every_array_is_finite_and_every_row_ends_on_one_token(results, key):
    found = results[key]
    assert all(np.isfinite(array).all() for array in found.values())
    # 1 / 20 is the least largest share of a row; the gap of logits at t = 5 is of the order e^5, so 1e-6 is generous
    assert (found["largest_share"] >= 1 / 20).all()
    np.testing.assert_allclose(found["largest_share"][-1], 1.0, atol=1e-6)
    np.testing.assert_allclose(found["matrices"].sum(axis=-1), 1.0, rtol=1e-12)
    assert set(np.unique(np.round(found["matrices"][-1], 6))) == {0.0, 1.0}


@pytest.mark.parametrize("key", CASES)
def test_no_hull_leaves_the_one_before(results, key):
    # the error of z is the relative one of x, gathered over the steps of the run
    assert results[key]["hull_growth"].max() <= 20 * clustering.TOLERANCE * results[key]["diameter"]


@pytest.mark.parametrize("key", [key for key in CASES if key[0] == "polytope"])
def test_tokens_reach_the_vertices_of_their_leaders_like_e_to_the_minus_t(results, key):
    found = results[key]
    # a led token has x - x_leader constant, so the law is exact once the rows are Boolean
    assert found["decay"] == pytest.approx(1.0, abs=0.05)
    assert found["to_leader"][-1].max() <= found["diameter"] * np.exp(-5.0) * 3
    z, leaders = found["z"], found["leaders"]
    assert (leaders[leaders] == leaders).all(), "a leader follows itself"
    # vertices of the limit are where <z, v> <= |v|^2 for all tokens z with equality at the vertex itself
    v = found["vertices"]
    assert ((z[-1] @ v.T).max(axis=0) <= (v**2).sum(axis=1) * (1 + 1e-9)).all()


def test_the_hyperplane_case_ends_on_at_most_three_levels(results):
    found = results["hyperplanes", 2]
    assert 2 <= len(found["levels"]) <= 3
    assert found["rate"] == pytest.approx(1.348, abs=5e-4)
    assert found["decay"] == pytest.approx(found["rate"], rel=0.05)
    # z is the combination of the eigenvectors with these coordinates: z - c phi_1 is along phi_2
    lead, across = found["directions"].T
    rest = found["z"] - found["coordinates"][..., None] * lead
    np.testing.assert_allclose(rest[..., 0] * across[1], rest[..., 1] * across[0], atol=1e-9 * found["diameter"])


def test_a_hull_that_grows_is_seen():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    out = square.copy()
    out[3] += 0.25
    found = clustering.hulls(np.arange(1.0, 4.0), np.stack([square, out, out / 2]), np.arange(4))
    assert found["hull_growth"][0] == pytest.approx(0.25)
    assert found["hull_growth"][1] <= 0
    assert found["volumes"] == pytest.approx([1.0, 1.25, 1.25 / 4])
