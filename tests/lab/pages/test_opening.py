"""Pages of docs/performance begin with what was found, in a few lines, and one picture of it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
import test_malloc
import test_stamp
import test_tm
from typed import typed

from loam_lab.judging.statistics.intervals import Interval
from loam_lab.presenting.pages import malloc, stamp, tm
from loam_lab.presenting.pages.parts import opening
from loam_lab.presenting.pages.parts.paired import Case

HALF, DOUBLE = Interval(0.5, 0.4, 0.6, 8), Interval(2.0, None, None, 2)
SVG = "{http://www.w3.org/2000/svg}"


def words_of(picture: str) -> list[str]:
    texts = ElementTree.fromstring(picture).iter(f"{SVG}text")
    return [(text.text or "") + "".join(child.tail or "" for child in text) for text in texts]


def hovers_of(picture: str) -> list[str | None]:
    return [title.text for title in ElementTree.fromstring(picture).iter(f"{SVG}title") if ":" in (title.text or "")]


def test_a_picture_has_a_point_for_each_series_of_each_row() -> None:
    rows = {"a": {"1 thread": HALF, "2 threads": DOUBLE}, "b": {"2 threads": HALF}}
    picture = opening.picture("Rates", "over c", rows, ["a"])
    assert hovers_of(picture) == [
        "a, 1 thread: 0.50 [0.40, 0.60]",
        "a, 2 threads: 2.00 no interval",
        "b, 2 threads: 0.50 [0.40, 0.60]",
    ]
    assert [text for text in words_of(picture) if text in ("a", "b", "1 thread", "2 threads")] == [
        "1 thread",
        "2 threads",
        "a",
        "b",
    ]
    alone = opening.picture("Rates", "over c", {"a": {"1 thread": HALF}})
    assert "1 thread" not in words_of(alone), "a legend of one series says nothing"


def test_what_is_slower_is_counted_and_the_worst_case_named() -> None:
    day = [float(100 + block) for block in range(10)]

    def case(name: str, ours: float) -> Case:
        values = {"us": [ours * value for value in day], "old": [0.1 * value for value in day], "they": [*day]}
        return Case(name, 1, {name: [*of_name] for name, of_name in values.items()})

    say = [opening.slower([case(str(ours), ours) for ours in rates], ["us", "old"], ["they"])
           for rates in ((1.0, 2.0), (0.5, 2.0), (0.5, 0.25))]  # fmt: skip
    assert say[0] == "Slower than the fastest of the others in 0 of 2 cases, by intervals of 95 %."
    assert say[1].startswith("Slower than the fastest of the others in 1 of 2 cases: 0.5, 1\u00a0thread: 0.500 ")
    assert re.search(r"in 2 of 2 cases, most in 0\.25, 1\u00a0thread: 0\.250 \[.*\] times the rate of they\.$", say[2])


TRANSACTIONS = test_tm.made([
    test_tm.cell(sync, structure, threads, test_tm.scaled(factor))
    for threads in (1, 2) for structure in ("list", "tree")
    for sync, factor in (("etl-wb", 1), ("norec", 1.25), ("tiny", 0.8), ("sequential", 2))
])  # fmt: skip
ALLOCATION = test_malloc.made([
    test_malloc.cell(name, workload, 1, factor) for workload in ("larson", "sh6")
    for name, factor in (("loam", 1), ("a", 0.5), ("b", 0.8))
])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "picture", "parts", "rows"),
    [
        (
            tm.page(typed(TRANSACTIONS), ["tiny"]),
            tm.picture(typed(TRANSACTIONS), ["tiny"]),
            ["4 cases of intset with 1 and 2 threads", "is norec: 1.562 [1.562, 1.562] times the rate of tiny",
             "in 0 of 4 cases", "sequential code has 2.000", "sequential code has 2.000",
             "made up, 2 cores, kernel 6.1, 2026-01-02."],
            ["etl-wb", "norec", "tiny", "sequential"],
        ),
        (
            malloc.page(typed(ALLOCATION)), malloc.picture(typed(ALLOCATION)),
            ["2 cases of larson and sh6 with 1 thread,",
             "loam has 1.250 [1.250, 1.250] times the rate of b, the best of 2 others",
             "in 0 of 2 cases", "Peak memory of b over loam's: 1.000", "made up"],
            ["a", "b"],
        ),
        (
            stamp.page(typed(test_stamp.made(test_stamp.CELLS))), stamp.picture(typed(test_stamp.made(test_stamp.CELLS))),
            ["1 applications with 2 threads", "most in genome with 2 threads: tbb has 1.200 ",
             "1.200 [1.200, 1.200] with records shared by stripes, 1.100", "made up"],
            ["genome"],
        ),
    ],
    ids=["tm", "malloc", "stamp"],
)  # fmt: skip
def test_a_page_begins_with_a_few_lines_and_its_picture(
    text: str, picture: str, parts: list[str], rows: list[str]
) -> None:
    head, _, _ = text.partition("\n```\n")
    lines = [line for line in head.splitlines() if line.startswith("- ")]
    assert len(lines) == len(parts) <= 6
    for line, part in zip(lines, parts, strict=True):
        assert part in line
    assert re.search(r"^!\[[^]]+\]\((tm|malloc|stamp)\.svg\)$", head.strip().splitlines()[-1])
    assert [word for word in words_of(picture) if word in rows] == rows
