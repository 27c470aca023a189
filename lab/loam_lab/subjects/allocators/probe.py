"""Proof of interposition: the verdict over what the probe wrote in the processes of a run.

A process is proven if at start the required symbols came from one object, the allocator's, and at exit libc's own heap
was empty. A run is proven if processes with 95 % of its CPU time are. docs/internals/interposition.md says what this
cannot see.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loam_lab.subjects.allocators import preflight, preloading, registry
from loam_lab.subjects.allocators.identify import REQUIRED_SYMBOLS
from loam_lab.subjects.allocators.registry import Allocator

PROVEN_SHARE_MIN = 0.95

# CPU time that no record can hold. A process spends it after its exit record (the kernel takes its memory apart) or
# before its first record (fork, exec, dynamic linking); more than this is somebody else's.
_AFTER_EXIT_S = 0.001
_AFTER_EXIT_S_PER_KIB = 1e-7  # 0.25 us per page of 4 KiB, with a margin
_BEFORE_START_S = 0.010
_EXEC_S = 0.003
# The kernel's sum over processes and the processes' own clocks were seen to differ by up to 15 ms in runs of 0.15 s, when
# the hypervisor held a core back during exit. A silent process below this goes unnoticed.
_ACCOUNTING_S = 0.025

# Called only where a constructor throws inside new (std::nothrow); mimalloc 2.0.9 leaves them to others.
_RARE_OPERATORS = frozenset(
    f"_Zd{form}Pv{aligned}RKSt9nothrow_t" for form in "la" for aligned in ("", "St11align_val_t")
)

# Programs that execute the command and stay around it: what they take before it starts is part of its cost.
_TOOLS = ("valgrind", "valgrind.bin")

# The program of the Erlang machine.
_ERLANG = "beam.smp"
# Their operators call malloc and free.
_CXX_LIBRARIES = ("libstdc++.so.", "libc++.so.", "libc++abi.so.")


@dataclass(frozen=True)
class Proof:
    """What is known about the allocator behind one run.

    status: "proven", "wrong" (another allocator served it) or "unproven"
    reasons: why it is not proven, one sentence each, without process ids; empty when proven
    warnings: fact, consequence, next step; they do not change the status
    processes: one object each: pid, ppid, exe, cpu_s, rss_peak_bytes (0 where unknown), status, reasons
    cpu_share_proven: CPU time of proven processes over the CPU time of the run, 0 to 1
    notes: like warnings, but true of every run under this allocator (symbols that it leaves to libc)
    """

    status: str
    reasons: list[str]
    warnings: list[str]
    processes: list[dict[str, Any]]
    cpu_share_proven: float
    notes: list[str] = field(default_factory=list)


@dataclass
class _Image:
    """One program in one process, from exec to exit or the next exec; a forked child shares its parent's start."""

    pid: int
    start: dict[str, Any] | None
    exit: dict[str, Any] | None = None
    cpu_s: float = 0.0
    after_exit_s: float = 0.0
    executed: _Image | None = None  # the program that took its place in the same process
    wrong: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        return "wrong" if self.wrong else "unproven" if self.unproven else "proven"


