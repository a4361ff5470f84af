"""Energy dissipation: orders by refinement, round-off where there is a structure, a named hypothesis where not."""

import numpy as np
import pytest

import meanfield as mf
from experiments import energy_dissipation as experiment
from meanfield.gradient_flow.twisted import dissipation


@pytest.fixture(scope="module")
def results():
    return {case["pair"]: experiment.run(case | {"n": 6}, None) for case in experiment.cases(True)}


def test_five_attentions_qualify_and_two_pairs_do_not():
    assert {name.split()[0] for name in experiment.QUALIFY} == set(mf.ATTENTION) - {"l2"}
    assert len(experiment.FAIL) == 2
    assert len(experiment.cases(True)) == len(experiment.cases(False)) == 12


@pytest.mark.parametrize("pair", experiment.QUALIFY)
def test_residuals_of_gradient_flows_fall_with_the_order_of_the_scheme(results, pair):
    run = results[pair]
    # RK4 gives 4; where the spline's error of order 6 is larger, the slope lies in between
    assert 3.6 <= run["order"] <= 6.6
    assert run["residual"][-1] < 1e-3
    # round-off, but for the balancing of Sinkhorn, whose tolerance 1e-10 is relative to the marginals
    assert run["gap"] <= (1e-9 if pair == "sinkhorn" else 1e-13)
    assert run["monotone"]
    assert run["sign"] == (1 if pair.endswith("sphere") else -1)


@pytest.mark.parametrize("pair", experiment.FAIL)
def test_elsewhere_the_residual_stays_although_the_chain_rule_holds(results, pair):
    run = results[pair]
    assert abs(run["order"]) < 0.01
    assert run["residual"][-1] > 0.1
    assert run["gap"] > 0.1
    assert run["chain_order"] > 3.6
    assert run["chain_residual"][-1] < 1e-3 * run["residual"][-1]


def test_difference_quotients_meet_the_chain_rule_with_order_two(results):
    for run in results.values():
        # 8 to 32 steps: the term of order 4 still counts
        assert run["quotient_order"] == pytest.approx(2, abs=0.3)


def test_the_turned_head_is_refused_by_the_hypothesis_that_fails_and_its_energy_turns_round():
    field, energy, _, start = experiment.problem("turned", 16)
    moving = mf.simulate(field, start, [0.0, 0.1], progress=False)
    with pytest.raises(ValueError, match=r"V A\^\{-1\} must be symmetric"):
        dissipation(field, energy, moving)
    run = experiment.run({"pair": "turned", "n": 16, "steps": [8, 16, 32]}, None)
    rates = np.sign(np.diff(run["energies"]))
    assert {-1.0, 1.0} <= set(rates)


def test_l2_attention_is_refused_too():
    head = mf.Head(np.eye(2), experiment.A, -experiment.H @ experiment.A)
    start = mf.Measure(experiment.spiral(5))
    moving = mf.simulate(mf.L2Attention(head), start, [0.0, 0.1], progress=False)
    with pytest.raises(ValueError, match="L2Attention is not known to be a gradient flow"):
        dissipation(mf.L2Attention(head), experiment.InteractionEnergy(head), moving)


def test_the_order_of_a_power_is_its_exponent():
    steps = np.array([4, 8, 16, 32])
    assert experiment.order(steps, 7.0 * steps**-3.0) == pytest.approx(3.0)


def test_a_run_that_ends_early_is_an_error(monkeypatch):
    monkeypatch.setattr(experiment, "A", 40.0 * experiment.A)
    with pytest.raises(ArithmeticError, match="unnormalised in 8 steps: NOT_FINITE"):
        experiment.run({"pair": "unnormalised", "n": 8, "steps": [8]}, None)
