"""A claim's predicates, tested with the numbers that the paper itself prints.

A predicate that the paper's own numbers fail is not what the paper says, or the paper contradicts itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loam_lab.judging.claims import judges, predicates
from loam_lab.judging.claims.values import Observed, Undecided
from loam_lab.judging.reasons import NotPrinted, PrintedTwice
from loam_lab.judging.statistics.intervals import Interval

if TYPE_CHECKING:
    from loam_lab.judging.claims.predicates import Comparison
    from loam_lab.model.claim import Claim, Predicate, Printed, Selection

# A number that a paper prints meets a limit that is that number.
_CLOSE = 1e-9


class _Paper:
    """The numbers of a paper as a predicate reads them.

    ends: the one that counts of each number's range; used: the numbers that were read, by their places
    margin: none, since a printed number has no interval
    """

    margin = 0.0

    def __init__(self, predicate: Predicate, printed: Sequence[Printed], ends: Sequence[float]) -> None:
        self._selections = predicate.selections()
        self._printed = printed
        self._ends = ends
        self.used: set[int] = set()

    def present(self, wanted: tuple[str, ...], group: str) -> list[str]:
        asked = [one for one in self._selections if one.group == group]
        return [name for name in wanted if any(self._about(one, name) for one in asked)]

    def read(self, selection: Selection, allocator: str) -> Observed:
        numbers = self._about(selection, allocator)
        cells = selection.model_copy(update={"allocator": (allocator,)}).words()
        what = f"{selection.metric or 'first metric'} of {cells}"
        if not numbers:
            raise Undecided(NotPrinted(what))
        if len(numbers) > 1:
            raise Undecided(PrintedTwice(what, len(numbers)))
        self.used.update(numbers)
        return Observed(what, {"paper": self._ends[numbers[0]]}, {}, "1", exact=True)

    def _about(self, selection: Selection, allocator: str) -> list[int]:
        return [index for index, one in enumerate(self._printed) if one.about(selection, allocator)]


@dataclass(frozen=True)
class Tested:
    """What the paper's numbers say of one predicate. outcome: holds, fails, or open where it prints none"""

    predicate: Predicate
    outcome: str
    reason: str
    used: frozenset[int] = frozenset()


def judged(claim: Claim) -> list[Tested]:
    """Each predicate of a claim against the numbers of its `printed`."""
    printed = () if isinstance(claim.printed, str) else claim.printed
    return [_test(predicate, printed) for predicate in claim.predicates]


def faults(claim: Claim) -> Iterator[str]:
    """What is wrong between a claim and its paper's numbers; a claim of a paper has to have them, or say that there are none."""
    if claim.printed == "":
        yield 'printed is missing: the numbers of the paper, or "none: " and what it has instead'
    tested = judged(claim)
    if not isinstance(claim.printed, str):
        used = frozenset[int]().union(*(one.used for one in tested))
        for index, number in enumerate(claim.printed):
            if index not in used:
                yield f"no predicate reads the number of {number.where}: {number.words() or 'no cells'} {number.value}"
        for one in tested:
            marked = bool(one.predicate.printed)
            if one.outcome == judges.OPEN and not marked:
                yield f"not tested: {one.predicate.words()}: {one.reason}"
            if one.outcome != judges.OPEN and marked:
                yield f"tested, and marked as printed = {one.predicate.printed!r}: {one.predicate.words()}"
    failed = [one for one in tested if one.outcome == judges.FAILS]
    fails = len(failed) > claim.all_but
    if fails and not claim.self_contradicting:
        for one in failed:
            yield f"the paper itself fails {one.predicate.words()}: {one.reason}"
    if claim.self_contradicting and not fails and not isinstance(claim.printed, str):
        yield "self_contradicting, but the printed numbers fail no predicate"


def _test(predicate: Predicate, printed: Sequence[Printed]) -> Tested:
    used: set[int] = set()
    reason = "the paper prints none of its values"
    outcome = judges.OPEN
    # Only numbers that this predicate reads have ends to be combined.
    read = _Paper(predicate, printed, [one.ends[0] for one in printed])
    try:
        predicates.comparisons(read, predicate)
    except Undecided as why:
        return Tested(predicate, judges.OPEN, str(why))
    choices = [one.ends if index in read.used else one.ends[:1] for index, one in enumerate(printed)]
    for ends in itertools.product(*choices):
        paper = _Paper(predicate, printed, ends)
        comparisons = predicates.comparisons(paper, predicate)
        used |= paper.used
        failed = [one for one in comparisons if not _holds(one)]
        if failed and (len(failed) == len(comparisons) or not predicate.some):
            return Tested(predicate, judges.FAILS, predicates.in_words(failed[0]), frozenset(used))
        if comparisons:
            outcome, reason = judges.HOLDS, predicates.in_words(comparisons[0])
    return Tested(predicate, outcome, reason, frozenset(used))


def _holds(comparison: Comparison) -> bool:
    value = comparison.interval.estimate
    near = (value, value * (1 - _CLOSE), value * (1 + _CLOSE))
    exact = [Interval(one, one, one, 1) for one in near]
    return any(comparison.judge(one, one) == judges.HOLDS for one in exact)
