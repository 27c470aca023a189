"""The page that says whether real programs have the same result under each allocator."""

from __future__ import annotations

import pytest
from program_results import cell, result
from typed import typed

from loam_lab.presenting.pages import programs


def test_the_page_says_what_is_the_same_what_differs_and_what_failed() -> None:
    cells = [cell("awk", name, [1.0], 3 << 20) for name in ("loam", "glibc")]
    cells += [cell("tar", "glibc", [1.0], 5 << 20), cell("tar", "loam", [], None, state="failed")]
    cells += [cell("gs", "glibc", [1.0], 1 << 20), cell("gs", "loam", [], None, state="unproven")]
    failure = {
        "cell": {"workload": "tar", "allocator": "loam"}, "state": "verification", "count": 1,
        "detail": "its result differs from that under glibc in block 1",
    }  # fmt: skip
    rows = [
        line.split(" | ")
        for line in programs.page(typed(result(cells, failures=[failure]))).splitlines()
        if "| `" in line
    ]
    assert [row[2:] for row in rows] == [["same", "3", "3 |"], ["differs", "5", "- |"], ["unproven", "1", "- |"]]
    assert rows[0][1] == "a sum over strings"
    with pytest.raises(ValueError, match="this result has no programs"):
        programs.page(typed(result([])))
