"""The sentence to remember says what the result shows, and no more."""

from __future__ import annotations

from typing import Any

from typed import typed

from loam_lab.judging.result import remember


def headline(group: str, estimate: float, verdict: str = "better", *, rough: bool = False) -> dict[str, Any]:
    ratio = {"estimate": estimate, "low": estimate - 0.02, "high": estimate + 0.02}
    return {
        "group": group, "workload": group, "parameters": {"structure": "list"}, "best": "x", "worst": "y", "ratio": ratio,
        "verdict": verdict, "rough": rough,
    }  # fmt: skip


def cell(allocator: str, mapping: str, aborts: int, placed: int, group: str = "intset") -> dict[str, Any]:
    blame = {"aborts": aborts, "aborts_other_block": placed, "aborts_other_stripe": 0}
    return {
        "group": group, "copy": 0, "factors": {"allocator": allocator, "workload": group},
        "parameters": {"mapping": mapping}, "blame": blame,
    }  # fmt: skip


CELLS = [
    cell("jemalloc", "table", 1000, 500), cell("loam", "table", 1000, 4), cell("few", "table", 3, 3),
    cell("jemalloc", "shadow", 600, 0), cell("loam", "shadow", 600, 0),
]  # fmt: skip


def sentence_of(headlines: list[dict[str, Any]], cells: list[dict[str, Any]], units: dict[str, dict[str, str]]) -> str:
    made = typed({"headlines": headlines, "cells": cells})
    return remember.text(made.headlines, made.cells, units)


def test_how_much_why_and_what_mends_it() -> None:
    units = {"intset": {"structure=list": "sorted list"}}
    sentence = sentence_of([headline("intset", 1.3), headline("threadtest", 6.0)], CELLS, units)
    assert sentence == (
        "The choice of the allocator alone makes the same program up to 1.30 times as fast, and up to 50.0 % of the aborts come "
        "only from where blocks lie; shadow records leave none, loam leaves at most 0.4 % without them. "
        "Largest difference: intset, sorted list, x against y [1.28, 1.32]. Most aborts by placement: jemalloc."
    )


def test_what_is_not_shown_is_not_said() -> None:
    level = [headline("intset", 1.3, "inconclusive"), headline("other", 1.0, "equivalent")]
    assert sentence_of(level, [], {}) == "In none of 2 cases was a difference in speed shown."
    bad = [cell("a", "table", 1000, 500), cell("b", "table", 1000, 400), cell("a", "shadow", 1000, 450)]
    assert sentence_of(level, bad, {}).endswith("only from where blocks lie. Most aborts by placement: a.")
    assert sentence_of([headline("intset", 1.3)], CELLS, {}) == "", "one case says it all by itself"


def test_a_wide_interval_is_told() -> None:
    assert "[1.28, 1.32], roughly." in sentence_of([headline("a", 1.3, rough=True), headline("b", 1.1)], [], {})


def test_a_parameter_is_called_as_its_workload_says() -> None:
    lines = [{**headline("a", 1.3), "parameters": {"size": 16}}, headline("b", 1.1)]
    assert "a, 16\u00a0B blocks, x" in sentence_of(lines, [], {"a": {"size": "B", "size=*": "{}\u00a0B blocks"}})
    assert "a, size\u00a0=\u00a016, x" in sentence_of(lines, [], {"a": {"size": "1"}})
