"""bench and run with real allocators, proofs and executables: the path that users take, tiny."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from campaigns import asking, cells

from loam_lab.commands.bench import bench
from loam_lab.commands.run import commands
from loam_lab.setup import build


def result_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return document


def test_bench_of_a_real_command_is_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build.ensure_built(["probe"])
    command = ["/usr/bin/python3", "-c", "x = [str(i) for i in range(30000)]"]
    request = asking(allocators=["glibc", "jemalloc"], blocks=6, out=tmp_path / "o", report=False)
    assert bench.bench(command, request) == 0
    result = result_of(tmp_path / "o")
    assert {allocator["proof"] for allocator in result["allocators"]} == {"proven"}
    assert all(1 << 20 < cell["metrics"]["rss_peak_bytes"]["estimate"] < 1 << 27 for cell in result["cells"])
    assert result["recommendation"]["text"] in capsys.readouterr().out


def test_a_static_command_is_reported_not_measured(tmp_path: Path) -> None:
    source, program = tmp_path / "x.c", tmp_path / "static"
    source.write_text("int main(void) { return 0; }\n")
    import subprocess

    if subprocess.run(["cc", "-static", str(source), "-o", str(program)], capture_output=True, check=False).returncode:
        pytest.skip("no static libc on this machine")
    request = asking(allocators=["jemalloc"], blocks=6, out=tmp_path / "o", report=False)
    assert bench.bench([str(program)], request) == 1
    result = result_of(tmp_path / "o")
    assert {cell["verdict"] for cell in result["cells"]} == {"unproven"}
    assert "linked statically" in result["failures"][0]["detail"]


def test_run_of_a_real_workload_tells_causes_apart(tmp_path: Path) -> None:
    request = asking(
        allocators=["glibc", "jemalloc"], syncs=["etl-wb"], threads=[2], blocks=6, purposes=["blame"],
        parameters=[("structure", ["list"]), ("mapping", ["table", "shadow"]), ("duration_ms", ["30"]), ("warmup_ms", ["5"])],
        oversubscribe=True, out=tmp_path / "o",
    )  # fmt: skip
    status = commands.run("intset", request)
    assert status == 0
    result = result_of(tmp_path / "o")
    assert {cell["state"] for cell in result["cells"]} == {"ok"}
    for cell in cells(result, mapping="shadow", copy=0):
        assert cell["blame"]["aborts_other_block"] == cell["blame"]["aborts_other_stripe"] == 0
    assert (tmp_path / "o" / "report.html").is_file()
