"""docs/claims.md: every claim of every paper with the verdict that stands, and README's count of them.

    ./loam study run stm
    ./loam page claims RESULT...
    ./loam page claims RESULT --only 002-05,002-13

Each RESULT is the folder of a study's result. Its verdicts are added to docs/claims/STUDY.json, which is kept in the tree: of
each claim the newest that decides. Without a RESULT the page is written from what is kept. With --only the verdicts of these
claims alone are added: those that are decided by counts, say, of a result whose times other work disturbed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base import paths, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.judging.claims import kept
from loam_lab.model import labels, studies, words
from loam_lab.model.claim import SELF_CONTRADICTING, Claim
from loam_lab.model.store.folder import read_result
from loam_lab.model.store.journal import write_whole
from loam_lab.model.study import Study
from loam_lab.presenting.pages.parts import writing
from loam_lab.presenting.report import ledger
from loam_lab.presenting.report.text import escape
from loam_lab.subjects.machines import HOST

NOT_MEASURED = "not measured"
# The line of README that counts, by its beginning.
COUNTED = "**Claims of papers**"
COLUMNS = ("claim", "the paper says", "verdict", "allocators", "machine", "input", "date", "commit", "study")


@dataclass(frozen=True)
class Row:
    """One claim of a study, and what is kept of it."""

    study: Study
    claim: Claim
    kept: kept.Kept | None

    @property
    def verdict(self) -> str:
        """The verdict that stands; a claim that its paper contradicts is that, measured or not."""
        if self.claim.self_contradicting:
            return SELF_CONTRADICTING
        return self.kept.verdict if self.kept else NOT_MEASURED

    @property
    def paper(self) -> str:
        """The number of the paper; "" where the claim is one of ours."""
        number = self.claim.id.partition("-")[0]
        return number if number.isdigit() else ""

    @property
    def worded(self) -> Callable[[str], str]:
        """Puts the study's labels in the place of names of allocators."""
        return labels.worded(self.study.labels)

    @property
    def why(self) -> str:
        """Why it is not reproduced."""
        own = self.kept.reason if self.kept else self.claim.self_contradicting
        own = "; ".join([own, *(self.kept.assumed if self.kept else ())])
        return self.worded("; ".join(part for part in (own, self.claim.note) if part))


def rows(of: Sequence[Study], ledgers: Mapping[str, kept.Ledger]) -> list[Row]:
    """Every claim by its number. ledgers: by the study's name"""
    unsorted = []
    for study in of:
        verdicts = kept.current(ledgers[study.name], study)
        unsorted += [Row(study, claim, verdicts.get(claim.id)) for claim in study.claims]
    return sorted(unsorted, key=lambda row: row.claim.id)


def tally(of: Sequence[Row]) -> str:
    """How many claims have each verdict, without those that follow from others."""
    counts = Counter(row.verdict for row in of if not row.claim.follows_from)
    order = [*ledger.VERDICTS, NOT_MEASURED]
    parts = [f"{counts[word]} {word}" for word in order if counts[word]]
    derived = sum(bool(row.claim.follows_from) for row in of)
    more = f"; {derived} more follow{'s' if derived == 1 else ''} from these" if derived else ""
    return f"of {sum(counts.values())} claims {words.listing(parts)}{more}"


def page(of: Sequence[Row]) -> str:
    """The page as Markdown."""
    papers: dict[str, list[Row]] = {}
    for row in of:
        papers.setdefault(f"Paper {row.paper}" if row.paper else f"Our own: {row.study.title}", []).append(row)
    lines = [
        "# The claims of the papers",
        "",
        "```",
        "./loam study run stm           measures; stm is a study",
        "./loam page claims RESULT      adds its verdicts, and writes this page",
        "```",
        "",
        f"In all papers: {tally([row for row in of if row.paper])}.",
        "",
        "[papers.md](papers.md) has the papers by number, [studies.md](studies.md#how-a-claim-is-decided) says how a claim is",
        "decided. Each verdict is the newest that decides. It holds for the allocators, machine and input beside it. *By preset*",
        "says that an allocator which cannot be had was replaced by one that is built like it.",
        "",
    ]
    for title, own in papers.items():
        heads = " | ".join(COLUMNS)
        counts = tally(own)
        lines += [
            f"## {title}",
            "",
            f"{counts[:1].upper()}{counts[1:]}.",
            "",
            f"| {heads} |",
            "|" + " --- |" * len(COLUMNS),
        ]
        lines += [f"| {' | '.join(_cells(row))} |" for row in own]
        open_ = [
            row for row in own if row.verdict not in ("reproduced", NOT_MEASURED) or (row.kept and row.kept.assumed)
        ]
        if open_:
            lines += ["", f"### {title}: why", ""]
            lines += [f"- **{row.claim.id}**, {row.verdict}: {escape(row.why)}" for row in open_]
        lines.append("")
    return "\n".join(lines)