def read(
    proof_file: Path, allocator: Allocator, cpu_s: float, *, pid: int | None = None, command: Sequence[str] = ()
) -> Proof:
    """Judge what the processes of one run wrote.

    proof_file: need not exist (then no process had the probe); cpu_s: user + system time of the run and of all it
    waited for; pid: the process the lab started, which makes the time after its exit record exact; command: looked at
    to say why nothing was reported
    """
    images, damaged = _images(proof_file)
    images = _without_tools(images)
    warnings: list[str] = []
    notes: list[str] = []
    if damaged:
        warnings.append(f"{damaged} damaged lines in the proof file; their processes count as unproven; run again")
    for image in images:
        _judge(image, allocator, warnings, notes)
    _judge_ends(images, notes)
    _account(images, cpu_s, pid)
    total = max(cpu_s, sum(image.cpu_s + image.after_exit_s for image in images))
    by_status = {"proven": 0.0, "wrong": 0.0, "unproven": 0.0}
    for image in images:
        by_status[image.status] += image.cpu_s + image.after_exit_s
    total = max(sum(by_status.values()), total - _ACCOUNTING_S)
    share = min(1.0, by_status["proven"] / total) if total > 0 else float(all(i.status == "proven" for i in images))
    if not images:
        share = 0.0

    reasons: list[str] = []
    for image in images:
        for reason in (*image.wrong, *image.unproven):
            _add(reasons, f"{Path(_exe(image)).name}: {reason}")
    silent = max(0.0, total - sum(by_status.values()))
    if not images:
        _add(
            reasons,
            "no process reported to the probe: it was not preloaded; what starts a service with an environment of its own "
            "(sudo, su -, systemd-run) drops it, setpriv does not",
        )
    elif total > 0 and silent / total > 1 - PROVEN_SHARE_MIN:
        _add(reasons, f"{100 * silent / total:.0f} % of the CPU time is in processes that did not report to the probe")
    if share >= PROVEN_SHARE_MIN:
        status = "proven"
        for reason in reasons:
            _add(warnings, f"{reason}; at most {100 * (1 - share):.1f} % of the CPU time; the run counts as proven")
        reasons = []
    else:
        status = "wrong" if any(image.wrong for image in images) else "unproven"
        for obstacle in preflight.obstacles(command) if command else ():
            _add(reasons, obstacle)
    processes = [_process(image) for image in images]
    return Proof(status, reasons, warnings, processes, share, notes)


def providers(proof_file: Path, front: str = "") -> dict[int, tuple[str, str]]:
    """Which file serves malloc in each process that told its start: by process, its program and that file.

    front: a library that hands every call on; it has no malloc_usable_size, which then says who is behind it
    """
    files_of: dict[int, tuple[str, str]] = {}
    for image in _images(proof_file)[0]:
        start = image.start or {}
        objects, symbols = start.get("objects", []), start.get("symbols", {})
        files = [
            preloading.original(str(objects[at].get("path", "")))
            for name in ("malloc", "malloc_usable_size")
            if (at := symbols.get(name)) is not None and 0 <= at < len(objects)
        ]
        if preflight.contains_private_malloc(Path(_exe(image))):
            files.insert(0, _exe(image))
        behind = [file for file in files if not (front and _same_file(file, front))]
        if behind:
            files_of[image.pid] = (_exe(image), behind[0])
    return files_of


def _images(proof_file: Path) -> tuple[list[_Image], int]:
    images: list[_Image] = []
    latest: dict[int, _Image] = {}  # by pid: the program now in that process
    damaged = 0
    try:
        lines = proof_file.read_bytes().splitlines()
    except OSError:
        return [], 0
    for line in lines:
        try:
            record = json.loads(line.decode("utf-8", "surrogateescape"))
            pid, kind, start_pid = int(record["pid"]), record["kind"], int(record["start_pid"])
            int(record["cpu_us"])
        except (ValueError, KeyError, TypeError):
            damaged += 1
            continue
        if kind == "start":
            image = _Image(pid, record)
            before = latest.get(pid)
            if before is not None and before.exit is None:
                before.executed = image
            latest[pid] = image
            images.append(image)
        elif kind == "exit":
            own = latest.get(pid)
            if own is None or own.exit is not None or start_pid != pid:  # forked: no constructor ran here
                parent = latest.get(start_pid)
                own = _Image(pid, parent.start if parent else None)
                images.append(own)
            own.exit = record
    return images, damaged


def _without_tools(images: Sequence[_Image]) -> list[_Image]:
    """The images without tools that executed the next one in the same process; their CPU time becomes its own."""
    kept: list[_Image] = []
    begun: dict[int, int] = {}
    for image in images:
        if image.exit is None and image.start is not None and Path(_exe(image)).name in _TOOLS:
            begun.setdefault(image.pid, int(image.start["cpu_us"]))
            continue
        if image.start is not None and image.start["pid"] == image.pid and image.pid in begun:
            image.start = {**image.start, "cpu_us": begun.pop(image.pid)}
        kept.append(image)
    return kept


def _judge(image: _Image, allocator: Allocator, warnings: list[str], notes: list[str]) -> None:
    start = image.start
    if start is None:
        image.unproven.append("it has no start record")
    else:
        _judge_symbols(image, start, allocator, notes)
        if allocator.path is not None and preflight.contains_private_malloc(Path(_exe(image))):
            image.wrong.append(
                "the program contains a malloc of its own that it does not export: its calls stay inside"
            )
        _judge_variables(image, start, allocator, warnings)
    if image.exit is not None:
        _judge_exit(image, image.exit, allocator, warnings)


