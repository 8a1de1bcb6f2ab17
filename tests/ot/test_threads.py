"""Matrix products run on one thread while asked to, and on as many as before afterwards."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from scwormhole.ot._threads import one_thread


def _threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if _threads() != {2}:
            pytest.skip("BLAS here does not run on two threads")
        yield


def test_limits_that_overlap_leave_what_there_was(two_threads):
    # what two threads of ours do: the first to come is the first to go
    one_thread.__enter__()
    one_thread.__enter__()
    assert _threads() == {1}
    one_thread.__exit__()
    assert _threads() == {1}
    one_thread.__exit__()
    assert _threads() == {2}


def test_the_limit_is_lifted_after_an_error(two_threads):
    with pytest.raises(RuntimeError), one_thread:
        raise RuntimeError
    assert _threads() == {2}
