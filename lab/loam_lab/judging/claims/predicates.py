"""The six predicates, decided by intervals.

A predicate is made of comparisons (one allocator against another, one level against the next), a claim of predicates.  A
predicate holds if every comparison holds with its own 95 % interval: that all of them do so by chance is less likely than
that one does.  It fails if one comparison lies wholly on the other side; as any one of the claim may do so by chance, that
takes an interval of 95 % for all comparisons of the claim together (Bonferroni).  Else it is open.
A predicate of which one comparison is enough (`some`) is the other way round: one holds at the confidence that all of its
comparisons need together, and it fails if all of them do.  Where all but n predicates of a claim have to hold, chance has
n more to choose from, and each needs the confidence of n + 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from loam_lab.judging.claims.judges import FAILS, HOLDS, OPEN, Judge, above, under, within
from loam_lab.judging.claims.values import Evidence, Observed, Undecided, measured, read
from loam_lab.judging.reasons import AllZero, NothingShared
from loam_lab.judging.statistics import bootstrap, intervals
from loam_lab.model.result import Compared

if TYPE_CHECKING:
    from loam_lab.judging.statistics.intervals import Interval
    from loam_lab.model.claim import Predicate, Selection


@dataclass(frozen=True)
class Comparison:
    """One estimate with its interval, and what it says.

    apart: the same at the confidence that all comparisons of the claim need together
    """

    what: str
    interval: Interval
    apart: Interval
    unit: str
    judge: Judge

    @property
    def outcome(self) -> str:
        """holds, fails or open."""
        return self.judge(self.interval, self.apart)

    def of_result(self) -> Compared:
        """The comparison as results have it."""
        return Compared(*self.interval.ends, self.what, self.unit)


@dataclass(frozen=True)
class Decision:
    """What a predicate came to.

    by_preset: a look-alike stood in for an absent allocator; not_run: the groups that it is open for
    """

    outcome: str
    reason: str
    comparisons: tuple[Comparison, ...] = ()
    by_preset: bool = False
    not_run: tuple[str, ...] = ()


class Source(Protocol):
    """Where a predicate's values come from: a campaign, or the paper itself."""

    margin: float
    """How far from 1 a ratio may be and still count as 1."""

    def present(self, wanted: tuple[str, ...], group: str) -> list[str]:
        """The allocators that stand for names in a group, as far as there are values of them."""

    def read(self, selection: Selection, allocator: str) -> Observed:
        """Values of one allocator. raises: Undecided"""


class _Measured:
    """The values of a campaign. absent: names that nothing stands for; stand_ins: names that look-alikes stand for"""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.margin = evidence.campaign.study.margin
        self.absent: list[str] = []
        self.stand_ins: list[str] = []

    def present(self, wanted: tuple[str, ...], group: str) -> list[str]:
        names = measured(self.evidence.campaign, group)
        self.absent.extend(name for name in wanted if name not in names and name not in self.absent)
        present = [names[name] for name in wanted if name in names]
        versions = self.evidence.campaign.study.versions
        self.stand_ins.extend(name for name in wanted if names.get(name, name) not in (name, versions.get(name)))
        return present

    def read(self, selection: Selection, allocator: str) -> Observed:
        return read(self.evidence, selection, allocator)


def decide(evidence: Evidence, together: Sequence[Predicate], all_but: int = 0) -> list[Decision]:
    """The predicates of a claim against what was measured. all_but: how many of them need not hold"""
    asked = [_ask(evidence, predicate) for predicate in together]
    ways = sum(one.ways for one in asked)
    return [one.decided(ways, all_but) for one in asked]


@dataclass(frozen=True)
class _Made:
    """A comparison before its confidence is known. at: the interval of a confidence; exact: chance has no part in it"""

    what: str
    unit: str
    at: Callable[[float], Interval]
    judge: Judge
    exact: bool = False


