"""Warnings for readers: fact, consequence, next step; the same warning of many cells becomes one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loam_lab.presenting.report import findings
from loam_lab.presenting.report.view import Study

# A number that differs from cell to cell, not one inside a name or a version.
_NUMBER = re.compile(r"(?<![\w.:/-])\d+(?:\.\d+)?(?![\w.:/-]*\w)")


@dataclass(frozen=True)
class Warned:
    """A warning in its three parts, and the cells where it holds (none: the whole study)."""

    fact: str
    consequence: str
    step: str
    places: tuple[str, ...]


def warnings(study: Study) -> list[Warned]:
    """Warnings of the study and of its cells, those of the study first.

    Texts that differ only in their numbers are told once, with the range of each number and all their cells.
    """
    by_text: dict[str, list[tuple[str, str]]] = {}
    for text in study.raw.warnings:
        by_text.setdefault(str(text), []).append((str(text), ""))
    labels = {id(cell): findings.group_label(study, group) for group in study.every for cell in group.cells}
    for cell in study.cells:
        for text in cell.warnings:
            # Grouped apart from the study's own: those speak of all cells at once.
            key = "cells: " + _NUMBER.sub("#", text)
            by_text.setdefault(key, []).append((text, f"{labels[id(cell)]}, {cell.name}"))
    return [
        _merged([text for text, _ in places], [place for _, place in places if place]) for places in by_text.values()
    ]


def _merged(texts: list[str], places: list[str]) -> Warned:
    columns = list(zip(*(_NUMBER.findall(text) for text in texts), strict=True))
    spans = iter([_span(list(column)) for column in columns])
    text = _NUMBER.sub(lambda _: next(spans), texts[0])
    parts = [part.strip() for part in text.split(";")]
    if len(parts) > 3:
        parts = [parts[0], "; ".join(parts[1:-1]), parts[-1]]
    fact, consequence, step = [*parts, "", ""][:3]
    return Warned(fact, consequence, step, tuple(places))


def _span(numbers: list[str]) -> str:
    low, high = min(numbers, key=float), max(numbers, key=float)
    return low if float(low) == float(high) else f"{low} to {high}"
