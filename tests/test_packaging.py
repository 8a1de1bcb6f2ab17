"""What is handed out: metadata, source distribution and wheel, and the workflows that make them."""

import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
HOME = "https://github.com/scwormhole/scwormhole"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
UNWANTED = re.compile(r"_build/|__pycache__|\.venv|^demo/|^dist/|^benchmarks/|\.ipynb_checkpoints|^docs/tutorials/")

in_a_checkout = pytest.mark.skipif(not WORKFLOWS, reason="workflows are no part of a source distribution")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder that a source distribution and a wheel were built in, with what is installed."""
    missing = [name for name in ("hatchling", "hatch_fancy_pypi_readme") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed; the extra test has it")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def metadata(built):
    """The wheel's metadata."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        return message_from_bytes(wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))))


def test_metadata_is_whole():
    project = PROJECT["project"]
    assert {*project["urls"]} == {"Documentation", "Source", "Changelog", "Issues"}
    assert all(url.startswith("https://") for url in project["urls"].values())
    assert project["urls"]["Source"] == HOME
    versions = {name.rpartition(" ")[2] for name in project["classifiers"] if "Python :: 3." in name}
    assert f">={min(versions, key=lambda name: int(name[2:]))}" == project["requires-python"]
    assert "Operating System :: OS Independent" in project["classifiers"]


def test_only_the_project_file_has_the_version():
    text = (ROOT / "src" / "scwormhole" / "__init__.py").read_text("utf-8")
    assert PROJECT["project"]["version"] not in text


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = {*wheel.namelist()}
    assert {name.partition("/")[0] for name in names} == {
        "scwormhole",
        f"scwormhole-{PROJECT['project']['version']}.dist-info",
    }
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert "scwormhole/py.typed" in names
    assert {name for name in files if "__pycache__" not in name} == {n for n in names if "dist-info" not in n}


@pytest.mark.slow
def test_the_source_distribution_holds_what_was_chosen(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "conftest.py",
        "docs/conf.py",
        "src/scwormhole/py.typed",
        "tests/conftest.py",
        "tests/test_packaging.py",
        "tutorials/run.py",
    } <= names
    assert {name for name in names if UNWANTED.search(name)} == set()
    assert {name.partition("/")[0] for name in names if "/" in name} == {"docs", "src", "tests", "tutorials"}


@pytest.mark.slow
def test_links_of_the_readme_are_whole_on_the_index(metadata):
    targets = re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", metadata.get_payload())
    targets = [one or other for one, other in targets]
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    own = re.compile(rf"(?:{HOME}/blob|https://raw\.githubusercontent\.com/scwormhole/scwormhole)/main/([^#]*)")
    paths = [found[1] for target in targets if (found := own.match(target))]
    assert paths
    assert not WORKFLOWS or [path for path in paths if not (ROOT / path).exists()] == []
    drawn = [target for target in targets if target.endswith((".png", ".svg")) and HOME in target]
    assert drawn == []  # of these the page would show GitHub's page, not the image


@pytest.mark.slow
def test_the_wheel_says_what_the_project_file_says(metadata):
    assert metadata["Version"] == PROJECT["project"]["version"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert len(metadata.get_all("Project-URL")) == 4


def commands(workflow):
    """Every command of a workflow, with values of its matrix put in."""
    for job in workflow["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            found = re.fullmatch(r"(make )\$\{\{ matrix\.(\w+) \}\}", step.get("run", ""))
            yield from [found[1] + value for value in matrix[found[2]]] if found else [step.get("run", "")]


@in_a_checkout
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_there_are(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    targets = {*re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)}
    called = {name for command in commands(workflow) for name in re.findall(r"\bmake ([\w-]+)", command)}
    assert called
    assert called <= targets
    assert workflow["permissions"] == {"contents": "read"}
    assert "concurrency" in workflow
    for job in workflow["jobs"].values():
        assert "timeout-minutes" in job
        assert {*job.get("permissions", {})} <= {"id-token"}
    for needed in (need for job in workflow["jobs"].values() for need in [job.get("needs")] if need):
        assert needed in workflow["jobs"]


@in_a_checkout
def test_ci_runs_every_python_that_is_promised():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    promised = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"] if "Python :: 3." in name]
    assert jobs["test"]["strategy"]["matrix"]["python"] == promised
    assert {"slow", "tutorials"} == {*jobs["thorough"]["strategy"]["matrix"]["target"]}


@in_a_checkout
def test_read_the_docs_builds_the_book_with_extras_that_there_are():
    config = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text("utf-8"))
    assert (ROOT / config["sphinx"]["configuration"]).is_file()
    assert config["sphinx"]["fail_on_warning"] is True
    extras = {extra for install in config["python"]["install"] for extra in install["extra_requirements"]}
    assert extras <= {*PROJECT["project"]["optional-dependencies"]}
