"""Limits of a control group (cgroup v2) for a run: of all its processes together, where a limit of setrlimit is each one's own.

A limit is a file of the group, as memory.max or pids.max, and what is written into it.  The group is made below the nearest
one that may hold it, and goes with the run.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from loam_lab.base.errors import LoamError

MOUNTS, OWN = Path("/proc/self/mounts"), Path("/proc/self/cgroup")
# Those that a shell is told; any other file of a group may be named as well.
USUAL = ("memory.max", "memory.high", "pids.max", "cpu.max")
# A group goes once its last process was reaped, which the kernel notices a moment later.
EMPTY_S = 2.0
_NAME = "loam-"
_DELEGATED = "as root, or in systemd-run --user --scope -p Delegate=yes ./loam bench ..."
_EACH_ALONE = "bound each process alone, as --limit as=4G does"


def parse(name: str, value: str) -> str:
    """What is written for a limit: bytes with K, M or G as a number, for cpu.max also a share of one processor as 50%.

    raises: LoamError for an empty value
    """
    if name == "cpu.max" and (share := re.fullmatch(r"(\d+)%", value)):
        return f"{int(share[1]) * 1000} 100000"
    number = re.fullmatch(r"(\d+)([KMG])", value)
    if number:
        return str(int(number[1]) << {"K": 10, "M": 20, "G": 30}[number[2]])
    if not value.strip():
        raise LoamError("--limit", f"{name}={value}", "has no value", "as in --limit memory.max=256M")
    return value


def check(limits: Mapping[str, str]) -> None:
    """Make a group with these limits and remove it.

    raises: LoamError that says what this machine lacks, or which limit it refuses
    """
    if limits:
        with made(limits):
            pass


@contextlib.contextmanager
def made(limits: Mapping[str, str]) -> Iterator[Path | None]:
    """A group with these limits as long as the block lasts, which ends every process in it; None without limits.

    raises: LoamError as check()
    """
    if not limits:
        yield None
        return
    place = _below(_root(limits), limits)
    try:
        for name, value in limits.items():
            _set(place, name, value)
        yield place
    finally:
        _remove(place, EMPTY_S)


def exceeded(place: Path | None) -> str:
    """Which limit the processes of a group ran into, as the end of a sentence; "" for none."""
    if place is None:
        return ""
    for file, event, what in (("memory.events", "oom_kill", "memory.max"), ("pids.events", "max", "pids.max")):
        with contextlib.suppress(OSError):
            counts = dict(line.split() for line in (place / file).read_text().splitlines())
            if int(counts.get(event, "0")):
                return f"; it ran into --limit {what}"
    return ""


def peak(place: Path | None) -> int | None:
    """The most memory that a group held so far, in bytes; None where no kernel counts it, or a limit of it was reached.

    What was kept below a limit says what the limit is, not what the processes need
    """
    if place is None:
        return None
    try:
        counts = dict(line.split() for line in (place / "memory.events").read_text().splitlines())
        if any(int(counts.get(event, "0")) for event in ("high", "max")):
            return None
        return int((place / "memory.peak").read_text())
    except (OSError, ValueError):
        return None


def _root(limits: Mapping[str, str]) -> Path:
    """Where cgroup v2 is mounted, with all controllers that the limits need."""
    mounts = [line.split() for line in MOUNTS.read_text().splitlines()]
    mount = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    first = next(iter(limits))
    if mount is None:
        raise LoamError("--limit", first, "this machine mounts no cgroup v2", _EACH_ALONE)
    known = _words(mount / "cgroup.controllers")
    for name in limits:
        if (controller := name.partition(".")[0]) not in known:
            has = f"has {', '.join(sorted(known))}" if known else "has none"
            limit = f"needs the controller {controller} of cgroup v2, which {has} on this machine"
            old = any(fields[2] == "cgroup" and controller in fields[3].split(",") for fields in mounts)
            hint = "cgroup v1 holds it: boot with systemd.unified_cgroup_hierarchy=1, or " if old else ""
            raise LoamError("--limit", name, limit, hint + _EACH_ALONE)
    return mount


def _below(root: Path, limits: Mapping[str, str]) -> Path:
    """A new group below the nearest one that may hold it."""
    own = next((line[3:] for line in OWN.read_text().splitlines() if line.startswith("0::")), "/")
    nearest = root / own.lstrip("/")
    if ".." in nearest.parts or not nearest.is_dir():
        nearest = root
    needed = {name.partition(".")[0] for name in limits}
    for parent in (nearest, *nearest.parents):
        if parent == root.parent:
            break
        with contextlib.suppress(OSError):
            _leftovers(parent)
            missing = needed - _words(parent / "cgroup.subtree_control")
            if missing and parent != root and _words(parent / "cgroup.procs"):
                continue  # a group with processes of its own gives its children no controllers
            if missing:
                _write(parent / "cgroup.subtree_control", " ".join(f"+{one}" for one in sorted(missing)))
            if os.access(parent / "cgroup.procs", os.W_OK):
                return _make(parent / f"{_NAME}{os.getpid()}")
    raise LoamError("--limit", next(iter(limits)), "no control group of this user may hold another one", _DELEGATED)


def _make(place: Path) -> Path:
    place.mkdir()
    return place


def _set(place: Path, name: str, value: str) -> None:
    try:
        _write(place / name, value)
    except FileNotFoundError:
        controller = name.partition(".")[0]
        known = sorted(file.name for file in place.glob(f"{controller}.*") if os.access(file, os.W_OK))
        raise LoamError("--limit", name, f"is none of {', '.join(known)}", "as in --limit memory.max=256M") from None
    except OSError as problem:
        what = f"the kernel refuses it: {problem.strerror}"
        raise LoamError("--limit", f"{name}={value}", what, "see Documentation/admin-guide/cgroup-v2.rst") from None


def _words(file: Path) -> set[str]:
    return set(file.read_text().split())


def _write(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)  # never made: a limit that is not there is an error
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _remove(place: Path, wait_s: float) -> None:
    until = time.monotonic() + wait_s
    while True:
        try:
            place.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > until:
                return  # the next run removes it
            time.sleep(0.01)


def _leftovers(parent: Path) -> None:
    """Remove the groups of runs that were killed."""
    for place in parent.glob(f"{_NAME}*"):
        if not Path("/proc", place.name.removeprefix(_NAME)).exists():
            _remove(place, 0.0)
