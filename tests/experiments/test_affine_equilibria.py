"""Fates under a feed-forward part: equilibria, zero and blow-up."""

import numpy as np
import pytest

from experiments.affine_equilibria import (
    DESTABILISING,
    STABILISING,
    border,
    first_poles,
    plane,
    precision_of,
    run,
)
from meanfield.gaussian.closed_forms import affine_fate
from meanfield.measures import Gaussian


@pytest.mark.parametrize("side", ["stabilising", "destabilising"])
def test_scalar_blow_up_times_are_those_of_the_closed_form(side):
    arrays = run({"part": "scalar", "side": side, "pushes": [0.5, 2.0], "count": 2}, None)
    expected = np.full((2, 2), np.inf)
    for i, w in enumerate(arrays["rates"]):
        for j, push in enumerate((0.5, 2.0)):
            if push > -w:
                expected[i, j] = 1 / (2 * push) if w == 0 else np.log(1 + w / push) / (2 * w)
    np.testing.assert_allclose(arrays["exact"], expected, rtol=1e-12)
    np.testing.assert_allclose(arrays["simulated"], expected, rtol=1e-6)


@pytest.mark.parametrize("drift", list(STABILISING))
def test_runs_end_on_the_equilibrium_at_the_predicted_rate(drift):
    case = {"part": "equilibrium", "drift": drift, "starts": 4, "horizon": 14.0, "outputs": 41}
    arrays = run(case, np.random.default_rng(0))
    head, W = plane(STABILISING[drift])
    S = arrays["limit"]
    moved = (W + S @ head.A) @ S
    np.testing.assert_allclose(moved + moved.T, 0, atol=1e-12)
    assert arrays["predicted"] == pytest.approx(2 * np.linalg.eigvals(W).real.min(), rel=1e-12)
    assert arrays["mismatch"] < 1e-6
    assert (arrays["distances"][:, -1] < 1e-3).all()
    # other modes, and the turns of a spiral, are still there in the middle of the run
    np.testing.assert_allclose(np.median(arrays["fitted"]), arrays["predicted"], rtol=0.1)


@pytest.mark.parametrize("drift", list(DESTABILISING))
def test_starts_below_the_threshold_vanish_and_others_blow_up_when_they_should(drift):
    arrays = run({"part": "threshold", "drift": drift, "grid": 3, "sizes": [0.05, 20.0]}, np.random.default_rng(0))
    assert arrays["disagreements"] == 0
    assert arrays["fates_apart"] < 1e-10
    assert (np.isfinite(arrays["exact"]) == (arrays["margins"] < 0)).all()
    np.testing.assert_allclose(arrays["simulated"], arrays["exact"], rtol=1e-6)


def test_first_poles_are_those_of_the_package():
    head, W = plane(DESTABILISING["spiral"])
    starts = np.array([[[2.0, 0.7], [0.7, 1.0]], [[0.1, 0.0], [0.0, 0.2]]])
    poles = first_poles(W, precision_of(head, W), starts)
    assert poles[0] == pytest.approx(affine_fate(head, W, Gaussian([0.0, 0.0], starts[0])).blow_up_time, rel=1e-10)
    assert np.isinf(poles[1])


def test_the_border_is_where_the_start_minus_the_stationary_precision_is_singular():
    precision = precision_of(*plane(DESTABILISING["symmetric"]))
    for s1, s2 in border(precision, 0.05)[::50]:
        gap = np.diag([1 / s1, 1 / s2]) - precision
        assert np.linalg.det(gap) == pytest.approx(0, abs=1e-9 * np.abs(gap).max() ** 2)
        assert np.trace(gap) > 0