def _judge_ends(images: Sequence[_Image], notes: list[str]) -> None:
    """Programs without an exit record. One that executed another program, as wrappers do, counts by its start record if
    the other one is proven: both had the same environment.
    """
    for image in reversed(images):  # a wrapper may execute a wrapper
        if image.exit is not None:
            continue
        if image.executed is not None and image.executed.status == "proven":
            _add(
                notes,
                f"{Path(_exe(image)).name} executed another program; it counts by its start, since libc's heap cannot "
                "be looked at when it ends",
            )
        else:
            image.unproven.append(
                "it has no exit record: it ended by a signal or its own system call, executed another program, or "
                "closed the probe's descriptor in a chroot or sandbox; let it end by itself (a server may need another signal: "
                "--stop), and measure it outside of those"
            )


def _judge_symbols(image: _Image, start: dict[str, Any], allocator: Allocator, notes: list[str]) -> None:
    objects: list[dict[str, Any]] = start.get("objects", [])
    symbols: dict[str, int | None] = start.get("symbols", {})
    expected = Path(allocator.path or registry.libc_path()).name

    def provider(name: str) -> dict[str, Any] | None:
        index = symbols.get(name)
        return None if index is None or not 0 <= index < len(objects) else objects[index]

    strangers: dict[str, list[str]] = {}
    for name in REQUIRED_SYMBOLS:
        mapped = provider(name)
        if mapped is None or not _is_allocator(mapped, allocator):
            strangers.setdefault(_label(mapped), []).append(name)
    for label, names in strangers.items():
        verb = "comes" if len(names) == 1 else "come"
        image.wrong.append(f"{', '.join(names)} {verb} from {label}, not from {expected}")

    others: dict[str, list[str]] = {}
    for name in symbols:
        mapped = provider(name)
        if name in REQUIRED_SYMBOLS or mapped is None or _is_allocator(mapped, allocator):
            continue
        operator = {"_Zn": "operator new", "_Zd": "operator delete"}.get(name[:3])
        if operator and str(mapped.get("soname", "")).startswith(_CXX_LIBRARIES):
            continue
        if operator and _label(mapped) == _exe(image) and preflight.carries_libstdcxx(Path(_exe(image))):
            continue
        if operator and name not in _RARE_OPERATORS:
            expectation = f"neither from {expected} nor from libstdc++"
            _add(image.wrong, f"{operator} comes from {_label(mapped)}, {expectation}")
        else:
            others.setdefault(_label(mapped), []).append(name)
    for label, names in others.items():
        _add(
            notes,
            f"{', '.join(names)} come from {label}; a program that calls them uses another heap; "
            "its exit record would show it",
        )


def _judge_variables(image: _Image, start: dict[str, Any], allocator: Allocator, warnings: list[str]) -> None:
    seen: dict[str, str] = start.get("variables", {})
    for name, value in allocator.environment.items():
        if seen.get(name) != value:
            image.wrong.append(f'the setting {name}="{value}" was not passed on: {name} is "{seen.get(name, "")}"')
    for name, value in seen.items():
        if name not in allocator.environment:
            _add(warnings, f'{name}="{value}" is set in the process; it may change the allocator; unset it')


def _judge_exit(image: _Image, record: dict[str, Any], allocator: Allocator, warnings: list[str]) -> None:
    arena, mapped = record.get("libc_arena_bytes"), record.get("libc_mapped_bytes")
    if allocator.path is not None and allocator.forwards != "glibc":
        if arena is None or mapped is None:
            if not image.wrong:  # with libc itself behind malloc there is nothing to ask
                image.unproven.append("its libc does not report how much it allocated (it is no glibc 2.33 or later)")
        elif arena or mapped:
            image.wrong.append(
                f"libc's own heap holds {int(arena) + int(mapped)} bytes: requests are forwarded to it, or a library "
                "was loaded with RTLD_DEEPBIND"
            )
    if int(record.get("namespaces", 1)) > 1:
        image.unproven.append("it uses several linker namespaces (dlmopen), each with a libc of its own")
    if record.get("jvm"):
        _add(
            warnings,
            "a Java virtual machine maps its own heap; the allocator serves only its native part; "
            "expect small differences",
        )
    if Path(str((image.start or {}).get("exe"))).name == _ERLANG:
        _add(
            warnings,
            "an Erlang machine has allocators of its own, which map large pieces; unless it was started with +Mea min "
            "(in ERL_FLAGS), with which it asks malloc for each block, expect small differences",
        )
    at_start = {str(o.get("path")) for o in (image.start or {}).get("objects", [])}
    for path in record.get("definers", []):
        if path not in at_start and image.start is not None and Path(path).name != "libc.so.6":
            _add(
                warnings, f"{path} defines malloc too and was not used; calls inside it may bind to itself; check them"
            )


