"""The ledger that is kept in the tree: of each claim the verdict that stands, a small JSON file of each study in docs/claims/.

Results are large and stay where they were measured.  What is kept of one says what a reader of the ledger asks: the verdict and
its reason, on what it was decided, when, and from which revision.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.judging.claims import together
from loam_lab.judging.claims.evaluate import NOT_ASKED
from loam_lab.model import result
from loam_lab.model.claim import Claim
from loam_lab.model.store.journal import write_whole
from loam_lab.model.study import Study

SCHEMA = 1


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict. predicate: in words, as it was decided; groups: of the study, that it reads

    made: when the result was, in UTC; cpu: of the host; assumed: what it rests on, in words
    """

    verdict: str
    predicate: str
    groups: list[str] = []
    reason: str = ""
    machines: list[str] = []
    allocators: list[str] = []
    inputs: list[str] = []
    by_preset: bool = False
    assumed: list[str] = []
    made: str = ""
    revision: str = ""
    cpu: str = ""
    command: str = ""


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a study. verdicts: by the id of the claim"""

    schema: int = SCHEMA
    study: str
    verdicts: dict[str, Kept] = {}


def folder() -> Path:
    """Where the files are."""
    return paths.root() / "docs" / "claims"


def read(study: str, where: Path | None = None) -> Ledger:
    """What is kept of a study; nothing where it has no file. where: folder() where None

    raises: LoamError if the file is damaged or of another schema
    """
    file = (where or folder()) / f"{study}.json"
    again = f"restore it, or remove it and add its results again: ./loam page claims RESULT (study {study})"
    try:
        ledger = msgspec.json.decode(file.read_bytes(), type=Ledger)
    except FileNotFoundError:
        return Ledger(study=study)
    except (OSError, msgspec.MsgspecError, UnicodeError) as problem:
        raise LoamError("ledger", file, f"cannot be read: {problem}", again) from None
    if ledger.schema != SCHEMA or ledger.study != study:
        raise LoamError("ledger", file, f"is of schema {ledger.schema} and study {ledger.study}", again)
    return ledger


def write(ledger: Ledger, where: Path | None = None) -> None:
    """Write what is kept of a study: one line for each key, so that a change of a verdict is a change of a few lines."""
    content = msgspec.json.format(msgspec.json.encode(ledger), indent=1)
    target = where or folder()
    target.mkdir(parents=True, exist_ok=True)
    write_whole(target / f"{ledger.study}.json", content.decode() + "\n")


def current(ledger: Ledger, study: Study) -> dict[str, Kept]:
    """The kept verdicts on the study's claims as they stand now, in their order."""
    kept = ledger.verdicts
    return {claim.id: kept[claim.id] for claim in study.claims if claim.id in kept and _is_about(kept[claim.id], claim)}


def _is_about(verdict: Kept | result.Claim, claim: Claim) -> bool:
    """Whether a verdict is one on the claim as it stands now: the same predicates, of the same groups."""
    return verdict.predicate == claim.words() and verdict.groups == claim.groups


def folded(ledger: Ledger, study: Study, measured: result.Result, only: Collection[str] = ()) -> Ledger:
    """The ledger with the verdicts of one more result, where these say more, or as much and later.

    only: the ids of the claims that the result decides; all of them where it is empty
    """
    kept = current(ledger, study)
    claims = {claim.id: claim for claim in measured.claims or ()}
    for stated in study.claims:
        new = claims.get(stated.id)
        if new is None or not _is_about(new, stated) or new.verdict == NOT_ASKED:
            continue
        if only and stated.id not in only:
            continue
        old = kept.get(stated.id)
        if old is not None and (-together.says(old.verdict), old.made) > (
            -together.says(new.verdict),
            measured.created_utc,
        ):
            continue
        kept[stated.id] = Kept(
            verdict=new.verdict, predicate=new.predicate, groups=new.groups, reason=new.reason, machines=new.machines,
            allocators=new.allocators, inputs=new.inputs, by_preset=new.by_preset, made=measured.created_utc,
            revision=measured.build.revision, assumed=[one.words() for one in new.assumed],
            cpu=str(measured.machine.get("cpu", "")), command=measured.command,
        )  # fmt: skip
    return Ledger(study=ledger.study, verdicts={one.id: kept[one.id] for one in study.claims if one.id in kept})
