"""What the result says, in words: rankings with honest ties, fitness of the machine, causes of aborts.

Works on intervals that the Result gives; nothing is re-estimated here.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loam_lab.report import rounding, words
from loam_lab.report.view import Case, Cell, Group, Interval, Study, mapping_title, number, reference_of, within


@dataclass(frozen=True)
class Answer:
    """Best and worst of one group. ratio: best against worst; ties: others not told apart from the best.

    level: all allocators tie, so that naming a best would mislead
    """

    case: Case
    group: Group
    best: str
    worst: str
    ratio: Interval
    verdict: str
    text: str
    ties: tuple[str, ...]
    level: bool

    @property
    def label(self) -> str:
        """The case, and the mapping where the case has several."""
        extra = mapping_title(self.group)
        return f"{self.case.title}, {extra}" if extra else self.case.title


@dataclass(frozen=True)
class Fitness:
    """What the A/A sentinel says of the machine. limit, typical: smallest visible difference, as fractions."""

    copies: tuple[tuple[str, Interval], ...]
    containing: int
    limit: float
    typical: float
    noisiest: str


@dataclass(frozen=True)
class Contrast:
    """One ratio between two ways of doing the same, for one allocator."""

    what: str
    allocator: str
    ratio: Interval
    metric: str


@dataclass(frozen=True)
class Finding:
    """One thing to take home: a bold lead and a sentence."""

    lead: str
    text: str


def standing(cell: Cell) -> Interval | None:
    """A cell's ratio to the baseline; exactly 1 for the baseline itself; None where it was not measured."""
    if cell.verdict == "baseline" and cell.state == "ok":
        return Interval(1.0, 1.0, 1.0)
    return cell.ratio


def ranking(group: Group) -> list[Cell]:
    """Measured cells without the sentinel, best first (by the direction that the metric states)."""
    known = [cell for cell in group.cells if cell.copy == 0 and _estimate(group, cell) is not None]
    lower = any(metric.better == "lower" for cell in known if (metric := group.primary(cell)))
    return sorted(known, key=lambda cell: (_estimate(group, cell) or 0.0) * (1 if lower else -1))


def _estimate(group: Group, cell: Cell) -> float | None:
    metric = group.primary(cell)
    return metric.estimate if metric else None


def ties_with(group: Group, best: str) -> tuple[str, ...]:
    """Allocators whose interval against the baseline overlaps the best one's (the cautious reading)."""
    spans = {cell.allocator: standing(cell) for cell in group.cells if cell.copy == 0}
    top = spans.get(best)
    if top is None or top.low is None or top.high is None:
        return ()
    return tuple(
        name for name, span in spans.items()
        if name != best and span is not None and span.low is not None and span.high is not None
        and span.low <= top.high and top.low <= span.high
    )  # fmt: skip


def answers(study: Study) -> list[Answer]:
    """One answer per group with at least two measured allocators, in the order of the cases."""
    found = []
    for case in study.cases:
        for group in case.groups:
            ranked = ranking(group)
            if len(ranked) < 2:
                continue
            stated = _headline(study, group)
            found.append(_stated(case, group, stated) if stated else _derived(study, case, group, ranked))
    return found


def _headline(study: Study, group: Group) -> Mapping[str, Any] | None:
    for item in study.raw.get("headlines") or []:
        same = item.get("workload") == group.workload and str(item.get("sync", group.sync)) == group.sync
        threads = item.get("threads")
        if same and within(item.get("parameters") or {}, group.parameters) and threads in (None, group.threads):
            # A headline may leave out what its study does not vary, but never the mapping.
            if group.mapping and "mapping" not in (item.get("parameters") or {}):
                continue
            return item if item.get("best") and item.get("worst") else None
    return None


def _stated(case: Case, group: Group, item: Mapping[str, Any]) -> Answer:
    ratio = item.get("ratio") or {}
    span = Interval(number(ratio.get("estimate")), number(ratio.get("low")), number(ratio.get("high")))
    best, worst = str(item["best"]), str(item["worst"])
    verdict = str(item.get("verdict", ""))
    ties = tuple(map(str, item["ties"])) if "ties" in item else ties_with(group, best)
    return Answer(case, group, best, worst, span, verdict, str(item.get("text", "")), ties, worst in ties or verdict == "equivalent")


def _derived(study: Study, case: Case, group: Group, ranked: Sequence[Cell]) -> Answer:
    best, worst = ranked[0], ranked[-1]
    ratio = Interval(None, None, None)
    if worst.allocator == study.baseline and best.ratio:
        ratio = best.ratio
    elif best.allocator == study.baseline and worst.ratio:
        ratio = _inverse(worst.ratio)
    elif best.ratio and worst.ratio and best.ratio.estimate and worst.ratio.estimate:
        # Two ratios against a third give an estimate, but no interval of their own.
        ratio = Interval(best.ratio.estimate / worst.ratio.estimate, None, None)
    ties = ties_with(group, best.allocator)
    verdict = worst.verdict if best.allocator == study.baseline else best.verdict
    return Answer(case, group, best.allocator, worst.allocator, ratio, verdict, "", ties, worst.allocator in ties)


