"""`loam report`: rebuild the report of a result that lies in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from loam_lab import console, paths
from loam_lab.store.folder import read_result


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
    written = build(read_result(folder), target, source=str(folder), png_max=sys.maxsize if png else PNG_MAX)
    if json:
        console.print_json({"schema": 1, "report": {name: str(path) for name, path in written.items()}})
    else:
        console.out().print(f"report: {written['html']}", soft_wrap=True, markup=False)
        if "png" not in written:
            console.note(
                f"there are many pictures, so they are SVG only, in {written['svg']}; --png draws them as PNG too"
            )
    return written
