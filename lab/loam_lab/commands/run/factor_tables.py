"""Console tables of a screening: which factor decides, in words, then every change with its interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loam_lab.base import console
from loam_lab.commands.run import tables

if TYPE_CHECKING:
    from rich.text import Text

    from loam_lab.model.result import Result, Screening


def show(result: Result) -> None:
    """Print each screening of a Result on standard output, then what failed."""
    from rich.text import Text

    out = console.out()
    for case in result.factors or ():
        for number, sentence in enumerate(case.text):
            out.print(Text(sentence, style="" if number else "head"), soft_wrap=True)
        out.print()
        columns = ["factor", "was", "now", f"{case.metric} of {case.baseline}", "interval", "verdict"]
        title = f"{case.title}: one factor changed at a time, {case.size} changes adjusted by {case.method}"
        out.print(console.table(columns, _rows(case), numeric=columns[3:5], title=title))
        if again := case.again:
            text = f"the base against itself: {tables.number(again)}, {tables.span(again)}"
            out.print(Text(text, style="aside"), soft_wrap=True)
    tables.failures(result)


def _rows(case: Screening) -> Iterator[list[str | Text]]:
    from rich.text import Text

    for factor in case.factors:
        for number, level in enumerate(factor.levels):
            yield [
                Text("" if number else factor.factor), Text("" if number else factor.was), Text(level.value),
                tables.number(level), tables.span(level), tables.verdict_of(level.verdict, level.rough),
            ]  # fmt: skip
