"""`loam list claims`: the ledger over all studies, with what the runs in the current folder say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loam_lab.base import console, paths
from loam_lab.model.claim import SELF_CONTRADICTING

if TYPE_CHECKING:
    from loam_lab.judging.claims.together import Verdict
    from loam_lab.model.claim import Claim

SCHEMA = 1


def show(*, as_json: bool) -> int:
    """Print every claim of every study, its needs, how it is decided, and its verdicts, what stands first."""
    from rich.markup import escape

    from loam_lab.judging.claims import together
    from loam_lab.model import studies

    claims: list[tuple[str, Claim]] = []
    for name, file in studies.registry().items():
        claims += [(name, claim) for claim in studies.load(file).claims]
    runs = together.runs(paths.results_root())
    verdicts = {claim.id: together.verdicts(runs, study, claim.id, claim.words()) for study, claim in claims}
    if as_json:
        console.print_json({"schema": SCHEMA, "claims": [
            {
                "id": claim.id, "study": study, "section": claim.section, "figure": claim.figure,
                "sentence": claim.sentence, "predicate": claim.words(), "needs": claim.needs.words(),
                "paper": [value.model_dump() for value in claim.paper],
                "printed": claim.printed if isinstance(claim.printed, str) else [one.model_dump() for one in claim.printed],
                "self_contradicting": claim.self_contradicting, "model_lacks": claim.model_lacks,
                "follows_from": list(claim.follows_from),
                "verdict": _verdict(claim, verdicts[claim.id]),
                "reason": verdicts[claim.id][0].claim.reason if verdicts[claim.id] else None,
                "runs": [
                    {"verdict": one.claim.verdict, "machines": one.claim.machines, "created_utc": one.run.made,
                     "folder": str(one.run.folder)}
                    for one in verdicts[claim.id]
                ],
            }
            for study, claim in claims
        ]})  # fmt: skip
        return 0
    if not claims:
        console.out().print("no study states a claim; [command]./loam list studies[/command] shows their questions")
        return 0
    for study in dict.fromkeys(name for name, _ in claims):
        rows = []
        for claim in (claim for name, claim in claims if name == study):
            verdict = _verdict(claim, verdicts[claim.id])
            needs = "; ".join(claim.needs.words())
            lines = [escape(claim.sentence), f"[aside]{escape(claim.words())}[/aside]"]
            lines += [f"[aside]needs {escape(needs)}[/aside]"] if needs else []
            if claim.self_contradicting:
                lines.append(f"[aside]the paper against itself: {escape(claim.self_contradicting)}[/aside]")
            if claim.follows_from:
                lines.append(f"[aside]follows from {', '.join(claim.follows_from)}, and is not counted again[/aside]")
            lines += [f"[aside]{escape(one)}[/aside]" for one in together.summaries(verdicts[claim.id])]
            rows.append([f"[command]{claim.id}[/command]", escape(claim.section), verdict or "-", "\n".join(lines)])
        title = f"claims of study {study}"
        console.out().print(console.table(["id", "paper", "verdict", "claim and how it is decided"], rows, title=title))
    return 0


def _verdict(claim: Claim, verdicts: Sequence[Verdict]) -> str | None:
    """The verdict that stands; of a claim that its paper contradicts, that, measured or not."""
    if claim.self_contradicting:
        return SELF_CONTRADICTING
    return verdicts[0].claim.verdict if verdicts else None
