"""The journal: one JSON line per run, appended with one write and synced before the next run starts.

A kill can tear at most the last line.  The writer mends it when it opens the file again (a whole line that lacks only
its newline is kept, a torn one is cut off); readers skip it.  Nothing is ever rewritten.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loam_lab.base.errors import LoamError
from loam_lab.model import schema
from loam_lab.model.cell import canonical

FOLDER = "journal"
LOCK = ".lock"
# So often and so far apart a folder that is held is tried: a child of a campaign that was just killed, which has not yet begun
# its own program, holds it for a moment longer.
TRIES, APART_S = 40, 0.05


class Journal:
    """The writing end of one journal file.  Use as a context manager; one writer per file (the campaign's lock)."""

    def __init__(self, folder: Path, writer: str = "local") -> None:
        """Open, creating it where needed, and mend a torn end.

        folder: of the campaign; raises: LoamError if it cannot be written
        """
        self.file = folder / FOLDER / f"{writer}.jsonl"
        with writable(self.file):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._mend()
            sync_folder(self.file.parent)

    def _mend(self) -> None:
        size = os.fstat(self._descriptor).st_size
        start, tail = size, b""
        while start > 0 and b"\n" not in tail:
            step = min(start, 1 << 16)
            start -= step
            tail = os.pread(self._descriptor, step, start) + tail
        torn = tail[tail.rfind(b"\n") + 1 :]
        if not torn:
            return
        if _parsed(torn) is not None:
            os.write(self._descriptor, b"\n")
        else:
            os.ftruncate(self._descriptor, size - len(torn))
        os.fsync(self._descriptor)

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one run and wait until the disk has it.

        raises: LoamError if the disk is full or gone; what was written before stays
        """
        raw = canonical(line).encode() + b"\n"
        with writable(self.file):
            done = os.write(self._descriptor, raw)
            while done < len(raw):
                done += os.write(self._descriptor, raw[done:])
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def writable(file: Path) -> Iterator[None]:
    """Turns what the file system refuses into an error with a next step."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space, then go on with --resume"
        else:
            hint = "choose another folder with --out"
        raise LoamError("--out", file.parent, f"cannot be written: {problem.strerror}", hint, exit_code=1) from problem


def sync_folder(folder: Path) -> None:
    """Make names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(file: Path, text: str) -> None:
    """Replace a small file in one step, synced: a reader sees the old or the new content, never a part.

    raises: LoamError if the folder cannot be written
    """
    with writable(file):
        part = file.with_name(f".{file.name}.{os.getpid()}")
        with part.open("w") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        part.replace(file)
        sync_folder(file.parent)


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold a campaign folder; the kernel releases it whatever happens to the process.

    raises: LoamError if another campaign holds it
    """
    with writable(folder / LOCK):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _locked(descriptor):
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            who = f" (process {holder})" if holder else ""
            raise LoamError(
                "--out",
                folder,
                f"another campaign is running in it{who}",
                "wait for it, or choose another folder",
                exit_code=1,
            )
        with writable(folder / LOCK):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left:
                time.sleep(APART_S)
        else:
            return True
    return False


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def files(folder: Path) -> list[Path]:
    """The journals of a campaign, one per writer."""
    return sorted((folder / FOLDER).glob("*.jsonl"))


def read(folder: Path) -> list[dict[str, Any]]:
    """Every whole line of every writer (resume needs it before each start).

    raises: LoamError if a line is of another schema version
    """
    lines = []
    for file in files(folder):
        for raw in file.read_bytes().split(b"\n"):
            line = _parsed(raw) if raw else None
            if line is not None:
                schema.check(file, line.get("schema"))
                lines.append(line)
    return lines
