"""Matrix products run on one thread while asked to, and on as many as before afterwards."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from scwormhole.ot._threads import one_thread


def threads():
    """Threads of each BLAS that is loaded, by its file."""
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def on_two():
    """Files of the BLAS that run on two threads; others, of packages in the same process, may be built for one."""
    with threadpool_limits(2, user_api="blas"):
        found = [file for file, number in threads().items() if number == 2]
        if not found:
            pytest.skip("no BLAS here runs on two threads")
        yield found


def test_limits_that_overlap_leave_what_there_was(on_two):
    # what two threads of ours do: the first to come is the first to go
    one_thread.__enter__()
    one_thread.__enter__()
    assert {threads()[file] for file in on_two} == {1}
    one_thread.__exit__()
    assert {threads()[file] for file in on_two} == {1}
    one_thread.__exit__()
    assert {threads()[file] for file in on_two} == {2}


def test_the_limit_is_lifted_after_an_error(on_two):
    with pytest.raises(RuntimeError), one_thread:
        raise RuntimeError
    assert {threads()[file] for file in on_two} == {2}
