"""The experiment on mean-field limits: the rate of sampling, the pole, and what each case is compared with."""

import numpy as np
import pytest

from experiments import mean_field_limit

SMALL = {"d": 1, "sizes": [8, 32], "seeds": 4, "reference": 200}


def run(**case):
    return mean_field_limit.run(SMALL | case, np.random.default_rng(0))


@pytest.mark.parametrize("variant", ["softmax", "masked", "multihead", "linear"])
def test_a_compact_start_keeps_its_slope(variant):
    found = run(kind="compact", variant=variant)
    assert found["times"].tolist() == [0.0, 1.0]
    assert found["rate"] == -0.5
    assert abs(found["slope"][1] - found["slope"][0]) < 0.15
    assert (found["low"] <= found["mean"]).all()
    assert (found["mean"] <= found["high"]).all()


def test_normal_starts_are_compared_with_the_gaussian_or_its_quantiles():
    for variant in ("softmax", "sigmoid"):
        _, reference = mean_field_limit.start_of(SMALL | {"kind": "normal", "variant": variant})
        if variant == "softmax":
            assert reference is None
        else:
            assert reference.mean == pytest.approx([mean_field_limit.MEAN])
            # the tails beyond the outermost of 200 quantiles carry a few per cent of the variance
            assert reference.covariance[0, 0] == pytest.approx(mean_field_limit.VARIANCE, rel=0.03)


def test_the_rate_is_lost_near_the_pole_and_only_there():
    seeds = {"sizes": [8, 64], "seeds": 6}
    pole, bounded = (run(kind=kind, variant="softmax", **seeds)["slope"] for kind in ("pole", "bounded"))
    assert pole[-1] > pole[0] + 0.2
    assert abs(bounded[-1] - bounded[0]) < 0.1


def test_dimensions_have_their_rates():
    rates = [run(kind="dimension", variant="softmax", d=d, sizes=[4, 8])["rate"] for d in (2, 3, 5)]
    assert rates == [-0.5, -1 / 3, -0.2]
    kinds = [case["kind"] for case in mean_field_limit.cases(True)]
    assert kinds.count("compact") == 8
    assert kinds.count("dimension") == 3
