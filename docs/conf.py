"""Sphinx: the book, from docs/ and tutorials/. Builds offline, and what it builds needs no network either."""

import shutil
from importlib.metadata import version as version_of
from pathlib import Path
from typing import NewType

import numpy.typing

# Sphinx reads what is below this folder only, so tutorials are copied here, their links to the book with them
TUTORIALS = Path(__file__).parent / "tutorials"
shutil.rmtree(TUTORIALS, ignore_errors=True)
TUTORIALS.mkdir()
for page in (TUTORIALS.parent.parent / "tutorials").iterdir():
    if page.suffix in (".ipynb", ".md"):
        (TUTORIALS / page.name).write_text(page.read_text("utf-8").replace("](../docs/", "](../"), "utf-8")

project = "scwormhole"
author = "The scwormhole developers"
copyright = f"2026, {author}"
version = release = version_of("scwormhole")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "jupyter_execute", "benchmarks/*.md", "benchmarks/*/*.md"]  # parts of a page

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = (
    "off"  # the build takes no minutes: `make tutorials` executes notebooks, and they keep their outputs
)
nb_mime_priority_overrides = [("html", "text/html", 0)]
bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# scikit-learn makes these for every estimator
_MADE = ("fit", "transform", "inverse_transform", "score")
autodoc_default_options = {"exclude-members": ", ".join(f"set_{name}_request" for name in _MADE)}
autodoc_member_order = "bysource"  # for a module, the order of its __all__
autodoc_typehints = "description"  # docstrings carry no types; the signature has them
autosummary_generate = False  # tables link to the page of a room, which has every name in full
numpy.typing.ArrayLike = NewType("ArrayLike", object)  # printed by name, not as the union of types that it is
napoleon_google_docstring = False
napoleon_use_rtype = False  # what is under Returns is prose, the type is in the signature
napoleon_use_ivar = True  # a documented attribute is not a second object

html_theme = "sphinx_book_theme"
html_title = project
html_theme_options = {
    "repository_url": "https://github.com/scwormhole/scwormhole",
    "use_repository_button": True,
    "use_issues_button": True,
    "navbar_persistent": [],  # the sidebar has the search
    "show_navbar_depth": 1,
    "show_toc_level": 2,
}
