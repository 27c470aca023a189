"""One rule from what was told apart to what is advised, over all combinations of verdicts of three rivals."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest

from loam_lab.commands.bench import rule
from loam_lab.commands.bench.rule import Ratios
from loam_lab.judging.statistics.intervals import paired_ratio

# By the verdict: better, not told apart, worse; each rival differs by another amount.
SPEED = {"a": (0.7, 1.0, 1.3), "b": (0.9, 1.0, 1.1), "c": (0.89, 1.0, 2.0)}
MEMORY = {"a": (0.6, 1.0, 1.8), "b": (0.5, 1.0, 1.2), "c": (0.8, 1.0, 1.05)}
BASELINE = "base"


def every() -> list[dict[str, Ratios]]:
    pairs = {name: list(itertools.product(SPEED[name], (*MEMORY[name], None))) for name in SPEED}
    combinations = []
    for count in range(len(SPEED) + 1):
        for names in itertools.combinations(SPEED, count):
            chosen = itertools.product(*(pairs[name] for name in names))
            combinations += [{name: Ratios(*pair) for name, pair in zip(names, one, strict=True)} for one in chosen]
    return combinations


def problem(ratios: dict[str, Ratios]) -> str:
    """What is wrong with the advice, or nothing."""
    advised = rule.advise(BASELINE, ratios)
    better = [name for name, one in ratios.items() if one.speed < 1 or (one.memory or 1) < 1]
    if not better:
        return "advice without a difference" if advised else ""
    if not advised:
        return "no advice in spite of a difference"
    points = {BASELINE: (1.0, 1.0)} | {
        n: (one.speed, one.memory) for n, one in ratios.items() if one.memory is not None
    }
    if any(ratios[advised["speed"]].speed > one.speed for one in ratios.values() if advised["speed"] != BASELINE):
        return "not the fastest"
    if advised["speed"] == BASELINE and any(one.speed < 1 for one in ratios.values()):
        return "the baseline for speed, though one is faster"
    if len(points) == 1:
        return "" if set(advised) == {"speed"} else "memory without a figure"
    if any(memory < points[advised["memory"]][1] for _, memory in points.values()):
        return "not the least memory"
    both = points[advised["both"]]
    if any(all(a * rule.NEAR < b for a, b in zip(one, both, strict=True)) for one in points.values()):
        return "another one is better in both"
    if advised["speed"] == advised["memory"] != advised["both"]:
        return "the best in both is not taken for both"
    if both[0] >= 1 and both[1] >= 1 and advised["both"] != BASELINE:
        return "for both one that was shown to be better in neither"
    return ""


def test_no_combination_contradicts_itself() -> None:
    combinations = every()
    assert len(combinations) == 1 + 3 * 12 + 3 * 12**2 + 12**3
    assert {text: ratios for ratios in combinations if (text := problem(ratios))} == {}


@pytest.mark.parametrize(
    ("ratios", "advised"),
    [
        ({}, {}),
        ({"a": Ratios()}, {}),
        ({"a": Ratios(1.0, 1.4), "b": Ratios(1.2, 1.0)}, {}),
        ({"a": Ratios(0.9, None)}, {"speed": "a"}),
        ({"a": Ratios(1.0, 0.5)}, {"speed": BASELINE, "memory": "a", "both": "a"}),
        ({"a": Ratios(0.9, 1.5)}, {"speed": "a", "memory": BASELINE, "both": BASELINE}),
        ({"a": Ratios(0.5, 1.1)}, {"speed": "a", "memory": BASELINE, "both": "a"}),
        (
            {"a": Ratios(0.8, 1.0), "b": Ratios(1.0, 0.8), "c": Ratios(0.9, 0.7)},
            {"speed": "a", "memory": "c", "both": "c"},
        ),
    ],
)
def test_what_is_advised(ratios: dict[str, Ratios], advised: dict[str, str]) -> None:
    assert rule.advise(BASELINE, ratios) == advised


def equal(*pairs: str) -> rule.Alike:
    return {frozenset(pair) for pair in pairs}


@pytest.mark.parametrize(
    ("ratios", "alike", "advised"),
    [
        # b is the fastest by estimate; a was not told apart from it, and is named first.
        ({"a": Ratios(0.82, 1.0), "b": Ratios(0.8, 1.0)}, equal("ab"), {"speed": "a", "memory": BASELINE, "both": "a"}),
        ({"a": Ratios(0.82, 1.0), "b": Ratios(0.8, 1.0)}, equal(), {"speed": "b", "memory": BASELINE, "both": "b"}),
        # It needs more memory.
        ({"a": Ratios(0.82, 1.2), "b": Ratios(0.8, 1.0)}, equal("ab"), {"speed": "b", "memory": BASELINE, "both": "b"}),
        ({"a": Ratios(0.8, 1.0), "b": Ratios(0.82, 0.9)}, equal("ab"), {"speed": "b", "memory": "b", "both": "b"}),
        # It looks much slower, however few blocks there were.
        ({"a": Ratios(0.9, 1.0), "b": Ratios(0.8, 1.0)}, equal("ab"), {"speed": "b", "memory": BASELINE, "both": "b"}),
        # It was not shown to be faster than the baseline.
        ({"a": Ratios(1.0, 1.0), "b": Ratios(0.98, 1.0)}, equal("ab"), {"speed": "b", "memory": BASELINE, "both": "b"}),
        # It was told apart from the fastest, though not from the second.
        ({"a": Ratios(0.82), "b": Ratios(0.81), "c": Ratios(0.8)}, equal("ab", "bc"),
         {"speed": "b", "memory": BASELINE, "both": "b"}),
    ],
)  # fmt: skip
def test_equally_fast_is_what_was_not_told_apart_from_the_fastest(
    ratios: dict[str, Ratios], alike: rule.Alike, advised: dict[str, str]
) -> None:
    assert rule.advise(BASELINE, rule.level(ratios, alike)) == advised


def test_levelled_speeds_contradict_nothing_either() -> None:
    every_pair = equal("ab", "ac", "bc")
    levelled = [rule.level(ratios, every_pair) for ratios in every()]
    assert {text: ratios for ratios in levelled if (text := problem(ratios))} == {}


def test_two_that_are_equally_good_are_not_advised_in_turn() -> None:
    """Ten studies of the same machine: the same advice in nine of them at least; by the estimate alone it would change."""
    draw = random.Random(1)
    advised, by_estimate = [], []
    for _ in range(10):
        times = {
            name: [true * draw.lognormvariate(0, 0.02) for _ in range(8)] for name, true in (("a", 0.8), ("b", 0.8))
        }
        ratio = paired_ratio(times["a"], times["b"])
        assert ratio.low is not None and ratio.high is not None
        medians = {name: Ratios(statistics.median(values), 1.0) for name, values in times.items()}
        advised.append(
            rule.fastest(BASELINE, rule.level(medians, equal("ab") if ratio.low <= 1 <= ratio.high else set()))
        )
        by_estimate.append(rule.fastest(BASELINE, medians))
    assert advised.count("a") >= 9
    assert 2 <= by_estimate.count("a") <= 8
