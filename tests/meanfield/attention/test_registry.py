"""The registry of variants: each is under the contract, each is right for one token, names and options are checked."""

import importlib

import numpy as np
import pytest

from meanfield import ATTENTION, Head, MaskedAttention, Measure, MultiHeadAttention, SigmoidAttention, make_attention
from tests.contracts.attention import UnmaskedContract, random_head


@pytest.mark.parametrize("name", ATTENTION)
def test_every_registered_variant_has_a_test_class_under_the_contract(name):
    module = importlib.import_module(f"tests.meanfield.attention.test_{name}")
    cases = [case for case in vars(module).values() if isinstance(case, type) and issubclass(case, UnmaskedContract)]
    fields = {type(case().field(random_head(0))) for case in cases if case is not UnmaskedContract}
    assert ATTENTION[name] in fields


#: x = 2, Q = K = V = 1. A sum of one term of weight one: 2, 2 logistic(4), 4 * 2, 2 e^4.
ALONE = {
    "softmax": 2.0,
    "l2": 2.0,
    "sinkhorn": 2.0,
    "sigmoid": 1.9640275801,
    "linear": 8.0,
    "unnormalised": 2 * np.exp(4.0),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_one_token_has_the_velocity_of_its_own_weight(name):
    field, mu = make_attention(name, Head.identity(1)), Measure([[2.0]])
    assert field(0.0, mu.points, mu)[0, 0] == pytest.approx(ALONE[name], rel=1e-10)
    assert field.matrix(0.0, mu.points, mu)[0, 0] == pytest.approx(ALONE[name] / 2, rel=1e-10)
    assert MultiHeadAttention((field, field))(0.0, mu.points, mu)[0, 0] == pytest.approx(2 * ALONE[name], rel=1e-10)


@pytest.mark.parametrize("name", [name for name in ATTENTION if name != "sinkhorn"])
def test_one_masked_token_has_the_velocity_of_its_own_weight(name):
    field, mu = MaskedAttention(make_attention(name, Head.identity(1))), Measure.positioned([0.0], [[2.0]])
    assert field(0.0, mu.points, mu)[0] == pytest.approx([0.0, ALONE[name]], rel=1e-10)


def test_options_reach_the_variant():
    field = make_attention("sigmoid", Head.identity(1), bias=-1.0)
    assert isinstance(field, SigmoidAttention)
    assert field.bias == -1.0
    assert make_attention("sinkhorn", Head.identity(1), tolerance=1e-6).tolerance == 1e-6


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(ValueError, match=r"attention must be one of softmax, l2, sinkhorn, .*; got 'hardmax'"):
        make_attention("hardmax", Head.identity(1))


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("softmax", {"bias": 1.0}, "no option bias; its options are accuracy, summation"),
        ("sinkhorn", {"tol": 1.0}, "no option tol; its options are accuracy, max_products, summation, tolerance"),
        ("sigmoid", {"kernel": np.exp}, "no option kernel; its options are accuracy, bias, summation"),
    ],
)
def test_an_unknown_option_lists_what_there_is(name, options, found):
    with pytest.raises(ValueError, match=found):
        make_attention(name, Head.identity(1), **options)
