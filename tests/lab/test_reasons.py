"""How reasons are worded. Every other test compares the reasons themselves."""

from __future__ import annotations

from typing import get_args

import pytest

from loam_lab.judging import reasons
from loam_lab.judging.claims.values import Undecided
from loam_lab.judging.reasons import (
    AllZero,
    BaselineDiffers,
    NoCommonCase,
    NoMetric,
    NotGood,
    NothingShared,
    NotMeasured,
    NotPrinted,
    NoValue,
    Oversubscribed,
    PrintedTwice,
    RatiosDiffer,
    Reason,
    TooFewBlocks,
    Unlike,
    Unmet,
)
from loam_lab.judging.statistics.intervals import Interval

TWO = ("alpha", "beta")
WORDS: list[tuple[Reason, str]] = [
    (Unmet("cores", 8, 2, "host"), "8 cores (this machine has 2)"),
    (Unmet("cores", 17, 16, "sim:far"), "17 cores (sim:far has 16)"),
    (Unmet("rtm"), "hardware transactions (this machine has none that commit)"),
    (Unmet("counters", has="refused"), "hardware counters (refused)"),
    (Unmet("allocator", "hoard"), "allocator hoard (not measured here)"),
    (Unmet("workloads", ("v", "w")), "the applications v, w (no executable has them)"),
    (Unmet("sync", "t"), "synchronisation t (not among those measured)"),
    (Unmet("machine", "far"), "machine far"),
    (NotMeasured("a 1T on far"), "a 1T on far was not measured"),
    (Oversubscribed("a 2T", 2, 1), "a 2T: 2 threads on 1 cores; an oversubscribed run never decides"),
    (NoValue("a 1T", ""), "a 1T: no value of its metric was measured"),
    (NoValue("a 1T", "user_s"), "a 1T: no value of user_s was measured"),
    (NoValue("a 1T", "llc_misses", "counters"), "a 1T: no value of llc_misses was measured by counters"),
    (NoMetric("intset", "stm", "colour"), "intset of stm has no metric colour"),
    (NotGood("a 1T", "skipped"), "a 1T was not reached, or was stopped after failures"),
    (NotGood("a 1T", "failed"), "a 1T is failed"),
    (NotGood("a 1T", "unproven", "another library"), "a 1T is unproven (another library)"),
    (NothingShared("x of a / b"), "x of a / b: no block has both"),
    (AllZero("x of a / b"), "x of a / b: a value is 0 in every block, so that there is no ratio"),
    (NotPrinted("x of a"), "the paper prints nothing for x of a"),
    (PrintedTwice("x of a", 2), "2 printed numbers fit x of a: name the levels that tell them apart"),
    (
        Unlike("cpu", (("alpha", "made up"), ("beta", None))),
        "they are not of one kind: cpu is made up on alpha and unknown on beta",
    ),
    (NoCommonCase(), "no case was measured on all of them"),
    (
        BaselineDiffers("w, 1 thread", "plain", TWO, Interval(1.1, 1.0512, 1.15, 20), 0.05),
        "plain on beta has 1.100 times [1.051, 1.150] of what it has on alpha in w, 1 thread, which may differ by more than "
        "5.0 %",
    ),
    (
        BaselineDiffers("w", "plain", TWO, Interval(1.1, None, None, 2), 0.05),
        "plain on beta has 1.100 times, with too few blocks for an interval, of what it has on alpha in w, which may differ by "
        "more than 5.0 %",
    ),
    (TooFewBlocks("w", 4, 6), "w has 4 blocks on one of them, and the comparison needs 6"),
    (RatiosDiffer("w", TWO), "ratios differ between alpha and beta in w"),
]


@pytest.mark.parametrize(
    ("reason", "wording"), WORDS, ids=[f"{number} {one.__class__.__name__}" for number, (one, _) in enumerate(WORDS)]
)
def test_a_reason_is_worded(reason: Reason, wording: str) -> None:
    assert reasons.words(reason) == wording


def test_every_reason_is_tested() -> None:
    assert {type(reason) for reason, _ in WORDS} == set(get_args(Reason))


def test_an_exception_carries_the_reason_and_says_its_words() -> None:
    raised = Undecided(NotMeasured("a 1T"))
    assert (raised.reason, str(raised)) == (NotMeasured("a 1T"), "a 1T was not measured")
