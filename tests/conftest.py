"""What all tests share: compiled programs are dropped after each module.

Each takes memory maps, of which a process may have some tens of thousands; the whole suite would need more.
"""

import gc
import sys

import pytest


@pytest.fixture(scope="module", autouse=True)
def drop_compiled():
    yield
    jax = sys.modules.get("jax")
    if jax is not None:
        jax.clear_caches()
        gc.collect()
