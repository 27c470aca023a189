"""What all watches of a run found: shares of time by kind, by pairs of blocks, by pairs of lines, by pairs of threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from loam_lab.commands.explain import grouping
from loam_lab.commands.explain.evidence import Conflict
from loam_lab.commands.explain.grouping import BlockPair, LinePair
from loam_lab.commands.explain.sharing import estimate, kinds
from loam_lab.commands.explain.sharing.estimate import Basis, Hit, Share, number
from loam_lab.commands.explain.sharing.names import Names
from loam_lab.commands.explain.sharing.watches import Caught, Process, Watch

Key = TypeVar("Key", bound=Hashable)
# So many watches must have caught a pair before it is named: one or two may be an operand that was read wrongly.
NAMED_CAUGHT = 3


@dataclass(frozen=True)
class Found:
    """A pair, or a kind, with its share. words: of the cache line, by number, who used them: "own" or "other", how often"""

    key: BlockPair | LinePair | str | tuple[int, int]
    share: Share
    words: dict[int, dict[str, int]] = field(default_factory=dict)

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
    kinds: list[Found]
    blocks: list[Found]
    lines: list[Found]
    threads: list[Found]


@dataclass(frozen=True)
class _Catch:
    watch: Watch
    caught: Caught
    conflict: Conflict


def find(processes: Sequence[Process], names: Names) -> Findings:
    """The findings of the processes of one run; the largest shares come first."""
    catches = [
        _Catch(watch, caught, kinds.conflict(at, process, watch, caught, names))
        for at, process in enumerate(processes)
        for watch in process.watches
        for caught in watch.caught
    ]
    samples = sum(process.samples for process in processes)
    watches = [watch for process in processes for watch in process.watches]

    basis = Basis.of(watches, samples)

    def grouped(key: Callable[[_Catch], BlockPair | LinePair | str | tuple[int, int]]) -> list[Found]:
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
    catches: Sequence[_Catch], key: Callable[[_Catch], BlockPair | LinePair | str | tuple[int, int]], basis: Basis
) -> list[Found]:
    members: dict[BlockPair | LinePair | str | tuple[int, int], dict[int, tuple[Watch, list[Caught]]]] = {}
    for one in catches:
        of_watch = members.setdefault(key(one), {}).setdefault(id(one.watch), (one.watch, []))
        of_watch[1].append(one.caught)
    found = []
    for group, watches in members.items():
        hits = [
            Hit(watch, frozenset(number(one.word) for one in caught), frozenset(one.thread for one in caught))
            for watch, caught in watches.values()
        ]
        found.append(Found(group, estimate.share(hits, basis), _words(hits)))
    return sorted(found, key=lambda one: -one.share.share)


def _words(hits: Sequence[Hit]) -> dict[int, dict[str, int]]:
    used: dict[int, dict[str, int]] = {}
    for hit in hits:
        for word, who in [(number(hit.watch.address), "own"), *((word, "other") for word in hit.words)]:
            counts = used.setdefault(word, {"own": 0, "other": 0})
            counts[who] += 1
    return dict(sorted(used.items()))
