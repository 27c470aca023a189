"""Limits of a control group: what is written where, what a machine lacks, and a real group where this machine has one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.commands.bench import cgroups, job, job_options

# Of each controller a limit that a small command keeps.
HARMLESS = {"memory.max": "256M", "pids.max": "64", "hugetlb.2MB.max": "0"}


def answer(controllers: str, enabled: str = "", processes: str = "") -> dict[str, str]:
    return {"cgroup.controllers": controllers, "cgroup.subtree_control": enabled, "cgroup.procs": processes}


class Tree:
    """A folder that looks like cgroup v2: a new group in it has the files that the kernel would make."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, own: str = "/") -> None:
        self.root = folder / "cgroup"
        self.made: list[Path] = []
        (folder / "mounts").write_text(f"none / ext4 rw 0 0\ncgroup2 {self.root} cgroup2 rw 0 0\n")
        (folder / "own").write_text(f"1:name=systemd:/elsewhere\n0::{own}\n")
        monkeypatch.setattr(cgroups, "MOUNTS", folder / "mounts")
        monkeypatch.setattr(cgroups, "OWN", folder / "own")
        monkeypatch.setattr(cgroups, "_make", self.make)
        # The kernel's files vanish with their group.
        monkeypatch.setattr(Path, "rmdir", shutil.rmtree)

    def group(self, name: str, files: dict[str, str]) -> Path:
        place = self.root / name
        place.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (place / file).write_text(text)
        return place

    def make(self, place: Path) -> Path:
        self.made.append(place)
        return self.group(
            str(place.relative_to(self.root)), {"memory.max": "max", "pids.max": "max", "cgroup.procs": ""}
        )


def test_a_group_is_made_with_its_limits_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path, monkeypatch)
    tree.group("", answer("cpu memory pids", "memory pids", "1 2"))
    with cgroups.made({"memory.max": "1048576", "pids.max": "8"}) as place:
        assert place == tree.root / f"loam-{os.getpid()}"
        assert (place / "memory.max").read_text().startswith("1048576")
        assert (place / "pids.max").read_text().startswith("8")
    assert not place.exists()
    with cgroups.made({}) as none:
        assert none is None


def test_controllers_are_asked_for_where_they_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The own group holds this process, and so can give its children no controllers: the one above can."""
    tree = Tree(tmp_path, monkeypatch, own="/user/session")
    tree.group("", answer("memory pids", "pids", "1"))
    above = tree.group("user", answer("memory pids"))
    tree.group("user/session", answer("memory pids", "", "77"))
    cgroups.check({"memory.max": "4096"})
    assert tree.made == [above / f"loam-{os.getpid()}"]
    assert (above / "cgroup.subtree_control").read_text() == "+memory"


def test_what_killed_runs_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path, monkeypatch)
    tree.group("", answer("memory", "memory"))
    left = tree.group("loam-4194305", {"memory.max": "max"})  # beyond the largest number of a process
    living = tree.group(f"loam-{os.getppid()}", {"memory.max": "max"})
    cgroups.check({"memory.max": "4096"})
    assert not left.exists()
    assert living.exists()


@pytest.mark.parametrize(
    ("mounts", "files", "limits", "message"),
    [
        ("none / ext4 rw 0 0\n", {}, {"memory.max": "1"}, r"mounts no cgroup v2 \(bound each process alone"),
        ("", answer("hugetlb"), {"memory.max": "1"}, r"needs the controller memory of cgroup v2, which has hugetlb on this"),
        ("", answer(""), {"pids.max": "1"}, r"needs the controller pids of cgroup v2, which has none on this machine"),
        ("cgroup /sys/x cgroup rw,memory 0 0\n", answer(""), {"memory.max": "1"}, r"cgroup v1 holds it: boot with systemd"),
        ("", {"cgroup.controllers": "memory"}, {"memory.max": "1"}, r"no control group of this user may hold another one"),
        ("", answer("memory", "memory"), {"memory.most": "1"}, r"--limit=memory\.most: is none of memory\.max"),
    ],
)  # fmt: skip
def test_what_a_machine_lacks_is_named(
    mounts: str, files: dict[str, str], limits: dict[str, str], message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    tree = Tree(tmp_path, monkeypatch)
    if files:
        tree.group("", files)
        mounts = (tmp_path / "mounts").read_text() + mounts
    (tmp_path / "mounts").write_text(mounts)
    with pytest.raises(LoamError, match=message):
        cgroups.check(limits)
    assert not list(tree.root.glob("loam-*")) if files else True


@pytest.mark.parametrize(
    ("given", "written"),
    [("memory.max=256M", "268435456"), ("pids.max=8", "8"), ("cpu.max=50%", "50000 100000"), ("cpu.max=150%", "150000 100000"),
     ("memory.high=max", "max"), ("cpuset.cpus=0-1", "0-1"), ("cpu.max=50000 100000", "50000 100000")],
)  # fmt: skip
def test_limits_of_a_group_have_a_dot_in_their_names(given: str, written: str) -> None:
    bounds, group = job.limits(["nofile=64", given])
    assert bounds == {"RLIMIT_NOFILE": 64}
    assert group == {given.partition("=")[0]: written}


def test_a_limit_without_a_value_is_refused() -> None:
    with pytest.raises(LoamError, match=r"--limit=memory\.max=: has no value"):
        job.limits(["memory.max="])


def test_the_limit_that_a_run_met_is_told(tmp_path: Path) -> None:
    assert cgroups.exceeded(None) == "" and cgroups.exceeded(tmp_path) == ""
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\n")
    assert cgroups.exceeded(tmp_path) == ""
    (tmp_path / "pids.events").write_text("max 3\n")
    assert cgroups.exceeded(tmp_path) == "; it ran into --limit pids.max"
    (tmp_path / "memory.events").write_text("oom_kill 2\n")
    assert cgroups.exceeded(tmp_path) == "; it ran into --limit memory.max"


def test_a_group_tells_its_peak_unless_a_limit_kept_it_down(tmp_path: Path) -> None:
    events = tmp_path / "memory.events"
    assert cgroups.peak(None) is None and cgroups.peak(tmp_path) is None
    events.write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n")
    assert cgroups.peak(tmp_path) is None, "a kernel before 5.19"
    (tmp_path / "memory.peak").write_text("1048576\n")
    assert cgroups.peak(tmp_path) == 1048576
    for limit in ("high", "max"):
        events.write_text(f"{limit} 3\n")
        assert cgroups.peak(tmp_path) is None


def possible() -> str:
    """A limit that this machine's cgroup v2 takes; "" for none."""
    for name, value in HARMLESS.items():
        try:
            cgroups.check({name: cgroups.parse(name, value)})
        except LoamError:
            continue
        return f"{name}={value}"
    return ""


