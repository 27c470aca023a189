"""What claims of a study a run leaves open, told before it begins: why, and the command that decides them.

Only what is known before anything runs: groups that are not in it, programs and allocators that are not there, processors
that a machine lacks.  Whether an interval decides is known afterwards.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from loam_lab.campaign.measure import available
from loam_lab.model.claim import Claim, Selection
from loam_lab.model.study import Study
from loam_lab.model.words import listing
from loam_lab.subjects import machines, workloads
from loam_lab.subjects.allocators import registry

LARGER = "use a larger machine"


@dataclass(frozen=True)
class Open:
    """Claims that a run cannot decide for one reason. how: what would decide them"""

    claims: tuple[str, ...]
    why: str
    how: str

    def words(self) -> str:
        """The reason in one line, with the claims behind it."""
        return f"{listing(self.claims)}: {self.why}; {self.how}"


def left_open(whole: Study, asked: Study, left: Study, command: Sequence[str], *, by_group: bool) -> list[Open]:
    """The claims of a study that a run of a part of it will not decide, each once, by what is in the way.

    whole: as its file has it; asked: what of it the user chose; left: what of that can run here
    command: of a run of the whole study, as words; by_group: whether the user named groups
    """
    by_problem: dict[tuple[str, str], list[str]] = {}
    elsewhere: dict[str, list[str]] = {}
    for claim in whole.claims:
        if claim.self_contradicting or not claim.predicates:
            continue
        if absent := _not_in(whole, asked, claim):
            elsewhere[claim.id] = absent
        elif problem := next(_problems(asked, left, claim), None):
            by_problem.setdefault(problem, []).append(claim.id)
    more = [_elsewhere(whole, elsewhere, command, by_group=by_group)] if elsewhere else []
    return more + [Open(tuple(ids), why, how) for (why, how), ids in by_problem.items()]


def lines(whole: Study, of: Sequence[Open]) -> list[str]:
    """The same in lines: how many claims stay open, then each reason."""
    count = sum(len(one.claims) for one in of)
    head = f"of {len(whole.claims)} claims {count} will stay open:"
    return [head, *(f"  {one.words()}" for one in of)] if of else []


def _selections(claim: Claim) -> Iterator[Selection]:
    yield from (one for predicate in claim.predicates for one in predicate.selections())


def _not_in(whole: Study, asked: Study, claim: Claim) -> list[str]:
    """The groups of a claim that the user left out, in the order of the study."""
    wanted, chosen = {one.group for one in _selections(claim)}, {group.name for group in asked.groups}
    return [group.name for group in whole.groups if group.name in wanted - chosen]


def _elsewhere(whole: Study, claims: dict[str, list[str]], command: Sequence[str], *, by_group: bool) -> Open:
    names = {name for absent in claims.values() for name in absent}
    groups = [group for group in whole.groups if group.name in names]
    on = dict.fromkeys(machine for group in groups for machine in group.machines)
    option = ("--group", (group.name for group in groups)) if by_group else ("--machine", on)
    return Open(tuple(claims), "their groups are not in this run", _run(command, *option))


def _run(command: Sequence[str], option: str, values: Iterable[str]) -> str:
    return shlex.join([*command, option, ",".join(values)])


def _problems(asked: Study, left: Study, claim: Claim) -> Iterator[tuple[str, str]]:
    """What is in the way of a claim whose groups were chosen: (why, what would decide it)."""
    yield from _too_small(asked, left, claim)
    yield from _not_installed(asked, left, claim)
    yield from _lacking(asked, left, claim)
    named = {machine for group in left.groups for machine in group.machines}
    if claim.needs.machine and claim.needs.machine not in named:
        yield f"needs machine {claim.needs.machine}", f"add --machine {claim.needs.machine}"
    ran = [name for _, on in _ran(left, claim) for name in on]
    if claim.needs.rtm and all(machines.find(name, "machines").facts().get("rtm") != "works" for name in set(ran)):
        yield "needs hardware transactions (RTM)", "use a machine whose processor has them"
    if claim.model_lacks and machines.are_simulated(ran):
        yield f"a simulated machine cannot decide it: {claim.model_lacks}", "use a machine of the paper's kind"


def _ran(of: Study, claim: Claim) -> Iterator[tuple[Selection, tuple[str, ...]]]:
    """The selections of a claim with the machines on which each runs."""
    groups = {group.name: group for group in of.groups}
    for one in _selections(claim):
        if one.group in groups:
            yield one, (one.machine,) if one.machine else groups[one.group].machines


def _too_small(asked: Study, left: Study, claim: Claim) -> Iterator[tuple[str, str]]:
    meant = {group.name: group.threads for group in asked.groups}
    fit = {group.name: group.threads for group in left.groups}
    for one, on in _ran(asked, claim):
        largest = max((machines.find(name, "machines") for name in on), key=lambda machine: machine.threads)
        wanted = one.threads if one.threads is not None else min(meant[one.group])
        needs = max(claim.needs.cores, 1 if wanted in fit.get(one.group, ()) else wanted)
        if needs > largest.threads:
            yield f"needs {needs} hardware threads, and {largest.words} has {largest.threads}", LARGER


def _not_installed(asked: Study, left: Study, claim: Claim) -> Iterator[tuple[str, str]]:
    """Programs that groups of a claim run and this machine lacks. The sentence of what is missing names the command."""
    wanted, there = {one.group for one in _selections(claim)}, {group.name for group in left.groups}
    for group in asked.groups:
        if group.name in wanted - there and (lacks := available.lacks_of(group)):
            what, how = workloads.lack_and_remedy(lacks)
            yield f"{group.workload} lacks {what}", how


def _lacking(asked: Study, left: Study, claim: Claim) -> Iterator[tuple[str, str]]:
    """Allocators of a claim that the study measures and this machine lacks."""
    here = {group.name: set(left.allocators_of(group)) for group in left.groups}
    meant = {group.name: set(asked.allocators_of(group)) for group in asked.groups}
    everywhere = set().union(*here.values())
    read = [(name, meant[one.group], here[one.group]) for one, _ in _ran(left, claim) for name in one.allocator]
    read += [(name, {name}, everywhere) for name in claim.needs.allocators]
    for name, measured, there in read:
        if name in measured and not {name, left.lookalikes.get(name), left.versions.get(name)} & there:
            yield f"needs allocator {name}", _how(name)


def _how(name: str) -> str:
    base = registry.split(name)[0]
    known = registry.definitions().get(base)
    return f"./loam allocators build {base}" if known is not None and known.recipe is not None else "./loam setup"
