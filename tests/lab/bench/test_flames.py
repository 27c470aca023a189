"""Flame graphs: the stacks of a program that is known, perf's text, names, trees, what the report draws of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, asking
from typed import typed

from loam_lab.base import paths
from loam_lab.commands.bench import bench, flames, stacks
from loam_lab.setup import build

# churn() asks for 40 MB in blocks of 100 bytes and keeps none; keep() for 20 MB in blocks of 1000, all live at the end of it.
KNOWN = """
#include <stdlib.h>
#include <string.h>
void* kept[20000];
__attribute__((noinline)) void churn(void) { for (int i = 0; i < 400000; ++i) { void* volatile p = malloc(100); free(p); } }
__attribute__((noinline)) void keep(void) { for (int i = 0; i < 20000; ++i) kept[i] = memset(malloc(1000), 1, 1000); }
__attribute__((noinline)) void let_go(void) { for (int i = 0; i < 20000; ++i) free(kept[i]); }
__attribute__((noinline)) unsigned spin(unsigned n) {
  for (unsigned i = 0; i < 300000000; ++i) { n = n * 3 + i; asm volatile(""); }
  return n;
}
int main(void) { churn(); keep(); let_go(); return spin(1) == 0; }
"""

PERF = """perl
\tffffffff821f2fa7 exc_page_fault+0xd7 ([kernel.kallsyms])
\t          167132 _int_malloc+0x12 (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t          167140 [unknown] (/usr/bin/perl)
\t          167148 [unknown] (/usr/bin/perl)
\t          167150 a::List<int>::insert(long, X<3> const&)+0x1 (/usr/bin/perl)

perl
\t    7f0000001234 arena_work+0x4 (/opt/lib/libother.so)

"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build.ensure_built(["probe", "stacks"])
    folder = tmp_path_factory.mktemp("known")
    (folder / "known.c").write_text(KNOWN)
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", folder / "known", folder / "known.c"], check=True)
    return folder / "known"


def below(tree: stacks.Tree, name: str) -> float:
    """The value of the nodes of a name."""
    return float(tree[1]) if tree[0] == name else sum(below(child, name) for child in tree[2])


@pytest.mark.parametrize("mean", [4096, 65536])
def test_sampled_stacks_have_no_bias(known: Path, tmp_path: Path, mean: int) -> None:
    variables = {"LD_PRELOAD": paths.load_paths()["libraries"]["stacks"], "LOAM_STACKS": str(tmp_path / "s")}
    subprocess.run([known], env={**os.environ, **variables, "LOAM_STACKS_SAMPLE": str(mean)}, check=True)
    (file,) = tmp_path.glob("s.*")
    sampled = stacks.of_allocations(file.read_text())
    bytes_, blocks, live = (stacks.tree(sampled.named(kind)) for kind in ("bytes", "blocks", "live"))
    # 600 and 300 samples at the larger mean: four standard deviations are 16 % and 23 %.
    assert below(bytes_, "churn") == pytest.approx(40e6, rel=0.17)
    assert below(blocks, "churn") == pytest.approx(400_000, rel=0.17)
    assert below(bytes_, "keep") == pytest.approx(20e6, rel=0.23)
    assert below(live, "keep") == pytest.approx(below(bytes_, "keep"), rel=0.03)
    assert below(live, "churn") <= 4 * mean
    assert below(bytes_, "main") == pytest.approx(below(bytes_, "churn") + below(bytes_, "keep"))


def test_perfs_text_becomes_stacks_with_marks() -> None:
    samples = stacks.of_perf(PERF, 0.005, ["/opt/lib/libother.so"])
    assert samples == [
        (["perl", "List::insert", "[perl]", "_int_malloc (allocator)", "exc_page_fault (kernel)"], 0.005),
        (["perl", "arena_work (allocator)"], 0.005),
    ]
    assert stacks.of_perf(PERF, 0.005)[1][0] == ["perl", "arena_work"]


def test_a_tree_adds_up_and_leaves_out_what_is_too_small_to_see() -> None:
    tree = stacks.tree([(["a", "b"], 600.0), (["a"], 399.0), (["c"], 1.0)])
    assert tree == ["all", 1000.0, [["a", 999.0, [["b", 600.0, []]]]]]
    assert stacks.tree([]) == ["all", 0.0, []]


def test_a_line_that_the_library_does_not_write_is_refused() -> None:
    with pytest.raises(ValueError, match="not a line of call stacks"):
        stacks.of_allocations("mean 5\nstuck 1 2 3\n")


@pytest.mark.parametrize(
    ("advised", "expected"), [("fast", ("plain", "fast")), ("plain", ("plain", "other")), ("", ("plain", "other"))]
)
def test_the_baseline_is_drawn_beside_who_is_recommended(advised: str, expected: tuple[str, str]) -> None:
    cells = [{"factors": {"allocator": name}} for name in ("plain", "other", "fast")]
    result = {"baseline": "plain", "cells": cells, "recommendation": {"allocator": advised}}
    assert flames.chosen(typed(result)) == expected
    assert flames.chosen(typed({"baseline": "plain", "cells": cells[:1]})) == ("plain",)


def run(known: Path, folder: Path) -> dict[str, Any]:
    request = asking(allocators=["plain", "fast"], blocks=2, flame=True, as_json=True, out=folder)
    status = bench.bench([str(known)], request, FakeInstruments())
    assert status == 0
    document: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return document


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed (Debian package linux-perf)")
def test_bench_draws_where_the_time_goes(known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(known, tmp_path / "o")
    assert result["commands"] == [f"./loam bench --allocator plain,fast --flame -- {known}"]
    by_kind = {(one["allocator"], one["kind"]): one for one in result["flames"]}
    assert set(by_kind) == {(name, kind) for name in ("plain", "fast") for kind in stacks.KINDS}
    time = by_kind["plain", "time"]
    if time["problem"].startswith("perf"):
        pytest.skip(time["problem"])  # a kernel that lets nobody sample
    assert below(time["tree"], "spin") > 0.5 * time["tree"][1]
    page = (tmp_path / "o" / "report.html").read_text()
    assert "Where the time goes" in page and 'data-name="spin"' in page


def test_without_perf_the_allocations_are_drawn_and_the_reason_is_said(
    known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    which = shutil.which
    monkeypatch.setattr(flames.shutil, "which", lambda name, *more: None if name == "perf" else which(name, *more))
    result = run(known, tmp_path / "o")
    problems = {one["kind"]: one["problem"] for one in result["flames"] if one["allocator"] == "plain"}
    assert "linux-perf" in problems["time"] and not problems["bytes"]
    assert capsys.readouterr().err.count("no flame graph under plain") == 1
    assert 'data-name="churn"' in (tmp_path / "o" / "report.html").read_text()
