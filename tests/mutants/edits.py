"""The edits of a mutant: exact text replacements in files of the runtime, whose text they must fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path


class Broken(Exception):
    """A mutant that does not fit the source any more, or does not compile."""


def apply(edits: Iterable[Mapping[str, str]], source: Path, target: Path) -> set[str]:
    """Write the files that edits change, changed, below `target`; what is not there yet comes from below `source`.

    edits: each with file, old, new; `old` must occur exactly once
    returns: the files, relative
    raises: Broken
    """
    touched = set()
    for edit in edits:
        file = target / edit["file"]
        text = (file if file.is_file() else source / edit["file"]).read_text()
        if text.count(edit["old"]) != 1:
            raise Broken(f"{edit['file']}: the text to replace occurs {text.count(edit['old'])} times, not once:\n"
                         f"{edit['old']}")  # fmt: skip
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(edit["old"], edit["new"]))
        touched.add(edit["file"])
    return touched
