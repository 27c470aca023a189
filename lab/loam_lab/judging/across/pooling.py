"""Machines that were declared identical: their A/A comparison, and their blocks together where it passes.

Nothing is pooled on a declaration alone.  Processor and number of hardware threads must be the same; the baseline must take
the same time on each two of them, to within a margin, in every case (an equivalence test: few or noisy blocks do not pass);
and no allocator's ratio may depend on which of them measured it.  What is pooled then is ratios, block by block: each block
was measured whole on one machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from loam_lab.judging.across import cases as reading
from loam_lab.judging.across.cases import Case
from loam_lab.judging.reasons import BaselineDiffers, NoCommonCase, RatiosDiffer, Reason, TooFewBlocks, Unlike, words
from loam_lab.judging.statistics import interaction, intervals, multiplicity, shift, verdicts
from loam_lab.judging.statistics.intervals import BLOCKS_MIN, Interval
from loam_lab.judging.statistics.multiplicity import SIGNIFICANCE
from loam_lab.model.result import BaselineApart, Identical, Pooled, Result
from loam_lab.model.words import listing

# How far the baseline's values on two identical machines may lie apart, with the whole interval.
APART_MAX = 0.05
FACTS = ("cpu", "cores", "microcode")


def of_result(result: Result, declared: Sequence[Sequence[str]]) -> list[Identical]:
    """For each set of machines that was declared identical: whether its A/A comparison passed, and the pooled ratios.

    declared: names of machines; those that measured nothing take no part
    """
    measured = {cell.factors.machine for cell in result.cells if cell.runs}
    sets = [[name for name in names if name in measured] for names in declared]
    return [_judged(result, names) for names in sets if len(names) > 1]


def _judged(result: Result, names: Sequence[str]) -> Identical:
    known = reading.read(result, names)
    whole = [case for case in known if len(case.logs) == len(names)]
    apart = [line for case in whole for line in _apart(case)]
    why: list[Reason] = [*_unlike(result, names)]
    if not whole:
        why.append(NoCommonCase())
    why += [
        BaselineDiffers(case.label, case.baseline, two, ratio, APART_MAX)
        for case, two, ratio in apart
        if not _within(ratio)
    ]
    fewest = [(case.label, min(map(len, case.logs.values()))) for case in whole]
    why += [TooFewBlocks(label, blocks, BLOCKS_MIN) for label, blocks in fewest if blocks < BLOCKS_MIN]
    tests = [(case, two, difference) for case in whole for two, difference in _tests(case, len(whole) * len(names))]
    adjusted = multiplicity.holm([difference.p for _, _, difference in tests])
    why += [
        RatiosDiffer(case.label, two) for (case, two, _), p in zip(tests, adjusted, strict=True) if p < SIGNIFICANCE
    ]
    baseline = [BaselineApart(*ratio.ends, case.label, list(two), _within(ratio)) for case, two, ratio in apart]
    return Identical(list(names), not why, [*map(words, why)], baseline, [] if why else _pooled(whole))


def _unlike(result: Result, names: Sequence[str]) -> list[Unlike]:
    """Facts that are not the same on machines that were declared identical."""
    facts = result.machines
    differing = []
    for key in FACTS:
        values = {name: facts.get(name, {}).get(key) for name in names}
        if len(set(map(str, values.values()))) > 1:
            differing.append(Unlike(key, tuple(values.items())))
    return differing


def _apart(case: Case) -> list[tuple[Case, tuple[str, str], Interval]]:
    """How many times the baseline is as good on the second of each two machines as on the first."""
    ratios = []
    for two in itertools.combinations(case.logs, 2):
        first, second = (case.logs[machine][:, 0] for machine in two)
        ratios.append((case, two, intervals.exponential(shift.shift(first, second))))
    return ratios


def _within(ratio: Interval) -> bool:
    return (
        ratio.low is not None and ratio.high is not None
        and ratio.low >= 1 / (1 + APART_MAX) and ratio.high <= 1 + APART_MAX
    )  # fmt: skip


def _tests(case: Case, family: int) -> list[tuple[tuple[str, str], interaction.Interaction]]:
    shuffles = max(interaction.SHUFFLES, 60 * family)
    tests = []
    for two in itertools.combinations(case.logs, 2):
        if (one := interaction.compare(case.relative(two[0]), case.relative(two[1]), shuffles)) is not None:
            tests.append((two, one))
    return tests


def _pooled(known: Sequence[Case]) -> list[Pooled]:
    """The rivals' ratios over the blocks of all machines."""
    every = []
    for case in known:
        rows = np.concatenate([case.relative(machine) for machine in case.logs])
        for place, name in enumerate(case.allocators[1:]):
            every.append((case, name, intervals.exponential(intervals.hodges_lehmann(rows[:, place]))))
    adjusted = multiplicity.benjamini_hochberg([1.0 if ratio.p is None else ratio.p for _, _, ratio in every])
    return [
        Pooled(*ratio.ends, case.label, name, case.baseline, ratio.n, q, verdicts.decide(ratio, "higher", adjusted=q))
        for (case, name, ratio), q in zip(every, adjusted, strict=True)
    ]


def warnings(answers: Sequence[Identical]) -> list[str]:
    """What a reader must know of machines that were declared identical and do not pass."""
    return [
        f"{listing(one.machines)} were declared identical and do not pass their A/A comparison: {one.reasons[0]}"
        + (f" (and {len(one.reasons) - 1} more reasons)" if len(one.reasons) > 1 else "")
        + "; their blocks are not pooled; read each machine's own figures, or measure more blocks"
        for one in answers if not one.passed
    ]  # fmt: skip
