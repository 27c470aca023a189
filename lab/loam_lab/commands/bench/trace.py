"""Traces of what a program asks of its allocator: recorded once, played again under every allocator."""

from __future__ import annotations

import os
import shlex
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.instruments import Instruments, signal_name, without_allocator_settings
from loam_lab.campaign.process.execute import execute
from loam_lab.commands.bench import once, profiling, target
from loam_lab.commands.bench.job import Job
from loam_lab.commands.bench.trial import Trial
from loam_lab.commands.request import Request

TIMEOUT_S = 3600.0
RECORDING = "the recording"
# The head of a trace, as lab/interposer/trace.hpp has it.
HEAD = struct.Struct("<QIIQQQQQ")
_MAGIC, _VERSION, _PAGE, _CHUNK = 0x313043454D414F4C, 1, 4096, 64 * 1024
_CHUNK_HEAD = struct.Struct("<QQII")


@dataclass(frozen=True)
class Head:
    """What a trace says of itself. ended: whether its program did; unknown: frees of blocks that were not seen before"""

    threads: int
    chunks: int
    unknown: int
    refused: int
    ended: bool
    bytes: int


def record(
    what: Sequence[str] | Job, *, out: Path | None = None, timeout_s: float = TIMEOUT_S, as_json: bool = False
) -> int:
    """Run a command, or a server under its load, and write its trace; a process that it starts writes one of its own beside it.

    returns: 0, 1 if the command, the server or the load failed; what was written is kept
    raises: LoamError if it does not start, the file is there already, or nothing was recorded
    """
    from loam_lab.setup import build

    argv = what.server if isinstance(what, Job) else [target.program(what[0]), *what[1:]]
    text = what.text if isinstance(what, Job) else shlex.join(what)
    file = (out or Path(f"{Path(argv[0]).name}.trace")).absolute()
    if file.exists():
        raise LoamError("--out", file, "is there already", "remove it, or name another file")
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise LoamError("--out", file, "its folder cannot be written to", "name another file")
    build.ensure_built(["record"])
    library = paths.load_paths()["libraries"]["record"]
    user, dropped = without_allocator_settings(os.environ)
    if dropped:
        console.warn(f"{', '.join(sorted(dropped))} of your environment is not passed on")
    variables = {**profiling.in_front(library, {}), "LOAM_TRACE": str(file)}
    try:
        problem = _serve(what, user, variables) if isinstance(what, Job) else _run(argv, user, variables, timeout_s)
    except OSError as refused:
        raise LoamError("trace record", text, f"does not start: {refused.strerror}", "") from None
    _check_space(file)
    if not file.exists():
        from loam_lab.subjects.allocators import preflight

        if why := "; ".join(preflight.obstacles(argv)):
            raise LoamError("trace record", text, why, "record a program that is linked dynamically")
        why = problem or "no process asked for memory"
        raise LoamError("trace record", text, why, "" if problem else "record a program that allocates")
    heads = {}
    for written in (file, *sorted(file.parent.glob(f"{file.name}.[0-9]*"))):
        heads[str(written)] = head = read(written)
        note = f"{written}: {head.bytes / 2**20:.1f} MiB, {head.threads} {'thread' if head.threads == 1 else 'threads'}"
        console.note(note + ("" if head.ended else "; its program was killed or left by _exit"))
        if head.refused:
            console.warn(f"{written} ends early: the disk is full; free some space and record again")
    if as_json:
        console.print_json({"traces": [{"file": name, **asdict(head)} for name, head in heads.items()]})
    if not problem:
        return 0
    console.warn(f"{problem}; what was recorded is kept")
    return 1


def _run(argv: Sequence[str], user: Mapping[str, str], variables: Mapping[str, str], timeout_s: float) -> str:
    """Record a command; returns what went wrong, "" if nothing did; raises: OSError if it does not start"""
    with Trial(timeout_s, what=RECORDING) as trial:
        outcome = execute(argv, {**user, **variables}, timeout_s=timeout_s, watch=trial.look)
    if outcome.exit_code == 0:
        return ""
    how = signal_name(outcome.signal) if outcome.signal is not None else f"status {outcome.exit_code}"
    return f"the command ended with {'a time limit' if outcome.timed_out else how}"


def _serve(job: Job, user: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Record a server while it is started, filled, loaded and stopped by the driver of bench; returns: as _run()"""
    with Trial(job.timeout_s, what=RECORDING) as trial:
        outcome, end = once.serve(job, user, variables, trial.look)
    if end is None:
        return f"the server was ended: {outcome.stderr_tail.strip()[-300:] or 'it took too long'}"
    return "" if end["verified"] else str(end["message"])


def _check_space(file: Path) -> None:
    """Refuse a trace that has not even its head for lack of space; raises: LoamError"""
    size = file.stat().st_size if file.exists() else 0
    space = os.statvfs(file.parent)
    if size < HEAD.size and space.f_bavail * space.f_frsize < _PAGE + _CHUNK:
        file.unlink(missing_ok=True)
        raise LoamError("--out", file, "cannot be written: the disk is full", "free some space, then record again")


def read(file: Path) -> Head:
    """The head of a trace.

    raises: LoamError if it is none, of another version, or cut
    """
    hint = "record it with ./loam trace record"
    try:
        with file.open("rb") as stream:
            raw = stream.read(HEAD.size)
            size = os.fstat(stream.fileno()).st_size
            if len(raw) < HEAD.size:
                raise LoamError("trace", file, "is too short for a trace", hint)
            magic, version, chunk, threads, chunks, unknown, refused, ended = HEAD.unpack(raw)
            if magic != _MAGIC:
                raise LoamError("trace", file, "is no trace of loam", hint)
            if version != _VERSION or chunk != _CHUNK:
                raise LoamError("trace", file, f"has version {version}; this loam reads {_VERSION}", "record it again")
            if size < _PAGE + (chunks - refused) * _CHUNK:
                raise LoamError(
                    "trace", file, "was cut: its last chunks are missing", "copy it again, or record it again"
                )
            used = 0
            for number in range(chunks - refused):
                stream.seek(_PAGE + number * _CHUNK)
                used += int(_CHUNK_HEAD.unpack(stream.read(_CHUNK_HEAD.size))[2])
    except OSError as problem:
        raise LoamError("trace", file, f"cannot be read: {problem.strerror}", hint) from None
    return Head(threads, chunks, unknown, refused, bool(ended), used)


def replay(file: Path, request: Request, *, threads: str, instruments: Instruments | None = None) -> int:
    """Play a trace under allocators, as bench does a command. threads: "recorded" or "1"; the rest: as bench.bench"""
    from loam_lab.commands.bench import bench
    from loam_lab.setup import build

    head = read(file)
    if head.unknown:
        console.warn(f"{file}: {head.unknown} frees were of blocks that the recorder had not seen; they are left out")
    build.ensure_built(["replay"])
    player = paths.load_paths()["libraries"]["replay"]
    return bench.bench([player, str(file.absolute()), "--threads", threads], request, instruments)
