"""What the result says: rankings with honest ties, fitness of the machine, causes of aborts, contrasts.

Works on intervals that the Result gives; nothing is re-estimated here.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loam_lab.model import result, words
from loam_lab.model.result import Cell, Ends, Headline
from loam_lab.presenting.report import rounding
from loam_lab.presenting.report.view import Case, Group, Study, reference_of, within


@dataclass(frozen=True)
class Answer:
    """Best and worst of one group. ratio: how many times better the best is; ties: others not told apart from the best.

    level: best and worst are not told apart, so that naming them would mislead
    rough: told apart, but the interval is wide: by how much is known roughly
    """

    case: Case
    group: Group
    best: str
    worst: str
    ratio: Ends
    verdict: str
    text: str
    ties: tuple[str, ...]
    level: bool
    rough: bool

    @property
    def label(self) -> str:
        """The case, and the group's level within it."""
        return self.case.full(self.group)


@dataclass(frozen=True)
class Fitness:
    """What the A/A sentinel says of the machine. limit, typical: smallest visible difference, as fractions."""

    copies: tuple[tuple[str, Ends], ...]
    containing: int
    limit: float
    typical: float
    noisiest: str


@dataclass(frozen=True)
class Contrast:
    """One ratio between two ways of doing the same, for one allocator.

    verdict: as a table tells it; where: the number of threads, in a case that has several
    """

    what: str
    allocator: str
    ratio: Ends
    metric: str
    verdict: str
    where: str = ""

    @property
    def title(self) -> str:
        """What was compared, and where."""
        return f"{self.what}, {self.where}" if self.where else self.what


def standing(cell: Cell) -> Ends | None:
    """A cell's ratio to the baseline; exactly 1 for the baseline itself; None where it was not measured."""
    if cell.verdict == "baseline" and cell.state == "ok":
        return Ends(1.0, 1.0, 1.0)
    return cell.ratio_to_baseline


def ranking(group: Group) -> list[Cell]:
    """Measured cells without the sentinel, best first (by the direction that the metric states)."""
    known = [cell for cell in group.cells if cell.copy == 0 and _estimate(group, cell) is not None]
    sign = 1 if less_is_better(group) else -1
    return sorted(known, key=lambda cell: (_estimate(group, cell) or 0.0) * sign)


def less_is_better(group: Group) -> bool:
    """Whether a small value of the group's primary metric is good: times and sizes."""
    return any(metric.better == "lower" for cell in group.cells if (metric := group.primary(cell)))


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


def metrics(study: Study) -> list[str]:
    """The metrics by which the study's cases are judged, in their order."""
    return list(dict.fromkeys(group.metric for case in study.cases for group in case.groups))


def speed_title(study: Study) -> str:
    """What the first figure shows: the one metric of all cases, else throughput in its several forms."""
    names = metrics(study)
    return words.metric(names[0]).capitalize() if len(names) == 1 else "Throughput"


def answers(study: Study) -> list[Answer]:
    """One answer per group with at least two measured allocators, in the order of the cases."""
    answered = []
    for case in study.cases:
        for group in case.groups:
            ranked = ranking(group)
            if len(ranked) < 2:
                continue
            stated = _headline(study, group)
            answered.append(_stated(case, group, stated) if stated else _derived(study, case, group, ranked))
    return answered


def _headline(study: Study, group: Group) -> Headline | None:
    """The Result's headline about a group: of those that match it, the one that names most of its parameters."""
    matching: list[tuple[int, Headline]] = []
    for item in study.raw.headlines:
        same = item.workload == group.workload and item.sync in (None, group.sync)
        same = same and item.machine in (None, group.machine) and item.group in (None, group.name)
        if same and within(item.parameters, group.parameters) and item.threads in (None, group.threads):
            matching.append((len(item.parameters), item))
    return max(matching, key=lambda one: one[0])[1] if matching else None


def _stated(case: Case, group: Group, item: Headline) -> Answer:
    span, best, worst, verdict = item.ratio, item.best, item.worst, item.verdict
    ties = ties_with(group, best)
    # Best and worst were picked among all pairs of all cases, and chance alone picks some too.
    chance = (item.p_holm or 0.0) >= 0.05
    level = verdict == "equivalent" or chance or includes_one(span)
    if not level:
        # Paired with each other they are told apart, though their intervals against a third may overlap.
        ties = tuple(name for name in ties if name != worst)
    rough = item.rough and not level
    return Answer(case, group, best, worst, span, verdict, _sentence(item), ties, level, rough)


def _sentence(item: Headline) -> str:
    """The headline's text without the case that it may start with: the case stands beside it in a report."""
    text = item.text
    head, colon, rest = text.partition(": ")
    text = rest if colon and head.startswith(item.workload) else text
    return text[:1].upper() + text[1:] if text.startswith("the ") else text


def includes_one(span: Ends) -> bool:
    """Whether an interval shows no difference; true where there is no interval."""
    return span.low is None or span.high is None or span.low <= 1 <= span.high


def _derived(study: Study, case: Case, group: Group, ranked: Sequence[Cell]) -> Answer:
    best, worst = ranked[0], ranked[-1]
    high, low = best.ratio_to_baseline, worst.ratio_to_baseline
    ratio = Ends()
    if worst.allocator == study.baseline and high:
        ratio = high
    elif best.allocator == study.baseline and low:
        ratio = _inverse(low)
    elif high and low and high.estimate and low.estimate:
        # Two ratios against a third give an estimate, but no interval of their own.
        ratio = Ends(high.estimate / low.estimate)
    if less_is_better(group):
        ratio = _inverse(ratio)
    ties = ties_with(group, best.allocator)
    verdict = worst.verdict if best.allocator == study.baseline else best.verdict
    level = worst.allocator in ties or includes_one(ratio)
    rough = not level and (best.rough or worst.rough)
    return Answer(case, group, best.allocator, worst.allocator, ratio, verdict, "", ties, level, rough)