def _inverse(span: Interval) -> Interval:
    def invert(value: float | None) -> float | None:
        return 1 / value if value else None

    return Interval(invert(span.estimate), invert(span.high), invert(span.low))


def answer_sentence(answer: Answer) -> str:
    """The answer as one sentence, from the Result where it has one."""
    if answer.text:
        return answer.text
    if answer.level:
        return "No difference between the allocators could be established."
    return (
        f"{answer.best} has {rounding.ratio(answer.ratio.estimate, answer.ratio.low, answer.ratio.high)}\u00a0× "
        f"{words.faster(answer.group.metric)} {answer.worst} {spoken(answer.ratio)}."
    )


def spoken(span: Interval) -> str:
    """The interval as text in a sentence."""
    return rounding.interval(span.estimate, span.low, span.high)


def fitness(study: Study) -> Fitness | None:
    """The A/A sentinel over all groups; None where the study ran without one."""
    copies = []
    for group in study.groups:
        for cell in group.cells:
            if cell.copy and cell.ratio and cell.ratio.low is not None and cell.ratio.high is not None:
                copies.append((group_label(study, group), cell.ratio))
    if not copies:
        return None
    reach = [max(span.high - 1, 1 - span.low) for _, span in copies if span.high is not None and span.low is not None]
    containing = sum((span.low or 0) <= 1 <= (span.high or 0) for _, span in copies)
    noisiest = copies[reach.index(max(reach))][0]
    return Fitness(tuple(copies), containing, max(reach), statistics.median(reach), noisiest)


def group_label(study: Study, group: Group) -> str:
    """A group's name within the study: its case and its mapping, or that it is sequential."""
    for case in study.cases:
        if group in case.groups:
            extra = mapping_title(group)
            return f"{case.title}, {extra}" if extra else case.title
    if group in study.references:
        return f"{group.workload}, {words.parameters(_telling(study, group))}, sequential".replace(", ,", ",")
    return f"{group.workload}, {words.parameters(group.parameters)}"


def _telling(study: Study, group: Group) -> dict[str, Any]:
    twins = [other for other in study.references if other.workload == group.workload]
    return {
        key: value for key, value in group.plain.items()
        if key == "structure" or len({str(other.plain.get(key)) for other in twins}) > 1
    }  # fmt: skip


def cause_counts(blame: Mapping[str, float]) -> dict[str, float]:
    """Aborts of a blame run by the five causes of words.CAUSES."""
    return {key: sum(blame.get(name, 0.0) for name in names) for key, _, names in words.CAUSES}


def placement(blame: Mapping[str, float]) -> float:
    """Aborts that only the placement of blocks brought about: another block, or another stripe."""
    return sum(blame.get(name, 0.0) for name in words.PLACEMENT)


def blame_remark(group: Group) -> str:
    """What placement did in one group: the least and the most among the allocators, or that it did nothing."""
    known = [(cell.allocator, cell.blame) for cell in group.cells if cell.blame and cell.copy == 0 and cell.blame.get("aborts")]
    if not known:
        return ""
    where = mapping_title(group)
    lead = f"{where[:1].upper()}{where[1:]}: " if where else ""
    shares = [(placement(blame) / blame["aborts"], name) for name, blame in known]
    if not any(share for share, _ in shares):
        total = sum(blame["aborts"] for _, blame in known)
        return f"{lead}of {rounding.count(total)} aborts none is due to placement."
    low, high = min(shares), max(shares)
    return (
        f"{lead}due to placement are between {rounding.percent(low[0], 2)} ({low[1]}) and "
        f"{rounding.percent(high[0], 2)} ({high[1]}) of the aborts."
    )


def contrasts(study: Study, case: Case) -> list[Contrast]:
    """The Result's contrasts that belong to a case, in the fixed order of allocators."""
    first = case.groups[0]
    found = []
    for item in study.raw.get("contrasts") or []:
        if item.get("workload") != first.workload or not within(item.get("parameters") or {}, first.plain):
            continue
        if str(item.get("sync", first.sync)) != first.sync or item.get("threads", first.threads) != first.threads:
            continue
        span = Interval(number(item.get("estimate")), number(item.get("low")), number(item.get("high")))
        found.append(Contrast(str(item.get("what", "")), str(item.get("allocator", "")), span, str(item.get("metric", ""))))
    return sorted(found, key=lambda one: (one.what, _place(study, one.allocator)))


def _place(study: Study, allocator: str) -> int:
    return study.allocators.index(allocator) if allocator in study.allocators else len(study.allocators)


def spread(group: Group) -> float | None:
    """Largest over smallest estimate among the allocators of a group, or None with fewer than two."""
    estimates = [value for cell in ranking(group) if (value := _estimate(group, cell))]
    return max(estimates) / min(estimates) if len(estimates) > 1 else None


