"""What a campaign survives: a disk that fills, a journal cut anywhere, a clock that jumps, output without end, orphans."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, forked, measure, runner, study

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import execution as execution_module
from loam_lab.campaign.process import execute as execute_module
from loam_lab.campaign.process import output
from loam_lab.campaign.process.execute import LEFTOVER, Outcome, execute
from loam_lab.judging.result import summarise
from loam_lab.model.store import journal

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def shell(text: str, **options: Any) -> Outcome:
    return execute(["/bin/sh", "-c", text], ENVIRONMENT, timeout_s=60, keep_stdout=True, **options)


def identities(folder: Path) -> list[Any]:
    return [line["identity"] for line in journal.read(folder)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign to compare with."""
    folder = tmp_path_factory.mktemp("whole")
    measure(study(blocks=6), folder)
    return folder


@pytest.mark.parametrize("room", [0, 1, 100, 1500, 20_000])
def test_a_disk_that_fills_ends_with_a_clear_error_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path, room: int
) -> None:
    """The disk has room for so many more bytes of journal: the write that exceeds it is cut, as the kernel does."""
    real, left = os.write, room

    def write(descriptor: int, data: bytes) -> int:
        nonlocal left
        if not str(Path(f"/proc/self/fd/{descriptor}").readlink()).endswith("local.jsonl"):
            return real(descriptor, data)
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = real(descriptor, data[:left])
        left -= done
        return done

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(
        LoamError, match=r"cannot be written: No space left on device \(free some space.*--resume"
    ) as no:
        runner(study(blocks=6), tmp_path).run()
    assert no.value.exit_code == 1
    monkeypatch.setattr(os, "write", real)
    kept = identities(tmp_path)
    assert kept == identities(whole)[: len(kept)]
    assert sum(len(raw) + 1 for raw in (tmp_path / "journal" / "local.jsonl").read_bytes().splitlines()) <= room + 1
    ended = runner(study(blocks=6), tmp_path, resume=True).run()
    assert ended.measured == 18 - len(kept)
    assert identities(tmp_path) == identities(whole)


