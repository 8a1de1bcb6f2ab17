"""What a user finds without reading: names on Tab, parameters on Shift-Tab, and types in an editor."""

import importlib.util
import inspect
import subprocess
import sys
from importlib import resources

import pytest

import scwormhole as wh

MENUS = [wh, *(room for name in wh.__all__ if inspect.ismodule(room := getattr(wh, name)))]
SCRIPT = """
import scwormhole as wh

reveal_type(wh.PointClouds.from_list([[[0.0]]]))
reveal_type(wh.Wormhole().epsilon_)
reveal_type(wh.pp.niches)
reveal_type(wh.ot.coupling)
reveal_type(wh.datasets.simplex().clouds)
reveal_type(wh.__version__)
wh.Wormhole(n_component=3)
wh.pointclouds
"""


@pytest.fixture(scope="module")
def complete():
    """A function from what was typed in a notebook to the completions it offers."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    completer = pytest.importorskip("IPython.core.completer")
    shell.user_ns["wh"] = wh

    def complete(typed):
        with completer.provisionalcompleter():
            return [found.text for found in shell.Completer.completions(typed, len(typed))]

    yield complete
    shell.history_manager.end_session()


@pytest.mark.parametrize("menu", MENUS, ids=lambda menu: menu.__name__)
def test_tab_lists_the_menu(menu, complete):
    typed = menu.__name__.replace("scwormhole", "wh") + "."
    assert {*menu.__all__} <= {*complete(typed)}
    assert menu is not wh or sorted(complete(typed)) == sorted(menu.__all__)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("wh.pp.niches(adata, rad", "radius="),
        ("wh.Wormhole(n_comp", "n_components="),
        ("wh.tl.wormhole(adata, key", "key_added="),
        ("wh.tl.wormhole(adata, n_comp", "n_components="),
    ],
)
def test_tab_knows_parameters(typed, offered, complete):
    assert offered in complete(typed)


def test_the_signature_of_tl_wormhole_holds_the_parameters_of_a_wormhole():
    shown, theirs = inspect.signature(wh.tl.wormhole).parameters, inspect.signature(wh.Wormhole).parameters
    assert theirs.keys() <= shown.keys()
    assert {shown[name].default for name in theirs} == {given.default for given in theirs.values()}
    assert [name for name, given in shown.items() if given.kind is not given.KEYWORD_ONLY] == ["adata"]
    code = wh.tl.wormhole.__code__
    written = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    assert {*shown} == {*written, *theirs}
    assert theirs.keys() == wh.Wormhole().get_params().keys()  # which is what it takes


def test_types_are_announced():
    assert (resources.files("scwormhole") / "py.typed").is_file()


@pytest.mark.slow
def test_a_type_checker_sees_the_names_that_load_when_asked_for(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed; it comes with the extra dev")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir", tmp_path / "cache", "script.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    revealed = [line.partition("Revealed type is ")[2].strip('"') for line in said.splitlines() if "Revealed" in line]
    assert revealed[0].endswith("PointClouds")
    assert revealed[1] == "float"
    assert revealed[2].startswith("def (adata: ")
    assert "-> numpy.ndarray[" in revealed[3]
    assert revealed[4].endswith("PointClouds")
    assert revealed[5] == "str"
    faults = [line for line in said.splitlines() if " error: " in line]
    assert len(faults) == 2
    assert 'did you mean "n_components"' in faults[0]
    assert 'has no attribute "pointclouds"' in faults[1]
