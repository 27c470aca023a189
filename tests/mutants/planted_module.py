"""A plugin of pytest: modules of the lab run with another source, their own file left as it is; and other native programs.

LOAM_MUTANT_MODULES: MODULE=FILE, several divided by ":": FILE holds the text that stands in for the module's.
LOAM_MUTANT_PROGRAMS: NAME=FILE, likewise: FILE stands in for what loam-paths.json has under that name in `libraries`.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module whose text lies elsewhere: its __file__ stays, so that what it finds beside it is found."""

    def __init__(self, name: str, path: str, text: Path) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self._text.read_bytes(), self.path, "exec", dont_inherit=True)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, texts: dict[str, Path]) -> None:
        self._texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._texts:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert spec is not None and spec.origin is not None, fullname
        loader = _Loader(fullname, spec.origin, self._texts[fullname])
        return importlib.util.spec_from_file_location(fullname, spec.origin, loader=loader)


def _given(variable: str) -> dict[str, str]:
    return {
        name: file for name, _, file in (one.partition("=") for one in os.environ.get(variable, "").split(":")) if name
    }


def _with_programs(programs: dict[str, str]) -> None:
    from loam_lab.base import paths

    real = paths.load_paths

    def load_paths(preset: str = "release") -> dict[str, Any]:
        built = real(preset)
        return {**built, "libraries": {**built["libraries"], **programs}}

    paths.load_paths = load_paths


if _modules := _given("LOAM_MUTANT_MODULES"):
    sys.meta_path.insert(0, _Finder({name: Path(file) for name, file in _modules.items()}))
if _programs := _given("LOAM_MUTANT_PROGRAMS"):
    _with_programs(_programs)