def test_a_disk_that_fails_to_sync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path) -> None:
    calls = 0

    def fdatasync(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    with pytest.raises(LoamError, match="cannot be written: Input/output error"):
        runner(study(blocks=6), tmp_path).run()
    runner(study(blocks=6), tmp_path, resume=True).run()
    assert identities(tmp_path) == identities(whole)


def test_a_small_file_system_that_fills(tmp_path: Path, whole: Path) -> None:
    """The same with a real one, where this user may mount it."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "loam-test", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount a file system")
    try:
        with pytest.raises(LoamError, match="No space left on device"):
            runner(study(blocks=6), place / "o").run()
        assert subprocess.run(["mount", "-o", "remount,size=4m", str(place)], check=False).returncode == 0
        kept = identities(place / "o") if (place / "o" / "journal").exists() else []
        assert kept == identities(whole)[: len(kept)]
        runner(study(blocks=6), place / "o", resume=(place / "o" / "campaign.json").exists()).run()
        assert identities(place / "o") == identities(whole)
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.77, 0.999])
def test_a_journal_cut_anywhere_is_completed(tmp_path: Path, whole: Path, share: float) -> None:
    measure(study(blocks=6), tmp_path)
    file = tmp_path / "journal" / "local.jsonl"
    written = file.read_bytes()
    size = int(len(written) * share)
    os.truncate(file, size)
    kept = written.count(b"\n", 0, size + 1)  # a line that lacks nothing but its end is whole
    ended = runner(study(blocks=6), tmp_path, resume=True).run()
    assert ended.measured == 18 - kept
    assert identities(tmp_path) == identities(whole)


def test_a_clock_that_jumps_changes_no_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the time of day is an hour before the last one."""
    looks = 0

    class Backward(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            nonlocal looks
            looks += 1
            return datetime(2030, 1, 1, tzinfo=UTC) - timedelta(hours=looks)

    monkeypatch.setattr(execution_module, "datetime", Backward)
    monkeypatch.setattr(execute_module, "datetime", Backward)
    monkeypatch.setattr(time, "time", lambda: float(-looks))
    made = study(blocks=6)
    runner(made, tmp_path).run()
    file = tmp_path / "journal" / "local.jsonl"
    os.truncate(file, file.stat().st_size // 2)
    runner(made, tmp_path, resume=True).run()
    lines = journal.read(tmp_path)
    assert [line["started_utc"] for line in lines] == sorted((line["started_utc"] for line in lines), reverse=True)
    assert all(0 < line["wall_s"] < 30 for line in lines)
    assert [line["t_s"] for line in lines] == sorted(line["t_s"] for line in lines)
    assert [line["order"] for line in lines] == list(range(18))
    assert {cell["state"] for cell in summarise.write(tmp_path, elapsed_s=0).as_json()["cells"]} == {"ok"}


def test_a_gigabyte_of_output_takes_no_memory_and_no_patience() -> None:
    def action() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcome = shell("head -c 1000000000 /dev/zero; echo the end >&2")
        assert outcome.exit_code == 0
        assert outcome.stderr_tail.endswith("the end\n")
        assert len(outcome.stderr_tail) == output.TAIL_BYTES
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown_kib < 20 << 10
        shared = next(row for row in Path("/proc/meminfo").read_text().splitlines() if row.startswith("Shmem:"))
        assert int(shared.split()[1]) - shared_before < 200 << 10, "nor does it lie in a file in memory"
        return 0

    row = next(row for row in Path("/proc/meminfo").read_text().splitlines() if row.startswith("Shmem:"))
    shared_before = int(row.split()[1])
    _, status = os.waitpid(forked(action), 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_records_without_end_are_bounded_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.RecordsFile.__init__, "__defaults__", (1 << 20,))
    outcome = shell("head -c 50000000 /dev/zero >&3; echo went on >&2", records=True)
    assert outcome.records == b""
    assert "went on" in outcome.stderr_tail
    assert "MiB of records" in outcome.stderr_tail
    assert shell("head -c 900000 /dev/zero >&3", records=True).records == bytes(900_000)


def test_a_quiet_process_never_wakes_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    drained = 0
    real = output.Tail.drain

    def drain(tail: output.Tail) -> int:
        nonlocal drained
        drained += 1
        return real(tail)

    monkeypatch.setattr(output.Tail, "drain", drain)
    shell("sleep 0.5")
    assert drained == 1, "once, after it has ended"
    drained = 0
    outcome = shell("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.01; done")
    assert drained <= outcome.wall_s / 0.02 + 2, "a process that prints now and then wakes it at most every 20 ms"


def gone(pid: int) -> bool:
    for _ in range(2000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_children_left_behind_are_ended_not_waited_for_and_told() -> None:
    began = time.monotonic()
    outcome = shell("sleep 50 & sleep 50 & echo $!")
    assert time.monotonic() - began < 40, "they hold the pipe, and nobody waits for its end"
    assert outcome.leftover == LEFTOVER
    assert gone(int(outcome.stderr_tail))
    assert shell("sleep 0.01 & wait").leftover == ""


def test_a_daemon_that_left_the_group_is_not_waited_for() -> None:
    began = time.monotonic()
    outcome = shell("setsid sh -c 'echo $$; exec sleep 50' & sleep 0.3")
    assert time.monotonic() - began < 40
    os.kill(int(outcome.stderr_tail.split()[0]), signal.SIGKILL)


def test_leftovers_are_a_warning_of_the_cell(tmp_path: Path) -> None:
    peer = tmp_path / "peer"
    text = Path(STM).read_text()
    peer.write_text(text.replace("say() {", 'case $1 in x) ;; esac\n[ -n "$workload" ] && sleep 50 3>&- &\nsay() {'))
    peer.chmod(0o755)
    _, result = measure(study(sync=[str(peer)], blocks=3), tmp_path / "o")
    assert all(LEFTOVER in cell["warnings"] for cell in result["cells"])
    assert {cell["state"] for cell in result["cells"]} == {"ok"}


def test_output_of_a_run_that_ignores_its_reader_still_ends_by_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loam_lab.campaign.process.execute.GRACE_S", 0.2)
    program = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: os.write(2, b'x' * 65536)"
    began = time.monotonic()
    outcome = execute([sys.executable, "-c", program], ENVIRONMENT, timeout_s=0.5)
    assert outcome.timed_out
    assert outcome.signal == signal.SIGKILL
    assert time.monotonic() - began < 40


def test_the_manifest_tells_nothing_of_the_time_to_what_is_compared(tmp_path: Path) -> None:
    """Two starts of one campaign differ in times of day only."""
    plans = []
    for name in ("a", "b"):
        runner(study(), tmp_path / name, FakeInstruments()).run()
        manifest = json.loads((tmp_path / name / "campaign.json").read_text())
        del manifest["created_utc"]
        plans.append(manifest)
    assert plans[0] == plans[1]
