"""`loam list claims`: the ledger over all studies, with the verdicts of the newest result where it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.model.claim import SELF_CONTRADICTING

if TYPE_CHECKING:
    from loam_lab.model import result
    from loam_lab.model.claim import Claim

SCHEMA = 1


def show(*, as_json: bool) -> int:
    """Print every claim of every study, its needs, how it is decided, and the last verdict."""
    from rich.markup import escape

    from loam_lab.model import studies

    found: list[tuple[str, Claim]] = []
    for name, file in studies.registry().items():
        found += [(name, claim) for claim in studies.load(file).claims]
    last = {name: _last(name) for name in {study for study, _ in found}}
    if as_json:
        console.print_json({"schema": SCHEMA, "claims": [
            {
                "id": claim.id, "study": study, "section": claim.section, "figure": claim.figure,
                "sentence": claim.sentence, "predicate": claim.words(), "needs": claim.needs.words(),
                "paper": [value.model_dump() for value in claim.paper],
                "printed": claim.printed if isinstance(claim.printed, str) else [one.model_dump() for one in claim.printed],
                "self_contradicting": claim.self_contradicting, "model_lacks": claim.model_lacks,
                "verdict": _verdict(claim, known), "reason": known and known.reason,
            }
            for study, claim in found for known in (last[study].get(claim.id),)
        ]})  # fmt: skip
        return 0
    if not found:
        console.out().print("no study states a claim; [command]./loam list studies[/command] shows their questions")
        return 0
    for study in dict.fromkeys(name for name, _ in found):
        rows = []
        for claim in (claim for name, claim in found if name == study):
            verdict = _verdict(claim, last[study].get(claim.id))
            needs = "; ".join(claim.needs.words())
            lines = [escape(claim.sentence), f"[aside]{escape(claim.words())}[/aside]"]
            lines += [f"[aside]needs {escape(needs)}[/aside]"] if needs else []
            if claim.self_contradicting:
                lines.append(f"[aside]the paper against itself: {escape(claim.self_contradicting)}[/aside]")
            rows.append([f"[command]{claim.id}[/command]", escape(claim.section), verdict or "-", "\n".join(lines)])
        title = f"claims of study {study}"
        console.out().print(
            console.table(["id", "paper", "last verdict", "claim and how it is decided"], rows, title=title)
        )
    return 0


def _verdict(claim: Claim, known: result.Claim | None) -> str | None:
    """The last verdict; of a claim that its paper contradicts, that, measured or not."""
    if claim.self_contradicting:
        return SELF_CONTRADICTING
    return known.verdict if known else None


def _last(study: str) -> dict[str, result.Claim]:
    """Claims by id of results/latest, where that is a result of the study; else of none."""
    from loam_lab.model.store.folder import read_result

    try:
        found = read_result(paths.latest_result())
    except LoamError:
        return {}
    return {claim.id: claim for claim in found.claims or ()} if found.study == study else {}
