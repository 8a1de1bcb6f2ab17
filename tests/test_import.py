"""Importing the package is cheap and changes nothing; each check runs in an interpreter of its own."""

import json
import subprocess
import sys

import pytest

BARE = "import scwormhole"
TOUCHED = "import scwormhole; scwormhole.PointClouds; scwormhole.ot"
JAX_STATE = """
import json, jax
from jax._src import xla_bridge
print(json.dumps([list(xla_bridge._backends), {name: repr(value) for name, value in jax.config.values.items()}]))
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(code: str) -> set[str]:
    """Names of the modules in memory after `code`."""
    return set(json.loads(run(f"{code}\nimport json, sys; print(json.dumps(list(sys.modules)))")))


def jax_state(code: str) -> tuple[list[str], dict[str, str]]:
    """The backends started by `code`, and JAX's configuration after it."""
    backends, config = json.loads(run(code + JAX_STATE))
    return backends, config


def test_bare_import_loads_no_room_and_no_jax():
    modules = loaded(BARE)
    assert not modules & {"jax", "jaxlib", "numpy"}
    assert {name for name in modules if name.startswith("scwormhole.")} == set()


@pytest.mark.parametrize("code", [BARE, TOUCHED])
def test_import_loads_no_plotting_or_analysis_package(code):
    assert not loaded(code) & {"matplotlib", "scanpy", "squidpy"}


@pytest.mark.parametrize("code", [BARE, TOUCHED])
def test_import_starts_no_backend_and_sets_no_jax_flag(code):
    backends, config = jax_state(code)
    assert backends == []
    assert config == jax_state("import jax")[1]


def test_the_checks_can_fail():
    backends, config = jax_state("import jax; jax.config.update('jax_enable_x64', True); jax.numpy.zeros(1)")
    assert backends != []
    assert config != jax_state("import jax")[1]


def test_menu_lists_its_names_and_refuses_others():
    import scwormhole

    assert [name for name in dir(scwormhole) if not name.startswith("__")] == sorted(scwormhole.__all__)
    assert isinstance(scwormhole.__version__, str)
    with pytest.raises(AttributeError, match=r"no attribute 'pointclouds'; it has .*PointClouds"):
        scwormhole.pointclouds  # noqa: B018
