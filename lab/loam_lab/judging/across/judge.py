"""Does the ranking of allocators hold across machines?  From cases to one answer, with what supports it.

Two questions are asked of every case, and each is adjusted for how often it is asked.

- Interaction: does how much an allocator matters depend on the machine?  Blocks of each two machines are compared by
  judging/statistics/interaction.py; Holm over all pairs of machines in all cases.
- Reversal: is one allocator better than another on one machine, and worse on another?  Both must be shown, so the larger of
  the two probabilities counts (an intersection-union test: Berger 1982); Holm over all that could have been reversed.

Two allocators are told apart on a machine by their paired blocks, as everywhere; Benjamini and Hochberg over all such pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from loam_lab.judging.across import cases as reading
from loam_lab.judging.across.cases import Case
from loam_lab.judging.statistics import interaction, intervals, multiplicity, verdicts
from loam_lab.judging.statistics.intervals import BLOCKS_MIN, Interval
from loam_lab.judging.statistics.multiplicity import SIGNIFICANCE
from loam_lab.model import result as results
from loam_lab.model.result import (
    AcrossMachines,
    Differing,
    Family,
    MachineRatio,
    MachinesCase,
    Ranking,
    Result,
    Reversal,
)
from loam_lab.model.words import listing

# Holm's first step asks for a probability below 0.05 / family: dealing must be able to reach it, with some to spare.
SHUFFLES_PER_TEST = 60


@dataclass(frozen=True)
class Pair:
    """Two allocators on one machine. ratio: how many times as good the first is; verdict: of the first"""

    case: int
    machine: str
    names: tuple[str, str]
    ratio: Interval
    q: float
    verdict: str


@dataclass(frozen=True)
class Meeting:
    """A case on two machines. p: adjusted; columns: of the rivals, the second machine's ratio by the first's"""

    case: int
    machines: tuple[str, str]
    p: float
    columns: tuple[Interval, ...]


def of_result(result: Result, margin: float = verdicts.MARGIN) -> list[AcrossMachines]:
    """What each kind of machine of a result answers, machines that exist first; empty for a result of one machine."""
    answers = []
    for machines in reading.kinds(result):
        known = reading.read(result, machines) if len(machines) > 1 else []
        if known:
            answers.append(judge(known, margin))
    return answers


def judge(known: Sequence[Case], margin: float = verdicts.MARGIN) -> AcrossMachines:
    """The answer of some cases (docs/internals/machines.md has its keys). margin: what is called equivalent"""
    machines = list(dict.fromkeys(machine for case in known for machine in case.logs))
    pairs, meetings = _pairs(known, margin), _meetings(known)
    reversals = _reversals(known, pairs)
    lines = [
        _line(case, [p for p in pairs if p.case == place], [m for m in meetings if m.case == place])
        for place, case in enumerate(known)
    ]
    counts = _counts(known, pairs, reversals)
    holds, text = _answer(lines, counts, reversals, machines)
    families = {
        "interaction": Family("Holm", len(meetings)),
        "reversals": Family("Holm", _reversible(known)),
        "pairs": Family("Benjamini-Hochberg", len(pairs)),
    }
    return AcrossMachines(machines, holds, text, lines, counts, reversals, families)


def _pairs(known: Sequence[Case], margin: float) -> list[Pair]:
    """Every two allocators of every case on every machine; the baseline is always the second of its pairs."""
    raw: list[tuple[int, str, tuple[str, str], Interval]] = []
    for place, case in enumerate(known):
        for machine, logs in case.logs.items():
            for low, high in itertools.combinations(range(len(case.allocators)), 2):
                ratio = intervals.exponential(intervals.hodges_lehmann(logs[:, high] - logs[:, low]))
                raw.append((place, machine, (case.allocators[high], case.allocators[low]), ratio))
    adjusted = multiplicity.benjamini_hochberg([1.0 if one[3].p is None else one[3].p for one in raw])
    return [
        Pair(*one, q, verdicts.decide(one[3], "higher", margin=margin, adjusted=q))
        for one, q in zip(raw, adjusted, strict=True)
    ]


def _meetings(known: Sequence[Case]) -> list[Meeting]:
    """Every two machines of every case, where both have enough blocks."""
    planned = [
        (place, two) for place, case in enumerate(known) for two in itertools.combinations(case.logs, 2)
        if min(len(case.logs[machine]) for machine in two) >= BLOCKS_MIN
    ]  # fmt: skip
    shuffles = max(interaction.SHUFFLES, SHUFFLES_PER_TEST * len(planned))
    tested = []
    for place, two in planned:
        difference = interaction.compare(known[place].relative(two[0]), known[place].relative(two[1]), shuffles)
        assert difference is not None, "enough blocks were asked for"
        tested.append((place, two, difference))
    adjusted = multiplicity.holm([difference.p for _, _, difference in tested])
    return [
        Meeting(place, two, p, tuple(intervals.exponential(column) for column in difference.columns))
        for (place, two, difference), p in zip(tested, adjusted, strict=True)
    ]


def _reversible(known: Sequence[Case]) -> int:
    """How many pairs of allocators on pairs of machines there are."""
    return sum(math.comb(len(case.allocators), 2) * math.comb(len(case.logs), 2) for case in known)


def _reversals(known: Sequence[Case], pairs: Sequence[Pair]) -> list[Reversal]:
    """Where one allocator is better than another on one machine and worse on another, shown after Holm."""
    of_pair: dict[tuple[int, tuple[str, str]], list[Pair]] = {}
    for pair in pairs:
        of_pair.setdefault((pair.case, pair.names), []).append(pair)
    opposite = [
        (one, other) if one.verdict == "better" else (other, one)
        for same in of_pair.values() for one, other in itertools.combinations(same, 2)
        if {one.verdict, other.verdict} == {"better", "worse"}
    ]  # fmt: skip
    # All other pairs of machines agree: they are part of the family with probability 1.
    missing = [1.0] * (_reversible(known) - len(opposite))
    adjusted = multiplicity.holm([max(one.ratio.p or 0.0, other.ratio.p or 0.0) for one, other in opposite] + missing)
    return [
        Reversal(
            known[one.case].label, *one.names, one.machine, results.Interval(*one.ratio.ends),
            other.machine, results.Interval(*other.ratio.ends), p,
        )
        for (one, other), p in zip(opposite, adjusted, strict=False) if p < SIGNIFICANCE
    ]  # fmt: skip


def _line(case: Case, pairs: Sequence[Pair], meetings: Sequence[Meeting]) -> MachinesCase:
    """What a case says: ratios and ranking on each machine, and whether the machines agree."""
    p = min((meeting.p for meeting in meetings), default=None)
    rivals = case.allocators[1:]
    differing = []
    for place, rival in enumerate(rivals):
        columns = [
            (
                meeting.p < SIGNIFICANCE and (meeting.columns[place].p or 0.0) < SIGNIFICANCE,
                meeting,
                meeting.columns[place],
            )
            for meeting in meetings
        ]
        if columns:
            # The two machines that differ most, in either direction; those that are shown to differ before others.
            shown, meeting, column = max(columns, key=lambda one: (one[0], abs(math.log(one[2].estimate))))
            differing.append(Differing(*column.ends, rival, list(meeting.machines), column.p, shown))
    return MachinesCase(
        **asdict(case.where), label=case.label, baseline=case.baseline, allocators=list(case.allocators),
        absent=dict(case.absent), blocks={machine: len(logs) for machine, logs in case.logs.items()},
        ratios=[
            MachineRatio(*pair.ratio.ends, pair.names[0], pair.machine, pair.ratio.n, pair.q, pair.verdict)
            for pair in pairs if pair.names[1] == case.baseline
        ],
        ranking={machine: _ranking(case, machine, pairs) for machine in case.logs},
        interaction="too few blocks" if p is None else "shown" if p < SIGNIFICANCE else "not shown",
        p_holm=p, differing=differing,
    )  # fmt: skip


def _ranking(case: Case, machine: str, pairs: Sequence[Pair]) -> Ranking:
    """Allocators from best to worst on a machine; apart: whether each is told apart from the next."""
    own = {pair.names: pair for pair in pairs if pair.machine == machine}
    score = dict.fromkeys(case.allocators, 0.0)
    for (first, second), pair in own.items():
        score[first] += math.log(pair.ratio.estimate)
        score[second] -= math.log(pair.ratio.estimate)
    order = sorted(case.allocators, key=lambda name: -score[name])
    apart = []
    for one, other in itertools.pairwise(order):
        pair = own.get((one, other)) or own[other, one]
        apart.append(pair.verdict in ("better", "worse"))
    return Ranking(order, apart)


def _counts(known: Sequence[Case], pairs: Sequence[Pair], reversals: Sequence[Reversal]) -> dict[str, int]:
    """Pairs of allocators over all cases: told apart with one order everywhere, on some machines only, reversed, nowhere.

    open: told apart in both orders, though chance can explain it among so many
    """
    of_pair: dict[tuple[int, tuple[str, str]], list[str]] = {}
    for pair in pairs:
        of_pair.setdefault((pair.case, pair.names), []).append(pair.verdict)
    turned = {(one.case, one.better, one.than) for one in reversals}
    counts = {"all": len(of_pair), "same": 0, "some": 0, "reversed": 0, "open": 0, "nowhere": 0}
    for (place, names), outcomes in of_pair.items():
        orders = {verdict for verdict in outcomes if verdict in ("better", "worse")}
        if len(orders) == 2:
            counts["reversed" if (known[place].label, *names) in turned else "open"] += 1
        elif not orders:
            counts["nowhere"] += 1
        else:
            counts["same" if all(verdict in orders for verdict in outcomes) else "some"] += 1
    return counts


def _answer(
    lines: Sequence[MachinesCase], counts: Mapping[str, int], reversals: Sequence[Reversal], machines: Sequence[str]
) -> tuple[str, str]:  # fmt: skip
    """One word and a plain text: does the ranking hold across the machines?"""
    shown = [line for line in lines if line.interaction == "shown"]
    tested = [line for line in lines if line.interaction != "too few blocks"]
    apart = counts["all"] - counts["nowhere"]
    where = f"across {listing(machines)}"
    if reversals:
        turned = max(reversals, key=lambda line: abs(math.log(line.ratio.estimate / line.ratio_there.estimate)))
        count = len({line.case for line in reversals})
        return "no", (
            f"No. The ranking of allocators does not hold {where}: in {count} of {len(lines)} cases two of them change places. "
            f"{turned.case}: {turned.better} is {_times(turned.ratio)} as good as {turned.than} on {turned.on}, and "
            f"{_times(turned.ratio_there)} on {turned.but_worse_on}."
        )
    if not tested:
        return "undecided", (
            f"Not decided. No case has {BLOCKS_MIN} blocks on two of the machines {listing(machines)}; measure more blocks."
        )
    orders = f"of {counts['all']} pairs of allocators {apart} are told apart on some machine, and none changes places"
    if counts["open"]:
        orders = f"{counts['open']} of {counts['all']} pairs of allocators may change places, which chance can explain"
    if shown:
        line, one = _largest(shown)
        return "order", (
            f"The order holds {where}, the sizes do not: {orders}. In {len(shown)} of {len(tested)} cases how much an allocator "
            f"matters depends on the machine. Most in {line.label}: the ratio of {one.allocator} to {line.baseline} on "
            f"{one.between[1]} is {_times(one)} that on {one.between[0]}."
        )
    if not apart:
        return (
            "undecided",
            f"Not decided. No two allocators are told apart {where}; measure more blocks, or longer runs.",
        )
    line, one = _largest(tested)
    return "yes", (
        f"Yes, as far as was measured {where}: {orders}. In none of {len(tested)} cases a difference between machines is shown; "
        f"the largest seen is that of {one.allocator} in {line.label}, {_times(one)}."
    )


def _largest(lines: Sequence[MachinesCase]) -> tuple[MachinesCase, Differing]:
    """The case and allocator whose ratio differs most between two machines; of shown ones where there are any."""
    every = [(line, one) for line in lines for one in line.differing]
    some = [pair for pair in every if pair[1].shown] or every
    return max(some, key=lambda pair: abs(math.log(pair[1].estimate)))


def _times(ratio: results.Interval) -> str:
    if ratio.low is None or ratio.high is None or not math.isfinite(ratio.low):
        return f"{ratio.estimate:.2f} times"
    return f"{ratio.estimate:.2f} times [{ratio.low:.2f}, {ratio.high:.2f}]"


def ranked(ranking: Ranking) -> str:
    """ "tbb > glibc ≈ hoard": from best to worst, with ≈ between neighbours that are not told apart."""
    signs = [" > " if apart else " ≈ " for apart in ranking.apart]
    return "".join(part for pair in zip(ranking.order, [*signs, ""], strict=True) for part in pair)