def _inverse(span: Ends) -> Ends:
    def invert(value: float | None) -> float | None:
        return 1 / value if value else None

    return Ends(invert(span.estimate), invert(span.high), invert(span.low))


def answer_sentence(answer: Answer) -> str:
    """The answer as one sentence, from the Result where it has one."""
    if answer.text:
        return answer.text
    if answer.level:
        return "No difference between the allocators could be established."
    return comparison(answer) + "."


def comparison(answer: Answer) -> str:
    """Best against worst in words, with the interval: the metric's direction decides who is named first."""
    span = answer.ratio
    first, second = answer.best, answer.worst
    if less_is_better(answer.group):
        first, second = second, first
    size = rounding.ratio(span.estimate, span.low, span.high)
    return f"{first} has {size}\u00a0× {words.faster(answer.group.metric)} {second} {spoken(span)}"


def spoken(span: Ends) -> str:
    """The interval as text in a sentence."""
    return rounding.interval(span.estimate, span.low, span.high)


def fitness(study: Study) -> Fitness | None:
    """The A/A sentinel over all groups; None where the study ran without one."""
    copies = []
    for group in study.groups:
        for cell in group.cells:
            ratio = cell.ratio_to_baseline
            if cell.copy and ratio and ratio.low is not None and ratio.high is not None:
                copies.append((group_label(study, group), ratio))
    if not copies:
        return None
    reach = [span.reach for _, span in copies]
    containing = sum((span.low or 0) <= 1 <= (span.high or 0) for _, span in copies)
    noisiest = copies[reach.index(max(reach))][0]
    return Fitness(tuple(copies), containing, max(reach), statistics.median(reach), noisiest)


def group_label(study: Study, group: Group) -> str:
    """A group's name within the study: its case and its level, or that it is a sequential twin."""
    for case in study.cases:
        if group in case.groups:
            return case.full(group)
    if group in study.counted:
        return ", ".join(
            [group.workload, words.parameters(group.parameters, group.units), words.threads(group.threads)]
        )
    twins = [other for other in study.references if other.workload == group.workload]
    telling = {
        key: value for key, value in group.plain.items()
        if key == "structure" or len({str(other.plain.get(key)) for other in twins}) > 1
    }  # fmt: skip
    return ", ".join(part for part in (group.workload, words.parameters(telling, group.units), "sequential") if part)


def placement(blame: Mapping[str, float]) -> float:
    """Aborts that only the placement of blocks brought about: another block, or another stripe."""
    return sum(blame.get(name, 0.0) for name in words.PLACEMENT)


def blame_remark(case: Case, group: Group) -> str:
    """What placement did in one group: the least and the most among the allocators, or that it did nothing."""
    known = [
        (cell.allocator, cell.blame)
        for cell in group.cells
        if cell.blame and cell.copy == 0 and cell.blame.get("aborts")
    ]
    if not known:
        return ""
    lead = leading(case.label(group))
    shares = [(placement(blame) / blame["aborts"], name) for name, blame in known]
    if not any(share for share, _ in shares):
        total = sum(blame["aborts"] for _, blame in known)
        return f"{lead}none of {rounding.count(total)} aborts is due to placement."
    low, high = min(shares), max(shares)
    return (
        f"{lead}between {rounding.percent(low[0], 2)} ({low[1]}) and {rounding.percent(high[0], 2)} ({high[1]}) "
        "of the aborts are due to placement."
    )


def leading(label: str) -> str:
    """A label as the start of a remark: "Record table: "."""
    return f"{label[:1].upper()}{label[1:]}: " if label else ""


def contrasts(study: Study, case: Case) -> list[Contrast]:
    """The Result's contrasts that belong to a case, in the fixed order of allocators.

    Those of sequential twins are left out: the twins' ratios stand beside the case anyway.
    """
    items = [
        item for item in study.raw.contrasts
        if item.factor != "sequential" and any(_about(item, group) for group in case.groups)
    ]  # fmt: skip
    several = len({item.threads for item in items if item.factor != "threads"}) > 1
    unsorted = []
    for item in items:
        span = item
        where = words.threads(item.threads) if several and item.threads and item.factor != "threads" else ""
        unsorted.append(
            Contrast(
                item.what,
                item.allocator,
                span,
                item.metric,
                words.marked(item.verdict or rounding.MISSING, item.rough),
                where,
            )
        )
    order = list(dict.fromkeys(one.title for one in unsorted))
    return sorted(unsorted, key=lambda one: (order.index(one.title), _place(study, one.allocator)))


def _about(item: result.Contrast, group: Group) -> bool:
    return (
        item.workload == group.workload
        and item.sync in (None, group.sync)
        and item.machine in (None, group.machine)
        and item.group in (None, group.name)
        and item.threads in (None, group.threads)
        and within(item.parameters, group.plain)
        and (item.level is None or str(group.plain.get(item.factor, item.level)) == str(item.level))
    )


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
            label = case.label(group)
            place = (
                f"with {'the ' if group.mapping == 'table' else ''}{label}"
                if case.same_work
                else label or "synchronised"
            )
            parts.append(f"{rounding.ratio(value)}\u00a0× {place}")
    alone = spread(reference) if reference else None
    if not parts or alone is None:
        return ""
    return f"Best over worst: {', '.join(parts)}; {rounding.ratio(alone)}\u00a0× in the sequential program."
