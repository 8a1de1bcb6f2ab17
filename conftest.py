"""What all tests share: examples may warn that they train too little, and compiled programs do not pile up."""

import gc
import sys
from pathlib import Path

import pytest

MAPS, MOST_MAPS = Path("/proc/self/maps"), 20_000  # Linux gives a process 65,530, and each compiled program takes some


def pytest_collection_modifyitems(items):
    """Let examples in docstrings, which train for a few steps only, warn that this is too little."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::scwormhole.ot.TransportWarning"))


@pytest.fixture(scope="module", autouse=True)
def drop_compiled():
    """Drop compiled programs after a module, where the whole suite would need more memory maps than there are."""
    yield
    jax = sys.modules.get("jax")
    if jax is not None and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()
