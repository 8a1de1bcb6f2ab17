"""Who may import whom: every import statement under `src/scwormhole` is read and held against the tables below."""

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = "scwormhole"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE
MENU = "__init__"

# A room is a module or subpackage directly under the package; beside it the rooms it may import.
STRANGERS = ("clouds", "ot", "nn", "mds")
ROOMS: dict[str, set[str]] = {
    "clouds": set(),
    "ot": set(),
    "nn": set(),
    "mds": set(),
    "io": set(),
    "train": {*STRANGERS, "io"},
    "model": {"clouds", "ot", "nn", "train", "io"},
    "baselines": {*STRANGERS, "train"},
    "metrics": {"clouds", "ot", "mds", "model"},
    "_adata": {"clouds"},
    "datasets": {"clouds", "_adata"},
    "pp": {"clouds", "_adata"},
    "tl": {"clouds", "ot", "mds", "model", "metrics", "baselines", "_adata"},
    "pl": {"clouds", "ot", "mds", "model", "metrics", "_adata"},
}
ROOMS[MENU] = {*ROOMS}
ROOMS["__main__"] = {*ROOMS}

# Third-party packages: the only ones a room may import, and the only rooms that may import one.
ONLY_PACKAGES = {"clouds": {"numpy", "scipy"}}
ONLY_ROOMS: dict[str, set[str]] = {
    "anndata": {"_adata", "datasets", "pp", "tl", "pl", "__main__"},
    "ott": {"ot"},
    "pickle": set(),
    "cloudpickle": set(),
    "dill": set(),
}
INSIDE_FUNCTIONS = {"matplotlib", "scanpy", "squidpy"}


class Import(NamedTuple):
    """One imported module, as an absolute dotted name."""

    module: str
    line: int
    at_import: bool  # executed when the importing module is loaded


def resolve(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    """Absolute names of what a statement imports, `package` being the one it stands in."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1] if node.level else []
    base += node.module.split(".") if node.module else []
    return [".".join([*base, alias.name]) for alias in node.names]


def imports(node: ast.AST, package: str, *, at_import: bool = True) -> Iterator[Import]:
    """Every import below `node`: in functions and under TYPE_CHECKING too, neither of which runs at import."""
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from (Import(name, node.lineno, at_import) for name in resolve(node, package))
        case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            for child in node.body:
                yield from imports(child, package, at_import=False)
            for child in node.orelse:
                yield from imports(child, package, at_import=at_import)
        case _:
            runs = at_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for child in ast.iter_child_nodes(node):
                yield from imports(child, package, at_import=runs)


def faults(room: str, imported: Import) -> Iterator[str]:
    """What is wrong with an import found in a room."""
    top, *rest = imported.module.split(".")
    if top == PACKAGE:
        target = rest[0] if rest and rest[0] in ROOMS else MENU
        if target not in {room, *ROOMS[room]}:
            yield f"{room} may not import {target}, only {sorted(ROOMS[room])}"
        return
    if room not in ONLY_ROOMS.get(top, ROOMS):
        yield f"{room} may not import {top}; only {sorted(ONLY_ROOMS[top])} may"
    if room in ONLY_PACKAGES and top not in {*sys.stdlib_module_names, *ONLY_PACKAGES[room]}:
        yield f"{room} may not import {top}, only {sorted(ONLY_PACKAGES[room])}"
    if top in INSIDE_FUNCTIONS and imported.at_import:
        yield f"{top} is imported inside the functions that need it, not at the top of {room}"


def check(path: str, source: str) -> list[str]:
    """Faults of one file, `path` being relative to the package."""
    parts = Path(path).with_suffix("").parts
    room = parts[0]
    if room not in ROOMS:
        return [f"{path}: the room {room} is not in the table of rooms; add it"]
    package = ".".join([PACKAGE, *parts[:-1]])
    return [
        f"{path}:{found.line}: {fault}"
        for found in imports(ast.parse(source), package)
        for fault in faults(room, found)
    ]


def test_every_import_is_allowed():
    files = sorted(SOURCE.rglob("*.py"))
    assert files
    found = [fault for file in files for fault in check(file.relative_to(SOURCE).as_posix(), file.read_text("utf-8"))]
    assert not found, "\n".join(found)


def test_rooms_have_no_cycle():
    TopologicalSorter(ROOMS).prepare()  # raises CycleError


@pytest.mark.parametrize("strangers", [STRANGERS, ("pp", "tl", "pl")])
def test_strangers_stay_strangers(strangers):
    assert not any(ROOMS[room] & {*strangers} for room in strangers)


def test_nothing_below_the_boundary_knows_anndata():
    below = {*STRANGERS, "io", "train", "model"}
    assert not below & ONLY_ROOMS["anndata"]
    assert not any("_adata" in ROOMS[room] for room in below)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("ot/_solver.py", "import scwormhole.clouds"),
        ("ot/_solver.py", "from scwormhole import clouds"),
        ("ot/_solver.py", "from ..clouds import PointClouds"),
        ("ot/_solver.py", "from .. import clouds"),
        ("ot/gw/_solver.py", "from ...nn import encoder"),
        ("ot/_solver.py", "def f():\n    from ..clouds import PointClouds"),
        ("ot/_solver.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..clouds import PointClouds"),
        ("ot/_solver.py", "from scwormhole import PointClouds"),
        ("clouds/_store.py", "from scwormhole.ot import pairwise"),
        ("clouds/_store.py", "import jax"),
        ("clouds/_store.py", "def f():\n    import h5py"),
        ("mds/__init__.py", "from .. import ot"),
        ("model.py", "from .pp import niches"),
        ("model.py", "from anndata import AnnData"),
        ("train/_loop.py", "if TYPE_CHECKING:\n    import anndata"),
        ("train/_loop.py", "from ..model import Wormhole"),
        ("nn/_base.py", "from ott.geometry import costs"),
        ("tl/_umap.py", "from ..pl import umap"),
        ("pl/_umap.py", "import matplotlib.pyplot as plt"),
        ("pl/_umap.py", "class Style:\n    import matplotlib"),
        ("pl/_umap.py", "if TYPE_CHECKING:\n    pass\nelse:\n    import matplotlib"),
        ("pp/_niches.py", "try:\n    import squidpy\nexcept ImportError:\n    pass"),
        ("io.py", "import pickle"),
        ("io.py", "def load():\n    from pickle import load"),
        ("utils.py", ""),
    ],
)
def test_a_forbidden_import_is_found(path, source):
    assert len(check(path, source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("clouds/_store.py", "import math\nimport numpy as np\nfrom scipy import sparse\nfrom ._rows import rows"),
        ("ot/__init__.py", "from . import _solver\nfrom ._pairwise import pairwise\nfrom scwormhole.ot import costs"),
        ("ot/_solver.py", "import jax\nfrom ott.geometry import pointcloud"),
        ("train/_loop.py", "from ..clouds import batches\nfrom scwormhole import ot\nfrom .. import nn"),
        ("model.py", "from .train import fit\nfrom . import io"),
        ("_adata.py", "from anndata import AnnData\nfrom .clouds import PointClouds"),
        ("pl/_umap.py", "def umap():\n    import matplotlib.pyplot as plt"),
        ("pl/_umap.py", "if TYPE_CHECKING:\n    from matplotlib.axes import Axes"),
        ("__init__.py", "from . import ot\nfrom .clouds import PointClouds"),
        ("__main__.py", "import scwormhole as wh\nfrom . import ot"),
    ],
)
def test_an_allowed_import_passes(path, source):
    assert check(path, source) == []
