"""`loam report`: rebuild the report of a result that lies in a folder."""

from __future__ import annotations

from pathlib import Path

from loam_lab.base import console, paths
from loam_lab.judging.claims import together
from loam_lab.model.store.folder import read_result


def report(
    result_folder_or_none: Path | None = None, out: Path | None = None, json: bool = False, png: bool = False
) -> dict[str, Path]:
    """Write report.html, results.csv, report.md and figures/ of a result.

    png: pictures as PNG too; their converter is installed when it is first needed
    result_folder_or_none: None means results/latest of the current folder; out: None means the result's own folder
    returns: format -> path, which is also what --json prints
    raises: LoamError for what cannot be read or written
    """
    from loam_lab.presenting.report.builder import FORMATS, PNG, build

    folder = result_folder_or_none if result_folder_or_none is not None else paths.latest_result()
    target = out if out is not None else (folder.parent if folder.is_file() else folder)
    formats = (*FORMATS, PNG) if png else FORMATS
    result = read_result(folder)
    others = together.beside(folder.parent if folder.is_file() else folder, result.study) if result.claims else ()
    written = build(result, target, formats=formats, source=str(folder), others=others)
    if json:
        console.print_json({"schema": 1, "report": {name: str(path) for name, path in written.items()}})
    else:
        console.out().print(f"report: {written['html']}", soft_wrap=True, markup=False)
    return written
