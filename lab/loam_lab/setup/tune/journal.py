"""What tune has changed and not yet put back: one line per event, on disk before the change is made.

    {"event": "set", "path", "before", "after", "name", "boot", "utc"}   written before the value is
    {"event": "closed", "path", "how"}                                  put back, left alone, undone by a reboot, or failed

A kill between two steps leaves either no line and no change, a line and no change (found out by reading the value), or
both. A line that a power cut tore off had no change yet, so it is dropped.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loam_lab.base.errors import LoamError

_BOOT = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class Entry:
    """A change that is not closed. boot: the kernel's identity of the boot in which it was made."""

    name: str
    path: str
    before: str
    after: str
    boot: str
    utc: str


def state_folder() -> Path:
    """~/.local/state/loam, or below XDG_STATE_HOME."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local/state") / "loam"


class Journal:
    """The journal file; only one process at a time may hold it.

    file: not necessarily there yet
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._stream: Any = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the journal for a change.

        raises: LoamError if another process holds it, or its folder cannot be written
        """
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.file.open("a+b")
        except OSError as problem:
            raise LoamError(
                str(self.file), None, f"previous values cannot be saved: {problem.strerror}", "nothing was changed; "
                "set XDG_STATE_HOME to a folder that can be written",
            ) from None  # fmt: skip
        try:
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LoamError(str(self.file), None, "another loam tune is running", "wait until it is done") from None
            self._drop_torn_line()
            yield
        finally:
            self._stream.close()
            self._stream = None

    def _drop_torn_line(self) -> None:
        self._stream.seek(0)
        content = self._stream.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self._stream.truncate(whole)

    def append(self, **event: str) -> None:
        """Write one event and wait until it is on the disk, and its folder too.

        raises: OSError as the file system gives it; LoamError if the journal is not held
        """
        if self._stream is None:
            raise LoamError(str(self.file), None, "written without being held")
        self._stream.write(json.dumps({"schema": 1, **event}).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def set(self, *, name: str, path: str, before: str, after: str, boot: str) -> None:
        """Note a change that is about to be made."""
        utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.append(event="set", name=name, path=path, before=before, after=after, boot=boot, utc=utc)

    def close(self, path: str, how: str) -> None:
        """Note that the change of a path is no longer ours."""
        self.append(event="closed", path=path, how=how)

    def open_entries(self) -> list[Entry]:
        """Changes that are not closed, in the order in which they were made.

        raises: LoamError if a whole line cannot be understood: nobody may guess what was changed
        """
        try:
            lines = self.file.read_bytes().split(b"\n")[:-1]  # what stands behind the last newline is torn
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise LoamError(
                str(self.file), None, f"cannot be read: {problem.strerror}", "run as the user who applied"
            ) from None
        still_open: dict[str, Entry] = {}
        for number, line in enumerate(lines, 1):
            try:
                event = json.loads(line)
                if event["schema"] != 1:
                    raise ValueError
                if event["event"] == "set":
                    entry = Entry(*(str(event[key]) for key in ("name", "path", "before", "after", "boot", "utc")))
                    still_open.pop(entry.path, None)
                    still_open[entry.path] = entry
                else:
                    still_open.pop(event["path"], None)
            except (ValueError, KeyError, TypeError):
                raise LoamError(
                    f"{self.file}:{number}", None, "cannot be understood, so the changes are not known",
                    "read it, restore by hand what it lists, then remove it",
                ) from None  # fmt: skip
        return list(still_open.values())


def default() -> Journal:
    """This user's journal."""
    return Journal(state_folder() / "tune.jsonl")


def boot_name() -> str:
    """Where the kernel says which boot this is."""
    return _BOOT
