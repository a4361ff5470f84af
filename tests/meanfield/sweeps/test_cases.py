"""A case's key is its parameters, its random numbers depend on key and seed only, its failure is a result."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from meanfield.sweeps.cases import (
    Status,
    canonical_json,
    case_generator,
    case_hash,
    checked_seed,
    pack_task,
    plain_case,
    run_case,
)


def test_equal_parameters_have_one_key():
    case = {"b": np.float64(0.5), "a": (1, np.int32(2)), "c": {"y": 1.0, "x": None}, "d": np.True_}
    same = {"d": True, "c": {"x": None, "y": 1}, "a": [1.0, 2], "b": 0.5}
    assert canonical_json(plain_case(case)) == '{"a":[1,2],"b":0.5,"c":{"x":null,"y":1},"d":true}'
    assert case_hash(plain_case(case), 3) == case_hash(same, 3)


def test_different_parameters_and_seeds_have_different_keys():
    cases = [{"a": 1}, {"a": "1"}, {"a": True}, {"a": [1]}, {"b": 1}, {"a": 1, "b": None}, {"a": 1 + 2**-52}, {}]
    assert len({case_hash(case, seed) for case in cases for seed in (0, 1)}) == 2 * len(cases)


def test_a_plain_case_is_a_copy_that_keeps_tuples():
    case = {"a": [1, (2, 3)]}
    copy = plain_case(case)
    copy["a"].append(4)
    assert case == {"a": [1, (2, 3)]}
    assert copy["a"][1] == (2, 3)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ([1], "case must be a dict of parameters; got list"),
        ({"x": np.zeros(3)}, r"case\['x'\].*got ndarray.*Large arrays are no keys"),
        ({"p": np.inf}, r"case\['p'\] must be finite.*write infinity as a string"),
        ({1: 2}, "keys of case must be strings"),
        ({"f": len}, "got builtin_function_or_method"),
    ],
)
def test_a_case_that_is_no_key_is_refused(case, said):
    with pytest.raises(ValueError, match=said):
        plain_case(case)


@pytest.mark.parametrize("seed", [-1, 0.5, "0", None, True])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(ValueError, match="seed must be a whole number >= 0"):
        checked_seed(seed)


def test_a_generator_is_a_child_of_the_seed_keyed_by_the_parameters():
    first = case_generator({"k": 1}, 2**90).normal(size=4)
    assert first.tobytes() == case_generator({"k": 1.0}, checked_seed(2**90)).normal(size=4).tobytes()
    others = [case_generator({"k": 2}, 2**90), case_generator({"k": 1}, 2**90 + 1)]
    assert not any(np.isin(first, other.normal(size=4)).any() for other in others)


def test_draws_stay_what_they_were_in_earlier_versions():
    # Recorded once: a change of the key would silently change every recorded experiment.
    assert case_hash({"beta": 2.0, "n": 64}, 0).startswith("84e9b10cf0694fdf")
    assert int(case_generator({"beta": 2.0, "n": 64}, 0).integers(2**32)) == 2602735466


def test_a_task_runs_with_one_blas_thread_and_leaves_the_callers_threads_alone():
    before = [pool["num_threads"] for pool in threadpool_info()]
    result = run_case(pack_task(lambda case, rng: {"threads": [p["num_threads"] for p in threadpool_info()]}), {}, 0)
    assert set(result.arrays["threads"].tolist()) == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_a_task_can_change_neither_the_callers_data_nor_what_the_next_case_sees():
    x, case = np.ones(3), {"a": [1]}

    def task(case, rng):
        x[:] += 1
        case["a"].append(2)
        return {"x": x}

    packed = pack_task(task)
    for _ in range(2):
        np.testing.assert_array_equal(run_case(packed, case, 0).arrays["x"], [2, 2, 2])
    np.testing.assert_array_equal(x, [1, 1, 1])
    assert case == {"a": [1]}


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "arrays must be a dict of name to array; got NoneType"),
        ({"x": {}}, "array 'x' must hold numbers"),
    ],
)
def test_a_task_that_returns_no_arrays_fails_with_the_cure(returned, said):
    result = run_case(pack_task(lambda case, rng: returned), {"a": 1}, 0)
    assert (result.status, result.failed, result.arrays) == (Status.FAILED, True, {})
    assert said in result.message


def test_sys_exit_in_a_task_is_a_failure_and_ctrl_c_is_not():
    def leave(case, rng):
        raise SystemExit(3)

    def interrupt(case, rng):
        raise KeyboardInterrupt

    assert "SystemExit: 3" in run_case(pack_task(leave), {}, 0).message
    with pytest.raises(KeyboardInterrupt):
        run_case(pack_task(interrupt), {}, 0)


def test_a_task_that_cannot_travel_is_a_type_error():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"task must be picklable.*lock.*inside the task"):
        pack_task(lambda case, rng: {"x": lock.locked()})
    with pytest.raises(TypeError, match="task must be a function"):
        pack_task({"x": 1})
