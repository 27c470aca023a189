"""Profiles and traces: the counts of a program that is known call by call; the trace of a killed one; damaged traces."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, asking

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters import profile
from loam_lab.commands.bench import bench, trace
from loam_lab.setup import build

# 1000 blocks of 100 bytes, of which another thread frees 300; 10 resized; 50 by operator new; 40 short-lived; one aligned.
KNOWN = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <unistd.h>
char* blocks[1000];
int main(int argc, char** argv) {
  for (char*& block : blocks) block = static_cast<char*>(malloc(100)), memset(block, 1, 100);
  std::thread([] { for (int i = 0; i < 300; ++i) free(blocks[i]); }).join();
  for (int i = 300; i < 310; ++i) blocks[i] = static_cast<char*>(realloc(blocks[i], 5000));
  for (int i = 0; i < 50; ++i) operator delete(operator new(28));
  for (int i = 0; i < 40; ++i) free(calloc(3, 1000));
  void* aligned = nullptr;
  if (posix_memalign(&aligned, 256, 777) != 0 || blocks[309][99] != 1) return 1;
  for (long i = 0; argc > 1; ++i) {
    if (i == 100000) write(1, "here", 4);
    void* volatile p = malloc(24);
    free(p);
  }
}
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build.ensure_built(["probe", "profile", "record", "replay"])
    folder = tmp_path_factory.mktemp("known")
    (folder / "known.cpp").write_text(KNOWN)
    subprocess.run(["g++", "-O1", "-fno-builtin", "-o", folder / "known", folder / "known.cpp", "-pthread"], check=True)
    return folder / "known"


def preloaded(library: str, **variables: str) -> dict[str, str]:
    return {**os.environ, "LD_PRELOAD": paths.load_paths()["libraries"][library], **variables}


def test_a_profile_counts_every_call(known: Path, tmp_path: Path) -> None:
    subprocess.run([known], env=preloaded("profile", LOAM_PROFILE=str(tmp_path / "p")), check=True)
    (file,) = tmp_path.glob("p.*")
    document = json.loads(file.read_text())
    summary = profile.summary([document])
    by_size = {limit: n for limit, n, _ in summary["classes"]}
    assert by_size[112] >= 1000
    assert by_size[5120] == 10, "resized"
    assert by_size[3072] == 40, "calloc"
    assert by_size[28] >= 50, "operator new"
    assert by_size[896] == 1, "aligned"
    assert sum(thread["remote"] for thread in document["threads"]) >= 300
    owner = min(document["threads"], key=lambda thread: thread["number"])["number"]
    helper = next(thread for thread in document["threads"] if thread["remote"] >= 300)
    assert helper["freed_of"][owner] >= 300
    assert summary["unknown_frees"] == 0
    assert summary["peak"]["requested"] >= 100_000
    assert summary["peak"]["usable"] >= summary["peak"]["requested"]
    assert summary["fragmentation"]["padding"] >= 0


# 200 blocks of more than 4 KiB: another thread frees 50, this one 50, ten are resized; says what the others were given.
LONG = """
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void* blocks[200];
static void* free_some(void* none) { for (int i = 0; i < 100; i += 2) free(blocks[i]); return none; }
int main(void) {
  for (int i = 0; i < 200; ++i) blocks[i] = malloc(5000 + 777 * i);
  pthread_t other;
  if (pthread_create(&other, 0, free_some, 0) != 0) return 1;
  pthread_join(other, 0);
  for (int i = 1; i < 100; i += 2) free(blocks[i]);
  for (int i = 100; i < 110; ++i) blocks[i] = realloc(blocks[i], 300000 + i);
  char text[32];
  size_t given = 0;
  for (int i = 100; i < 200; ++i) given += malloc_usable_size(blocks[i]);
  return write(1, text, (size_t)snprintf(text, sizeof text, "%zu", given)) < 0;
}
"""


def test_long_blocks_go_with_what_they_were_given(tmp_path: Path) -> None:
    build.ensure_built(["profile"])
    (tmp_path / "long.c").write_text(LONG)
    command = ["gcc", "-O1", "-fno-builtin", "-o", tmp_path / "long", tmp_path / "long.c", "-pthread"]
    subprocess.run(command, check=True)
    environment = preloaded("profile", LOAM_PROFILE=str(tmp_path / "p"))
    done = subprocess.run([tmp_path / "long"], env=environment, capture_output=True, check=True)
    (file,) = tmp_path.glob("p.*")
    threads = json.loads(file.read_text())["threads"]
    left = {kind: sum(one[kind] - one[f"{kind}_freed"] for one in threads) for kind in ("requested", "usable")}
    asked = sum(300_000 + i for i in range(100, 110)) + sum(5000 + 777 * i for i in range(110, 200))
    # The C library keeps a few small blocks of its own.
    assert 0 <= left["requested"] - asked < 4096
    assert 0 <= left["usable"] - int(done.stdout) < 4096
    assert 50 <= sum(one["remote"] for one in threads) < 60


def test_sampling_comes_near(tmp_path: Path) -> None:
    """A million blocks of 64 bytes, one in 8192 looked at."""
    build.ensure_built(["profile-sample"])
    source = tmp_path / "x.c"
    source.write_text(
        "#include <stdlib.h>\nint main(void){for(int i=0;i<1000000;++i){void*volatile p=malloc(64);free(p);}}\n"
    )
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", tmp_path / "x", source], check=True)
    environment = preloaded("profile-sample", LOAM_PROFILE=str(tmp_path / "p"), LOAM_PROFILE_SAMPLE=str(64 * 1024))
    subprocess.run([tmp_path / "x"], env=environment, check=True)
    (file,) = tmp_path.glob("p.*")
    summary = profile.summary([json.loads(file.read_text())])
    assert summary["sampled"]
    assert summary["calls"] == pytest.approx(1_000_000, rel=0.15)


@pytest.mark.parametrize(
    ("memory", "shares"),
    [
        ((0, 0, 0, 0), None),
        ((100, 110, 150, 400), {"padding": 0.1, "scattered": 0.4, "held": 2.5}),
        ((100, 110, 0, 0), {"padding": 0.1}),
        ((100, 110, 150, 120), {"padding": 0.1, "scattered": 0.4, "held": 0.0}),
    ],
)
def test_fragmentation_has_three_parts(memory: tuple[int, int, int, int], shares: dict[str, float] | None) -> None:
    parts = profile.fragmentation(*memory)
    assert parts == (None if shares is None else pytest.approx(shares))


@pytest.mark.parametrize("threads", ["recorded", "1"])
def test_a_trace_is_played_with_its_remote_frees(known: Path, tmp_path: Path, threads: str) -> None:
    file = tmp_path / "t"
    assert trace.record([str(known)], out=file) == 0
    head = trace.read(file)
    assert head.ended
    assert head.unknown == 0
    player = paths.load_paths()["libraries"]["replay"]
    done = subprocess.run([player, file, "--threads", threads], capture_output=True, text=True, check=True)
    events, remote = (int(n) for n in re.findall(r"(\d+) (?:events|frees)", done.stdout))
    assert events >= 1000 + 300 + 20 + 100 + 80 + 1
    assert 300 <= remote <= 310
    # What is asked of the allocator again is what was asked.
    subprocess.run(
        [player, file, "--threads", threads], env=preloaded("profile", LOAM_PROFILE=str(tmp_path / "p")), check=True
    )
    (profile_file,) = tmp_path.glob("p.*")
    summary = profile.summary([json.loads(profile_file.read_text())])
    by_size = {limit: n for limit, n, _ in summary["classes"]}
    assert (by_size[5120], by_size[3072], by_size[896]) == (10, 40, 1)
    assert by_size[112] >= 1000


def killed(known: Path, file: Path) -> None:
    """Record a program that is killed in the middle of its calls."""
    process = subprocess.Popen(
        [known, "endless"], env=preloaded("record", LOAM_TRACE=str(file)), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.read(4) == b"here"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_a_killed_program_leaves_a_trace(known: Path, tmp_path: Path) -> None:
    killed(known, tmp_path / "t")
    assert not trace.read(tmp_path / "t").ended
    player = paths.load_paths()["libraries"]["replay"]
    done = subprocess.run([player, tmp_path / "t"], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[0]) > 2000


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: b"", "too short for a trace"),
        (lambda raw: b"\x7fELF" + raw[4:], "is no trace of loam"),
        (lambda raw: raw[:8] + struct.pack("<I", 9) + raw[12:], "has version 9"),
        (lambda raw: raw[:-1000], "was cut"),
    ],
)
def test_damaged_traces_are_refused(known: Path, tmp_path: Path, damage: Any, message: str) -> None:
    good, bad = tmp_path / "t", tmp_path / "bad"
    trace.record([str(known)], out=good)
    bad.write_bytes(damage(good.read_bytes()))
    with pytest.raises(LoamError, match=message):
        trace.read(bad)


def test_a_trace_that_ended_for_lack_of_room_is_read(known: Path, tmp_path: Path) -> None:
    """A chunk that the disk had no room for was counted, and is not in the file."""
    trace.record([str(known)], out=tmp_path / "t")
    whole = trace.read(tmp_path / "t")
    raw = bytearray((tmp_path / "t").read_bytes())
    *before, chunks, unknown, refused, ended = trace.HEAD.unpack_from(raw)
    trace.HEAD.pack_into(raw, 0, *before, chunks + 2, unknown, refused + 2, ended)
    (tmp_path / "short").write_bytes(raw)
    cut = trace.read(tmp_path / "short")
    assert (cut.refused, cut.bytes) == (2, whole.bytes)
    trace.HEAD.pack_into(raw, 0, *before, chunks + 2, unknown, refused + 1, ended)
    (tmp_path / "cut").write_bytes(raw)
    with pytest.raises(LoamError, match="was cut"):
        trace.read(tmp_path / "cut")


def compiled(folder: Path, source: str) -> Path:
    (folder / "own.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", folder / "own", folder / "own.c"], check=True)
    return folder / "own"


def events_of(file: Path) -> int:
    player = paths.load_paths()["libraries"]["replay"]
    done = subprocess.run([player, file], capture_output=True, text=True, check=True)
    (events,) = re.findall(r"(\d+) events", done.stdout)
    return int(events)


FORKS = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  void* blocks[100];
  for (int i = 0; i < 100; ++i) blocks[i] = malloc(100);
  if (fork() == 0) {
    for (int i = 0; i < 100; ++i) free(blocks[i]);
    for (int i = 0; i < 5000; ++i) {
      void* volatile own = malloc(40);
      free(own);
    }
    _exit(0);
  }
  wait(0);
  for (int i = 0; i < 100; ++i) free(blocks[i]);
  return 0;
}
"""

