"""The page about long-running services: what it makes of the program's samples, and that the program does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.presenting.pages import malloc_services
from loam_lab.presenting.pages.malloc_services import Course, Sample

MIB = 1 << 20
ASKED = malloc_services.scenarios(operations=2000, mib=16, ended=200, day_s=1)


def course(*samples: tuple[str, float, int, int]) -> Course:
    return Course(tuple(Sample(kind, at, live * MIB, resident * MIB) for kind, at, live, resident in samples), 1.5)


def made(factor: int) -> dict[str, Course]:
    """Courses of an allocator that holds so many times what is live."""
    phases = [("phase", place, 100, 100 * factor + place) for place in range(10)]
    hours = [(kind, place + 0.5, 50, 50 * factor + place) for place in range(24) for kind in ("tick", "hour")]
    idle = course(("full", 0, 16, 16), ("idle", 0, 0, 9 * factor), ("idle", 5, 0, 4 * factor))
    ends = course(("begun", 0, 0, 10), ("ended", 1, 0, 10 + (factor - 1) * 9))
    return {
        "drift": course(*phases, ("freed", 11, 2, 60 * factor), ("later", 12, 2, 30 * factor)),
        "short": idle, "mixed": idle, "ended": idle, "joined": ends, "detached": ends, "day": course(*hours),
    }  # fmt: skip


def courses() -> malloc_services.Courses:
    by_name = {"loam": made(1), "jemalloc": made(2)}
    return {scenario: {name: by_scenario[scenario] for name, by_scenario in by_name.items()} for scenario in ASKED}


def test_each_scenario_has_a_table_and_the_least_is_bold() -> None:
    text = malloc_services.page(courses(), ASKED, "A machine.")
    assert "| loam | **109** | **1.05** | **60.0** | **30.0** | **1.50** |" in text
    assert "| jemalloc | 209 | 2.04 | 120 | 60.0 | **1.50** |" in text
    assert "| loam | **4.00** | **4.00** | **4.00** |" in text, "the last of the idle moments counts"
    # 9 MiB for nine tenths of 200 threads.
    assert "| jemalloc | 52\u202f429 | 52\u202f429 |" in text
    assert "loam 109 MiB at the peak (jemalloc 209)" in text and "A machine." in text


def test_the_picture_has_the_peak_of_each_hour_and_what_is_live() -> None:
    drawn = malloc_services.picture(courses())
    assert "loam: at most 109 MiB" in drawn and "jemalloc: at most 123 MiB" in drawn
    assert malloc_services.LIVE in drawn


def test_what_is_hardly_live_says_nothing_about_blocks() -> None:
    one = course(("tick", 0, 1, 90), ("tick", 1, 10, 20))
    assert one.over_live("tick") == 2


@pytest.mark.parametrize("text", ["", "tick 0.1 5 5\n", "cost 1 1 0\n"])
def test_a_run_that_was_cut_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ended early"):
        malloc_services.read(text)


def test_a_page_of_two_allocators(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    arguments = ["--allocator", "glibc,loam", "--operations", "4000", "--mib", "64", "--threads", "300", "--day", "2"]
    assert malloc_services.main([*arguments, "--page", str(page)]) == 0
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    for name in ("glibc", "loam", malloc_services.HELPED):
        assert sum(row.startswith(f"| {name} | ") for row in rows) == 4, "one in each table"
    assert page.with_suffix(".svg").read_text().startswith("<svg")


def test_what_a_scenario_holds_is_what_it_says() -> None:
    measured = malloc_services.measure(["glibc"], {**ASKED, "drift": ["drift", "2", "20000", "1"]}, jobs=2)
    (full,) = measured["mixed"]["glibc"].of("full")
    assert 16 * MIB <= full.live < 17 * MIB
    assert [one.live for one in measured["mixed"]["glibc"].of("idle")] == [0, 0, 0, 0]
    drift = measured["drift"]["glibc"]
    assert len(drift.of("phase")) == 10 and 0 < drift.of("later")[0].live < 0.05 * drift.of("phase")[-1].live
    assert len(measured["day"]["glibc"].of("hour")) == 24


def test_a_program_that_refuses_is_told() -> None:
    with pytest.raises(LoamError, match="service drift THREADS"):
        malloc_services.measure(["glibc"], {"drift": ["drift", "0", "1", "1"]}, jobs=1)
