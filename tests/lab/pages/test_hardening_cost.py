"""The page of what hardening costs real programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from program_results import cell, result
from typed import typed

from loam_lab.model.schema import SCHEMA
from loam_lab.presenting.pages import hardening_cost

SECONDS = {"glibc": 2.0, "loam": 1.0, "loam:hardened=1": 1.5}


def made() -> dict[str, object]:
    cells = [
        cell(name, allocator, [seconds * block for block in range(1, 9)], None)
        for name in ("one", "two")
        for allocator, seconds in SECONDS.items()
    ]
    return result(cells)


def test_the_page_has_ratios_to_the_first_and_of_the_last_to_the_one_before() -> None:
    text = hardening_cost.page(typed(made()))
    assert "| program | glibc, s | loam / glibc | loam:hardened=1 / glibc | loam:hardened=1 / loam |" in text
    assert "| `one` | 9.00 | 0.500 [0.500, 0.500] | 0.750 [0.750, 0.750] | 1.500 [1.500, 1.500] |" in text
    assert "| geometric mean | | 0.500 [0.500, 0.500] | 0.750 [0.750, 0.750] | 1.500 [1.500, 1.500] |" in text


def test_an_allocator_that_was_not_measured_is_named() -> None:
    with pytest.raises(ValueError, match=r"no times of jemalloc; \./loam study run programs has"):
        hardening_cost.page(typed(made()), ["glibc", "jemalloc"])


def test_the_page_of_a_folder_is_written(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps({**made(), "schema": SCHEMA}))
    page = tmp_path / "page.md"
    assert hardening_cost.main([str(tmp_path), "--allocator", "glibc,loam", "--page", str(page)]) == 0
    assert page.read_text().startswith("# What hardening costs")