def _account(images: list[_Image], cpu_s: float, pid: int | None) -> None:
    """Divide the CPU time of the run: each program its part, what follows its exit record included."""
    previous: dict[int, _Image] = {}
    for image in images:
        before = previous.get(image.pid)
        started_s = _seconds(image.start, "cpu_us") if image.start and image.start["pid"] == image.pid else 0.0
        if before is not None and before.exit is None and image.start is not None:
            # the same process executed another program: what lies before belongs to the first one
            before.cpu_s = max(0.0, started_s - _EXEC_S - (_seconds(before.start, "cpu_us") if before.start else 0.0))
            base_s = max(0.0, started_s - _EXEC_S)
        else:
            base_s = max(0.0, started_s - _BEFORE_START_S)
        if image.exit is not None:
            image.cpu_s = max(0.0, _seconds(image.exit, "cpu_us") - base_s)
            image.after_exit_s = _AFTER_EXIT_S + _AFTER_EXIT_S_PER_KIB * int(image.exit.get("rss_peak_kib", 0))
        previous[image.pid] = image
    ended = [image for image in images if image.exit is not None]
    for image in ended:
        if image.pid == pid and image.exit is not None:
            counted = _seconds(image.exit, "cpu_us") + _seconds(image.exit, "children_cpu_us")
            image.after_exit_s = max(0.0, cpu_s - counted)
    unrecorded = max(0.0, cpu_s - sum(image.cpu_s for image in images))
    allowed = sum(image.after_exit_s for image in ended)
    scale = min(1.0, unrecorded / allowed) if allowed > 0 else 0.0
    for image in ended:
        image.after_exit_s *= scale


def _seconds(record: dict[str, Any] | None, key: str) -> float:
    return int((record or {}).get(key, 0)) / 1e6


def _is_allocator(mapped: dict[str, Any], allocator: Allocator) -> bool:
    """The mapped object is the allocator's file: same path or inode, and the same build-id where both have one.

    What stands before it counts as well: it has no malloc_usable_size, which still says who is behind
    """
    if allocator.front and _same_file(str(mapped.get("path", "")), allocator.front):
        return True
    expected = allocator.path or registry.libc_path()
    build_id = mapped.get("build_id")
    if build_id and allocator.build_id and build_id != allocator.build_id:
        return False
    return _same_file(str(mapped.get("path", "")), expected)


@functools.lru_cache(maxsize=4096)
def _same_file(path: str, expected: str) -> bool:
    path = preloading.original(path)
    if os.path.realpath(path) == os.path.realpath(expected):
        return True
    try:
        return Path(path).samefile(expected)
    except OSError:
        return False


def _label(mapped: dict[str, Any] | None) -> str:
    return "nowhere" if mapped is None else preloading.original(str(mapped.get("path", "?")))


def _exe(image: _Image) -> str:
    return str((image.start or {}).get("exe") or f"process {image.pid}")


def _process(image: _Image) -> dict[str, Any]:
    record = image.exit or image.start or {}
    return {
        "pid": image.pid,
        "ppid": record.get("ppid"),
        "exe": _exe(image),
        "cpu_s": round(image.cpu_s + image.after_exit_s, 6),
        "rss_peak_bytes": int((image.exit or {}).get("rss_peak_kib", 0)) * 1024,
        "status": image.status,
        "reasons": [*image.wrong, *image.unproven],
    }


def _add(sentences: list[str], sentence: str) -> None:
    if sentence not in sentences:
        sentences.append(sentence)


def worst(proofs: Iterable[Proof]) -> str:
    """One status for several runs: "wrong" before "unproven" before "proven"; "unproven" for none."""
    statuses = {proof.status for proof in proofs}
    return next((status for status in ("wrong", "unproven", "proven") if status in statuses), "unproven")