# Events of two to five bytes in an order that does not repeat: at the ends of chunks each length meets each rest.
CHUNK = 64 * 1024
LONG_EVENTS = """
#include <stdlib.h>
int main(void) {
  unsigned random = 1;
  for (int i = 0; i < 200000; ++i) {
    random = random * 1664525 + 1013904223;
    static const size_t sizes[] = {100, 3000, 90000, 90000, 1 << 20, 1 << 20, (size_t)128 << 20, (size_t)128 << 20};
    void* volatile block = malloc(sizes[random >> 29]);
    free(block);
  }
  return 0;
}
"""


def test_a_forked_child_writes_nothing_into_its_parents_trace(known: Path, tmp_path: Path) -> None:
    file = tmp_path / "t"
    assert trace.record([str(compiled(tmp_path, FORKS))], out=file) == 0
    head = trace.read(file)
    assert (head.ended, head.unknown, head.threads) == (True, 0, 1)
    assert 200 <= events_of(file) < 300


def test_no_event_passes_the_end_of_its_chunk(known: Path, tmp_path: Path) -> None:
    file = tmp_path / "t"
    assert trace.record([str(compiled(tmp_path, LONG_EVENTS))], out=file) == 0
    head = trace.read(file)
    assert (head.ended, head.unknown, head.threads) == (True, 0, 1)
    assert head.chunks > 10
    raw = file.read_bytes()
    used = [struct.unpack_from("<I", raw, 4096 + chunk * CHUNK + 16)[0] for chunk in range(head.chunks)]
    assert all(CHUNK - 24 - 24 < each <= CHUNK - 24 for each in used[:-1]), "full but for less than an event"


