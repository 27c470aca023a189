"""doctor: every known trap is seen, has a consequence and a next step, and the worst comes first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kernel_files import BAD, DAMON, GOVERNOR, THP, kernel
from typed import typed

from loam_lab.base import paths
from loam_lab.base.tree import Tree
from loam_lab.cli import main
from loam_lab.commands.doctor import activity, commands, counters, fitness, memory, processor, shell, siblings, tools
from loam_lab.commands.doctor.finding import SEVERITIES, Finding, View
from loam_lab.setup import build
from loam_lab.subjects import machine

CPU = "/sys/devices/system/cpu"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units\n{:<26}{:<21}unlimited            bytes"
)
WRONG, NOISY = "changes results", "costs precision"
ASLR, GROUP, NODE = "/proc/sys/kernel/randomize_va_space", "/proc/self/cgroup", "/sys/devices/system/node/node"
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
QUIET = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1"


def view(root: Path, files: dict[str, str], **environment: str) -> View:
    return View(tree=kernel(root, files), environment=environment, quick=True, results=root / "results")


def anonymous(allow: str) -> dict[str, str]:
    """A kdamond that pages out, with a filter on anonymous memory."""
    scheme = f"{DAMON}/contexts/0/schemes/0"
    return {
        f"{DAMON}/state": "on", f"{scheme}/action": "pageout", f"{scheme}/ops_filters/0/type": "anon",
        f"{scheme}/ops_filters/0/matching": "Y", f"{scheme}/ops_filters/0/allow": allow,
    }  # fmt: skip


CASES: list[tuple[commands.Check, dict[str, str], str, str, str]] = [
    (memory.huge_pages, {THP: BAD[THP]}, "huge pages", WRONG, "always"),
    (memory.huge_pages, {THP: "always [madvise] never", f"{THP[:-7]}defrag": "[always] madvise never"}, "huge pages",
     NOISY, "defrag: always"),
    (memory.huge_pages, {THP: "always [madvise] never", f"{THP[:-7]}khugepaged/defrag": "1"}, "huge pages", "fine",
     "khugepaged: on"),
    (memory.huge_pages, {}, "huge pages", "fine", "absent"),
    (memory.swap, {"/proc/swaps": BAD["/proc/swaps"]}, "swap", WRONG, "/dev/zram0 (compressed memory)"),
    (memory.swap, {"/proc/swaps": "Filename Type\n/dev/sda1 partition 1 0 1", "/sys/module/zswap/parameters/enabled": "Y"},
     "swap", WRONG, "behind zswap"),
    (memory.swap, {"/proc/swaps": "Filename Type"}, "swap", "fine", "none"),
    (memory.damon, anonymous("N"), "DAMON", NOISY, "spare anonymous"),
    (memory.damon, anonymous("Y"), "DAMON", WRONG, "anonymous memory too"),
    (memory.damon, {f"{DAMON}/state": "on", f"{DAMON}/contexts/0/schemes/0/action": "stat"}, "DAMON", NOISY, "stat"),
    (memory.damon, {f"{DAMON}/state": "off", f"{DAMON}/contexts/0/schemes/0/action": "pageout"}, "DAMON", "fine", "off"),
    (memory.damon, {"/sys/module/damon_reclaim/parameters/enabled": "Y"}, "DAMON", WRONG, "damon_reclaim"),
    (memory.overcommit, {"/proc/sys/vm/overcommit_memory": "2"}, "overcommit", WRONG, "counts as memory"),
    (memory.overcommit, {"/proc/sys/vm/overcommit_memory": "0", "/proc/sys/vm/max_map_count": "100"}, "overcommit",
     WRONG, "100 mappings"),
    (memory.nodes, {f"{NODE}0/x": "", f"{NODE}1/x": "",
                    "/proc/sys/kernel/numa_balancing": "1"}, "memory nodes", WRONG, "2 nodes"),
    (memory.nodes, {f"{NODE}0/x": "", "/proc/sys/kernel/numa_balancing": "1"}, "memory nodes", "fine", "1 node"),
    (memory.merging, {"/sys/kernel/mm/ksm/run": "1"}, "page merging", NOISY, "KSM"),
    (memory.available, {"/proc/meminfo": "MemTotal: 1000000 kB\nMemAvailable: 50000 kB"}, "free memory", NOISY, "0.0 of"),
    (memory.available, {"/proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 8000000 kB", GROUP: "0::/a/b",
                        "/sys/fs/cgroup/a/memory.max": "1073741824"}, "memory limit", WRONG, "1.0 of 8.0 GiB"),
    (memory.available, {"/proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 8000000 kB", GROUP: "4:memory:/a/b",
                        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648"}, "memory limit", WRONG, "2.0 of 8.0"),
    (memory.layout, {ASLR: "1"}, "ASLR", WRONG, "1"),
    (memory.layout, {ASLR: "2", "/proc/self/personality": "00040000"}, "ASLR", WRONG,
     "setarch -R"),
    (memory.layout, {ASLR: "2", "/proc/self/personality": "00200000"}, "layout", WRONG,
     "legacy"),
    (memory.layout, {ASLR: "2", "/proc/self/personality": "00000000"}, "ASLR", "fine", "2"),
    (shell.limits, {"/proc/self/limits": LIMITS.format("Max stack size", "unlimited")}, "limits", WRONG, "stack is unlimited"),
    (shell.limits, {"/proc/self/limits": LIMITS.format("Max address space", "1048576")}, "limits", WRONG, "ulimit -v"),
    (shell.limits, {"/proc/self/limits": LIMITS.format("Max open files", "64")}, "limits", WRONG, "64 (ulimit -n)"),
    (shell.limits, {"/proc/self/limits": LIMITS.format("Max stack size", "8388608")}, "limits", "fine", "no resource limit"),
    (shell.variables, {"/etc/ld.so.preload": "/lib/x.so"}, "ld.so.preload", WRONG, "/lib/x.so"),
    (processor.clock, {CLOCK: "hpet"}, "clock", WRONG, "hpet"),
    (processor.clock, {CLOCK: "tsc"}, "clock", "fine", "tsc"),
    (processor.frequency, {GOVERNOR.format(0): "performance", GOVERNOR.format(1): "powersave"}, "governor", NOISY,
     "performance, powersave"),
    (processor.frequency, {GOVERNOR.format(0): "performance", f"{CPU}/intel_pstate/no_turbo": "0"}, "turbo", NOISY, "on"),
    (processor.frequency, {f"{CPU}/cpufreq/boost": "0"}, "turbo", "fine", "off"),
    (processor.microcode, {f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI", f"{CPU}/vulnerabilities/mds": "Vulnerable"},
     "mitigations", "fine", "1 active (meltdown); vulnerable: mds"),
    (processor.microcode, {f"{CPU}/vulnerabilities/mds": "Vulnerable", "/proc/cmdline": "mitigations=off"}, "mitigations", "fine",
     "switched off"),
    (processor.hypervisor, {"/.dockerenv": ""}, "container", "fine", "/.dockerenv"),
    (activity.load, {"/proc/loadavg": "1.50 1 1 1/1 1"}, "load", NOISY, "1.5"),
    (activity.load, {"/proc/pressure/cpu": "some avg10=97.00 avg60=1 avg300=1 total=1"}, "pressure", NOISY, "97 %"),
    (activity.load, {"/proc/pressure/cpu": QUIET, "/proc/pressure/memory": QUIET}, "pressure", "fine", "nothing waits"),
    (activity.quota, {GROUP: "0::/a", "/sys/fs/cgroup/a/cpu.max": "max 100000", "/sys/fs/cgroup/cpu.max": "150000 100000"},
     "processor quota", WRONG, "1.5 processors"),
    (activity.quota, {GROUP: "1:cpu,cpuacct:/a", "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "50000",
                      "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000"}, "processor quota", WRONG, "0.5"),
    (activity.quota, {GROUP: "0::/a", "/sys/fs/cgroup/a/cpu.max": "max 100000"}, "processor quota", "fine", "none"),
    (activity.scheduler, {"/proc/sys/kernel/nmi_watchdog": "1"}, "watchdog", NOISY, "NMI"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "files", "name", "severity", "fact"), CASES)
def test_a_trap_is_seen(
    tmp_path: Path, check: commands.Check, files: dict[str, str], name: str, severity: str, fact: str
) -> None:
    findings = {finding.name: finding for finding in check(view(tmp_path, files))}
    assert findings[name].severity == severity and fact in findings[name].fact


def complete(findings: list[Finding]) -> bool:
    return all(f.consequence and f.next_step for f in findings if f.severity != "fine")


def test_each_trap_says_what_follows_and_the_worst_is_first(tmp_path: Path) -> None:
    findings = commands.examine(None, view(tmp_path, BAD, GLIBC_TUNABLES="x", MALLOC_ARENA_MAX="1"))
    ranks = [SEVERITIES.index(finding.severity) for finding in findings]
    assert ranks == sorted(ranks) and complete(findings)
    for check, files, *_ in CASES:
        assert complete(list(check(view(tmp_path / check.__name__, files))))


def test_steps_name_only_settings_that_tune_has(tmp_path: Path) -> None:
    from loam_lab.setup.tune.settings import names

    findings = commands.examine(None, view(tmp_path, BAD))
    for case in CASES:
        findings += list(case[0](view(tmp_path / case[0].__name__, case[1])))
    steps = {finding.next_step.partition("--only ")[2] for finding in findings if "--only " in finding.next_step}
    assert steps and steps <= set(names())


def test_variables_that_the_lab_drops_are_told_from_those_that_reach_the_program(tmp_path: Path) -> None:
    findings = list(shell.variables(view(tmp_path, {}, MALLOC_ARENA_MAX="1", JAVA_TOOL_OPTIONS="-Xmx1g", PATH="/bin")))
    assert [(finding.severity, finding.fact) for finding in findings] == [
        ("changes results", "set in this shell: JAVA_TOOL_OPTIONS=-Xmx1g"),
        ("fine", "set in this shell: MALLOC_ARENA_MAX"),
    ]
    assert [f.fact for f in shell.variables(view(tmp_path, {}, PATH="/bin"))] == ["none that affects an allocator"]


# ---- what else runs


def stat(pid: int, parent: int, ticks: int, name: str = "make (x) y") -> str:
    return f"{pid} ({name}) S {parent} 0 0 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 77 0 0"


def test_a_busy_process_is_named_but_not_our_own(tmp_path: Path) -> None:
    me, files = os.getpid(), {"/proc/stat": "cpu  100 0 0 100 0 0 0 0 0 0"}
    processes = {1: (0, 0), me: (1, 0), 70001: (1, 0), 70002: (me, 0), 70003: (1, 0)}
    for pid, (parent, ticks) in processes.items():
        files[f"/proc/{pid}/stat"] = stat(pid, parent, ticks)
    shown = view(tmp_path, files)
    before = activity.snapshot(shown.tree)
    rate = os.sysconf("SC_CLK_TCK")
    for pid in (70001, 70002, me, 1):
        shown.tree.path(f"/proc/{pid}/stat").write_text(stat(pid, processes[pid][0], rate))
    shown.tree.path("/proc/70004").mkdir()
    shown.tree.path("/proc/70004/stat").write_text(stat(70004, 1, rate))  # it began meanwhile
    shown.tree.path("/proc/stat").write_text("cpu  140 0 0 150 0 0 0 10 0 0\n")
    after = activity.snapshot(shown.tree)
    after = activity.Snapshot(before.at + 1, after.jiffies, after.ticks)
    findings = {finding.name: finding for finding in activity.between(shown, before, after)}
    assert "make (x) y (70001, " in findings["processes"].fact and "100 %" in findings["processes"].fact
    assert not any(str(pid) in findings["processes"].fact for pid in (70002, 70003, 70004))
    assert findings["steal"].severity == "costs precision" and findings["steal"].fact.startswith("10.0 % now")


# ---- counters

MODELS = [
    {"source": "callgrind", "counts": True, "why": "3.19"},
    {"source": "cachegrind", "counts": True, "why": "3.19"},
]


@pytest.mark.parametrize(
    ("hardware", "models", "paranoid", "fact", "consequence", "step"),
    [
        (True, True, 2, "because", "", ""),
        (False, True, 2, "because", "callgrind and cachegrind instead", "nothing to do"),
        (False, True, 4, "because", "callgrind and cachegrind instead", "tune --apply --only perf-events"),
        (False, False, 4, "because", "nothing is counted here", "./loam setup --tests"),
    ],
)
def test_counters_are_what_the_probe_believes(
    hardware: bool, models: bool, paranoid: int, fact: str, consequence: str, step: str
) -> None:
    sources = [{"source": "perf_event", "counts": hardware, "why": "because"}] + [
        {**m, "counts": models} for m in MODELS
    ]
    (finding,) = counters.judge(sources, paranoid)
    assert finding.fact == fact and consequence in finding.consequence and step in finding.next_step
    assert bool(finding.consequence) == bool(consequence)


# ---- hyperthread siblings


def pair(together: float | None, a: int = 0, b: int = 1) -> dict[str, Any]:
    return {"pairs": [{"a": a, "b": b, "together": together, "transfer_ns": 55.0}], "complete": True}


APART, SHARED = {0: frozenset({0}), 1: frozenset({1})}, {0: frozenset({0, 1}), 1: frozenset({0, 1})}


@pytest.mark.parametrize(
    ("reported", "measured", "severity", "fact"),
    [
        (APART, pair(0.99), "fine", "1 pair agrees; a cache line moves between them in 55 ns"),
        (SHARED, pair(0.51), "fine", "1 core with more than one hardware thread: 0+1; measured: 1 pair agrees"),
        (APART, pair(0.52), "changes results", "but 0 and 1 share a core: each keeps 52 %"),
        (SHARED, pair(0.98), "changes results", "but 0 and 1 do not share a core"),
        (APART, pair(None), "fine", "too many other programs ran"),
        (APART, None, "fine", "because"),
        ({}, pair(0.99), "fine", "no topology; measured: 1 pair; a cache line"),
    ],
)
def test_the_told_topology_is_held_against_the_measured(
    reported: dict[int, frozenset[int]], measured: dict[str, Any] | None, severity: str, fact: str
) -> None:
    (finding,) = siblings.judge(reported, measured, "" if measured else "because")
    assert finding.severity == severity and fact in finding.fact and complete([finding])


def test_lists_of_processors_are_read(tmp_path: Path) -> None:
    assert processor.numbers("0-2,5") == [0, 1, 2, 5] and processor.numbers("") == []
    files = {f"{CPU}/cpu{n}/topology/thread_siblings_list": f"{n % 2},{n % 2 + 2}" for n in range(4)}
    assert processor.reported_siblings(view(tmp_path, files))[3] == frozenset({1, 3})


@pytest.mark.alone
def test_the_meter_answers_within_its_time() -> None:
    meter = build.ensure_built(["siblings"])["libraries"]["siblings"]
    began = time.monotonic()
    document = json.loads(subprocess.run([meter, "200"], capture_output=True, check=True, timeout=60).stdout)
    assert time.monotonic() - began < 20
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > 1:
        assert (document["pairs"][0]["a"], document["pairs"][0]["b"]) == (cpus[0], cpus[1])
    for one in document["pairs"]:
        # Who shares its core with somebody else meanwhile, whom nobody sees here, is half as fast in one of the two.
        assert one["together"] is None or 0.1 < one["together"] < 3
        assert one["transfer_ns"] is None or 1 < one["transfer_ns"] < 100_000
    for wrong in ([], ["0"], ["x"], ["5x"], ["1", "2"]):
        assert subprocess.run([meter, *wrong], capture_output=True, check=False).returncode == 2


# ---- fitness


def result(folder: Path, name: str, age_s: float, low: float | None, high: float | None, **machine_: str) -> None:
    ratio = {"estimate": 1.0, "low": low, "high": high}
    wide = {"estimate": 1.0, "low": 0.1, "high": 9}
    cells = [{"copy": 0, "ratio_to_baseline": wide}, {"copy": 1, "ratio_to_baseline": ratio}, {"copy": 1}]
    document = typed({"machine": {"fingerprint": machine.identity(), **machine_}, "cells": cells}).as_json()
    (folder / name).mkdir(parents=True)
    file = folder / name / "result.json"
    file.write_text(json.dumps(document))
    os.utime(file, (time.time() - age_s,) * 2)


def test_fitness_is_that_of_the_newest_comparison_of_this_machine(tmp_path: Path) -> None:
    assert fitness.newest(tmp_path / "none") is None
    result(tmp_path, "old", 7200, 0.97, 1.02)
    result(tmp_path, "elsewhere", 60, 0.5, 1.5, fingerprint="another")
    result(tmp_path, "too-few", 30, None, None)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "result.json").write_text('{"cells": ')
    newest = fitness.newest(tmp_path)
    assert newest is not None and newest.result == "old" and newest.reach == pytest.approx(1 / 0.97 - 1)
    assert fitness.sentence(newest) == "Fit for differences of about 3.1 %, by the A/A comparison of old, 2 hours ago"
    assert "run ./loam tour" in fitness.sentence(None)


def test_a_comparison_of_last_week_counts_no_more(tmp_path: Path) -> None:
    result(tmp_path, "old", fitness.RECENT_S + 60, 0.97, 1.02)
    assert fitness.newest(tmp_path) is None


# ---- places, the command


def test_the_file_system_of_a_place_is_that_of_its_innermost_mount() -> None:
    mounts = (
        "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:5 / /data/a\\040b rw - nfs4 h:/x rw\n3 1 0:6 / /data rw - xfs /dev/b rw"
    )
    assert tools.filesystem_of(mounts, Path("/data/a b/results")) == "nfs4"
    assert tools.filesystem_of(mounts, Path("/data/ab")) == "xfs"
    assert tools.filesystem_of(mounts, Path("/usr")) == "ext4" and tools.filesystem_of("", Path("/usr")) == ""


def test_one_subject_shows_only_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["doctor", "--for", "memory", "--json"]) in (0, 1)
    document = json.loads(capsys.readouterr().out)
    assert {finding["subject"] for finding in document["findings"]} == {"memory"}
    assert document["verdict"].startswith("Fit")


def test_it_takes_about_a_second_and_leaves_no_trace(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "loam_lab.cli", "doctor", "--quick"]
    taken = []
    for _ in range(3):
        before = os.times()
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        after = os.times()
        # Processor time: what else this machine does must not decide. A slow one takes 1.2 s, a fast one half of that.
        taken.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(taken) < 2 and list(tmp_path.iterdir()) == []


def test_the_real_machine_is_read_through_the_same_tree() -> None:
    assert Tree().read("/proc/sys/kernel/ostype") == "Linux"


def test_every_check_is_described(tmp_path: Path) -> None:
    text = (paths.root() / "docs/machines.md").read_text().partition("## What is checked")[2].partition("### Shared")[0]
    described = {
        name.strip() for line in text.splitlines() if line.startswith("| ") for name in line.split("|")[1].split(",")
    }
    findings = commands.examine(None, view(tmp_path, BAD)) + commands.examine(None, View(quick=True))
    for case in CASES:
        findings += list(case[0](view(tmp_path / case[0].__name__, case[1])))
    allocators = {finding.name for finding in tools.allocators(view(tmp_path, {}))}
    # gcc-12-plugin-dev is gcc-14-plugin-dev on Debian 13.
    names, described = (
        {re.sub(r"-\d+-", "-N-", name) for name in of} for of in ({one.name for one in findings}, described)
    )
    assert names - allocators - described == set()


def test_results_record_how_the_machine_was_set(tmp_path: Path) -> None:
    settings = machine.settings(
        kernel(tmp_path, {**BAD, f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI", CLOCK: "tsc"})
    )
    assert settings == {
        "thp_defrag": "always", "turbo": "on", "clock": "tsc", "swap": "/dev/zram0", "damon": "pageout", "numa_balancing": "1",
        "overcommit": "", "mitigations": "meltdown",
    }  # fmt: skip
    assert machine.settings(kernel(tmp_path / "none", {}))["swap"] == "none"
    assert machine.settings(Tree()).items() <= machine.fingerprint().items()
