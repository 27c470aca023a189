"""Memory over time: a real process tree is sampled within bounds, and unfit machines are refused with the reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from campaigns import STM, FakeInstruments, cells, measure, study

from loam_lab.campaign.memory import fitness
from loam_lab.campaign.memory.observer import LOOKS_MIN, MemoryObserver
from loam_lab.campaign.memory.sampler import FIRST_S, PERIOD_MIN_S, Sample, Sampler, thinned
from loam_lab.campaign.process.execute import execute
from loam_lab.judging.result import memory

MIB = 2**20
# The made-up workload ends within a millisecond, a look on a loaded machine may come later.
LINGERING = FakeInstruments(variables={"FAKE_SLEEP_S": "0.4"})
VMSTAT = "pswpout {swap}\npgsteal_anon {stolen}\npglazyfreed {lazy}\nnr_free_pages 1\n"


def machine(root: Path, *, swap: int = 0, stolen: int = 0, lazy: int = 0, damon: str = "off", swaps: str = "") -> Path:
    """A made-up /proc and /sys."""
    (root / "proc").mkdir(parents=True, exist_ok=True)
    (root / "proc/vmstat").write_text(VMSTAT.format(swap=swap, stolen=stolen, lazy=lazy))
    (root / "proc/swaps").write_text(f"Filename Type Size Used Priority\n{swaps}")
    state = root / "sys/kernel/mm/damon/admin/kdamonds/0/state"
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text(f"{damon}\n")
    return root


def test_a_process_tree_is_summed_and_a_child_stays_known_when_its_parent_ends() -> None:
    # This process holds 32 MiB and a shell; the shell starts a child of 48 MiB and ends when it is told to.
    child = "import time; b = bytearray(48 * 2**20); print('held', flush=True); time.sleep(60)"
    shell = '"$0" -c "$1" & read line; echo left'
    program = (
        "import subprocess, sys; b = bytearray(32 * 2**20); "
        f"subprocess.run(['sh', '-c', {shell!r}, sys.executable, {child!r}]); sys.stdin.read()"
    )
    # The looks are taken by hand: how often the sampler looks by itself depends on the machine's speed.
    sampler, begin_s = Sampler(), time.monotonic()
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True, process_group=0) as tree:
        assert tree.stdin is not None and tree.stdout is not None
        try:
            assert tree.stdout.readline() == "held\n"
            sampler.look(tree.pid)
            tree.stdin.write("leave\n")
            tree.stdin.flush()
            assert tree.stdout.readline() == "left\n"
            while _children(tree.pid):
                time.sleep(0.001)
            sampler.look(tree.pid)
            wall_s = time.monotonic() - begin_s
        finally:
            os.killpg(tree.pid, signal.SIGKILL)
    seen = sampler.result(wall_s)
    assert len(seen["samples"]) == 2
    assert seen["processes"] == sampler.processes == 3, "python, the shell and its child"
    assert all(pss > 80 * MIB for _, _, pss in seen["samples"])
    assert seen["peak_pss_bytes"] == max(pss for _, _, pss in seen["samples"])
    assert seen["peak_rss_bytes"] >= seen["peak_pss_bytes"]
    assert 0 < seen["mean_pss_bytes"] <= seen["peak_pss_bytes"]
    assert seen["area_pss_byte_s"] == pytest.approx(seen["mean_pss_bytes"] * wall_s, rel=0.05)


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


def test_lazily_freed_pages_are_seen_in_a_real_process() -> None:
    program = (
        "import mmap, sys; b = mmap.mmap(-1, 2**24, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "for at in range(0, len(b), 4096): b[at] = 1\n"
        "b.madvise(mmap.MADV_FREE); print('freed', flush=True); sys.stdin.read()"
    )
    # Looked at by hand: when the sampler looks by itself depends on the machine's speed.
    sampler, begin_s, pipe = Sampler(), time.monotonic(), subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "freed\n"
        sampler.look(process.pid)
        process.stdin.close()
        assert process.wait() == 0
    seen = sampler.result(time.monotonic() - begin_s)
    assert seen["peak_lazy_bytes"] == pytest.approx(16 * MIB, rel=0.05)
    assert seen["peak_pss_bytes"] > seen["peak_lazy_bytes"]


def test_a_real_run_is_looked_at_no_sooner_than_the_last_look_allows() -> None:
    # What a look costs is the machine's affair, and so is how many there are; that each is paid back is not.
    sampler, begun_s, pauses_s = Sampler(), [], []

    def watch(pid: int) -> float:
        begun_s.append(time.monotonic())
        before_s = sampler._looked_s
        pauses_s.append(sampler.look(pid))
        cost_s = sampler._looked_s - before_s
        # Rounding: the cost is a difference of sums here.
        assert pauses_s[-1] == FIRST_S or cost_s <= pauses_s[-1] * 0.01 + 1e-9
        return pauses_s[-1]

    program = "import time; b = bytearray(64 * 2**20); time.sleep(1.5)"
    outcome = execute([sys.executable, "-c", program], {"PATH": "/usr/bin:/bin"}, timeout_s=30.0, watch=watch)
    assert outcome.exit_code == 0, outcome.stderr_tail
    seen = sampler.result(outcome.wall_s)
    assert seen["looks"] == len(begun_s)
    assert all(
        later - earlier >= pause_s for (earlier, later), pause_s in zip(pairwise(begun_s), pauses_s, strict=False)
    )
    assert 0 < seen["looking_share"] < 1


def test_a_slow_look_is_followed_by_a_long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = Sampler()

    def slow(pid: int, t_s: float) -> Sample:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return Sample(t_s, 2, 1, 0)

    monkeypatch.setattr(sampler, "_sample", slow)
    assert sampler.look(1) >= 2.0


def test_a_long_run_is_thinned_and_keeps_its_peak_and_area(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = Sampler()
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    monkeypatch.setattr(
        sampler, "_sample", lambda pid, t_s: Sample(t_s, 200, 1000 if round(t_s, 3) == 3.333 else 100, 0)
    )
    pauses = []
    for step in range(1, 3001):
        pauses.append(sampler.look(1))
        clock[0] = step / 300
    seen = sampler.result(10.0)
    assert len(seen["samples"]) <= 200
    assert (seen["peak_pss_bytes"], max(pss for _, _, pss in seen["samples"])) == (1000, 1000)
    assert seen["area_pss_byte_s"] == pytest.approx(1000 + 900 / 300, rel=1e-6)
    assert pauses[0] == PERIOD_MIN_S
    assert pauses[-1] > PERIOD_MIN_S
    assert [s[0] for s in seen["samples"]] == sorted(s[0] for s in seen["samples"])


def test_until_something_could_be_read_it_looks_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = Sampler()
    samples: list[Sample | None] = [None, None, Sample(0.0, 2, 1, 0)]
    monkeypatch.setattr(sampler, "_sample", lambda pid, t_s: samples.pop(0))
    assert [sampler.look(1), sampler.look(1)] == [FIRST_S, FIRST_S]
    assert sampler.look(1) >= PERIOD_MIN_S
    assert sampler.result(1.0)["peak_rss_bytes"] == 2


def test_thinning_keeps_the_larger_of_two() -> None:
    samples = [Sample(float(i), 0, pss, 0) for i, pss in enumerate((1, 5, 7, 2, 4))]
    assert [s.pss for s in thinned(samples)] == [5, 7, 4]


def test_swap_zram_and_page_outs_make_memory_unfit(tmp_path: Path) -> None:
    root = machine(tmp_path, swaps="/dev/vda2 partition 1000 0 -2\n")
    assert fitness.reclaimable(root) == [
        "/dev/vda2 is in use as swap; the kernel can swap memory out unnoticed; run swapoff -a"
    ]
    machine(tmp_path)
    assert fitness.reclaimable(root) == []
    (root / "sys/block/zram0").mkdir(parents=True)
    (root / "sys/block/zram0/disksize").write_text("1048576\n")
    assert fitness.reclaimable(root)[0].startswith("zram0 is set up")
    before = fitness.counters(root)
    machine(tmp_path, stolen=3, lazy=9)
    assert fitness.taken(before, fitness.counters(root)) == [
        "pgsteal_anon grew by 3 pages during the run; the kernel took memory from some program; "
        "give the machine more free memory and repeat"
    ]


def test_lazily_freed_pages_are_warned_of(tmp_path: Path) -> None:
    root = machine(tmp_path, lazy=7)
    assert fitness.warnings({}, {}, peak_lazy_bytes=0, peak_bytes=100 * MIB) == []
    (warning,) = fitness.warnings({"pglazyfreed": 2}, fitness.counters(root), peak_lazy_bytes=0, peak_bytes=1)
    assert warning.startswith("5 lazily freed pages (MADV_FREE) were taken")
    (warning,) = fitness.warnings({}, {}, peak_lazy_bytes=8 * MIB, peak_bytes=100 * MIB)
    assert warning.startswith("up to 8.0 MiB of its memory were freed lazily (MADV_FREE)")


def test_damon_is_seen_where_it_is_active(tmp_path: Path) -> None:
    assert not fitness.damon(machine(tmp_path / "quiet"))
    assert fitness.damon(machine(tmp_path / "watched", damon="on"))
    reclaim = machine(tmp_path / "reclaim")
    (reclaim / "sys/module/damon_reclaim/parameters").mkdir(parents=True)
    (reclaim / "sys/module/damon_reclaim/parameters/enabled").write_text("Y\n")
    assert fitness.damon(reclaim)


def test_an_observer_says_whether_its_figures_may_decide(tmp_path: Path) -> None:
    # It ends once it was looked at often enough, however busy the machine is.
    seen = tmp_path / "seen"
    program = "import os, sys, time; b = bytearray(2**24)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.005)"
    root = machine(tmp_path, damon="on")
    observer = MemoryObserver(root)
    observer.begin()

    def watch(pid: int) -> float:
        pause_s = observer.watch(pid)
        if len(observer._sampler._kept) >= LOOKS_MIN:
            seen.touch()
        return pause_s

    outcome = execute([sys.executable, "-c", program, str(seen)], {}, timeout_s=60, watch=watch)
    fit, problem = observer.end(outcome)
    assert problem == ""
    assert (fit["fit"], fit["reasons"]) == (True, [])
    assert fit["damon"]
    assert fit["faults_minor"] == outcome.faults_minor
    machine(tmp_path, swap=1)
    unfit, _ = observer.end(outcome)
    assert not unfit["fit"]
    assert "pswpout grew by 1 pages" in unfit["reasons"][0]


def test_a_run_that_is_too_short_for_three_looks_decides_nothing(tmp_path: Path) -> None:
    observer = MemoryObserver(machine(tmp_path))
    observer.begin()
    observer.watch(os.getpid())
    observed, problem = observer.end(execute(["/bin/true"], {}, timeout_s=20))
    assert problem == "" and not observed["fit"]
    assert observed["reasons"][0].startswith("its memory was looked at only once in ")


def test_a_memory_run_is_one_per_cell_and_never_timed(tmp_path: Path) -> None:
    made = study(memory=True, sync=[STM])
    _, result = measure(made, tmp_path / "out", LINGERING)
    assert result["blocks"] == made.blocks
    for cell in cells(result, copy=0):
        memory_entry = cell["memory"]
        assert 0 < len(memory_entry["samples"]) <= 200
        assert {len(sample) for sample in memory_entry["samples"]} == {4}
        assert memory_entry["peak_rss_bytes"] >= memory_entry["peak_pss_bytes"] > 0
        assert cell["runs"] == made.blocks
    assert all(cell["memory"] is None for cell in cells(result, copy=1))
    active = fitness.damon()
    assert [text for text in result["warnings"] if "DAMON" in text] == ([memory.DAMON] if active else [])


def test_a_failed_memory_run_is_told_and_has_no_figures(tmp_path: Path) -> None:
    _, result = measure(study(memory=True, parameters={"structure": "list", "mode": "crash"}), tmp_path / "out")
    for cell in cells(result, copy=0):
        assert cell["memory"] is None
        assert any(text.startswith("its memory run failed (ended by SIGSEGV") for text in cell["warnings"])


def test_figures_of_an_unfit_run_are_kept_and_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitness, "reclaimable", lambda root: ["/dev/vdb is in use as swap; run swapoff -a"])
    _, result = measure(study(memory=True), tmp_path / "out", LINGERING)
    for cell in cells(result, copy=0):
        assert not cell["memory"]["fit"]
        assert cell["memory"]["reasons"][0] == "/dev/vdb is in use as swap; run swapoff -a"
        assert "its memory figures decide nothing: /dev/vdb is in use as swap; run swapoff -a" in cell["warnings"]