def test_a_changed_byte_is_seen_by_the_player(known: Path, tmp_path: Path) -> None:
    trace.record([str(known)], out=tmp_path / "t")
    raw = bytearray((tmp_path / "t").read_bytes())
    raw[4096 + 24 + 100] ^= 1
    (tmp_path / "t").write_bytes(raw)
    player = paths.load_paths()["libraries"]["replay"]
    done = subprocess.run([player, tmp_path / "t"], capture_output=True, text=True, check=False)
    assert (done.returncode, "the sum of a chunk is wrong" in done.stderr) == (2, True)


def made_up(file: Path, *threads: Sequence[tuple[int, ...]]) -> Path:
    """A trace of these events, each a kind (lab/interposer/trace.hpp) and its numbers; a chunk for each thread."""

    def put(number: int) -> bytes:
        return bytes([number & 127 | 128]) + put(number >> 7) if number > 127 else bytes([number])

    raw = trace.HEAD.pack(0x313043454D414F4C, 1, CHUNK, len(threads), len(threads), 0, 0, 1).ljust(4096, b"\0")
    for thread, events in enumerate(threads, 1):
        body = b"".join(put(first << 2 | kind) + b"".join(map(put, rest)) for kind, first, *rest in events)
        raw += (struct.pack("<QQII", thread, 0, len(body), 0) + body).ljust(CHUNK, b"\0")
    file.write_bytes(raw)
    return file


ALLOC, FREE, FOREIGN, RESIZE = range(4)


