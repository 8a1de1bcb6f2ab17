"""What all tests share: compiled programs, kept on disk and not piling up, and examples that train little."""

import gc
import os
import sys
from pathlib import Path

import pytest

MAPS, MOST_MAPS = Path("/proc/self/maps"), 20_000  # Linux gives a process 65,530, and each compiled program takes some

# most of the tests' time is compilation: what one process has compiled, others and the next run find
COMPILED = {
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parent / ".pytest_cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
}
for name, value in COMPILED.items():
    os.environ.setdefault(name, value)


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
