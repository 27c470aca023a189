"""The machine as a factor in what `loam compare` says: of one result that several machines measured, or of two results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.commands.compare.sides import Side
from loam_lab.commands.run import tables
from loam_lab.judging.across import judge
from loam_lab.model import words
from loam_lab.model.result import AcrossMachines, Cell, Differing, Facts, MachineRatio, MachinesCase

if TYPE_CHECKING:
    from rich.text import Text

SCHEMA = 1


def of_one(side: Side) -> dict[str, Any]:
    """What the machines of one result say of each other, as a document.

    raises: LoamError if it is of one machine alone
    """
    answers = judge.of_result(side.raw)
    if not answers:
        raise LoamError(
            "compare", side.source, "no case of it was measured on two machines, and no second result is named",
            "name a second result, or measure on several machines with --engine",
        )  # fmt: skip
    return {"schema": SCHEMA, "source": side.source, "across_machines": answers}


def of_two(first: Side, second: Side) -> list[AcrossMachines]:
    """What the machines of two results say of each other; cells match by what was measured, not by group."""
    machines: dict[str, Facts] = {}
    cells: list[Cell] = []
    names = [{cell.raw.factors.machine for cell in side.cells.values()} for side in (first, second)]
    for side, word, others in ((first, "first", names[1]), (second, "second", names[0])):
        for cell in side.cells.values():
            name = cell.raw.factors.machine
            # Both results may call their machine "host".
            shown = f"{name} ({word})" if name in others else name
            machines[shown] = side.machines.get(name, side.machine)
            cells.append(replace(cell.raw, group="", factors=replace(cell.raw.factors, machine=shown)))
    primary = {**second.raw.primary_metrics, **first.raw.primary_metrics}
    merged = replace(first.raw, cells=cells, machines=machines, primary_metrics=primary, groups=[], units={})
    return judge.of_result(merged)


def show(answer: AcrossMachines) -> None:
    """Print the tables of one answer, and the answer."""
    out = console.out()
    for case in answer.cases:
        columns = ["allocator", *case.ranking, "machines differ"]
        ratios = {(one.allocator, one.machine): one for one in case.ratios}
        differing = {one.allocator: one for one in case.differing}
        rows = [
            [
                _text(name), *(_ratio(ratios.get((name, machine))) for machine in case.ranking),
                _text(_differs(case, differing.get(name))),
            ]
            for name in case.allocators[1:]
        ]  # fmt: skip
        title = f"{case.label} · times as good as {case.baseline}"
        out.print(console.table(columns, rows, numeric=columns[1:-1], title=title))
        for machine, ranking in case.ranking.items():
            blocks = case.blocks[machine]
            out.print(_text(f"{machine}: {judge.ranked(ranking)}   ({blocks} blocks)"), soft_wrap=True)
    out.print(_text(f"Does the ranking hold across machines? {answer.text}"), soft_wrap=True)


def _text(text: str) -> Text:
    from rich.text import Text

    return Text(text)


def _ratio(one: MachineRatio | None) -> Text:
    if one is None:
        return _text("")
    span = tables.span(one)
    return _text(f"{one.estimate:.3f} {span} {words.verdict_mark(one.verdict)}".replace("  ", " ").rstrip())


def _differs(case: MachinesCase, one: Differing | None) -> str:
    if one is None or case.interaction == "too few blocks":
        return "too few blocks"
    return f"yes, p {max(case.p_holm or 0, one.p or 0):.4f}" if one.shown else "not shown"
