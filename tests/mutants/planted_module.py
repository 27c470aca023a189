"""A plugin of pytest: modules of the lab run with another source, their own file left as it is.

LOAM_MUTANT_MODULES: MODULE=FILE, several divided by ":": FILE holds the text that stands in for the module's.
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
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert found is not None and found.origin is not None, fullname
        loader = _Loader(fullname, found.origin, self._texts[fullname])
        return importlib.util.spec_from_file_location(fullname, found.origin, loader=loader)


_given = os.environ.get("LOAM_MUTANT_MODULES", "")
if _given:
    sys.meta_path.insert(0, _Finder({n: Path(f) for n, _, f in (one.partition("=") for one in _given.split(":"))}))