def _cells(row: Row) -> Iterator[str]:
    claim, verdict = row.claim, row.kept
    follows = f" *Follows from {words.listing(claim.follows_from)}, and is not counted.*" if claim.follows_from else ""
    yield claim.id
    yield escape(claim.sentence) + follows
    yield row.verdict + (" by preset" if verdict and verdict.by_preset else "")
    if verdict is None:
        yield from ("", "", "", "", "")
    else:
        machines = [f"host: {verdict.cpu}" if name == HOST and verdict.cpu else name for name in verdict.machines]
        yield escape(", ".join(map(row.worded, verdict.allocators)))
        yield escape("; ".join(machines))
        yield escape("; ".join(verdict.inputs))
        yield verdict.made[:10]
        yield verdict.revision[:12]
    yield f"`studies/{row.study.name}.toml`"


def counted(readme: str, of: Sequence[Row]) -> str:
    """README with the count of today.

    raises: LoamError if it has no line for it
    """
    of = [row for row in of if row.paper]
    papers = len({row.paper for row in of})
    line = f"{COUNTED} ({papers} paper{'' if papers == 1 else 's'}): {tally(of)}: [docs/claims.md](docs/claims.md)."
    text, changed = re.subn(rf"^{re.escape(COUNTED)}.*$", lambda _: line, readme, count=1, flags=re.MULTILINE)
    if not changed:
        raise LoamError("README.md", None, f"has no line that begins with {COUNTED}", "restore it")
    return text


def made(results: Sequence[Path], only: Sequence[str] = ()) -> list[Row]:
    """Add the verdicts of results to what is kept, and say what stands.

    only: the ids of the claims whose verdicts are added; all where it is empty

    raises: LoamError for a result of no study of the tree, or of one without claims, and for a claim of none of the results
    """
    known = [studies.load(file) for file in studies.registry().values()]
    by_name = {study.name: study for study in known if study.claims}
    ledgers = {name: kept.read(name) for name in by_name}
    changed, unknown = set(), set(only)
    for folder in results:
        measured = read_result(folder)
        if measured.study not in by_name:
            raise LoamError(
                "RESULT", folder, f"is of {measured.study}, which makes no claims", "name results of studies"
            )
        ledgers[measured.study] = kept.folded(ledgers[measured.study], by_name[measured.study], measured, only)
        unknown -= {claim.id for claim in by_name[measured.study].claims}
        changed.add(measured.study)
    if unknown:
        named = words.listing(sorted(unknown))
        raise LoamError("--only", named, "is no claim of the results", "./loam list claims has their ids")
    for name in sorted(changed):
        kept.write(ledgers[name])
    return rows(list(by_name.values()), ledgers)


def main(arguments: Sequence[str]) -> int:
    """Write the page and README's count."""
    parser = subcommands.Parser("page", "claims", __doc__)
    parser.add_argument("result", type=Path, nargs="*", help="folders of results whose verdicts are added")
    parser.add_argument("--only", metavar="ID,ID", default="", help="add the verdicts of these claims alone")
    given = parser.parse_args(arguments)
    of = made(given.result, [one for one in given.only.split(",") if one])
    readme = paths.root() / "README.md"
    write_whole(readme, counted(readme.read_text(), of))
    return writing.write(paths.root() / "docs" / "claims.md", page(of))
