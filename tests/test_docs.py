"""The book builds without a warning and without a network, and what README, pages and notebooks say is true."""

import csv
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import scwormhole as wh

ROOT = Path(__file__).parents[1]
DOCS, TUTORIALS = ROOT / "docs", ROOT / "tutorials"
pytestmark = pytest.mark.skipif(not (DOCS / "conf.py").exists(), reason="the book is not beside the tests")
NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))
PAGES = [
    ROOT / "README.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("guide/*.md")),
    *sorted(TUTORIALS.glob("*.md")),
]
MOST_KIB = 600  # of a notebook with its outputs
# columns of README's table, and methods that its rows are of
COHORTS = {
    "MNIST": "mnist",
    "Fashion-MNIST": "fashion",
    "ModelNet10": "modelnet",
    "MERFISH niches": "merfish",
    "CODEX niches": "codex",
    "pancreas metacells": "pancreas",
}
METHODS = {
    "scwormhole": "Wormhole",
    "the authors' package, same time": "authors' package",
    "Gaussians (Fréchet)": "Fréchet",
    "linear transport": "LOT",
    "sliced transport": "sliced",
    "mean and covariance": "mean and covariance",
}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Build the book, and return its folder."""
    pytest.importorskip("sphinx_book_theme")
    out = tmp_path_factory.mktemp("html")
    offline = {**os.environ, "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(out)]
    built = subprocess.run(command, capture_output=True, text=True, env=offline)
    assert built.returncode == 0, built.stderr[-5000:]
    return out


def test_every_public_name_is_in_the_reference(book):
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((book / "objects.inv").read_bytes(), uri="")
    known = {name for objects in inventory.data.values() for name in objects}
    rooms = {
        "scwormhole": wh,
        **{
            f"scwormhole.{name}": importlib.import_module(f"scwormhole.{name}") for name in wh.__all__ if name.islower()
        },
    }
    wanted = {f"{room}.{name}" for room, module in rooms.items() for name in module.__all__}
    assert wanted - {*rooms} <= known, sorted(wanted - {*rooms} - known)


def test_pages_need_no_network(book):
    for page in book.rglob("*.html"):
        loaded = re.findall(
            r"""<(?:script|link|img)\b[^>]*?(?:src|href)=["'](https?://[^"']+)""", page.read_text("utf-8")
        )
        assert not [address for address in loaded if "scwormhole" not in address], page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_figures_are_there(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"https?:|#", target):
            assert (page.parent / target.split("#")[0]).exists(), f"{page.name} leads to {target}, which is not there"


def test_every_figure_of_the_guide_is_made_by_the_script():
    made = re.findall(r'save\(fig, "(\w+)"\)', (DOCS / "figures.py").read_text("utf-8"))
    made += re.findall(r'"(\w+)": lambda', (ROOT / "src" / "scwormhole" / "__main__.py").read_text("utf-8"))
    assert {figure.stem for figure in (DOCS / "guide" / "figures").iterdir()} == {*made}


def test_the_table_of_the_readme_is_the_benchmarks():
    lines = [line for line in (ROOT / "README.md").read_text("utf-8").splitlines() if line.startswith("|")]
    head = next(line for line in lines if "pancreas" in line)
    columns = [cell.strip() for cell in head.strip("|").split("|")][1:]
    assert columns == list(COHORTS)
    measured = {}
    for name, cohort in COHORTS.items():
        with (DOCS / "benchmarks" / "paper" / f"table_{cohort}.csv").open(encoding="utf-8") as file:
            measured[name] = {row["method"]: row["fidelity"] for row in csv.DictReader(file)}
    shown = {}
    for line in lines[lines.index(head) + 2 :]:
        label, *cells = (cell.strip().strip("*") for cell in line.strip("|").split("|"))
        shown[label] = cells
    assert {*METHODS} < {*shown}
    for label, method in METHODS.items():
        for name, cell in zip(columns, shown[label], strict=True):
            value = measured[name].get(method, "")
            digits = len(cell.split(".")[1]) if cell else 0
            assert cell == (f"{float(value):.{digits}f}" if value else ""), (label, name)


def test_code_in_readme_and_guide_is_python():
    for page in PAGES:
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.S):
            compile(dedent(block), page.name, "exec")
            for path in re.findall(r"\bwh\.([\w.]+)", block):
                found = wh
                for name in path.split("."):
                    assert hasattr(found, name), f"{page.name} has wh.{path}"
                    found = getattr(found, name)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_as_they_ran(path):
    notebook = json.loads(path.read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [
        output
        for cell in code
        if "raises-exception" not in cell["metadata"].get("tags", ())
        for output in cell["outputs"]
    ]
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert path.stat().st_size < MOST_KIB * 1024
    assert "_" not in {
        name[0] for name in re.findall(r"\bwh\.(?:\w+\.)*(\w+)", path.read_text("utf-8"))
    }  # public names


def test_there_are_six_notebooks_and_the_index_has_them_all():
    assert [path.stem[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05", "06"]
    index = (TUTORIALS / "index.md").read_text("utf-8")
    assert all(f"({path.name})" in index for path in NOTEBOOKS)


def drawn(notebook):
    """How many figures each cell shows."""
    return [sum("image/png" in output.get("data", {}) for output in cell.get("outputs", ())) for cell in notebook.cells]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    sys.path.insert(0, str(TUTORIALS))
    try:
        from run import execute
    finally:
        sys.path.pop(0)
    kept = nbformat.read(path, as_version=4)
    assert drawn(execute(kept, tmp_path)) == drawn(kept)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_code_of_the_readme_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.S)
    script = tmp_path / "readme.py"
    script.write_text("import matplotlib\nmatplotlib.use('Agg')\n" + "\n".join(blocks), "utf-8")
    subprocess.run([sys.executable, str(script)], check=True, cwd=tmp_path)
