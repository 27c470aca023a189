"""The page of real programs under ours and its peers."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.programs import speed
from loam_lab.programs.running import Outcome

SECONDS = {"ours": 1.0, "a": 0.8, "b": 2.0}
BLOCKS = range(1, 9)


def runs(peak_bytes: dict[str, int | None]) -> speed.Runs:
    return {
        "one": {name: [Outcome(b"", peak_bytes[name], s * block) for block in BLOCKS] for name, s in SECONDS.items()},
        "two": {name: [Outcome(b"", 1 << 20, s * block) for block in BLOCKS] for name, s in (("ours", 1), ("a", 1.6), ("b", 1))},
    }  # fmt: skip


def test_rates_are_beside_ours_and_the_fastest_is_marked() -> None:
    text = speed.page(runs({"ours": 1 << 20, "a": 2 << 20, "b": 1 << 20}), 8)
    assert "| program | ours, s | a | b |" in text
    assert "| `one` | 4.50 | **1.250 [1.250, 1.250]** | 0.500 [0.500, 0.500] |" in text
    assert "in 8 blocks" in text and "the same work under" in text
    assert "the same short work under" in speed.page(runs(dict.fromkeys(SECONDS, 1 << 20)), 8, short=True)


def test_ours_is_held_against_the_peer_with_the_best_mean() -> None:
    text = speed.page(runs(dict.fromkeys(SECONDS, 1 << 20)), 8)
    assert "best geometric mean over these programs is **a**: ours's rate is\n1.131" in text
    assert "| case | over a | fastest peer | over it |" in text
    assert "| one | 0.800 [0.800, 0.800] (over the limit) | a | 0.800 [0.800, 0.800] |" in text


def test_memory_is_compared_where_every_peak_is_known() -> None:
    known = speed.page(runs({"ours": 1 << 20, "a": 2 << 20, "b": 1 << 20}), 8)
    assert "| a (fast) | 1.414 [" in known.split("## Peak memory")[1]
    unknown = speed.page(runs({"ours": None, "a": 2 << 20, "b": 1 << 20}), 8)
    assert "| a (fast) | 1.000 [" in unknown.split("## Peak memory")[1], "of the other program alone"


def test_real_programs_are_measured_and_a_second_call_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    few = ["--program", "awk", "--allocator", "glibc,glibc:tcache=0", "--blocks", "1", "--short"]
    kept = ["--out", str(tmp_path / "kept"), "--page", str(page)]
    assert speed.main([*few, *kept]) == 0
    text = page.read_text()
    assert "awk under" in capsys.readouterr().err
    assert speed.main([*few, *kept]) == 0
    assert page.read_text() == text
    assert "awk under" not in capsys.readouterr().err