@dataclass(frozen=True)
class _Asked:
    """What a predicate compares. open: why it has no comparisons; not_run: groups that are not in this campaign"""

    predicate: Predicate
    made: tuple[_Made, ...] = ()
    absent: tuple[str, ...] = ()
    by_preset: bool = False
    open: str = ""
    not_run: tuple[str, ...] = ()

    @property
    def ways(self) -> int:
        """In how many ways chance may refute it."""
        sampled = sum(not one.exact for one in self.made)
        return min(sampled, 1) if self.predicate.some else sampled

    def decided(self, ways: int, all_but: int) -> Decision:
        """The decision, where chance may refute the claim in so many ways."""
        if self.open:
            return Decision(OPEN, self.open, not_run=self.not_run)
        compared = _sure(self.made, self.predicate, ways, all_but)
        outcome, reason = _some(compared) if self.predicate.some else _all(compared)
        if self.absent:
            reason += f"; without {_listed(self.absent)}"
        return Decision(outcome, reason, compared, self.by_preset)


def _ask(evidence: Evidence, predicate: Predicate) -> _Asked:
    source = _Measured(evidence)
    ran = {cell.group for cell in evidence.campaign.cells}
    not_run = tuple(dict.fromkeys(one.group for one in predicate.selections() if one.group not in ran))
    if not_run:
        return _Asked(predicate, open=f"group {not_run[0]} was not measured", not_run=not_run)
    try:
        made = tuple(_MAKERS[predicate.kind](source, predicate))
    except Undecided as why:
        return _Asked(predicate, open=str(why))
    absent = tuple(source.absent)
    if not made:
        return _Asked(
            predicate, open=f"needs {_listed(absent)}, which {'is' if len(absent) == 1 else 'are'} missing here"
        )
    return _Asked(predicate, made, absent, bool(source.stand_ins))


def comparisons(source: Source, predicate: Predicate) -> tuple[Comparison, ...]:
    """What a predicate compares, as if it were a claim's only one.

    raises: Undecided if a value is missing
    """
    asked = _Asked(predicate, tuple(_MAKERS[predicate.kind](source, predicate)))
    return _sure(asked.made, predicate, asked.ways, 0)


def _sure(made: Sequence[_Made], predicate: Predicate, ways: int, all_but: int) -> tuple[Comparison, ...]:
    """The comparisons with the intervals that it takes to hold and to fail."""
    alone = _confidence((len(made) if predicate.some else 1) * (1 + all_but))
    apart = _confidence(ways)
    return tuple(Comparison(c.what, c.at(alone), c.at(apart), c.unit, c.judge) for c in made)


def _confidence(chances: int) -> float:
    return 1 - (1 - intervals.CONFIDENCE) / max(chances, 1)


def _ratios(source: Source, predicate: Predicate) -> Iterator[_Made]:
    below = predicate.below()
    assert below is not None
    judge = (
        above(predicate.limit, source.margin)
        if predicate.kind == "ratio_above"
        else under(predicate.limit, source.margin)
    )
    elsewhere = predicate.elsewhere()
    if elsewhere is None:
        yield from _pairs(source, predicate.of, below, judge)
        return
    # Elsewhere are the same allocators, or others: then none is compared with itself.
    assert predicate.than is not None
    others = "allocator" in predicate.than.model_fields_set
    for here in _both(source, predicate.of, below):
        for there in _both(source, *elsewhere):
            if (here == there) == others:
                continue
            sides = [((predicate.of, below), here), (elsewhere, there)]
            first, second = (_divided(source.read(of, one), source.read(to, other)) for (of, to), (one, other) in sides)
            yield _ratio(first, second, judge)


def _band(source: Source, predicate: Predicate) -> Iterator[_Made]:
    assert predicate.low is not None and predicate.high is not None
    judge = within(predicate.low, predicate.high)
    below = predicate.below()
    if below is not None:
        yield from _pairs(source, predicate.of, below, judge)
        return
    for name in source.present(predicate.of.allocator, predicate.of.group):
        yield _value(source.read(predicate.of, name), judge)


def _order(source: Source, predicate: Predicate) -> Iterator[_Made]:
    tiers = [source.present(tier, predicate.of.group) for tier in predicate.tiers]
    tiers = [tier for tier in tiers if tier]
    for upper, lower in itertools.pairwise(tiers):
        for first in upper:
            for second in lower:
                yield _ratio(
                    source.read(predicate.of, first), source.read(predicate.of, second), above(1.0, source.margin)
                )


