"""The machine as a factor: a map per allocator of cases by machines, who is best where, and the tables behind them.

A map's cell is how many times as good as the baseline the allocator is there: blue is better, orange is worse.  The sign ≠
at the end of a row says that the machines differ in it beyond chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loam_lab.judging.across.judge import ranked
from loam_lab.model import words
from loam_lab.model.result import AcrossMachines, BaselineApart, Differing, MachinesCase, Pooled, Reversal
from loam_lab.presenting.report import heat, marks, palette, rounding, svg
from loam_lab.presenting.report.listing import Column, Table
from loam_lab.presenting.report.palette import INK, MUTED
from loam_lab.presenting.report.plates import Figure, Names, Plate
from loam_lab.presenting.report.rounding import MISSING
from loam_lab.presenting.report.view import Case, Study

# More cases than this are for files that a script reads, not for a page.
_CASES_MAX = 60
_LABEL, _WIDE, _HIGH, _HEAD, _SIGN = 196, 78, 26, 34, 24
DIFFER = {"shown": "yes", "not shown": "not shown", "too few blocks": "too few blocks"}


def answers(study: Study) -> list[AcrossMachines]:
    """What the Result says of its machines: one answer for those that exist, one for simulated ones."""
    return [one for one in study.raw.across_machines if one.cases]


def figure(study: Study, names: Names) -> Figure:
    """The maps; no plates for a result of one machine."""
    plates = []
    for answer in answers(study):
        cases, machines = answer.cases[:_CASES_MAX], answer.machines
        case = Case(words.listing(machines), "", (), (), same_work=False)
        name = names.make("machines", *machines)
        panels = [("best allocator", _best(study, cases, machines, names.make(name, "best")))]
        ratios = [one.estimate for line in cases for one in line.ratios]
        end = heat.end_of(ratios)
        rivals = dict.fromkeys(rival for line in cases for rival in line.allocators[1:])
        for rival in rivals:
            panels.append((rival, _map(rival, cases, machines, end, names.make(name, rival))))
        plates.append(Plate(case, name, tuple(panels)))
    below: list[str | Table] = [table for answer in answers(study) for table in tables(answer)]
    for sentence, compared in identical(study):
        below += [sentence, *compared]
    return Figure("machines", "Does it hold across machines?", "Machines", tuple(plates), below=tuple(below))


def _frame(cases: Sequence[MachinesCase], machines: Sequence[str]) -> tuple[list[str], int, int]:
    """Heads and row labels of a map, its width and its height."""
    parts = [
        marks.text(
            _LABEL + (column + 0.5) * _WIDE, _HEAD - 10, machine, size=11, anchor="middle", ink=MUTED, room=_WIDE
        )
        for column, machine in enumerate(machines)
    ]
    for index, line in enumerate(cases):
        parts.append(marks.text(0, _HEAD + index * _HIGH + 17, line.label, size=11, room=_LABEL - 8))
    return parts, _LABEL + len(machines) * _WIDE + _SIGN, _HEAD + len(cases) * _HIGH + 8


def _square(column: int, index: int, ground: str, shown: str, hover: str) -> list[str]:
    x, y = _LABEL + column * _WIDE, _HEAD + index * _HIGH
    ink = palette.on(ground)
    return [
        marks.rect(x + 1, y + 1, _WIDE - 2, _HIGH - 2, ground, hover=hover),
        marks.text(x + _WIDE / 2, y + 17, shown, size=11, anchor="middle", ink=ink, room=_WIDE - 4),
    ]


def _map(rival: str, cases: Sequence[MachinesCase], machines: Sequence[str], end: float, name: str) -> svg.Drawing:
    """One allocator's ratios to the baseline, case by case and machine by machine."""
    parts, width, height = _frame(cases, machines)
    descriptions = []
    for index, line in enumerate(cases):
        of_machine = {one.machine: one for one in line.ratios if one.allocator == rival}
        for column, machine in enumerate(machines):
            one = of_machine.get(machine)
            estimate = one.estimate if one else None
            if one is None or estimate is None or estimate <= 0:
                continue
            place = max(-1.0, min(1.0, math.log(estimate) / math.log(end)))
            span = rounding.interval(estimate, one.low, one.high)
            text = f"{line.label}, {machine}: {rounding.ratio(estimate)} times as good as {line.baseline} {span}"
            descriptions.append(text)
            shown = f"{rounding.ratio(estimate)} {words.verdict_mark(one.verdict)}".strip()
            parts += _square(column, index, heat.colour(place), shown, text)
        if any(one.allocator == rival and one.shown for one in line.differing):
            sign = f"{line.label}: the machines differ in the ratio of {rival} to {line.baseline}"
            x, y = _LABEL + len(machines) * _WIDE + 6, _HEAD + index * _HIGH + 18
            parts.append(marks.text(x, y, "≠", size=15, ink=INK, bold=True, hover=sign))
            descriptions.append(sign)
    return svg.Drawing(name, f"{rival} on each machine", "; ".join(descriptions), width, height, "".join(parts))


