"""Layers of the lab's Python: imports point one way, and no modules import one another in a circle.

A room, which is a folder of the lab, may import those that stand before it in ORDER, wherever in a file the import stands.
Within a room its folders and files import one another in one direction, too. Imports for types alone are arrows as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

from loam_lab.base import paths

ORDER = (
    "base", "model", "setup", "subjects", "judging", "campaign", "presenting", "commands", "dev", "cli",
)  # fmt: skip


def modules() -> dict[str, str]:
    """Every module of the lab with its source; a package is its folder's name."""
    root = paths.root() / "lab"
    return {_name(file, root): file.read_text() for file in sorted((root / "loam_lab").rglob("*.py"))}


def _name(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(module: str, source: str, known: Set[str]) -> Iterator[str]:
    """The modules of the lab that a module imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "loam_lab":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                name = whole if whole in known else node.module
                if name not in ("loam_lab", module):
                    yield name


def upward(sources: Mapping[str, str]) -> set[tuple[str, str]]:
    """Imports of a later layer, by module."""
    arrows = set()
    for module, source in sources.items():
        layer = module.split(".")[1] if "." in module else ""
        for target in imports(module, source, sources.keys()):
            if layer and ORDER.index(target.split(".")[1]) > ORDER.index(layer):
                arrows.add((module, target))
    return arrows


def part(module: str) -> str:
    """What of a room a module belongs to: loam_lab.campaign.measure.plan to loam_lab.campaign.measure."""
    return ".".join(module.split(".")[:3])


def between_parts(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Which part of a room imports which others."""
    arrows: dict[str, set[str]] = {}
    for module, source in sources.items():
        arrows.setdefault(part(module), set()).update(map(part, imports(module, source, sources.keys())))
    return {name: others - {name} for name, others in arrows.items()}


def between_modules(sources: Mapping[str, str]) -> dict[str, set[str]]:
    return {module: set(imports(module, source, sources.keys())) for module, source in sources.items()}


def circles(edges: Mapping[str, set[str]]) -> list[str]:
    """What can be reached from itself."""
    members = []
    for start in edges:
        seen: set[str] = set()
        waiting = list(edges[start])
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += edges.get(module, ())
        if start in seen:
            members.append(start)
    return members


def test_every_room_has_a_place_and_a_sentence() -> None:
    layers = {module.split(".")[1] for module in modules() if "." in module}
    assert layers == set(ORDER)
    for room in ORDER:
        assert ast.get_docstring(ast.parse(modules()[f"loam_lab.{room}"])), room


def test_imports_point_one_way() -> None:
    assert upward(modules()) == set()


def test_there_is_no_circle() -> None:
    assert circles(between_modules(modules())) == []
    assert circles(between_parts(modules())) == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("from loam_lab.presenting import svg", True),
        ("def f():\n    from loam_lab import presenting", True),
        ("from loam_lab.model import cell", False),
    ],
)
def test_an_upward_import_is_seen_wherever_it_stands(source: str, wrong: bool) -> None:
    made = {
        "loam_lab.presenting": "",
        "loam_lab.presenting.svg": "",
        "loam_lab.model.cell": "",
        "loam_lab.judging.x": source,
    }
    assert bool(upward(made)) == wrong


def test_a_circle_is_seen() -> None:
    made = {"loam_lab.model.a": "from loam_lab.model import b", "loam_lab.model.b": "from loam_lab.model.a import x"}
    assert circles(between_modules(made)) == ["loam_lab.model.a", "loam_lab.model.b"]


def test_a_circle_of_folders_is_seen() -> None:
    made = {
        "loam_lab.model.a.one": "from loam_lab.model.b import two", "loam_lab.model.b.two": "",
        "loam_lab.model.b.three": "from loam_lab.model.a import one",
    }  # fmt: skip
    assert circles(between_modules(made)) == []
    assert circles(between_parts(made)) == ["loam_lab.model.a", "loam_lab.model.b"]