def _trend(source: Source, predicate: Predicate) -> Iterator[_Made]:
    below = predicate.below()
    for name in source.present(predicate.of.allocator, predicate.of.group):
        seen = [source.read(predicate.of.at(predicate.along, level), name) for level in predicate.levels]
        if below is not None:
            others = [source.read(below.at(predicate.along, level), name) for level in predicate.levels]
            seen = [_divided(one, other) for one, other in zip(seen, others, strict=True)]
        if predicate.direction == "flat":
            judge = within(1 - predicate.margin, 1 + predicate.margin)
            for later in seen[1:]:
                yield _ratio(later, seen[0], judge)
        else:
            judge = (
                above(predicate.limit, source.margin)
                if predicate.direction == "rises"
                else under(1 / predicate.limit, source.margin)
            )
            for earlier, later in itertools.pairwise(seen):
                yield _ratio(later, earlier, judge)


def _divided(above: Observed, below: Observed) -> Observed:
    """The ratio of two values in every block that has both."""
    shared = [key for key in above.values if below.values.get(key, 0.0) > 0]
    values = {key: above.values[key] / below.values[key] for key in shared}
    what = f"{above.what} / {_short(below.what, above.what)}"
    return Observed(what, values, {}, "1", above.exact and below.exact)


def _steadier(source: Source, predicate: Predicate) -> Iterator[_Made]:
    below = predicate.below()
    assert below is not None
    others = source.present(below.allocator, below.group)
    for first in source.present(predicate.of.allocator, predicate.of.group):
        for second in others:
            one, other = (
                _spread([source.read(side.at(predicate.along, level), name) for level in predicate.levels])
                for side, name in ((predicate.of, first), (below, second))
            )
            yield _ratio(one, other, under(1.0, source.margin))


def _spread(levels: list[Observed]) -> Observed:
    """The highest over the lowest of several levels, in every block that has all of them."""
    shared = [key for key in levels[0].values if all(one.values.get(key, 0.0) > 0 for one in levels)]
    values = {key: max(one.values[key] for one in levels) / min(one.values[key] for one in levels) for key in shared}
    exact = all(one.exact for one in levels)
    return Observed(f"spread of {levels[0].what} to {levels[-1].what.rpartition(' ')[2]}", values, {}, "1", exact)


_MAKERS: Mapping[str, Callable[[Source, Predicate], Iterator[_Made]]] = {
    "ratio_above": _ratios, "ratio_below": _ratios, "band": _band, "order": _order, "trend": _trend, "steadier": _steadier,
}  # fmt: skip


def _pairs(source: Source, of: Selection, to: Selection, judge: Judge) -> Iterator[_Made]:
    """Each allocator of `of` against each of `to`; where both name the same list, each against itself."""
    for first, second in _both(source, of, to):
        yield _ratio(source.read(of, first), source.read(to, second), judge)


def _both(source: Source, of: Selection, to: Selection) -> Iterator[tuple[str, str]]:
    same = of.allocator == to.allocator
    below = source.present(to.allocator, to.group)
    for first in source.present(of.allocator, of.group):
        for second in [first] if same else below:
            yield first, second


def _value(observed: Observed, judge: Judge) -> _Made:
    values = list(observed.values.values())
    if observed.exact:
        return _Made(observed.what, observed.unit, _exactly(values[0]), judge, exact=True)
    if observed.counts:
        above, below = zip(*observed.counts.values(), strict=True)

        def pooled(confidence: float) -> Interval:
            ratio = bootstrap.ratio_of_sums(above, below, confidence)
            return ratio if ratio is not None else intervals.median(values, confidence)

        return _Made(observed.what, observed.unit, pooled, judge)
    return _Made(observed.what, observed.unit, lambda confidence: intervals.median(values, confidence), judge)


def _ratio(above: Observed, below: Observed, judge: Judge) -> _Made:
    """Ratio of two selections over what pairs them; of rates of counted events the ratio of the pooled rates.

    raises: Undecided if they share nothing
    """
    what = f"{above.what} / {_short(below.what, above.what)}"
    shared = [key for key in above.values if key in below.values]
    if not shared:
        raise Undecided(NothingShared(what))
    if above.exact and below.exact and below.values[shared[0]] > 0:
        return _Made(what, "1", _exactly(above.values[shared[0]] / below.values[shared[0]]), judge, exact=True)
    if all(key in above.counts and key in below.counts for key in shared):
        return _Made(what, "1", _ratio_of_rates(above, below, shared), judge)
    ratio = paired(above.values, below.values)
    if ratio is None:
        raise Undecided(AllZero(what))
    return _Made(what, "1", ratio, judge)


