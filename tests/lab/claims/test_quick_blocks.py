"""The quick form of a study has blocks enough to decide its claims.

Six blocks have a signed-rank interval of 95 %, fewer have none.  A claim is contradicted by an interval of a higher confidence
where its predicates make several comparisons, which takes some blocks more.
"""

from __future__ import annotations

import itertools

import pytest

from loam_lab.commands.run.commands import QUICK_BLOCKS
from loam_lab.judging.statistics import intervals
from loam_lab.model import studies
from loam_lab.model.claim import Predicate
from loam_lab.model.study import Study

# Their quick forms are long enough to show that a claim holds, and too short to contradict some of those with many comparisons.
CANNOT_CONTRADICT = {"gc-jvm", "lookalikes", "programs"}
# "Almost all" of six blocks: where a predicate need not hold, the others need more than their 95 %.
CANNOT_SHOW = {"programs": {"004-11"}}


def comparisons(predicate: Predicate) -> int:
    """How many ratios or values a predicate compares where every allocator is there."""
    of = len(predicate.of.allocator)
    below = predicate.below()
    if predicate.kind == "order":
        return sum(len(upper) * len(lower) for upper, lower in itertools.pairwise(predicate.tiers))
    if predicate.kind == "trend":
        return of * (len(predicate.levels) - 1)
    if below is None or predicate.of.allocator == below.allocator:
        return of
    return of * len(below.allocator)


def decides(blocks: int, confidence: float) -> bool:
    """Whether a ratio of so many blocks has an interval."""
    values = [1.0 + block / 64 for block in range(blocks)]
    return intervals.paired_ratio(values, values[::-1], confidence).low is not None


def too_short(study: Study, *, contradicted: bool) -> list[str]:
    """Claims of timed blocks that no result of the quick form can decide; or, contradicted, that none can contradict."""
    quick = study.quick(QUICK_BLOCKS)
    groups = {group.name: group for group in quick.groups}
    short = []
    for claim in quick.claims:
        together = sum(1 if one.some else comparisons(one) for one in claim.predicates if one.of.source == "timing")
        for predicate in claim.predicates:
            if predicate.of.over != "blocks" or predicate.of.source != "timing":
                continue
            blocks = quick.blocks_of(groups[predicate.of.group])
            count = together if contradicted else 1 + claim.all_but
            if not decides(blocks, 1 - (1 - intervals.CONFIDENCE) / count):
                short.append(f"{claim.id}: {blocks} blocks of {predicate.of.group}, {count} comparisons")
    return short


@pytest.mark.parametrize("name", sorted(studies.registry()))
def test_a_quick_study_can_decide_each_of_its_claims(name: str) -> None:
    study = studies.load(studies.registry()[name])
    short = {line.partition(":")[0] for line in too_short(study, contradicted=False)}
    assert short == CANNOT_SHOW.get(name, set())
    assert bool(too_short(study, contradicted=True)) == (name in CANNOT_CONTRADICT)


@pytest.mark.parametrize("name", sorted(studies.registry()))
def test_a_quick_study_has_intervals_where_the_full_one_has(name: str) -> None:
    """Of the groups that are compared: what is only counted needs none."""
    study = studies.load(studies.registry()[name])
    quick = study.quick(QUICK_BLOCKS)
    full = {group.name: study.blocks_of(group) for group in study.groups if group.role != "counted"}
    short = [
        group.name for group in quick.groups if quick.blocks_of(group) < min(full.get(group.name, 0), QUICK_BLOCKS)
    ]
    assert short == []


def test_too_few_blocks_are_found() -> None:
    delegation = studies.load(studies.registry()["delegation"])
    groups = tuple(
        group.model_copy(update={"quick": group.quick.model_copy(update={"blocks": blocks})}) if group.quick else group
        for group in delegation.groups
        for blocks in (5 if group.name == "lines" else 6,)
    )
    short = delegation.model_copy(update={"groups": groups})
    assert too_short(short, contradicted=False) == [
        "001-11: 5 blocks of lines, 1 comparisons", "001-13: 5 blocks of lines, 1 comparisons",
    ]  # fmt: skip
    assert "001-02: 6 blocks of queue-presets, 6 comparisons" in too_short(short, contradicted=True)
