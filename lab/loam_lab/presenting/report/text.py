"""report.md: the same answer for terminals, issues and mail."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loam_lab.model import words
from loam_lab.presenting.report import html, ledger, listing, screening, takeaways, warning_list
from loam_lab.presenting.report.listing import Table
from loam_lab.presenting.report.plates import Figure
from loam_lab.presenting.report.view import Study

# Everything that could start markup, HTML or a link in CommonMark and its table extension.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("&", "&amp;")


def code(text: str) -> str:
    """A fenced block that the text cannot end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{text}\n{fence}"


def table(given: Table) -> str:
    """A Markdown table with its caption above."""
    head = "| " + " | ".join(escape(column.head) for column in given.columns) + " |"
    rule = "|" + "|".join(" ---: " if column.numeric else " --- " for column in given.columns) + "|"
    rows = ["| " + " | ".join(escape(text) for text in row) + " |" for row in given.rows]
    return "\n".join([f"**{escape(given.caption)}**", "", head, rule, *rows])


def render(study: Study, figures: Sequence[Figure], pictures: bool) -> str:
    """The Markdown file as text. pictures: whether figures/*.svg lie beside it."""
    raw = study.raw
    parts = [f"# {escape(raw.title or raw.study or 'Report')}"]
    if raw.question:
        parts.append(f"*{escape(raw.question)}*")
    parts.append(escape(" · ".join(html.byline(study))))
    parts.append("## The answer")
    sentences = [f"- **{escape(finding.lead)}.** {escape(finding.text)}" for finding in takeaways.take_home(study)]
    parts += ["\n".join(sentences)] if sentences else []
    if problem := html.incomplete(study):
        parts.append(f"> {escape(problem)}")
    answers = listing.answers(study)
    if answers.rows:
        parts.append(table(answers))
    if screened := screening.tables(study):
        parts += ["## Which factor decides", *map(table, screened)]
    if claims := ledger.claims(study):
        parts.append("## The paper's claims")
        parts.append(escape(ledger.summary(study)))
        parts.append("\n".join(
            f"- {claim.mark} **{escape(claim.verdict)}** {escape(claim.id)}: {escape(claim.sentence)} {escape(claim.reason)}"
            for claim in claims
        ))  # fmt: skip
    for figure in figures:
        parts.append(f"## {escape(figure.title)}")
        if pictures:
            parts.append(f"![{escape(figure.title)}](figures/{figure.name}.svg)")
        parts += [escape(given) if isinstance(given, str) else table(given) for given in figure.below]
    warnings, failures = warning_list.warnings(study), listing.failures(study)
    if warnings or failures:
        parts.append("## Warnings and failures")
        parts += [table(failures)] if failures else []
        lines = []
        for warning in warnings:
            sentence = escape("; ".join(filter(None, (warning.fact, warning.consequence, warning.step))))
            cells = len(warning.places)
            where = words.listing(warning.places) if cells < 5 else f"{cells} cells"
            lines.append(f"- {sentence}" + (f" ({escape(where)})" if cells else ""))
        parts += ["\n".join(lines)] if lines else []
    parts.append("## The machine and the allocators")
    parts.append("\n".join(f"- {escape(term)}: {escape(value)}" for term, value in listing.machine(study)))
    parts.append(table(listing.allocators(study)))
    parts.append("## Repeat it")
    parts += [code(str(command)) for command in html.commands(study)]
    return "\n\n".join(parts) + "\n"