def _exactly(value: float) -> Callable[[float], Interval]:
    """The interval of what was counted and not sampled: the value itself, at any confidence."""
    return lambda confidence: intervals.Interval(value, value, value, 1)


def paired(above: Mapping[object, float], below: Mapping[object, float]) -> Callable[[float], Interval] | None:
    """How to get the interval of above / below over the keys where both are positive; None where none are.

    A speed of 0 means that the run never got the processor: it says nothing about the program.
    """
    shared = [key for key in above if above[key] > 0 and below.get(key, 0.0) > 0]
    if not shared:
        return None
    tops, bottoms = [above[key] for key in shared], [below[key] for key in shared]
    return lambda confidence: intervals.paired_ratio(tops, bottoms, confidence)


def _ratio_of_rates(above: Observed, below: Observed, shared: list[object]) -> Callable[[float], Interval]:
    """How to get the interval of a ratio of rates, some or all of whose events may never have happened."""
    first, second = [above.counts[key] for key in shared], [below.counts[key] for key in shared]

    def at(confidence: float) -> Interval:
        (a, b), (c, d) = zip(*first, strict=True), zip(*second, strict=True)
        if min(sum(a), sum(c)) > 0:
            pooled = bootstrap.ratio_of_rates((a, b), (c, d), confidence)
            if pooled is not None:
                return pooled
        # No event at all on one side: half an event more in every block keeps the ratio finite.
        tops, bottoms = ([(n + 0.5) / (of + 1) for n, of in side] for side in (first, second))
        return intervals.paired_ratio(tops, bottoms, confidence)

    return at


def _short(what: str, other: str) -> str:
    metric = other.partition(" of ")[0] + " of "
    return what.removeprefix(metric)


def _all(comparisons: tuple[Comparison, ...]) -> tuple[str, str]:
    """Whether all hold, and why (not)."""
    failed = [c for c in comparisons if c.outcome == FAILS]
    still_open = [c for c in comparisons if c.outcome == OPEN]
    if failed:
        return FAILS, "; ".join(in_words(c) for c in failed[:2]) + (f" and {len(failed) - 2} more" * (len(failed) > 2))
    if still_open:
        few = [c for c in still_open if c.interval.low is None]
        if few:
            return OPEN, f"{few[0].what}: {few[0].interval.n} blocks are too few for an interval"
        # On the wrong side by itself, and too short an interval for all comparisons together.
        against = [c for c in still_open if c.apart.low is None and c.judge(c.interval, c.interval) == FAILS]
        if against:
            return OPEN, f"{against[0].interval.n} blocks are too few to contradict it: {in_words(against[0])}"
        return OPEN, f"the interval does not decide: {in_words(still_open[0])}"
    return HOLDS, in_words(min(comparisons, key=lambda c: abs(c.interval.estimate - 1)))


def _some(comparisons: tuple[Comparison, ...]) -> tuple[str, str]:
    """Whether at least one holds, and why (not)."""
    holding = [c for c in comparisons if c.outcome == HOLDS]
    if holding:
        return HOLDS, in_words(max(holding, key=lambda c: abs(c.interval.estimate - 1)))
    if all(c.outcome == FAILS for c in comparisons):
        return FAILS, "; ".join(in_words(c) for c in comparisons[:2]) + f" and {len(comparisons) - 2} more" * (
            len(comparisons) > 2
        )
    return OPEN, f"no interval decides: {in_words(next(c for c in comparisons if c.outcome == OPEN))}"


def in_words(comparison: Comparison) -> str:
    """A comparison with its interval in one line."""
    i = comparison.interval
    span = "" if i.low is None or i.high is None else f" [{i.low:.3g}, {i.high:.3g}]"
    return f"{comparison.what} = {i.estimate:.3g}{span}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
