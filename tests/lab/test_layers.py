"""Layers of the lab's Python: imports point one way, and no modules import one another in a circle.

A folder, or a file beside the folders, may import those that stand before it in ORDER, wherever in a file the import
stands. Imports for types alone are arrows too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

from loam_lab import paths

ORDER = (
    "errors", "paths", "tree", "console", "toml_errors", "subcommands", "model", "store", "statistics", "machine", "setup",
    "process", "symbols", "allocators", "subjects", "machine_keys", "simulated", "machines", "itm", "workloads", "counters",
    "memory", "moves", "programs", "jvm", "claims", "across", "result", "measure", "fleet", "report", "running", "bench",
    "compare", "explain", "selfcheck", "pages", "tune", "doctor", "cite", "pack", "site", "testing", "cli",
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
                found = whole if whole in known else node.module
                if found not in ("loam_lab", module):
                    yield found


def upward(sources: Mapping[str, str]) -> set[tuple[str, str]]:
    """Imports of a later layer, by module."""
    found = set()
    for module, source in sources.items():
        layer = module.split(".")[1] if "." in module else ""
        for target in imports(module, source, sources.keys()):
            if layer and ORDER.index(target.split(".")[1]) > ORDER.index(layer):
                found.add((module, target))
    return found


def circles(sources: Mapping[str, str]) -> list[str]:
    """Modules that can be reached from themselves."""
    edges = {module: set(imports(module, source, sources.keys())) for module, source in sources.items()}
    found = []
    for start in edges:
        seen: set[str] = set()
        waiting = list(edges[start])
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += edges.get(module, ())
        if start in seen:
            found.append(start)
    return found


def test_every_folder_has_a_layer() -> None:
    layers = {module.split(".")[1] for module in modules() if "." in module}
    assert layers == set(ORDER)


def test_imports_point_one_way() -> None:
    assert upward(modules()) == set()


def test_there_is_no_circle() -> None:
    assert circles(modules()) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from loam_lab.report import svg", True),
        ("def f():\n    from loam_lab import report", True),
        ("from loam_lab.model import cell", False),
    ],
)
def test_an_upward_import_is_seen_wherever_it_stands(source: str, found: bool) -> None:
    made = {
        "loam_lab.report": "",
        "loam_lab.report.svg": "",
        "loam_lab.model.cell": "",
        "loam_lab.statistics.x": source,
    }
    assert bool(upward(made)) == found


def test_a_circle_is_seen() -> None:
    made = {"loam_lab.model.a": "from loam_lab.model import b", "loam_lab.model.b": "from loam_lab.model.a import x"}
    assert circles(made) == ["loam_lab.model.a", "loam_lab.model.b"]
