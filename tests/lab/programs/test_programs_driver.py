"""Real programs through the engine of every workload: described, run, proven, compared, and ended with all they started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, asking, cells, measure, study

from loam_lab.base.errors import LoamError
from loam_lab.commands.run import commands
from loam_lab.model.protocol import ALLOCATOR_VARIABLES
from loam_lab.model.schema import SCHEMA
from loam_lab.setup import build
from loam_lab.subjects import workloads
from loam_lab.subjects.allocators import building
from loam_lab.subjects.programs.catalogue import PROGRAMS
from loam_lab.subjects.subject import Subject, of_command

ROOT = Path(__file__).parents[3]


def driver() -> Subject:
    files = [str(file) for file in sorted((ROOT / "lab/loam_lab/subjects/programs").glob("*.py"))]
    argv = (sys.executable, "-m", "loam_lab.subjects.programs")
    return Subject(argv, tuple(files), (("PYTHONPATH", str(ROOT / "lab")),))


def records(*arguments: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    done = subprocess.run(
        [*driver().argv, *arguments], env={"PATH": os.environ["PATH"], **dict(driver().environment), **environment},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done, lines


def test_every_program_is_described_as_a_workload() -> None:
    described = workloads.describe(driver())
    assert described.starts_others
    assert [workload.name for workload in described.workloads] == list(PROGRAMS)
    awk = described.workload("awk")
    assert awk is not None and [metric.name for metric in awk.metrics] == ["cpu_s", "migrations"]
    assert Path(awk.files[0]).is_file(), "the program itself is part of what is measured"


def test_variables_of_the_allocator_reach_the_commands_alone() -> None:
    variables = json.dumps({"MALLOC_ARENA_MAX": "1", "LD_PRELOAD": "/no/such/library.so"})
    done, lines = records("awk", "-p", "amount=10", **{ALLOCATOR_VARIABLES: variables})
    assert done.returncode == 0
    begin, process, iteration, end = lines
    assert begin["parameters"] == {"amount": 10, "python": "malloc"}
    assert process["wall_s"] > 0 and iteration["cpu_s"] == pytest.approx(process["user_s"] + process["system_s"])
    assert end["verified"] and len(end["result"]) == 64
    assert "/no/such/library.so" not in done.stderr, "this process is not measured and preloads nothing"


def test_bad_arguments_name_what_is_allowed() -> None:
    for arguments, message in (
        (["awkk"], "invalid choice: 'awkk'"), (["awk", "-p", "amount=0"], "a whole number from 1 on is needed"),
        (["awk", "-p", "python=lisp"], "is none of malloc, pymalloc"), (["awk", "-p", "size=1"], "unknown parameter size"),
    ):  # fmt: skip
        done, _ = records(*arguments)
        assert done.returncode == 2 and message in done.stderr


def test_asked_to_end_it_ends_what_it_started(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*driver().argv, "awk", "-p", "amount=1000000000"], env={"PATH": os.environ["PATH"], **dict(driver().environment)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    children: list[str] = []
    deadline = time.monotonic() + 60
    while not children and time.monotonic() < deadline:
        time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGTERM)
    assert children and process.wait(timeout=60) == 128 + signal.SIGTERM
    assert not any(Path(f"/proc/{child}").exists() for child in children)


PEER = """#!/bin/sh
# A subject that starts others; what it says of them, and which result, follows from LOAM_ALLOCATOR_VARIABLES.
if [ "$1" = --describe ]; then
  echo '{"schema": SCHEMA, "sync": {"name": "peer", "summary": "s", "kind": "none", "threads_max": 1}, "starts_others": true,
    "workloads": [{"name": "work", "kinds": ["none"], "metrics": [{"name": "cpu_s", "kind": "time", "better": "lower"}]}]}'
  exit
fi
[ -n "$FAKE_ALLOCATOR" ] && exit 9
case $LOAM_ALLOCATOR_VARIABLES in *differs*) result=b ;; *) result=a ;; esac
{ echo '{"kind": "begin", "schema": SCHEMA}'
  echo '{"kind": "process", "wall_s": 5, "user_s": 3, "system_s": 1, "rss_peak_bytes": 4096, "faults_minor": 7}'
  echo '{"kind": "iteration", "index": 0, "elapsed_s": 5, "cpu_s": 4}'
  echo "{\\"kind\\": \\"end\\", \\"verified\\": true, \\"result\\": \\"$result\\"}"; } >&3
"""


def test_what_others_used_stands_for_the_run_and_results_must_agree(tmp_path: Path) -> None:
    peer = tmp_path / "peer"
    peer.write_text(PEER.replace("SCHEMA", str(SCHEMA)))
    peer.chmod(0o755)
    made = study(sync=[str(peer)], parameters={}, allocators=["plain", "fast", "differs"])
    group = made.groups[0].model_copy(update={"workload": "work"})
    ended, result = measure(made.model_copy(update={"groups": (group,)}), tmp_path / "o", FakeInstruments())
    assert ended.done == 16
    fast = cells(result, allocator="fast")[0]
    assert fast["metrics"]["wall_s"]["values"] == [5.0] * 4 and fast["metrics"]["user_s"]["estimate"] == 3
    assert fast["metrics"]["cpu_s"]["estimate"] == 4 and fast["metrics"]["rss_peak_bytes"]["estimate"] == 4096
    failures = {failure["cell"]["allocator"]: failure for failure in result["failures"]}
    assert failures.keys() == {"differs"}, "the baseline is the rule, whoever ran first"
    assert (failures["differs"]["state"], failures["differs"]["count"]) == ("verification", 4)
    assert failures["differs"]["detail"].startswith("its result differs from that under plain in block")


@pytest.mark.slow
def test_a_program_is_proven_and_compared_by_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build.ensure_built(["probe", "programs"])
    building.ensure_own(["loam"])
    request = asking(
        syncs=["programs"], allocators=["glibc", "loam"], parameters=[("amount", ["2000"])], blocks=2, out=tmp_path / "o",
        as_json=True,
    )  # fmt: skip
    status = commands.run("awk", request)
    result = json.loads(capsys.readouterr().out)
    assert status == 0
    assert {allocator["proof"] for allocator in result["allocators"]} == {"proven"}
    assert all(cell["metrics"]["cpu_s"]["estimate"] > 0 for cell in result["cells"])


def test_a_program_that_is_not_installed_is_refused_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    described = workloads.describe(driver())
    lacking = described.workloads[0].model_copy(update={"lacks": "Debian's nine: ./loam setup --programs"})
    executable = workloads.Executable("programs", driver(), described.model_copy(update={"workloads": (lacking,)}), "0")
    with pytest.raises(LoamError, match=r"lacks Debian's nine \(./loam setup --programs\)"):
        executable.check_runs(lacking.name)


def test_files_of_a_command_are_its_script_and_the_interpreter(tmp_path: Path) -> None:
    script, data = tmp_path / "script", tmp_path / "data"
    script.write_text("#!/bin/sh\ncat $1\n")
    data.write_text("1")
    command = of_command([str(script), str(data), "word"])
    assert set(command.files) == {str(script), str(data), str(Path("/bin/sh").resolve())}
    before = command.digest()
    data.write_text("2")
    assert command.digest() != before
