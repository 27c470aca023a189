"""From a Result to the files of a report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from loam_lab.errors import LoamError, unknown
from loam_lab.report import figures, html, tables, text, view

FORMATS = ("html", "csv", "md", "svg", "png")
# A picture as PNG takes a tenth of a second: a study with more of them has SVG files only, unless asked otherwise.
PNG_MAX = 30


def build(
    result: Mapping[str, Any],
    out: Path,
    *,
    formats: Iterable[str] = FORMATS,
    source: str = "result",
    png_max: int = PNG_MAX,
) -> dict[str, Path]:
    """Write the report of a Result.

    result: the dictionary of result.json; out: folder, made where it is missing; source: the result's name in errors
    png_max: no picture is drawn as PNG where there are more than so many
    returns: format -> what was written: report.html, results.csv, report.md, and for svg and png the folder figures
    raises: LoamError for a result of another schema, an unknown format, a folder that cannot be written
    """
    wanted = list(dict.fromkeys(formats))
    for name in wanted:
        if name not in FORMATS:
            raise unknown("formats", name, FORMATS, "report format")
    study = view.read(result, source)
    # CSV needs no figure: it is written without importing the drawing libraries.
    drawn = figures.draw(study) if set(wanted) - {"csv"} else []
    written: dict[str, Path] = {}
    if "csv" in wanted:
        written["csv"] = _write(out / "results.csv", tables.to_csv(study).encode())
    if "html" in wanted:
        written["html"] = _write(out / "report.html", html.render(study, drawn).encode())
    if "md" in wanted:
        written["md"] = _write(out / "report.md", text.render(study, drawn, "svg" in wanted).encode())
    if "svg" in wanted or "png" in wanted:
        folder = out / "figures"
        documents = figures.documents(drawn)
        if len(documents) > png_max:
            wanted = [name for name in wanted if name != "png"]
        for name, document in documents.items():
            if "svg" in wanted:
                _write(folder / f"{name}.svg", document.encode())
            if "png" in wanted:
                _write(folder / f"{name}.png", figures.png(document))
        written.update({name: folder for name in ("svg", "png") if name in wanted})
    return written


def _write(path: Path, content: bytes) -> Path:
    """Replace a file whole: a full disk or a kill leaves the old one as it was."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_bytes(content)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as problem:
        raise LoamError(
            str(path), None, f"cannot be written: {problem.strerror or problem}", "name another folder with --out"
        ) from problem
    return path