def driven(command: list[str], limits: list[str], tmp_path: Path) -> list[dict[str, Any]]:
    """The records of one run of a command by the driver."""
    what = job_options.what(
        command, server=None, ready=None, load=None, metric=None, better=None, commands=(), command_file=None, prepare="",
        cleanup="", checks=["same-output"], warmup=0, limits=limits, timeout_s=20,
    )  # fmt: skip
    assert isinstance(what, job.Job)
    assert job.Job.read(what.as_json()) == what
    assert f"--limit {limits[0].partition('=')[0]}=" in " ".join(what.options())
    with (tmp_path / "records").open("wb") as records:
        os.set_inheritable(records.fileno(), True)
        words = [sys.executable, "-m", "loam_lab.commands.bench.driver", what.as_json(), "x", "--records", str(records.fileno()),
                 "-p", f"command={next(iter(what.commands))}"]  # fmt: skip
        os.waitpid(os.posix_spawn(sys.executable, words, os.environ), 0)
    return [json.loads(line) for line in (tmp_path / "records").read_text().splitlines()]


def test_a_command_runs_in_a_group_of_this_machine(tmp_path: Path) -> None:
    limit = possible()
    if not limit:
        pytest.skip("cgroup v2 of this machine has no controller for this user")
    seen = tmp_path / "seen"
    lines = driven(["sh", "-c", f"cat /proc/self/cgroup > {seen}"], [limit], tmp_path)
    assert lines[-1]["verified"], lines[-1]
    (place,) = (line[3:] for line in seen.read_text().splitlines() if line.startswith("0::"))
    assert "/loam-" in place, "the command was in a group of its own"
    root = cgroups._root({limit.partition("=")[0]: ""})
    assert not list(root.glob(f"**/{place.rpartition('/')[2]}")), "which went with it"


def test_a_command_that_needs_more_is_told_so(tmp_path: Path) -> None:
    try:
        cgroups.check({"memory.max": "33554432"})
    except LoamError as problem:
        pytest.skip(problem.line())
    lines = driven([sys.executable, "-c", "bytearray(1 << 28)"], ["memory.max=32M", "memory.swap.max=0"], tmp_path)
    assert not lines[-1]["verified"]
    assert "it ran into --limit memory.max" in lines[-1]["message"]
