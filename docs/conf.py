from importlib.metadata import version as version_of
from typing import NewType

import numpy.typing

project = "scwormhole"
author = "The scwormhole developers"
copyright = f"2026, {author}"
version = release = version_of("scwormhole")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "jupyter_execute", "benchmarks/*.md", "benchmarks/paper/*.md"]  # parts of a page

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the build needs neither data nor minutes

# scikit-learn makes these for every estimator
_MADE = ("fit", "transform", "inverse_transform", "score")
autodoc_default_options = {"exclude-members": ", ".join(f"set_{name}_request" for name in _MADE)}
autodoc_member_order = "bysource"  # for a module, the order of its __all__
autodoc_typehints = "description"  # docstrings carry no types; the signature has them
numpy.typing.ArrayLike = NewType("ArrayLike", object)  # printed by name, not as the union of types that it is
napoleon_google_docstring = False
napoleon_use_rtype = False  # what is under Returns is prose, the type is in the signature
napoleon_use_ivar = True  # a documented attribute is not a second object

html_theme = "sphinx_book_theme"
html_title = project
