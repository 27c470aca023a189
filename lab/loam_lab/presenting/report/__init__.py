"""The report: from a Result to one HTML page, figures, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from loam_lab.judging.claims.together import Run
from loam_lab.model.result import Result

FORMATS = ("html", "csv", "md", "svg")


def build(
    result: Result, out: Path, *, formats: Iterable[str] = FORMATS, others: Iterable[Run] = ()
) -> dict[str, Path]:
    """See builder.build; the drawing libraries are imported only when this is called."""
    from loam_lab.presenting.report import builder

    return builder.build(result, out, formats=formats, others=others)
