"""The published pictures: closed forms, known numbers, and where the published code differs from its titles."""

import numpy as np
import pytest

import meanfield as mf
from experiments.gaussian_covariances import DRAWS, cases, poles, run
from experiments.published import CONVERGED, DIVERGED, rate_of
from experiments.stopped_flow import field_of, stopped_flow
from meanfield.gaussian.closed_forms import tied_limit


def case(picture, variant, heads=1, **changes):
    wanted = picture, variant, heads
    found = next(c for c in cases(True) if (c["picture"], c["variant"], c["heads"]) == wanted)
    return found | changes


def test_softmax_blows_up_when_the_closed_form_says():
    arrays = run(case("blow_up", "softmax", points=5), None)
    np.testing.assert_allclose(np.sqrt(2) * arrays["twice"], [[0.49235, 1.0815], [1.0815, 3.69625]], atol=5e-6)
    assert arrays["centre_blow_up_time"] == pytest.approx(0.70234, abs=5e-6)
    assert (arrays["exact_status"] == DIVERGED).all()
    assert np.isfinite(arrays["blow_up_times"]).all()
    # Tolerance of the steps times the growth of errors on the way to the pole.
    assert arrays["closed_form"] < 1e-5


def test_l2_and_sinkhorn_grow_past_the_same_trace_without_a_pole():
    for variant in ("l2", "sinkhorn"):
        query, key, value = DRAWS["blow_up"]()
        field = field_of(variant, query, key, value)
        flow = stopped_flow(field, np.eye(2)[None] / 2, low=1e-5, high=1e4, end=100.0)
        assert flow.status[0] == DIVERGED
        assert np.isinf(poles(field, flow)).all()


def test_the_line_is_the_kernel_of_the_row():
    query, key, value = DRAWS["line"]()
    n = np.array([-query[0, 1], query[0, 0]])
    limit = tied_limit(mf.Head(query, key, value), mf.Gaussian(np.zeros(2), np.eye(2) / 2))
    np.testing.assert_allclose(limit, np.outer(n, n) / 2, atol=1e-12)
    for variant in ("softmax", "l2"):
        arrays = run(case("line", variant), None)
        assert (arrays["published_status"] == CONVERGED).all()
        assert (arrays["exact_status"] == CONVERGED).all()
        # |dS/dt| = c / t^2 = 1e-4 leaves c / t = sqrt(1e-4 c) to go.
        assert arrays["to_limit"] < 2e-2
    assert run(case("line", "softmax"), None)["closed_form"] < 1e-5


def test_a_plane_of_equilibria_belongs_to_a_head_without_a_row():
    arrays = run(case("plane", "multihead", 2), None)
    query = DRAWS["plane"]()[0]
    ends = arrays["exact"][:, -1].astype(float)
    assert (arrays["exact_status"] == CONVERGED).all()
    assert np.abs((ends @ query[0])[:, 0]).max() < 0.02
    assert np.abs((ends @ query[0])[:, 1]).max() > 0.1


def test_published_l2_runs_to_zero_start_where_the_softmax_run_left_the_grid():
    arrays = run(case("zero", "l2", iterations=3), None)
    query, key, value = DRAWS["zero"]()
    starts = arrays["starts"].transpose(1, 2, 0)
    slope = rate_of("softmax", query, key, value)(starts)
    np.testing.assert_allclose(arrays["published"][:, 0], (starts + 0.3 * slope).transpose(2, 0, 1), atol=1e-6)
    np.testing.assert_allclose(arrays["exact"][:, 0], arrays["starts"], atol=1e-6)


def test_the_start_decides_between_convergence_and_blow_up():
    query, key, value = DRAWS["both"]()
    field = field_of("softmax", query, key, value)
    near_corner = np.array([[0.07, 0.18], [0.18, 0.93]])
    flow = stopped_flow(field, np.stack([np.eye(2) / 2, near_corner]), low=1e-4, high=1e3, end=150.0)
    assert list(flow.status) == [CONVERGED, DIVERGED]
    assert list(np.isfinite(poles(field, flow))) == [False, True]


def test_one_published_head_is_softmax_and_two_are_not():
    start = np.array([[[0.6, 0.1], [0.1, 0.4]]])
    rates = [field_of("multihead", *DRAWS["both"](), heads) for heads in (1, 2)]
    softmax = field_of("softmax", *DRAWS["both"]())
    ends = [stopped_flow(f, start, low=1e-9, high=1e3, end=1.0).final for f in (softmax, *rates)]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-10)
    assert np.abs(ends[0] - ends[2]).max() > 0.05


def test_every_published_picture_has_its_variants():
    runs = {(c["picture"], c["variant"], c["heads"]) for c in cases(False)}
    assert len(runs) == len(cases(False)) == 17
    assert {picture for picture, *_ in runs} == set(DRAWS)
