"""Backends through joblib: equal bits, a list where there is no generator, and a lost worker loses one case."""

import sys

import numpy as np
import pytest
from joblib import register_parallel_backend
from joblib._parallel_backends import ThreadingBackend

from meanfield.sweeps.backends import BACKENDS, _obituary, joblib_stream, make_backend, serial_stream
from meanfield.sweeps.cases import pack_task


class Listing(ThreadingBackend):
    """A backend that cannot give results one by one, as ray's."""

    supports_return_generator = False


register_parallel_backend("listing", Listing)


def work(count):
    packed = pack_task(lambda case, rng: {"x": rng.normal(size=3)})
    return {k: (packed, {"k": k}, 0) for k in range(count)}


@pytest.mark.parametrize("name", ["threading", "listing"])
def test_a_registered_backend_gives_the_serial_bits(name):
    expected = {index: result.arrays["x"].tobytes() for index, result in serial_stream(work(5))}
    assert {index: r.arrays["x"].tobytes() for index, r in joblib_stream(name, 2, work(5))} == expected


@pytest.mark.parametrize("name", ["threading", "listing"])
def test_what_breaks_the_backend_loses_one_case(name):
    broken = work(5)
    broken[2] = broken[2][:2]  # no seed: the call itself fails, as when its worker is lost
    results = dict(joblib_stream(name, 2, broken))
    assert sorted(results) == [0, 1, 2, 3, 4]
    assert [results[k].status for k in range(5)] == ["done", "done", "failed", "done", "done"]
    assert results[2].message.startswith("worker killed, perhaps memory\n")
    assert "missing 1 required positional argument: 'seed'" in results[2].message
    assert results[2].case == {"k": 2}


@pytest.mark.parametrize(("name", "module"), [("dask", "dask.distributed"), ("ray", "ray")])
def test_a_backend_that_is_not_installed_says_what_to_install(monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"backend '{name}' needs.*pip install"), make_backend(name, 2):
        pass


def test_an_address_goes_to_the_backend(monkeypatch):
    monkeypatch.setitem(BACKENDS, "dask", lambda jobs, address: (jobs, address))
    assert make_backend("dask:tcp://host:8786", 3) == (3, "tcp://host:8786")
    with pytest.raises(ValueError, match="backend 'loky' takes no address; got 'x'"), make_backend("loky:x", 2):
        pass


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The exit codes of the workers are {SIGSEGV(-11)}\n", "worker killed, signal 11, perhaps memory"),
        ("The exit codes of the workers are {EXIT(3)}\n", "worker ended, exit code 3"),
        ("broken", "no result came back\nRuntimeError: broken\n"),
    ],
)
def test_the_end_of_a_worker_is_put_into_words(text, said):
    assert _obituary(RuntimeError(text)) == said


def test_dask_gives_the_serial_bits_with_a_large_array():
    pytest.importorskip("distributed")
    x0 = np.ones((400, 400))
    packed = pack_task(lambda case, rng: {"x": rng.normal(size=3) + x0.sum()})
    large = {k: (packed, {"k": k}, 0) for k in range(4)}
    with make_backend("dask", 2) as stream:
        found = {index: result.arrays["x"].tobytes() for index, result in stream(large)}
    assert found == {index: result.arrays["x"].tobytes() for index, result in serial_stream(large)}
