"""The experiment on stability: every case has its bound above its ratio, and what is shown is there."""

import numpy as np
import pytest

from experiments import stability


def test_cases_hold_every_variant_in_both_spaces_near_and_far():
    cases = stability.cases(True)
    variants = {case["variant"] for case in cases}
    assert {"softmax", "sinkhorn", "masked", "multihead"} <= variants
    assert len(cases) == len(variants) * 2 * 2
    assert {case["near"] for case in cases} == {True, False}


@pytest.mark.parametrize("variant", ["softmax", "masked", "multihead", "linear"])
@pytest.mark.parametrize("space", ["plane", "circle"])
def test_the_bound_is_above_the_measured_growth(variant, space):
    for replica, near in ((0, True), (1, False)):
        case = {"n": 4, "horizon": 0.4, "outputs": 5, "variant": variant, "space": space, "replica": replica}
        found = stability.run(case | {"near": near}, np.random.default_rng(replica))
        assert found["finished"]
        assert found["ratios"][0] == 1.0
        assert (np.log(found["ratios"]) <= found["log_bound"] + 1e-9).all()
        # the trapezoidal rule on four steps of 0.1
        assert (found["ratios"] <= found["gronwall"] * 1.01).all()
        shown = variant in stability.SHOWN and replica == 0
        assert ("local_estimate" in found) == shown


def test_the_head_has_norms_one():
    head = stability.head(np.random.default_rng(0))
    assert np.linalg.norm(head.A, 2) == pytest.approx(1.0)
    assert np.linalg.norm(head.value, 2) == pytest.approx(1.0)