def _best(study: Study, cases: Sequence[MachinesCase], machines: Sequence[str], name: str) -> svg.Drawing:
    """The first of each ranking in its allocator's colour; with ≈ where the second is not told apart from it."""
    parts, width, height = _frame(cases, machines)
    colours = palette.of_allocators(study.allocators)
    descriptions = []
    for index, line in enumerate(cases):
        for column, machine in enumerate(machines):
            ranking = line.ranking.get(machine)
            if not ranking or not ranking.order:
                continue
            first = str(ranking.order[0])
            shown = first if ranking.apart and ranking.apart[0] else f"≈ {first}"
            text = f"{line.label}, {machine}: {ranked(ranking)}"
            descriptions.append(text)
            parts += _square(column, index, colours.get(first, palette.LEVEL), shown, text)
    return svg.Drawing(
        name, "The best allocator on each machine", "; ".join(descriptions), width, height, "".join(parts)
    )


def tables(answer: AcrossMachines) -> list[Table]:
    """Rankings, then where machines differ, then reversals."""
    machines = answer.machines
    columns = (
        Column("Case"),
        *(Column(machine) for machine in machines),
        Column("Machines differ"),
        Column("p", numeric=True),
    )
    rows = tuple(
        (
            line.label, *(_ranking(line, machine) for machine in machines),
            DIFFER.get(line.interaction, MISSING), _probability(line.p_holm),
        )
        for line in answer.cases
    )  # fmt: skip
    made = [Table("Allocators from best to worst; ≈ stands between neighbours that are not told apart", columns, rows)]
    shown = [(line, one) for line in answer.cases for one in line.differing if one.shown]
    if shown:
        columns = (
            Column("Case"), Column("Allocator"), Column("Its ratio to the baseline"), Column("Times", numeric=True),
            Column("95 % interval", numeric=True),
        )  # fmt: skip
        made.append(Table("Where the machines differ", columns, tuple(_differing(line, one) for line, one in shown)))
    if answer.reversals:
        columns = (
            Column("Case"), Column("Better"), Column("Than"), Column("On"), Column("Times", numeric=True), Column("But on"),
            Column("Times", numeric=True), Column("p", numeric=True),
        )  # fmt: skip
        made.append(Table("Allocators that change places", columns, tuple(_reversal(one) for one in answer.reversals)))
    return made


def _ranking(line: MachinesCase, machine: str) -> str:
    ranking = line.ranking.get(machine)
    return ranked(ranking) if ranking else MISSING


def _probability(p: float | None) -> str:
    if p is None:
        return MISSING
    return "< 0.001" if p < 0.001 else rounding.fixed(p, 3) if p else "0"


def _differing(line: MachinesCase, one: Differing) -> tuple[str, ...]:
    between = f"on {one.between[1]}, against that on {one.between[0]}"
    return line.label, one.allocator, between, *rounding.spread(one)


def _reversal(one: Reversal) -> tuple[str, ...]:
    times, times_there = (rounding.spread(ratio)[0] for ratio in (one.ratio, one.ratio_there))
    return one.case, one.better, one.than, one.on, times, one.but_worse_on, times_there, _probability(one.p_holm)


def identical(study: Study) -> list[tuple[str, list[Table]]]:
    """For each set of machines that was declared identical: a sentence, its A/A comparison, and the pooled ratios."""
    sets = []
    for one in study.raw.identical:
        names = words.listing(one.machines)
        if one.passed:
            text = f"{names} were declared identical, and their A/A comparison passes: their blocks are pooled below."
        else:
            text = f"{names} were declared identical, and their A/A comparison does not pass: nothing is pooled."
            text += " " + ". ".join(reason[:1].upper() + reason[1:] for reason in one.reasons[:3]) + "."
        made = []
        if one.baseline:
            caption = "The baseline on machines that were declared identical"
            made.append(Table(caption, _APART, tuple(map(_apart, one.baseline))))
        if one.pooled:
            made.append(Table(f"Blocks of {names} together", _POOLED, tuple(map(_pooled, one.pooled))))
        sets.append((text, made))
    return sets


_APART = (
    Column("Case"), Column("Between"), Column("Ratio", numeric=True), Column("95 % interval", numeric=True),
    Column("Within the margin"),
)  # fmt: skip
_POOLED = (
    Column("Case"), Column("Allocator"), Column("× the baseline", numeric=True), Column("95 % interval", numeric=True),
    Column("Blocks", numeric=True), Column("Verdict"),
)  # fmt: skip


def _apart(one: BaselineApart) -> tuple[str, ...]:
    between = f"{one.between[1]} / {one.between[0]}"
    return one.case, between, *rounding.spread(one, 3), "yes" if one.within else "no"


def _pooled(one: Pooled) -> tuple[str, ...]:
    verdict = words.marked(one.verdict or MISSING)
    return one.case, one.allocator, *rounding.spread(one), rounding.count(one.n), verdict
