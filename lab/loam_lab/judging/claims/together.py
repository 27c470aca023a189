"""Verdicts of several runs of a study, added up: what the host decides and what a simulated machine decides stand together.

Of the runs in a folder of results each claim has the verdict of the newest that decides it; one that a run could not decide,
or did not ask, takes nothing from what another has found.  A verdict counts for a claim as it stands in the study now: one
whose predicates have changed since is of another claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loam_lab.base import paths
from loam_lab.judging.claims.evaluate import NOT_ASKED, UNDECIDED
from loam_lab.model import result
from loam_lab.model.claim import CANNOT_BE_DECIDED
from loam_lab.model.store.folder import RESULT

# Verdicts that do not decide, the lower number first. All others have 0.
_SAYS = {CANNOT_BE_DECIDED: 1, UNDECIDED: 1, NOT_ASKED: 2}


def says(verdict: str) -> int:
    """How much a verdict says; of two the one with the lower number stands."""
    return _SAYS.get(verdict, 0)


class _Facts(msgspec.Struct):
    """What is read of a result: nothing of its cells."""

    study: str = ""
    created_utc: str = ""
    claims: list[result.Claim] | None = None
    machine: result.Facts = {}
    build: result.Build = result.Build()


@dataclass(frozen=True)
class Run:
    """One run of a study. made: when, in UTC; claims: by id"""

    folder: Path
    study: str
    made: str
    revision: str
    cpu: str
    claims: dict[str, result.Claim]


@dataclass(frozen=True)
class Verdict:
    """What one run says of a claim."""

    run: Run
    claim: result.Claim

    def words(self) -> str:
        """The verdict with its machines and day, in a few words."""
        where = f" on {', '.join(self.claim.machines)}" if self.claim.machines else ""
        return f"{self.claim.verdict}{where}, {self.run.made[:10]}"


def runs(results: Path) -> list[Run]:
    """Every run with a readable result in a folder of results, the newest first; links are not followed twice."""
    finished = []
    for file in results.glob(f"*/{RESULT}"):
        if file.parent.is_symlink():
            continue
        try:
            read = msgspec.json.decode(file.read_bytes(), type=_Facts)
        except (OSError, msgspec.MsgspecError, UnicodeError):
            continue
        claims = {claim.id: claim for claim in read.claims or ()}
        cpu = str(read.machine.get("cpu", ""))
        finished.append(Run(file.parent, read.study, read.created_utc, read.build.revision, cpu, claims))
    return newest_first(finished)


def newest_first(of: Iterable[Run]) -> list[Run]:
    """Runs in the order in which their verdicts stand."""
    return sorted(of, key=lambda run: (run.made, run.folder.name), reverse=True)


def of_result(measured: result.Result) -> Run:
    """The run that a result is of."""
    claims = {claim.id: claim for claim in measured.claims or ()}
    cpu = str(measured.machine.get("cpu", ""))
    return Run(Path(measured.folder), measured.study, measured.created_utc, measured.build.revision, cpu, claims)


def beside(folder: Path, study: str) -> tuple[Run, ...]:
    """The other runs of a study that lie beside a result's folder, the newest first; none outside of a folder of results."""
    own = folder.resolve()
    if own.parent.name != paths.results_root().name:
        return ()
    return tuple(run for run in runs(own.parent) if run.study == study and run.folder.resolve() != own)


def verdicts(of: Iterable[Run], study: str, claim: str, predicate: str) -> list[Verdict]:
    """What the runs of a study say of a claim: first what stands, then the rest, each newest first.

    of: the newest first; predicate: in words, as the study has it now
    """
    answers = [
        Verdict(run, kept)
        for run in of
        if run.study == study and (kept := run.claims.get(claim)) is not None and kept.predicate == predicate
    ]
    return sorted(answers, key=lambda one: says(one.claim.verdict))


def summaries(others: Sequence[Verdict]) -> list[str]:
    """Verdicts of other runs in a few words each, without those that were not asked and without repeats."""
    asked = [one for one in others if one.claim.verdict != NOT_ASKED]
    by_words: dict[tuple[str, tuple[str, ...]], Verdict] = {}
    for one in asked:
        by_words.setdefault((one.claim.verdict, tuple(one.claim.machines)), one)
    return [one.words() for one in by_words.values()]
