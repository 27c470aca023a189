"""A result as one text for other programs: Markdown without pictures, or CSV."""

from __future__ import annotations

from loam_lab.model.result import Result
from loam_lab.presenting.report import tables, text, view

KINDS = ("markdown", "csv")


def render(result: Result, kind: str) -> str:
    """The text of a Result; kind: one of KINDS."""
    study = view.read(result, "result")
    return tables.to_csv(study) if kind == "csv" else text.render(study, [], pictures=False)
