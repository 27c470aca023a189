"""`loam cite`: one sentence for a paper and one BibTeX entry, from a Result and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loam_lab import __version__
from loam_lab.base import console, paths
from loam_lab.model import words
from loam_lab.model.result import Result
from loam_lab.model.store.folder import read_result
from loam_lab.presenting.report import findings, html, rounding, view
from loam_lab.presenting.report.findings import Answer
from loam_lab.presenting.report.view import Study

_BIBTEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\u00a0": "~", "\u202f": "\\,", "×": r"$\times$", "−": "$-$",
}  # fmt: skip


@dataclass(frozen=True)
class Citation:
    """What `loam cite` prints: the sentence, and the reference to the result as BibTeX."""

    sentence: str
    bibtex: str


def cite(result: Result, digest: str = "", source: str = "result") -> Citation:
    """The citation of a Result.

    digest: SHA-256 of its file in hex, "" where there is none; source: the result's name in errors
    raises: LoamError for a result of another schema
    """
    study = view.read(result, source)
    return Citation(sentence(study), bibtex(study, digest))


def sentence(study: Study) -> str:
    """Effect, proof of interposition, machine and version in one sentence of plain text."""
    count = len(study.allocators)
    where = words.listing(_machine(name, facts) for name, facts in _machines(study).items())
    parts = [
        f"Measured with Loam {version(study)} on {where}, {effect(study)}",
        f"{count} allocator{'' if count == 1 else 's'}, paired blocks, 95 % intervals",
    ]
    if fit := findings.fitness(study):
        parts.append(f"two copies of {study.baseline} agree within {rounding.percent(fit.limit, 2)}")
    return f"{'; '.join(parts)}; {proof(study)}."


def _machines(study: Study) -> Mapping[str, Mapping[str, Any]]:
    """The machines that ran, by name: the one that started the runs is not among them if all runs were simulated."""
    return study.raw.machines or {"host": study.raw.machine}


def _machine(name: str, facts: Mapping[str, Any]) -> str:
    """A machine in words: its processor with kernel, or that it is a simulated one."""
    if facts.get("simulated"):
        return f"the simulated machine {name.removeprefix('sim:')} ({facts.get('cpu') or 'not described'})"
    where = str(facts.get("cpu") or "an unnamed processor")
    if cores := facts.get("cores"):
        where += f" ({cores} core{'' if cores == 1 else 's'}, Linux {facts.get('kernel', 'of unknown version')})"
    return where


def version(study: Study) -> str:
    """Loam's version, and the revision of the sources that were measured."""
    revision = study.raw.build.revision
    short = revision[:12] + ("+" if revision.endswith("+") and len(revision) > 12 else "")
    return f"{__version__} (revision {short})" if revision else f"{__version__} (no revision recorded)"


def effect(study: Study) -> str:
    """The largest effect of the allocator over all cases, in words."""
    shown = [one for one in findings.answers(study) if not one.level and one.ratio.estimate]
    if not shown:
        return "no effect of the allocator could be shown"
    widest = max(shown, key=_size)
    span = widest.ratio
    low, high = ((value - 1) if value is not None else None for value in (span.low, span.high))
    ends = (
        f" [{rounding.significant(100 * low, 2)}, {rounding.significant(100 * high, 2)}]"
        if low is not None and high is not None
        else ""
    )
    size = rounding.percent((span.estimate or 1) - 1, 2)
    metric = words.metric(widest.group.metric)
    return (
        f"the choice of allocator changes the {metric} by at most {size}{ends} "
        f"({widest.label}: {widest.best} against {widest.worst})"
    )


def _size(answer: Answer) -> float:
    return answer.ratio.estimate or 1.0


def proof(study: Study) -> str:
    """In how many of the runs the allocator was proven to be the one that was named."""
    total = sum(cell.runs for cell in study.cells)
    failures = study.raw.failures
    missing = sum(one.count for one in failures if one.state == "unproven")
    verified = f"interposition verified in {rounding.count(max(0, total - missing))} of {rounding.count(total)} runs"
    lost = sum(cell.state != "ok" for cell in study.cells)
    return verified + (f", {lost} of {len(study.cells)} cells without a result" if lost else "")


def escape(text: str) -> str:
    """Text as BibTeX and TeX show it."""
    return "".join(_BIBTEX.get(letter, letter) for letter in " ".join(text.split(" ")))


def bibtex(study: Study, digest: str = "") -> str:
    """One @misc entry that names the result, how to repeat it and what it was made with."""
    raw = study.raw
    stamp = raw.created_utc
    name = raw.study or "result"
    key = re.sub("[^A-Za-z0-9]+", "-", f"loam-{name}-{stamp[:10]}").strip("-").lower()
    title = raw.title or name
    notes = [f"repeat with {command}" for command in html.commands(study)[:1]]
    prints = [str(facts["fingerprint"]) for facts in _machines(study).values() if facts.get("fingerprint")]
    notes += [f"machine {', '.join(prints)}"] if prints else []
    notes += [f"result.json SHA-256 {digest}"] if digest else []
    fields = {
        "author": "{{The Loam authors}}",
        "title": f"{{{{{escape(title)}}}: a measurement}}",
        "year": f"{{{stamp[:4]}}}" if stamp[:4].isdigit() else "",
        "howpublished": f"{{Measured with Loam {escape(version(study))}}}",
        "note": f"{{{escape('; '.join(notes))}}}" if notes else "",
    }
    body = ",\n".join(f"  {field:<12} = {value}" for field, value in fields.items() if value)
    return f"@misc{{{key},\n{body}\n}}"


def run(result_or_none: Path | None, *, as_json: bool) -> int:
    """Print the citation of a result; None means results/latest of the current folder.

    raises: LoamError for what cannot be read
    """
    folder = result_or_none if result_or_none is not None else paths.latest_result()
    file = folder if folder.is_file() else folder / "result.json"
    content = read_result(folder)
    citation = cite(content, hashlib.sha256(file.read_bytes()).hexdigest(), str(folder))
    if as_json:
        console.print_json({"schema": 1, "sentence": citation.sentence, "bibtex": citation.bibtex})
        return 0
    # Plain text: markup and folding would break what is meant to be pasted.
    console.out().print(citation.sentence, soft_wrap=True, markup=False)
    console.out().print("")
    console.out().print(citation.bibtex, soft_wrap=True, markup=False)
    return 0