def effect_remark(study: Study, case: Case) -> str:
    """How far allocators differ in a case and in its sequential twin, by their estimates."""
    reference = reference_of(case.groups[0], study)
    parts = []
    for group in case.groups:
        if (value := spread(group)) is not None:
            place = f"with {'the ' if group.mapping == 'table' else ''}{mapping_title(group)}" if group.mapping else "synchronised"
            parts.append(f"{rounding.ratio(value)}\u00a0× {place}")
    alone = spread(reference) if reference else None
    if not parts or alone is None:
        return ""
    return f"Between the best and the worst allocator: {', '.join(parts)}; {rounding.ratio(alone)}\u00a0× in the sequential program."


def take_home(study: Study) -> list[Finding]:
    """Three to five sentences that answer the study's question."""
    found = [*_speed(answers(study)), *_causes(study), *_mapping(study)]
    fit = fitness(study)
    if fit:
        found.append(Finding("The instrument. ", fitness_sentence(study, fit)))
    return found


def _speed(given: Sequence[Answer]) -> list[Finding]:
    found = []
    for workload in dict.fromkeys(answer.group.workload for answer in given):
        mine = [answer for answer in given if answer.group.workload == workload]
        apart = [answer for answer in mine if not answer.level and answer.ratio.estimate]
        lead = f"Speed, {workload}. "
        if not apart:
            found.append(Finding(lead, "No difference between the allocators could be established in any case."))
            continue
        widest = max(apart, key=lambda answer: max(answer.ratio.estimate or 1, 1 / (answer.ratio.estimate or 1)))
        where = f" in {widest.label.removeprefix(workload + ', ')}" if len(mine) > 1 else ""
        size = rounding.ratio(widest.ratio.estimate, widest.ratio.low, widest.ratio.high)
        text = (
            f"The choice matters most{where}: {widest.best} has {size}\u00a0× {words.faster(widest.group.metric)} "
            f"{widest.worst} {spoken(widest.ratio)}." if len(mine) > 1 else
            f"{widest.best} has {size}\u00a0× {words.faster(widest.group.metric)} {widest.worst} {spoken(widest.ratio)}."
        )  # fmt: skip
        level = sum(answer.level for answer in mine)
        if level:
            text += f" In {level} of {len(mine)} cases best and worst are a statistical tie."
        found.append(Finding(lead, text))
    return found


def _causes(study: Study) -> list[Finding]:
    by_mapping: dict[str, list[tuple[float, float, str]]] = {}
    for case in study.cases:
        for group in case.groups:
            for cell in group.cells:
                if cell.blame and cell.copy == 0 and cell.blame.get("aborts"):
                    label = f"{case.title.removeprefix(group.workload + ', ')}, {cell.allocator}"
                    by_mapping.setdefault(group.mapping, []).append((placement(cell.blame), cell.blame["aborts"], label))
    parts = []
    for mapping, rows in by_mapping.items():
        caused, total = sum(row[0] for row in rows), sum(row[1] for row in rows)
        name = words.MAPPINGS.get(mapping, mapping)
        place = f"with {'the ' if mapping == 'table' else ''}{name}" if name else "in the blame runs"
        if caused == 0:
            parts.append(f"{place} none of {rounding.count(total)} aborts had that cause")
        else:
            share, label = max((row[0] / row[1], row[2]) for row in rows)
            parts.append(f"{place} up to {rounding.percent(share, 2)} of the aborts ({label}) met no data of the other transaction")
    if not parts:
        return []
    text = "; ".join(parts)
    return [Finding("Aborts by placement. ", f"{text[0].upper()}{text[1:]}.")]


def _mapping(study: Study) -> list[Finding]:
    found = []
    every = [contrast for case in study.cases for contrast in contrasts(study, case)]
    for what in dict.fromkeys(contrast.what for contrast in every):
        spans = [one.ratio for one in every if one.what == what and one.ratio.estimate is not None]
        known = [span for span in spans if span.low is not None and span.high is not None]
        if not known:
            continue
        above = sum((span.low or 0) > 1 for span in known)
        below = sum((span.high or 0) < 1 for span in known)
        low, high = min(span.estimate or 0 for span in spans), max(span.estimate or 0 for span in spans)
        text = (
            f"From {rounding.ratio(low)}\u00a0× to {rounding.ratio(high)}\u00a0× by allocator and structure; of {len(known)} "
            f"intervals {above} lie above 1, {below} below, {len(known) - above - below} include it."
        )
        found.append(Finding(f"{what[:1].upper()}{what[1:]}. ", text))
    return found


def fitness_sentence(study: Study, fit: Fitness) -> str:
    """What differences this machine could show in this study, from the second copy of the baseline."""
    limit, typical = rounding.percent(fit.limit, 2), rounding.percent(fit.typical, 2)
    text = f"Machine fit for differences above {limit}"
    if len(fit.copies) > 1:
        text += f" ({typical} in the median case; the noisiest is {fit.noisiest})"
    total = len(fit.copies)
    text += f": a second copy of {study.baseline} ran in every block, and "
    text += f"{'its interval' if total == 1 else f'{fit.containing} of its {total} intervals'} "
    if total == 1:
        return text + ("includes 1." if fit.containing else "does not include 1.")
    return text + ("include 1, as they should." if fit.containing == total else "include 1 (one in twenty may miss it by chance).")
