"""`loam compare`: two results, one table, and with --gate an exit status for scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.commands.compare import judge, machines, sides
from loam_lab.commands.run import tables
from loam_lab.model import words
from loam_lab.model.result import Ends

if TYPE_CHECKING:
    from rich.text import Text

# The word for how a gate ended, and the exit status.
FAILED, UNDECIDED, PASSED = "failed", "undecided", "passed"
# Cells that a line below the tables names, which have all.
NAMED_MAX = 3
STATUS = {PASSED: 0, FAILED: 1, UNDECIDED: 3}


def compare(
    first: Path,
    second: Path | None = None,
    *,
    gate: float | None = None,
    strict: bool = False,
    across_machines: bool = False,
    as_json: bool = False,
) -> int:
    """Compare two results and print what changed; returns the exit status: STATUS of how the gate ended.

    first, second: folders of results, or their files; without a second one, the machines of the first are compared
    gate: the second must be that many times as good as the first; strict: and every cell must be decided
    raises: LoamError for what cannot be read or compared
    """
    if gate is not None and not (gate > 0 and math.isfinite(gate)):
        raise LoamError("--gate", gate, "must be a ratio above 0", "0.97 accepts what is at most 3 % worse")
    if strict and gate is None:
        raise LoamError("--strict", None, "belongs to --gate", "for example --gate 0.97 --strict")
    if second is None:
        return _one(first, gate, as_json=as_json)
    before, after = sides.read(first), sides.read(second)
    if not (sides.knows_defaults(before) and sides.knows_defaults(after)):
        # An older result says only which parameters were given; both are then matched by those.
        before, after = sides.read(first, defaults=False), sides.read(second, defaults=False)
    comparison = judge.compare(before, after, gate=gate, across_machines=across_machines)
    if comparison["gate"]:
        comparison["gate"] |= {"strict": strict, "verdict": _ended(comparison, strict)}
    comparison["across_machines"] = [] if comparison["same_machine"] else machines.of_two(before, after)
    if as_json:
        console.print_json(comparison)
    else:
        show(comparison)
    for text in comparison["warnings"]:
        console.warn(text)
    return STATUS[comparison["gate"]["verdict"]] if comparison["gate"] else 0


def _ended(comparison: Mapping[str, Any], strict: bool) -> str:
    """How a gate ended. One that decided no cell has not passed; a strict one has not if any is left undecided."""
    gate = comparison["gate"]
    if gate["failed"]:
        return FAILED
    left = gate["open"] or gate["unmeasured"] or comparison["only_first"] or comparison["only_second"]
    return UNDECIDED if not gate["passed"] or (strict and left) else PASSED


def _one(result: Path, gate: float | None, *, as_json: bool) -> int:
    """The machines of one result beside each other."""
    if gate is not None:
        raise LoamError("--gate", gate, "needs two results", "name the second one too")
    document = machines.of_one(sides.read(result))
    if as_json:
        console.print_json(document)
        return 0
    for answer in document["across_machines"]:
        machines.show(answer)
    return 0


def show(comparison: Mapping[str, Any]) -> None:
    """Print a comparison on standard output."""
    out = console.out()
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for cell in comparison["cells"]:
        parameters = " ".join(f"{name}={value}" for name, value in cell["parameters"].items())
        threads = f"{cell['threads']} thread" + ("" if cell["threads"] == 1 else "s")
        measured = f"{cell['workload']} {parameters}".rstrip()
        groups.setdefault(f"{measured} · {cell['sync']}, {threads}", []).append(cell)
    for title, cells in groups.items():
        head = cells[0]["metric"]
        columns = ["allocator", f"{head} before", "now", "ratio", "interval", "against", "verdict"]
        columns += ["gate"] if comparison["gate"] else []
        rows = [_row(cell, gated=bool(comparison["gate"])) for cell in cells]
        if comparison["gate"] and out.width < tables.WIDE:  # what the gate says needs the room
            against = columns.index("against")
            del columns[against]
            for row in rows:
                del row[against]
        out.print(console.table(columns, rows, numeric=columns[1:5], title=title))
    for word, cells in (("first", comparison["only_first"]), ("second", comparison["only_second"])):
        if cells:
            text = f"only in the {word} result: {len(cells)} cells, as {cells[0]}"
            out.print(text, markup=False, soft_wrap=True, style="aside")
    for answer in comparison.get("across_machines", ()):
        machines.show(answer)
    if comparison["changed"]:
        out.print("what else changed: " + "; ".join(comparison["changed"]), markup=False, soft_wrap=True)
    if comparison["gate"]:
        _show_gate(comparison)


def _row(cell: Mapping[str, Any], *, gated: bool) -> list[str | Text]:
    from rich.text import Text

    # The interval that decides is the one shown.
    given = {"baseline": cell["ratio_of_ratios"], "values": cell["ratio"], "day": cell["ratio"]}.get(cell["by"])
    ratio = None if given is None else Ends(given["estimate"], given["low"], given["high"])
    row: list[str | Text] = [
        Text(cell["allocator"]),
        *(_value(cell[side]["estimate"], cell["unit"]) for side in ("first", "second")),
        tables.number(ratio),
        tables.span(ratio),
        {"baseline": "baseline", "values": "itself", "day": "the day"}.get(cell["by"] or "", ""),
        tables.verdict_of(cell["verdict"], cell["rough"]),
    ]
    return [*row, Text(cell["gate"], style={"failed": "bad", "passed": "good"}.get(cell["gate"], ""))] if gated else row


def _value(estimate: float | None, unit: str) -> str:
    return "" if estimate is None else words.quantity(estimate, unit)


def _some(cells: Sequence[str]) -> str:
    """The first cells by name; the tables have all."""
    rest = len(cells) - NAMED_MAX
    return "; ".join(cells[:NAMED_MAX]) + (f"; and {rest} more" if rest > 0 else "")


def _show_gate(comparison: Mapping[str, Any]) -> None:
    from rich.text import Text

    gate, out = comparison["gate"], console.out()
    for cell in gate["failed"]:
        out.print(Text(f"below the gate of {gate['ratio']:g}: {cell}", style="bad"), soft_wrap=True)
    if gate["open"]:
        text = (
            f"not decided: {len(gate['open'])} cells, whose intervals contain {gate['ratio']:g}: {_some(gate['open'])}"
        )
        out.print(Text(f"{text}; more blocks would tell"), soft_wrap=True)
    if gate["unmeasured"]:
        text = f"not measured: {len(gate['unmeasured'])} cells without good runs before: {_some(gate['unmeasured'])}"
        out.print(Text(f"{text}; see failures in result.json"), soft_wrap=True)
    counts = (
        f"{gate['passed']} cells at or above {gate['ratio']:g}, {len(gate['failed'])} below, {len(gate['open'])} open"
    )
    counts += f", {len(gate['unmeasured'])} not measured" if gate["unmeasured"] else ""
    style = {PASSED: "good", UNDECIDED: "doubt", FAILED: "bad"}[gate["verdict"]]
    out.print(Text(f"gate {gate['verdict']}: {counts}", style=style), soft_wrap=True)