def played(file: Path) -> tuple[int, str]:
    """On one thread: the status, and what was said."""
    player = paths.load_paths()["libraries"]["replay"]
    done = subprocess.run([player, file, "--threads", "1"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "threads",
    [
        [[(ALLOC, 100), (FREE, 1), (FREE, 1), (ALLOC, 100), (FREE, 1)]],
        [[(ALLOC, 100), (FREE, 1)], [(FOREIGN, 1, 0)]],
        [[(FOREIGN, 2, 0), (ALLOC, 100)], [(FOREIGN, 1, 0), (ALLOC, 100)]],
    ],
    ids=["twice", "twice by two threads", "each waits for the other"],
)
def test_what_waits_for_ever_is_damaged_and_not_left_out(known: Path, tmp_path: Path, threads: Any) -> None:
    status, output = played(made_up(tmp_path / "t", *threads))
    assert (status, "a block is freed that nobody allocated" in output) == (2, True)


def test_what_malloc_refuses_is_freed_for_nothing_and_the_rest_is_played(known: Path, tmp_path: Path) -> None:
    huge = 1 << 56
    own = [(ALLOC, huge), (FREE, 1), (ALLOC, 100), (FREE, 1), (ALLOC, huge), (FREE, 1), (RESIZE, 100), (ALLOC, huge)]
    status, output = played(made_up(tmp_path / "t", own, [(FOREIGN, 1, 4), (ALLOC, 100), (FREE, 1)]))
    assert (status, "11 events of 2 threads" in output, "malloc refused 3 blocks" in output) == (3, True, True), output


def test_what_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("mine")
    with pytest.raises(LoamError, match="is there already"):
        trace.record(["true"], out=tmp_path / "t")
    with pytest.raises(LoamError, match="no such program"):
        trace.record(["no-such-program-here"], out=tmp_path / "u")


def test_a_full_disk_and_a_program_that_asks_for_nothing_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.ensure_built(["record"])
    nothing = ["/bin/true"]  # a file may be all that is written, or not even that
    with pytest.raises(LoamError, match=r"asked for memory \(record a program that allocates\)"):
        trace.record(nothing, out=tmp_path / "t")
    space = os.statvfs(tmp_path)
    full = os.statvfs_result([*space[:4], 0, *space[5:10]])
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(LoamError, match="the disk is full"):
        trace.record(nothing, out=tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_a_silent_program_is_called_static_only_if_it_is() -> None:
    assert profile.silent([["/bin/true"]]) == profile.SILENT and "static" not in profile.SILENT


def test_several_commands_are_compared_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from loam_lab.commands.bench import job_options

    file = tmp_path / "commands"
    sleeper = "sh -c 'case $FAKE_ALLOCATOR in fast) sleep {} ;; *) sleep {} ;; esac; echo same'"
    file.write_text(f"# two\n{sleeper.format(0.02, 0.08)}\n\n{sleeper.format(0.05, 0.12)}\n")
    what = job_options.what(
        (), server=None, ready=None, load=None, metric=None, better=None, commands=(), command_file=file, prepare="",
        cleanup=f"echo . >> {tmp_path}/cleaned", checks=["same-output", "grep -q same $LOAM_OUTPUT"], warmup=1,
        limits=["nofile=64"], timeout_s=20,
    )  # fmt: skip
    request = asking(allocators=["plain", "fast"], blocks=6, out=tmp_path / "o", report=False)
    bench.bench(what, request, FakeInstruments())
    result = json.loads((tmp_path / "o" / "result.json").read_text())
    assert result["failures"] == []
    advice = result["recommendation"]
    assert advice["allocator"] == "fast"
    assert "over 2 commands it takes" in advice["text"]
    assert [one["allocator"] for one in advice["each"]] == ["fast", "fast"]
    assert (tmp_path / "cleaned").read_text().count(".") == 4 + 2 * 18
    assert "Use fast: over 2 commands" in capsys.readouterr().out


def test_output_that_differs_is_a_failure(tmp_path: Path) -> None:
    from loam_lab.commands.bench import job_options

    what = job_options.what(
        ["sh", "-c", "echo $FAKE_ALLOCATOR"], server=None, ready=None, load=None, metric=None, better=None, commands=(),
        command_file=None, prepare="", cleanup="", checks=["same-output"], warmup=0, limits=(), timeout_s=20,
    )  # fmt: skip
    request = asking(allocators=["plain", "fast"], blocks=1, out=tmp_path / "o", report=False)
    status = bench.bench(what, request, FakeInstruments())
    result = json.loads((tmp_path / "o" / "result.json").read_text())
    assert status == 1
    (failure,) = result["failures"]
    assert "its result differs from that under plain" in failure["detail"]
