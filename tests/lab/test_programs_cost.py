"""The page of what hardening costs real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.programs import cost
from loam_lab.programs.running import Outcome

ALLOCATORS = ("glibc", "loam", "loam:hardened=1")
SECONDS = {"glibc": 2.0, "loam": 1.0, "loam:hardened=1": 1.5}


def test_the_page_has_ratios_to_the_first_and_of_the_last_to_the_one_before() -> None:
    runs = {
        name: {a: [Outcome(b"", None, SECONDS[a] * block) for block in range(1, 9)] for a in ALLOCATORS}
        for name in ("one", "two")
    }
    text = cost.page(runs, ALLOCATORS, 8)
    assert "| program | glibc, s | loam / glibc | loam:hardened=1 / glibc | loam:hardened=1 / loam |" in text
    assert "| `one` | 9.00 | 0.500 [0.500, 0.500] | 0.750 [0.750, 0.750] | 1.500 [1.500, 1.500] |" in text
    assert "| geometric mean | | 0.500 [0.500, 0.500] | 0.750 [0.750, 0.750] | 1.500 [1.500, 1.500] |" in text


def test_what_is_asked_for_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    for arguments, message in (
        (["--program", "awkk"], "did you mean awk"),
        (["--blocks", "0"], "--blocks=0: must be 1 or more"),
        (["--allocator", "glibc"], "--allocator=glibc: must be two names or more"),
    ):
        assert cost.main([*arguments, "--page", str(page)]) == 2
        assert message in capsys.readouterr().err
    assert not page.exists()


def test_real_programs_are_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    few = ["--program", "awk,sort", "--allocator", "glibc,glibc:tcache=0", "--blocks", "1", "--short"]
    assert cost.main([*few, "--page", str(page)]) == 0
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == 2
    assert all(float(row.split("|")[2]) > 0 for row in rows)
