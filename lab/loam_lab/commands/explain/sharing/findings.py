"""What all watches of a run found: shares of time by kind, by pairs of blocks, by pairs of lines, by pairs of threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from loam_lab.commands.explain import grouping
from loam_lab.commands.explain.evidence import Conflict
from loam_lab.commands.explain.grouping import BlockPair, LinePair
from loam_lab.commands.explain.sharing import estimate, kinds
from loam_lab.commands.explain.sharing import names as naming
from loam_lab.commands.explain.sharing.estimate import Basis, Hit, Share, number
from loam_lab.commands.explain.sharing.names import Names
from loam_lab.commands.explain.sharing.watches import Caught, Process, Watch

Key = TypeVar("Key", bound=Hashable)
# So many watches must have caught a pair before it is named: one or two may be an operand that was read wrongly.
NAMED_CAUGHT = 3


@dataclass(frozen=True)
class Catch:
    """One watch and one of the uses that it caught. at: the process's place among those of the run"""

    at: int
    watch: Watch
    caught: Caught
    conflict: Conflict


@dataclass(frozen=True)
class Finding:
    """A pair, or a kind, with its share.

    words: of the cache line, by number, who used them: "own" or "other", how often; catches: all that it rests on
    """

    key: BlockPair | LinePair | str | tuple[int, int]
    share: Share
    words: dict[int, dict[str, int]] = field(default_factory=dict)
    catches: tuple[Catch, ...] = ()

    @property
    def named(self) -> bool:
        """Whether enough watches caught it."""
        return self.share.caught >= NAMED_CAUGHT


@dataclass(frozen=True)
class Findings:
    """All of a run. any: of all kinds together; beside: the share of watches in which another thread ran"""

    samples: int
    watched: int
    any: Share
    beside: float
    kinds: list[Finding]
    blocks: list[Finding]
    lines: list[Finding]
    threads: list[Finding]


@dataclass(frozen=True)
class Seen:
    """All that is known of a run: its processes, the names of their code, and what was found."""

    processes: Sequence[Process]
    names: Names
    findings: Findings


def see(processes: Sequence[Process], root: Path) -> Seen:
    """Names and findings of the processes of one run, computed once. root: files below it are named from there"""
    named = naming.find(processes, root)
    return Seen(processes, named, find(processes, named))


def find(processes: Sequence[Process], names: Names) -> Findings:
    """The findings of the processes of one run; the largest shares come first."""
    catches = [
        Catch(at, watch, caught, kinds.conflict(at, process, watch, caught, names))
        for at, process in enumerate(processes)
        for watch in process.watches
        for caught in watch.caught
    ]
    samples = sum(process.samples for process in processes)
    watches = [watch for process in processes for watch in process.watches]

    basis = Basis.of(watches, samples)

    def grouped(key: Callable[[Catch], BlockPair | LinePair | str | tuple[int, int]]) -> list[Finding]:
        return _grouped(catches, key, basis)

    together = grouped(lambda _: "any")
    return Findings(
        samples=samples,
        watched=len(watches),
        any=together[0].share if together else estimate.share([], basis),
        beside=estimate.beside(watches),
        kinds=grouped(lambda one: one.conflict.cause),
        blocks=grouped(lambda one: grouping.block_pair(one.conflict, names.places)),
        lines=grouped(lambda one: grouping.line_pair(one.conflict, names.places)),
        threads=grouped(lambda one: (min(one.watch.thread, one.caught.thread), max(one.watch.thread, one.caught.thread))),
    )  # fmt: skip


def _grouped(
    catches: Sequence[Catch], key: Callable[[Catch], BlockPair | LinePair | str | tuple[int, int]], basis: Basis
) -> list[Finding]:
    members: dict[BlockPair | LinePair | str | tuple[int, int], dict[int, list[Catch]]] = {}
    for one in catches:
        members.setdefault(key(one), {}).setdefault(id(one.watch), []).append(one)
    groups = []
    for group, watches in members.items():
        hits = [
            Hit(
                of[0].watch,
                frozenset(number(one.caught.word) for one in of),
                frozenset(one.caught.thread for one in of),
            )
            for of in watches.values()
        ]
        of_group = tuple(one for of in watches.values() for one in of)
        groups.append(Finding(group, estimate.share(hits, basis), _words(hits), of_group))
    return sorted(groups, key=lambda one: -one.share.share)


def _words(hits: Sequence[Hit]) -> dict[int, dict[str, int]]:
    used: dict[int, dict[str, int]] = {}
    for hit in hits:
        for word, who in [(number(hit.watch.address), "own"), *((word, "other") for word in hit.words)]:
            counts = used.setdefault(word, {"own": 0, "other": 0})
            counts[who] += 1
    return dict(sorted(used.items()))
