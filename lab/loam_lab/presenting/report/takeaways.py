"""The answer in a few sentences, written from the findings: what a reader takes home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loam_lab.model import words
from loam_lab.presenting.report import ledger, rounding, screening
from loam_lab.presenting.report.findings import Answer, Fitness, answers, comparison, contrasts, fitness, placement
from loam_lab.presenting.report.view import Study


@dataclass(frozen=True)
class Finding:
    """One thing to take home: a lead of a few words and one or two sentences."""

    lead: str
    text: str


def take_home(study: Study) -> list[Finding]:
    """Three to five sentences that answer the study's question."""
    stated = [Finding("The paper's claims", ledger.summary(study))] if study.raw.claims else []
    factors = [Finding("Factors", " ".join(factor_texts))] if (factor_texts := screening.sentences(study)) else []
    findings = [
        *_remember(study),
        *_advice(study),
        *factors,
        *stated,
        *_speed(answers(study)),
        *_machines(study),
        *_causes(study),
        *_mapping(study),
    ]
    fit = fitness(study)
    if fit:
        findings.append(Finding("The instrument", fitness_sentence(study, fit)))
    return findings


def _remember(study: Study) -> list[Finding]:
    """What a newcomer should remember, where the Result says so; of one command the recommendation is that."""
    text = study.raw.remember
    return [Finding("Remember", text)] if text else []


def _machines(study: Study) -> list[Finding]:
    """Whether the ranking holds on every machine, where several measured."""
    return [Finding("Across machines", one.text) for one in study.raw.across_machines if one.text]


def _advice(study: Study) -> list[Finding]:
    """What a bench recommends, for what, the line to paste, and what its search of settings found, where it has that."""
    advised, searched = study.raw.recommendation, study.raw.search
    findings = []
    if advised and advised.text:
        findings.append(Finding("Recommendation", advised.text))
        findings += [Finding(f"For {choice.purpose}", choice.text) for choice in advised.choices or ()]
        others = {choice.command: choice.allocator for choice in advised.choices or () if choice.command}
        findings += [Finding(f"To paste for {name}", line) for line, name in others.items()]
        findings += [Finding("To paste", line) for place, line in (advised.lines or {}).items() if place == "shell"]
    if searched and searched.text:
        findings.append(Finding("Settings", searched.text))
    return findings


def _speed(given: Sequence[Answer]) -> list[Finding]:
    findings = []
    for workload in dict.fromkeys(answer.group.workload for answer in given):
        mine = [answer for answer in given if answer.group.workload == workload]
        apart = [answer for answer in mine if not answer.level and answer.ratio.estimate]
        lead = f"Speed, {workload}"
        if all(answer.ratio.low is None for answer in mine):
            findings.append(Finding(lead, "Too few blocks for an interval: nothing can be said yet."))
            continue
        if not apart:
            findings.append(Finding(lead, "No difference between the allocators could be shown."))
            continue
        widest = max(apart, key=lambda answer: max(answer.ratio.estimate or 1, 1 / (answer.ratio.estimate or 1)))
        text = comparison(widest)
        if len(mine) > 1:
            text = f"The choice of allocator matters most for {widest.label.removeprefix(workload + ', ')}: {text}"
        text += words.roughly(widest.rough) + "."
        level = sum(answer.level for answer in mine)
        if level:
            text += f" In {level} of {len(mine)} cases best and worst are not told apart."
        findings.append(Finding(lead, text))
    return findings


def _causes(study: Study) -> list[Finding]:
    by_mapping: dict[str, list[tuple[float, float, str]]] = {}
    for case in study.cases:
        for group in case.groups:
            for cell in group.cells:
                if cell.blame and cell.copy == 0 and cell.blame.get("aborts"):
                    label = f"{case.title.removeprefix(group.workload + ', ')}, {cell.allocator}"
                    by_mapping.setdefault(group.mapping, []).append(
                        (placement(cell.blame), cell.blame["aborts"], label)
                    )
    parts = []
    for mapping, rows in by_mapping.items():
        caused, total = sum(row[0] for row in rows), sum(row[1] for row in rows)
        name = words.MAPPINGS.get(mapping, mapping)
        place = f"with {'the ' if mapping == 'table' else ''}{name}" if name else "in the blame runs"
        if caused == 0:
            parts.append(f"{place} none of {rounding.count(total)} aborts")
        else:
            share, label = max((row[0] / row[1], row[2]) for row in rows)
            parts.append(f"{place} up to {rounding.percent(share, 2)} of the aborts ({label})")
    if not parts:
        return []
    text = "; ".join(parts)
    tail = "came from placement alone: the two transactions had touched different blocks"
    return [Finding("Aborts by placement", f"{text[0].upper()}{text[1:]} {tail}.")]


def _mapping(study: Study) -> list[Finding]:
    findings = []
    several = len({group.machine for group in study.groups}) > 1
    every = [
        (f"{contrast.what}, {case.groups[0].machine}" if several else contrast.what, contrast.ratio)
        for case in study.cases
        for contrast in contrasts(study, case)
    ]
    for what in dict.fromkeys(what for what, _ in every):
        spans = [ratio for name, ratio in every if name == what and ratio.estimate is not None]
        known = [span for span in spans if span.low is not None and span.high is not None]
        if not known:
            continue
        above = sum((span.low or 0) > 1 for span in known)
        below = sum((span.high or 0) < 1 for span in known)
        low, high = min(span.estimate or 0 for span in spans), max(span.estimate or 0 for span in spans)
        span = f"From {rounding.ratio(low)}\u00a0× to {rounding.ratio(high)}\u00a0×, by allocator and case"
        counts = [count or "none" for count in (above, below, len(known) - above - below)]
        text = f"{span}; of {len(known)} intervals {counts[0]} lie above 1, {counts[1]} below, {counts[2]} include it."
        findings.append(Finding(what[:1].upper() + what[1:], text))
    return findings


def fitness_sentence(study: Study, fit: Fitness) -> str:
    """What differences this machine could show in this study, from the second copy of the baseline."""
    limit, typical = rounding.tenths(fit.limit), rounding.tenths(fit.typical)
    # A tenth is far more than allocators usually differ by: say so plainly.
    text = f"Machine fit {'only ' if fit.limit > 0.1 else ''}for differences above {limit}"
    if len(fit.copies) > 1:
        text += f" ({typical} in the median case; the noisiest is {fit.noisiest})"
    total = len(fit.copies)
    text += f": a second copy of {study.baseline} ran in every block, and "
    text += f"{'its interval' if total == 1 else f'{fit.containing} of its {total} intervals'} "
    if total == 1:
        return text + ("includes 1." if fit.containing else "does not include 1.")
    return text + (
        "include 1, as they should." if fit.containing == total else "include 1 (one in twenty may miss it by chance)."
    )
