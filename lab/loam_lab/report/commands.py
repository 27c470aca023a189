"""`loam report`: rebuild the report of a result that lies in a folder."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path
from typing import Any

from loam_lab import console, paths
from loam_lab.errors import LoamError


def load(folder: Path) -> dict[str, Any]:
    """The Result of a folder.

    folder: one that holds result.json, or that file itself
    raises: LoamError if it is not there or not whole
    """
    file = folder if folder.is_file() else folder / "result.json"
    try:
        content = jsonlib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "name the folder of a result, or finish its measurement with --resume"
        raise LoamError(str(folder), None, "holds no result.json", hint) from None
    except (OSError, ValueError) as problem:
        raise LoamError(
            str(file), None, f"cannot be read: {problem}", "measure again, or restore the file"
        ) from problem
    if not isinstance(content, dict):
        raise LoamError(
            str(file), None, "not a result of loam: it is not an object", "name a folder that holds result.json"
        )
    return content


def report(
    result_folder_or_none: Path | None = None, out: Path | None = None, json: bool = False, png: bool = False
) -> dict[str, Path]:
    """Write report.html, results.csv, report.md and figures/ of a result.

    png: pictures as PNG however many there are

    result_folder_or_none: None means results/latest of the current folder; out: None means the result's own folder
    returns: format -> path, which is also what --json prints
    raises: LoamError for what cannot be read or written
    """
    from loam_lab.report.builder import PNG_MAX, build

    folder = result_folder_or_none if result_folder_or_none is not None else paths.latest_result()
    target = out if out is not None else (folder.parent if folder.is_file() else folder)
    written = build(load(folder), target, source=str(folder), png_max=sys.maxsize if png else PNG_MAX)
    if json:
        console.print_json({"schema": 1, "report": {name: str(path) for name, path in written.items()}})
    else:
        console.out().print(f"report: {written['html']}", soft_wrap=True, markup=False)
        if "png" not in written:
            console.note(f"the pictures are SVG only, in {written['svg']}: they are many; --png draws those, too")
    return written
