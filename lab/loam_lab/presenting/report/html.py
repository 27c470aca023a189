"""The page: one HTML file that asks the network for nothing and is whole without a script.

All text is escaped by the template engine; only drawings made by marks.py enter as markup.  A content policy in the
page forbids requests and every script but ours, named by its digest, so that even a mistake here could not fetch or
run anything.
"""

from __future__ import annotations

import base64
import datetime
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.model import words
from loam_lab.presenting.report import (
    across,
    findings,
    heat,
    ledger,
    listing,
    memory,
    palette,
    rounding,
    screening,
    search,
    svg,
    takeaways,
    threats,
    warning_list,
)
from loam_lab.presenting.report.plates import Figure, allocator_legend
from loam_lab.presenting.report.view import Group, Study

if TYPE_CHECKING:
    from jinja2 import Environment, Template


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("loam_lab.presenting.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
    return made


def template(name: str) -> Template:
    """One of the templates, with escaping."""
    return _environment().get_template(name)


def script() -> tuple[str, str]:
    """The page's script, and its digest as the content policy names it."""
    folder = Path(__file__).parent / "templates"
    text = "".join((folder / name).read_text(encoding="utf-8") for name in ("report.js", "flame.js"))
    return text, "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render(study: Study, figures: Sequence[Figure]) -> str:
    """The page as text; the same study gives the same bytes."""
    from markupsafe import Markup

    raw = study.raw
    fit = findings.fitness(study)
    cases = [
        {
            "title": case.title,
            "groups": [_group(study, group) for group in case.groups],
        }
        for case in study.cases
    ]
    references = [
        {"title": findings.group_label(study, group), "groups": [_group(study, group)]} for group in study.references
    ]
    code, digest = script()
    claims = ledger.claims(study)
    context: dict[str, Any] = {
        "script": Markup(code), "digest": digest, "heat": heat.build(study), "claims": claims,
        "tally": ledger.summary(study) if claims else "", "pairs": ledger.pairs(study), "allocator_keys": allocator_legend(study),
        "threats": threats.table(study), "geomeans": listing.geomeans(study), "best": listing.best(study),
        "search": search.tables(study), "screening": screening.tables(study),
        "across": [(answer, across.tables(answer)) for answer in across.answers(study)],
        "identical": across.identical(study),
        "memory_tables": [t for group in study.every if (t := memory.table(study, group))],
        "counters": [t for group in study.every if (t := memory.counters(study, group))],
        "study": study, "raw": raw, "title": raw.title or raw.study or "Report",
        "question": raw.question, "byline": byline(study), "figures": {figure.name: figure for figure in figures},
        "take_home": takeaways.take_home(study), "answers": findings.answers(study), "listed": listing.answers(study),
        "words": words,
        "fitness": takeaways.fitness_sentence(study, fit) if fit else "", "sentinel": listing.sentinel(fit) if fit else None,
        "colours": palette.of_allocators(study.allocators), "cases": cases, "references": references,
        "warnings": warning_list.warnings(study), "failures": listing.failures(study), "allocators": listing.allocators(study),
        "machine": listing.machine(study), "incomplete": incomplete(study),
        "contrasts": [table for case in study.cases if (table := listing.contrasts(study, case))],
        "aborts": [t for case in study.cases for group in case.groups if (t := listing.aborts(study, case, group))],
        "markup": Markup, "sample": svg.sample, "metrics": findings.metrics(study),
        "throughput_title": findings.speed_title(study),
        "sections": sections(study, figures), "commands": commands(study),
    }  # fmt: skip
    return template("report.html.j2").render(context)


def _group(study: Study, group: Group) -> list[listing.Table]:
    """A group's tables: main metrics, block by block, everything else."""
    tables = (listing.group(study, group), listing.values(group), listing.others(group))
    return [table for table in tables if table is not None]


def byline(study: Study) -> list[str]:
    """Date, machine, amount of work: the short facts under the title."""
    raw = study.raw
    parts = []
    if when := raw.created_utc:
        parts.append(date(str(when)))
    for machine in (raw.machines or {"": raw.machine}).values():
        if not machine.get("cpu"):
            continue
        cores = machine.get("cores")
        parts.append(str(machine["cpu"]) + (f", {cores} core{'' if cores == 1 else 's'}" if cores else ""))
    runs = sum(cell.runs for cell in study.cells)
    amount = f"{rounding.count(runs)} runs"
    if raw.blocks:
        amount += f" in {raw.blocks} blocks"
    if raw.elapsed_s is not None:
        amount += f", {rounding.duration(raw.elapsed_s)}"
    parts.append(amount)
    return parts


def date(stamp: str) -> str:
    """ "2026-11-21T10:12:13Z" as "21 November 2026, 10:12 UTC"; other texts as they are."""
    try:
        when = datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00"))
    except ValueError:
        return stamp
    # Month names of our own: strftime would follow the reader's locale and break byte equality.
    months = (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    )  # fmt: skip
    return f"{when.day} {months[when.month - 1]} {when.year}, {when.hour:02}:{when.minute:02} UTC"


def commands(study: Study) -> list[str]:
    """Every command that repeats the result or a part of it, the whole first, each once; then those recommended."""
    advised = study.raw.recommendation.command if study.raw.recommendation else ""
    given = [study.raw.command, *(study.raw.commands), advised, *search.commands(study)]
    return list(dict.fromkeys(str(command) for command in given if command))


def incomplete(study: Study) -> str:
    """One sentence on cells without a result, or ""."""
    counts: dict[str, int] = {}
    for cell in study.cells:
        if cell.state != "ok":
            counts[cell.state] = counts.get(cell.state, 0) + 1
    partly = sum(cell.state == "ok" and cell.failed > 0 for cell in study.cells)
    if partly:
        counts["with some failed runs"] = partly
    if not counts:
        return ""
    total = sum(counts.values())
    parts = words.listing(f"{number} {state}" for state, number in counts.items())
    return f"{total} of {len(study.cells)} cells {'is' if total == 1 else 'are'} incomplete: {parts}."


def sections(study: Study, figures: Sequence[Figure]) -> list[tuple[str, str]]:
    """Anchors and titles of the sections that this report has, in the order of the page."""
    anchors = [("answer", "Answer")]
    if screening.tables(study):
        anchors.append(("factors", "Factors"))
    if search.tables(study):
        anchors.append(("search", "Settings"))
    if study.raw.claims:
        anchors.append(("claims", "Claims"))
    anchors += [(figure.name, figure.short) for figure in figures if not figure.about_runs]
    if any(cell.counters for cell in study.cells):
        anchors.append(("counters", "Counters"))
    if study.raw.paper_figures:
        anchors.append(("paper", "Beside the paper"))
    if study.raw.warnings or study.raw.failures or any(cell.warnings for cell in study.cells):
        anchors.append(("warnings", "Warnings"))
    anchors.append(("limits", "Limits"))
    anchors += [(figure.name, figure.short) for figure in figures if figure.about_runs]
    return [*anchors, ("machine", "Machine"), ("numbers", "Numbers"), ("repeat", "Repeat")]
