"""From a Result to the files of a report."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from loam_lab.base.errors import LoamError, unknown
from loam_lab.judging.claims.together import Run
from loam_lab.model.result import Result
from loam_lab.model.result.labelled import labelled
from loam_lab.presenting.report import figures, html, raster, tables, text, view

FORMATS = ("html", "csv", "md", "svg")
PNG = "png"  # only where it is asked for: raster.py


def build(
    result: Result,
    out: Path,
    *,
    formats: Iterable[str] = FORMATS,
    source: str = "result",
    others: Iterable[Run] = (),
) -> dict[str, Path]:
    """Write the report of a Result.

    result: the dictionary of result.json; out: folder, made where it is missing; source: the result's name in errors
    others: other runs of its study, whose verdicts on claims are told beside its own
    returns: format -> what was written: report.html, results.csv, report.md, and for svg and png the folder figures
    raises: LoamError for a result of another schema, an unknown format, a folder that cannot be written
    """
    wanted = list(dict.fromkeys(formats))
    for name in wanted:
        if name not in (*FORMATS, PNG):
            raise unknown("formats", name, (*FORMATS, PNG), "report format")
    study = view.read(labelled(result), source, others)
    # CSV needs no figure: it is written without importing the drawing libraries.
    drawn = figures.draw(study) if set(wanted) - {"csv"} else []
    written: dict[str, Path] = {}
    if "csv" in wanted:
        written["csv"] = _write(out / "results.csv", tables.to_csv(study).encode())
    if "html" in wanted:
        written["html"] = _write(out / "report.html", html.render(study, drawn).encode())
    if "md" in wanted:
        written["md"] = _write(out / "report.md", text.render(study, drawn, "svg" in wanted).encode())
    if "svg" in wanted or PNG in wanted:
        folder = out / "figures"
        documents = figures.documents(drawn)
        for name, document in documents.items():
            if "svg" in wanted:
                _write(folder / f"{name}.svg", document.encode())
        if PNG in wanted:
            for file, picture in raster.draw(documents).items():
                _write(folder / f"{file}.png", picture)
        written.update({name: folder for name in ("svg", PNG) if name in wanted})
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
