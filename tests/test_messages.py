"""Every error and warning has a row in the documentation, and every row is of a message that exists.

Messages are read from the source, with `...` where a value stands. Text that is known without running anything is put
in: constants, names that a function assigns text to, and text that a function is called with.
"""

import ast
import re
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parents[1]
SOURCE = HERE / "src" / "scwormhole"
PAGE = HERE / "docs" / "guide" / "messages.md"
VALUE = "..."
MOST = 6  # ways that text of one message is put together, beyond which it is a value

# Not for the page, by how they begin: why.
EXCLUDED = {
    "what is str(error)?": "the words of another error",
    "its arrays differ in length": "quoted by 'is damaged or no file of PointClouds (...)'",
    "... is no JSON": "quoted by 'is damaged: ...'",
    "weights ... have shape ..., not ...": "quoted by 'this is no whole model (...)'",
    "it is of another version of scwormhole": "quoted by 'this is no whole model (...)'",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Known = dict[str, list[str]]  # the texts that a name may stand for


class Message(NamedTuple):
    """What is printed, and where it is raised."""

    text: str
    file: str
    line: int


class Row(NamedTuple):
    """A line of a table: the message, what it means, what to do."""

    cells: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        return self.cells[0].strip("`")


def collapse(text: str) -> str:
    """White space and runs of values as one."""
    return re.sub(r"(?:\.\.\.){2,}", VALUE, re.sub(r"\s+", " ", text)).strip()


def texts(node: ast.AST, known: Known) -> list[str] | None:
    """All that an expression may come to, `...` for values; None if it is no text."""
    match node:
        case ast.Constant(value=str(value)):
            return [value]
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.FormattedValue(value=value, conversion=conversion):
            found = texts(value, known) or [VALUE]
            return [f"'{text}'" if conversion == ord("r") and text != VALUE else text for text in found]
        case ast.JoinedStr(values=parts):
            return joined(parts, known)
        case ast.IfExp(body=one, orelse=other):
            either = [texts(one, known), texts(other, known)]
            return None if None in either else [text for some in either for text in some or ()]
        case ast.Call(func=ast.Attribute(value=inner, attr="strip")):
            return texts(inner, known)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=" "), attr="join"), args=[ast.List(elts=parts)]):
            return joined(parts, known, " ")
    return None


def joined(parts: list[ast.expr], known: Known, between: str = "") -> list[str]:
    """Each way to put parts together; where there are very many, parts with several texts are values."""
    ways = [texts(part, known) or [VALUE] for part in parts]
    if prod(map(len, ways)) > MOST:
        ways = [way if len(way) == 1 else [VALUE] for way in ways]
    return [between.join(way) for way in product(*ways)]


def assigned(node: ast.stmt) -> Iterator[tuple[str, list[str]]]:
    """Names that a statement of a module gives a text to."""
    if not isinstance(node, ast.Assign) or len(node.targets) > 1:
        return
    target, value = node.targets[0], node.value
    paired = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    pairs = zip(target.elts, value.elts, strict=True) if paired else [(target, value)]
    for name, given in pairs:
        if isinstance(name, ast.Name) and (found := texts(given, {})) is not None:
            yield name.id, found


class Module:
    """A module of the source, and what is known in it without running it."""

    def __init__(self, path: Path) -> None:
        self.file = path.relative_to(SOURCE).as_posix()
        self.tree = ast.parse(path.read_text("utf-8"))
        self.functions = [node for node in ast.walk(self.tree) if isinstance(node, Function)]
        self.telling = [function for function in self.functions if any(map(is_told, ast.walk(function)))]
        self.known: Known = dict(pair for node in self.tree.body for pair in assigned(node))

    def learn(self, others: Known) -> None:
        """Take over constants that are imported from other modules."""
        for node in self.tree.body:
            names = node.names if isinstance(node, ast.ImportFrom) else []
            self.known |= {name.name: others[name.name] for name in names if name.name in others}

    def calls(self, names: set[str]) -> Iterator[tuple[ast.Call, Known]]:
        """Calls of functions of these names, and what is known where they stand."""
        for function in self.functions:
            found = [node for node in ast.walk(function) if isinstance(node, ast.Call) and called(node) in names]
            known = inside(function, self.known) if found else {}
            yield from ((node, known) for node in found)

    def messages(self, calls: list[tuple[str, ast.Call, Known]]) -> Iterator[Message]:
        for function in self.telling:
            places = [
                {**defaults(function, self.known), **parameters(function, call, known)}
                for file, call, known in calls
                if called(call) == function.name and (file == self.file or not function.name.startswith("_"))
            ]
            for place in places or [{}]:
                known = inside(function, {**self.known, **place})
                for call in filter(is_told, ast.walk(function)):
                    yield from (Message(text, self.file, call.lineno) for text in told(call, known))


