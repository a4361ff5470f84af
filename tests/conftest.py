"""What holds for the whole suite: one BLAS thread, and hypothesis without clocks and with the same draws every time."""

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("house", deadline=None, derandomize=True, database=None)
settings.load_profile("house")


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread():
    # Products here are small, and a busy neighbour makes two threads ten times slower than one.
    with threadpool_limits(1):
        yield
