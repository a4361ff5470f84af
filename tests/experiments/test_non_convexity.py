"""Non-convexity: the Dirac by hand, certificates by values alone, convex energies beside those that are not."""

import numpy as np
import pytest

from experiments import non_convexity as experiment


def searched(energy, metric="W2", draws=5, seed=4):
    case = {"kind": "search", "energy": energy, "metric": metric, "draws": draws}
    return experiment.run(case, np.random.default_rng(seed))


def test_quick_and_full_cases_search_the_same_energies():
    quick, full = ({(c["kind"], c.get("energy"), c.get("metric")) for c in experiment.cases(q)} for q in (True, False))
    assert quick == full
    assert {energy for kind, energy, _ in full if kind == "search"} == set(experiment.ENERGIES) - {"distance"}


def test_a_dirac_bends_by_x_squared_minus_one_four_ways():
    run = experiment.run({"kind": "dirac", "places": 9}, None)
    expected = run["x"] ** 2 - 1
    assert (expected < 0).any()
    np.testing.assert_allclose(run["formula"], expected, atol=1e-14)
    np.testing.assert_allclose(run["general"], expected, atol=1e-13)
    # steps of 1e-3: h^2 and round-off / h^2 are both below 1e-5
    np.testing.assert_allclose(run["differences"], expected, atol=1e-5)
    np.testing.assert_allclose(run["values"], np.exp(-(run["x"] ** 2)) / 2, rtol=1e-14)
    # the arc length by the trapezoidal rule, error h^2 = 1e-8 and less
    fine = np.linspace(0, 2, 20001)
    assert run["arc"][-1] == pytest.approx(np.trapezoid(np.exp(-(fine**2) / 2), fine), abs=1e-8)


@pytest.mark.parametrize(
    ("energy", "bends"),
    [
        ("interaction", True),
        ("log interaction", True),
        ("log normaliser", True),
        ("quadratic", False),
        ("distance", False),
    ],
)
def test_energies_between_two_gaussians_bend_down_or_not(energy, bends):
    run = experiment.run({"kind": "geodesic", "energy": energy, "points": 21}, None)
    assert (run["lowest"] < 0) == bends
    # above the chord somewhere exactly if it bends down somewhere, for these
    assert (run["chord_gap"] > 1e-9) == bends
    assert run["lowest"] == run["second"].min()


def test_the_squared_distance_has_second_derivative_one_along_commuting_gaussians():
    run = experiment.run({"kind": "geodesic", "energy": "distance", "points": 5}, None)
    np.testing.assert_allclose(run["second"], 1.0, rtol=1e-12)


@pytest.mark.parametrize("energy", ["interaction", "log interaction", "log normaliser", "sigmoid"])
def test_the_lowest_of_a_search_is_certified_by_values_alone(energy):
    run = searched(energy)
    lowest = run["tokens"].min()
    assert lowest < 0
    # differences at distance 3e-4: relative errors of about 1e-6
    assert run["certificate_tokens"] == pytest.approx(lowest, rel=1e-4)
    if len(run["gaussians"]):
        assert run["certificate_gaussians"] == pytest.approx(run["gaussians"].min(), rel=1e-4, abs=1e-6)


def test_the_quadratic_energy_of_minus_identity_is_convex_at_all_laws():
    run = searched("quadratic", draws=10)
    # E = |M|^2 / 4 with M'' = 2 E[u u^T]: a sum of squares and of traces of products of positive matrices
    assert min(run["tokens"].min(), run["gaussians"].min()) > 0


def test_the_twisted_search_bends_down_somewhere_and_not_everywhere():
    run = searched("interaction", metric="twisted", draws=12)
    assert run["tokens"].min() < 0 < run["tokens"].max()
    assert len(run["gaussians"]) == 0
    assert np.isnan(run["certificate_tokens"])
    assert np.isnan(run["certificate_gaussians"])
