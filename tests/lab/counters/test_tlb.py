"""Misses of the translation buffers: the model on traces made by hand, a program whose misses follow from its source, and
a run inside lackey as campaigns do it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from campaigns import cells, study

from loam_lab.campaign.counters import planning, tlb
from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.campaign import Runner
from loam_lab.campaign.measure.instruments import RealInstruments
from loam_lab.judging.result import counting, summarise
from loam_lab.model.study import Study
from loam_lab.setup import build

SMALL, LARGE = 4096, 2 << 20
# Four entries in two sets for each size of page, and eight in two sets behind them.
TINY = tlb.Geometry((4, 2), (4, 2), (8, 4), "made up")
LACKEY = {"source": "lackey", "counts": True, "why": "valgrind-3.19.0"}
PERF = {"source": "perf_event", "counts": True, "why": "counted"}
NO_PERF = {"source": "perf_event", "counts": False, "why": "this machine offers no such counter"}
needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    build.ensure_built(["tlb"])


def modelled(lines: Iterable[str], geometry: tlb.Geometry = TINY, *, status: int = 0) -> dict[str, Any]:
    done = subprocess.run(
        [tlb.model(), *geometry.arguments()], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    document: dict[str, Any] = json.loads(done.stdout) if status == 0 else {}
    return document


def pages(*numbers: int, size: int = SMALL) -> list[str]:
    """A load from the beginning of each page."""
    return [f" L {number * size:x},8" for number in numbers]


@pytest.mark.parametrize(
    ("numbers", "first", "walks", "different"),
    [
        ((0, 0, 0, 1), 2, 2, 2),
        # Pages 0, 2 and 4 share a set of two in the first level: each comes back too late there, never in the second.
        ((0, 2, 4, 0, 2, 4), 6, 3, 3),
        # Page 0 was used last, so 2 leaves for 4.
        ((0, 2, 0, 4, 0), 3, 3, 3),
        ((0, 2, 0, 4, 2), 4, 3, 3),
        # Five pages of one set are one more than the second level has for it: in this order none is ever found.
        ((0, 2, 4, 6, 8, 0, 2, 4, 6, 8), 10, 10, 5),
        # The other set has room.
        ((0, 2, 4, 1, 3, 0, 2, 4, 1, 3), 8, 5, 5),
    ],
)
def test_misses_of_a_small_buffer(numbers: tuple[int, ...], first: int, walks: int, different: int) -> None:
    for size, name in ((SMALL, "small"), (LARGE, "large")):
        counts = modelled(pages(*numbers, size=size))
        assert counts[name] == {
            "translations": len(numbers), "first_misses": first, "walks": walks, "pages": different
        }  # fmt: skip
        assert (counts["accesses"], counts["unread"]) == (len(numbers), 0)


def test_large_pages_hold_what_small_ones_do_not() -> None:
    counts = modelled(pages(*range(512), *range(512)))
    assert counts["small"]["walks"] == 1024
    assert counts["large"]["walks"] == 1


def test_an_access_over_the_end_of_a_page_needs_both() -> None:
    counts = modelled([" S fff,2", " L ffc,4", " M 1ffffc,8"])
    assert counts["small"]["translations"] == 5
    assert counts["small"]["pages"] == 4
    assert counts["large"]["translations"] == 4


def test_lines_of_a_trace() -> None:
    trace = [
        "==12== Lackey, an example Valgrind tool", "--12-- warning", "I  04001090,3", " L 1000,8", " S 1008,8",
        " M 1010,4", "", "of the program itself", " L 10zz,8", " L 1000", " L ,8",
    ]  # fmt: skip
    counts = modelled(trace)
    assert (counts["accesses"], counts["instructions"], counts["unread"]) == (3, 1, 4)
    assert counts["small"]["walks"] == 1
    assert modelled([])["accesses"] == 0


def test_impossible_buffers_are_refused() -> None:
    for geometry in (
        tlb.Geometry((6, 2), (4, 2), (8, 4), ""), tlb.Geometry((4, 2), (4, 0), (8, 4), ""),
        tlb.Geometry((4, 2), (4, 2), (0, 1), ""),
    ):  # fmt: skip
        modelled([], geometry, status=2)


def test_this_processor_says_what_it_has() -> None:
    geometry = tlb.geometry()
    assert geometry.source
    for entries, ways in (geometry.first_small, geometry.first_large, geometry.second):
        assert 4 <= entries <= 65536 and entries % ways == 0
    assert set(geometry.words()) == {"4 KiB", "2 MiB", "second", "source"}


# PAGES pages, one load of each in turn, ROUNDS times, and little else.
STRIDES = """
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char** argv) {
  const size_t pages = strtoul(argv[1], 0, 10), rounds = strtoul(argv[2], 0, 10);
  volatile char* p = mmap(0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  int sum = 0;  /* of zeros: valgrind leaves a load out whose value nobody uses */
  for (size_t round = 0; round < rounds; ++round)
    for (size_t at = 0; at < pages; ++at) sum += p[at * 4096];
  return argc != 3 || sum != 0;
}
"""


@pytest.fixture(scope="module")
def strides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strides")
    (folder / "strides.c").write_text(STRIDES)
    subprocess.run(["gcc", "-O2", "-o", folder / "strides", folder / "strides.c"], check=True)
    return folder / "strides"


@needs_valgrind
def test_strides_over_pages_miss_as_often_as_they_must(strides: Path, tmp_path: Path) -> None:
    """Beyond what the buffers hold each load walks, within it none does: the difference of two numbers of rounds."""
    geometry = tlb.Geometry((64, 4), (32, 4), (512, 4), "made up")

    def walks(pages: int, rounds: int) -> tuple[int, int]:
        observer = tlb.TlbObserver(tmp_path)
        command = observer.command([str(strides), str(pages), str(rounds)])
        trace = tmp_path / "trace"
        command = [f"--log-file={trace}" if word.startswith("--log-file=") else word for word in command]
        subprocess.run(command, check=True, capture_output=True)
        with trace.open() as lines:
            counts = modelled(lines.read().splitlines(), geometry)
        assert counts["unread"] == 0
        return counts["small"]["walks"], counts["small"]["first_misses"]

    few, more = 2, 6
    for pages, always in ((640, True), (100, False)):
        before, after = walks(pages, few), walks(pages, more)
        loads = pages * (more - few)
        # 640 pages are five in each of 128 sets of four.
        assert after[0] - before[0] == pytest.approx(loads if always else 0, abs=0.02 * loads)
        # 100 pages are more than the first level's 64, in its 16 sets of four six or seven each.
        assert after[1] - before[1] == pytest.approx(loads, abs=0.02 * loads)


@needs_valgrind
def test_a_campaign_counts_walks_and_says_by_what(tmp_path: Path) -> None:
    content: dict[str, Any] = {
        "schema": 2, "name": "walks", "title": "walks", "question": "?", "allocators": ["glibc", "jemalloc"],
        "tlb": True, "blocks": 1, "warmup_ms": 0,
        "groups": [{
            "name": "g", "workload": "intset", "sync": ["sequential"],
            "parameters": {"structure": "list", "range": 128, "elements": 64, "operations": 400},
        }],
    }  # fmt: skip
    made = Study.model_validate(content)
    build.ensure_built(["sequential", "probe", "tlb"])
    out = tmp_path / "out"
    Runner(made, plans.make(made), out, RealInstruments(), "x", counter_sources=[NO_PERF, LACKEY]).run()
    result = summarise.write(out, elapsed_s=0.0).as_json()
    assert result["failures"] == []
    for cell in cells(result, copy=0):
        (entry,) = cell["counters"]
        assert (entry["source"], entry["per"]) == ("lackey", "operation")
        # 64 nodes on a page or two: an operation touches some dozens of them, and its pages stay.
        assert entry["accesses"] > 32
        assert 0 <= entry["dtlb_misses"] < 0.1
        assert entry["dtlb_misses_large"] <= entry["dtlb_misses"]
        assert set(entry["tlb"]) == {"4 KiB", "2 MiB", "second", "source"}


def test_the_model_stands_in_for_counters_that_do_not_count() -> None:
    asked = study(tlb=True)
    counted, notes = planning.resolve(asked, [PERF, LACKEY])
    assert counted.purposes_of(counted.groups[0]) == ("counters",)
    assert "counted by the processor" in notes[0]
    kept, notes = planning.resolve(asked, [NO_PERF, LACKEY])
    assert kept.purposes_of(kept.groups[0]) == ("tlb",)
    assert "valgrind's lackey" in notes[0]
    nothing, notes = planning.resolve(asked, [NO_PERF, {**LACKEY, "counts": False, "why": "not installed"}])
    assert nothing.purposes_of(nothing.groups[0]) == ()
    assert "not installed" in notes[-1]


def test_walks_become_values_per_operation() -> None:
    document = {
        "accesses": 1000, "instructions": 3000, "unread": 0,
        "small": {"translations": 1000, "first_misses": 40, "walks": 20, "pages": 20},
        "large": {"translations": 1000, "first_misses": 4, "walks": 2, "pages": 2},
    }  # fmt: skip
    counts = {name: float(value) for name, value in tlb.events(document).items()}
    assert counting.from_lackey(counts, 10.0) == {
        "accesses": 100.0, "instructions": 300.0, "dtlb_misses": 2.0, "dtlb_first_misses": 4.0, "dtlb_misses_large": 0.2,
    }  # fmt: skip


def test_an_observer_whose_program_never_starts_waits_for_nobody(tmp_path: Path) -> None:
    observer = tlb.TlbObserver(tmp_path)
    observer.begin()
    observer.close()
    assert list(tmp_path.iterdir()) == []
