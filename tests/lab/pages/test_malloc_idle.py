"""The page that says how much freed memory each allocator keeps while a process is idle."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.presenting.pages import malloc_idle


def test_there_is_a_table_for_each_size_and_the_least_is_bold() -> None:
    text = malloc_idle.page(
        {
            64: {"ours": [400, 300, 200, 100, 7.2], "peer": [401, 299, 200.2, 100, 7]},
            100_000: {"ours": [1, 1, 1, 1, 1], "peer": [390, 390, 390, 390, 390]},
        },
        400,
    )
    assert "| 64 B | 0 s | 1 s | 3 s | 10 s | 30 s |" in text and "| 100 000 B | 0 s |" in text
    assert "| ours | **400** | 300 | **200** | **100** | **7** |" in text
    assert "| peer | 401 | **299** | **200** | **100** | **7** |" in text
    assert "| peer | 390 | 390 | 390 | 390 | 390 |" in text
    assert "allocates 400 MiB" in text


def test_a_page_of_one_size_under_two_allocators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malloc_idle, "MOMENTS_S", (0, 2))
    page = tmp_path / "page.md"
    arguments = ["--allocator", "glibc,loam", "--size", "1000000", "--mib", "50", "--page", str(page)]
    assert malloc_idle.main(arguments) == 0
    rows = {
        row.split(" | ")[0].removeprefix("| "): row for row in page.read_text().splitlines() if row.startswith("| ")
    }
    assert set(rows) >= {"glibc", "loam", malloc_idle.HELPED}, "loam has a row with the helper as well"


def test_what_a_process_keeps_is_seen_and_what_it_gives_back_too() -> None:
    program = malloc_idle.program()
    keeps = malloc_idle.rest(
        program, [], {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1000000000"}, 1024, 40, [0, 1]
    )
    assert all(35 < kept < 60 for kept in keeps)
    gives = malloc_idle.rest(program, [], {}, 1_000_000, 40, [0, 1])
    assert all(kept < 5 for kept in gives), "glibc unmaps blocks of this size"


def test_an_allocator_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malloc_idle, "DEFAULT", ("glibc", "no-such-allocator", "loam"))
    assert malloc_idle.installed() == ["glibc", "loam"]


def test_a_program_that_fails_and_a_size_that_is_none_are_told() -> None:
    with pytest.raises(LoamError, match="ended with status 3"):
        malloc_idle.rest(malloc_idle.program(), [], {}, 2**50, 2**31, [0])
    with pytest.raises(LoamError, match="whole numbers"):
        malloc_idle.main(["--size", "64,many"])