def inside(function: Function, known: Known) -> Known:
    """What is known in a function: names, too, that nothing but text is assigned to."""
    stored = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    known = {name: value for name, value in known.items() if name not in stored}
    given: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            given.setdefault(node.targets[0].id, []).append(node.value)
    for name, values in given.items():
        found = [texts(value, known) for value in values]
        if None not in found and len(values) == stored.count(name):
            known = {**known, name: [text for some in found for text in some or ()]}
    return known


def defaults(function: Function, known: Known) -> Known:
    """What is known of the parameters of a function that are not given."""
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    given = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
    given |= {own.arg: value for own, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value}
    return {name: found for name, value in given.items() if (found := texts(value, known)) is not None}


def parameters(function: Function, call: ast.Call, known: Known) -> Known:
    """What is known of the parameters of a function that are given in a call."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    given = {
        **dict(zip(names, call.args, strict=False)),
        **{word.arg: word.value for word in call.keywords if word.arg},
    }
    return {name: texts(value, known) or [VALUE] for name, value in given.items()}


def called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_told(node: ast.AST) -> bool:
    """Whether this raises, warns or logs a warning."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name == "warn" or name.endswith("Error")
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=how)):
            return (name, how) in {
                ("warnings", "warn"),
                ("logger", "warning"),
                ("logger", "error"),
                ("parser", "error"),
            }
    return False


def told(call: ast.Call, known: Known) -> list[str]:
    """What is said by a call, in all ways."""
    arguments = call.args[-1:] if called(call).endswith("Error") else call.args[:1]  # an OSError has a number before
    found = [text for argument in arguments for text in texts(argument, known) or [f"what is {ast.unparse(argument)}?"]]
    if ast.unparse(call.func).startswith("logger"):
        found = [re.sub(r"%[-.0-9]*[a-z]", VALUE, text) for text in found]
    return [collapse(text) for text in found if re.search(r"[a-z]{2}", text)]


def all_messages() -> list[Message]:
    modules = [Module(path) for path in sorted(SOURCE.rglob("*.py"))]
    others = {name: value for module in modules for name, value in module.known.items()}
    for module in modules:
        module.learn(others)
    names = {function.name for module in modules for function in module.telling}
    calls = [(module.file, *call) for module in modules for call in module.calls(names)]
    found = {message for module in modules for message in module.messages(calls)}
    return sorted(found, key=lambda message: (message.file, message.line, message.text))


def all_rows() -> list[Row]:
    """The lines of all tables of the page, without their heads."""
    lines = list(enumerate(PAGE.read_text("utf-8").splitlines(), 1))
    cells = [
        (tuple(cell.strip() for cell in line.strip("| ").split(" | ")), at) for at, line in lines if line[:1] == "|"
    ]
    return [Row(*row) for row in cells if row[0][0].startswith("`")]


def pattern(row: Row) -> re.Pattern[str]:
    """What a row stands for: `...` is a value, or a few words that differ from place to place."""
    word = r"(?:\.\.\.|[^\s,;:]+)"
    few = rf"{word}(?: {word}){{0,2}}"
    return re.compile(few.join(map(re.escape, row.text.split(VALUE))))


MESSAGES = all_messages()
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="docs are not beside the tests")


@pytest.fixture(scope="module")
def rows():
    return all_rows()


def test_messages_are_found():
    found = {message.text for message in MESSAGES}
    assert len(found) > 300
    assert "training has not converged. ..." in found  # a warning
    assert "interrupted; fit(clouds, resume=True) goes on after step ..." in found  # a line of the log
    assert "adata.obsm has no 'X_..._umap'; .... Run wh.tl.umap(adata) first." in found  # put together elsewhere
    assert any(text.startswith("adata.X looks like raw counts") for text in found)  # in parts


def test_every_message_has_a_row(rows):
    patterns = [pattern(row) for row in rows]
    missing = [
        f"src/scwormhole/{message.file}, line {message.line}: {message.text}"
        for message in MESSAGES
        if not message.text.startswith(tuple(EXCLUDED)) and not any(p.fullmatch(message.text) for p in patterns)
    ]
    assert not missing, f"without a row in {PAGE.name}:\n" + "\n".join(missing)


def test_every_row_has_a_message(rows):
    known = [message.text for message in MESSAGES]
    stale = [f"line {row.line}: {row.text}" for row in rows if not any(map(pattern(row).fullmatch, known))]
    assert not stale, f"rows of {PAGE.name} that nothing in the source says:\n" + "\n".join(stale)


def test_rows_are_whole_and_differ(rows):
    wrong = [f"line {row.line}: {row.cells}" for row in rows if len(row.cells) != 3 or not all(row.cells)]
    assert not wrong, "a message, what it means, and what to do:\n" + "\n".join(wrong)
    assert len({row.text for row in rows}) == len(rows)
    vague = [row.text for row in rows if len(re.findall(r"[a-z]{2,}", row.text)) < 3]
    assert not vague, "rows that could stand for anything:\n" + "\n".join(vague)


def test_what_is_excluded_exists():
    stale = [begin for begin in EXCLUDED if not any(message.text.startswith(begin) for message in MESSAGES)]
    assert not stale
