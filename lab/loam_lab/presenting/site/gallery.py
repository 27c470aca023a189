"""`loam gallery`: one page with the ledgers of all studies: what each paper claimed, and what came out.

Made from the results at hand: of each claim the newest verdict that says something, with those of other runs beside it. A study
without a result is shown with what to type.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.judging.claims import together
from loam_lab.model import result, studies
from loam_lab.model.claim import SELF_CONTRADICTING
from loam_lab.model.claim import Claim as Stated
from loam_lab.model.result import Result
from loam_lab.model.store import folder as folders
from loam_lab.model.store.journal import write_whole
from loam_lab.model.study import Study
from loam_lab.presenting.report import html, ledger, view
from loam_lab.presenting.report.ledger import Claim


@dataclass(frozen=True)
class Entry:
    """One study. measured: when and where, "" if it was never run; report: a path for a link; problem: of its result"""

    name: str
    title: str
    question: str
    command: str
    measured: str = ""
    report: str = ""
    problem: str = ""
    claims: tuple[Claim, ...] = ()
    verdicts: dict[str, int] = field(default_factory=dict)


def run(results: Path | None, out: Path | None, *, as_json: bool) -> int:
    """Write the page; results: the folder with results, that of the current folder where None; out: the page's folder.

    raises: LoamError if it cannot be written
    """
    where = results or paths.results_root()
    if results is not None and not results.is_dir():
        raise LoamError("--results", results, "is no folder", "name one that holds results, such as results/")
    folder = out or paths.root() / "build/gallery"
    folder.mkdir(parents=True, exist_ok=True)
    newest = _newest(where)
    runs = together.runs(where)
    entries = [_entry(study, newest.get(study.name), runs, folder) for study in _studies()]
    write_whole(folder / "index.html", _page(entries))
    never = [entry.name for entry in entries if not entry.measured]
    if as_json:
        console.print_json({
            "schema": 1, "page": str(folder / "index.html"), "never_run": never,
            "studies": [
                {"study": entry.name, "measured": entry.measured, "verdicts": entry.verdicts, "problem": entry.problem}
                for entry in entries
            ],
        })  # fmt: skip
        return 0
    for entry in entries:
        counts = ", ".join(f"{count} {word}" for word, count in entry.verdicts.items())
        console.out().print(f"{entry.name:<16} {entry.problem or counts or 'no claims'}", markup=False, soft_wrap=True)
    if never:
        console.note(f"never run here: {', '.join(never)}; ./loam study run NAME")
    console.out().print(f"{folder / 'index.html'}", markup=False, soft_wrap=True)
    return 0


def _studies() -> Iterator[Study]:
    for file in studies.registry().values():
        yield studies.load(file)


def _newest(results: Path) -> dict[str, Path]:
    """The newest finished result of each study, by the study's name; links are not followed twice."""
    newest: dict[str, tuple[str, Path]] = {}
    for file in sorted(results.glob(f"*/{folders.RESULT}")):
        if file.parent.is_symlink():
            continue
        try:
            head = json.loads(file.read_text())
            name, made = str(head["study"]), str(head["created_utc"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if name not in newest or made > newest[name][0]:
            newest[name] = made, file.parent
    return {name: folder for name, (_, folder) in newest.items()}


def _entry(study: Study, folder: Path | None, runs: Sequence[together.Run], page: Path) -> Entry:
    head = Entry(study.name, study.title, study.question, f"./loam study run {study.name}")
    if folder is None:
        unknown = tuple(map(_unmeasured, study.claims))
        return replace(head, claims=unknown, verdicts=_counted(unknown))
    try:
        read = view.read(folders.read_result(folder), str(folder))
    except LoamError as problem:
        return replace(head, problem=problem.line())
    claims = tuple(_standing(study, claim, runs) for claim in study.claims)
    report = folder / "report.html"
    more = sum(run.study == study.name for run in runs) - 1
    measured = _measured(read.raw) + (f"; and {more} earlier run{'' if more == 1 else 's'}" if more > 0 else "")
    return replace(
        head, measured=measured, claims=claims, verdicts=_counted(claims),
        report=os.path.relpath(report, page) if report.is_file() else "",
    )  # fmt: skip


def _standing(study: Study, stated: Stated, runs: Sequence[together.Run]) -> Claim:
    """A claim with the verdict that stands, where and when it was found, and what other runs said."""
    verdicts = together.verdicts(runs, study.name, stated.id, stated.words())
    if not verdicts:
        return _unmeasured(stated)
    item: result.Claim = view.clean(verdicts[0].claim)
    own = console.plain(verdicts[0].words())
    return ledger.claim(item, item.machine.split(), [own, *ledger.notes_of(verdicts[1:])])


def _counted(claims: Sequence[Claim]) -> dict[str, int]:
    """How many claims have each verdict; not of those that follow from others."""
    return dict(Counter(claim.verdict for claim in claims if not claim.derived))


def _unmeasured(claim: Stated) -> Claim:
    mark, verdict = ledger.VERDICTS[SELF_CONTRADICTING] if claim.self_contradicting else ("–", "not measured")
    why, derived = claim.self_contradicting, bool(claim.follows_from)
    return Claim(claim.id, claim.section, claim.sentence, verdict, mark, why, (), (), (), derived)


def _measured(result: Result) -> str:
    machine, revision = result.machine, result.build.revision[:12]
    parts = [html.date(result.created_utc), f"{machine.get('cpu', '?')}, {machine.get('cores', '?')} threads"]
    return "; ".join([*parts, f"revision {revision}"] if revision else parts)


def _page(entries: list[Entry]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("loam_lab.presenting.site", "assets"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    total = Counter[str]()
    for entry in entries:
        total.update(entry.verdicts)
    return made.get_template("gallery.html.j2").render(entries=entries, total=dict(total))
