"""One BLAS thread for the whole suite: products here are small, and a busy neighbour makes two threads ten times slower."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread():
    with threadpool_limits(1):
        yield
