"""The manners of every public name: it resolves, is documented and typed, and takes few positional arguments."""

import inspect
import re
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

import scwormhole

MENUS = [scwormhole, *(room for name in scwormhole.__all__ if inspect.ismodule(room := getattr(scwormhole, name)))]
PUBLIC = {f"{menu.__name__}.{name}": getattr(menu, name) for menu in MENUS for name in menu.__all__}
# the layout of a sparse matrix, in the order that SciPy has taught everyone
MORE_POSITIONAL = {"PointClouds.__init__": 5}
Part = property | classmethod | staticmethod | FunctionType


def methods(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The constructor, public methods and properties that the package itself wrote for a class."""
    for base in cls.__mro__:
        if not base.__module__.startswith(scwormhole.__name__):
            continue
        for name, part in vars(base).items():
            if isinstance(part, Part) and (name == "__init__" or not name.startswith("_")):
                yield f"{cls.__name__}.{name}", getattr(part, "fget", None) or getattr(part, "__func__", part)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, thing in PUBLIC.items():
        if inspect.isclass(thing):
            yield from methods(thing)
        elif not inspect.ismodule(thing):
            yield name, thing


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.name not in {"self", "cls"}]


def missing_annotations(function: Callable[..., Any]) -> list[str]:
    signature = inspect.signature(function)
    names = [p.name for p in parameters(function) if p.annotation is p.empty]
    return names + ["return"] * (signature.return_annotation is signature.empty)


def positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [p for p in parameters(function) if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]


def positional_booleans(function: Callable[..., Any]) -> list[str]:
    return [p.name for p in positional(function) if isinstance(p.default, bool) or p.annotation in {bool, "bool"}]


def sections(function: Callable[..., Any]) -> dict[str, str]:
    """The sections of a numpydoc docstring by title."""
    pieces = re.split(r"^(\w[\w ]*)\n-{3,}$", inspect.getdoc(function) or "", flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def undocumented(function: Callable[..., Any]) -> list[str]:
    """Parameters that the `Parameters` section does not name."""
    heads = re.findall(r"^(\S.*)$", sections(function).get("Parameters", ""), flags=re.MULTILINE)
    named = {name.strip(" *") for head in heads for name in head.split(":")[0].split(",")}
    if "**params" in heads:  # which says that they are a Wormhole's
        named |= {*inspect.signature(scwormhole.Wormhole).parameters}
    return [p.name for p in parameters(function) if p.name not in named]


every_function = pytest.mark.parametrize("function", [pytest.param(f, id=name) for name, f in functions()])


def test_the_menus_are_the_ones_expected():
    assert scwormhole.ot in MENUS
    assert {"Cloud", "PointClouds"} <= {*scwormhole.__all__}
    assert {"distances", "pairwise"} <= {*scwormhole.ot.__all__}


@pytest.mark.parametrize("menu", MENUS, ids=lambda menu: menu.__name__)
def test_menu_has_no_repeats(menu: ModuleType):
    assert len(set(menu.__all__)) == len(menu.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_documented(name):
    thing = PUBLIC[name]
    assert callable(thing) or inspect.ismodule(thing)
    assert vars(thing).get("__doc__") if inspect.isclass(thing) else inspect.getdoc(thing)


@every_function
def test_is_fully_annotated(function):
    assert missing_annotations(function) == []


@every_function
def test_takes_few_positional_arguments(function):
    assert len(positional(function)) <= MORE_POSITIONAL.get(function.__qualname__, 3)
    assert positional_booleans(function) == [] or function.__name__ == "get_params"  # as scikit-learn has it


@every_function
def test_has_a_docstring(function):
    assert function.__name__ == "__init__" or inspect.getdoc(function)


@pytest.mark.parametrize("name", [name for name, function in functions() if name in PUBLIC])
def test_function_documents_its_parameters_and_shows_an_example(name):
    assert undocumented(PUBLIC[name]) == []
    assert "Examples" in sections(PUBLIC[name])


def test_the_checks_can_fail():
    def bad(a: int, b, flag=False, *, c: str = ""):
        """Do it.

        Parameters
        ----------
        a, c
            Two of them.
        """

    def good(a: int, *rest: int, flag: bool = False) -> None:
        """Do it.

        Parameters
        ----------
        a
            One.
        *rest
            More.
        flag
            Whether.

        Examples
        --------
        >>> good(1)
        """

    assert missing_annotations(bad) == ["b", "flag", "return"]
    assert positional_booleans(bad) == ["flag"]
    assert undocumented(bad) == ["b", "flag"]
    assert "Examples" not in sections(bad)
    assert (missing_annotations(good), positional_booleans(good), undocumented(good)) == ([], [], [])
    assert "Examples" in sections(good)
