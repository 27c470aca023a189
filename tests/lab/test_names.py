"""Names in the Python of the lab and of its tests: a noun says what a variable holds; `found`, `told`, `said` say nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from loam_lab.base import paths

EMPTY = ("found", "told", "said")
FOLDERS = ("lab/loam_lab", "tests")

# Names that files and documents carry, by module, and where. Other names for them would leave what was written unread.
SERIALISED = {
    ("lab/loam_lab/dev/selfcheck/services.py", "told"): "a key of each line of the file with the walks so far",
    ("lab/loam_lab/dev/selfcheck/sharing.py", "found"): "a key of each row of `./loam selfcheck sharing --json`",
}


def is_empty(name: str) -> bool:
    return name.strip("_").partition("_")[0] in EMPTY


def given_names(source: str) -> Iterator[tuple[int, str]]:
    """(line, name) of everything that a module gives a name to: variables, attributes, parameters, functions, imports."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name.lower()
            case ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)) | ast.alias(name=name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield node.lineno, name


def empty_names() -> Iterator[tuple[str, int, str]]:
    """(module, line, name) of every name that says nothing; line 0 is the module's own name."""
    root = paths.root()
    for file in sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py")):
        module = str(file.relative_to(root))
        if is_empty(file.stem):
            yield module, 0, file.stem
        for line, name in given_names(file.read_text()):
            if is_empty(name):
                yield module, line, name


def test_a_name_says_what_it_holds() -> None:
    wrong = [
        f"{module}:{line}: {name} says that there is something; name what it is: match, message, packages"
        for module, line, name in empty_names()
        if (module, name) not in SERIALISED
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_each_exception_is_needed() -> None:
    assert set(SERIALISED) <= {(module, name) for module, _, name in empty_names()}


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("found = re.search(a, b)", True),
        ("if (found := f()): pass", True),
        ("for said in lines: pass", True),
        ("[told for told in lines]", True),
        ("def f(told): pass", True),
        ("def f(*, said=False): pass", True),
        ("lambda found: found", True),
        ("def _said(): pass", True),
        ("class Told: pass", True),
        ("self._told = set()", True),
        ("told_times = 3", True),
        ("try:\n    f()\nexcept OSError as found:\n    pass", True),
        ("from there import told", True),
        ("match a:\n    case {'b': said}:\n        pass", True),
        ("match = re.search(a, b)", False),
        ("def founder(untold, as_found): pass", False),
        ("print(found.told, said)", False),
    ],
)
def test_the_check_of_names_tells_them_apart(source: str, wrong: bool) -> None:
    assert any(is_empty(name) for _, name in given_names(source)) == wrong
