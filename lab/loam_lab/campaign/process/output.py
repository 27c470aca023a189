"""What a process writes while it runs, in bounded memory and without a reader that runs beside a quiet process.

Diagnostics go through a pipe of which only the last bytes are kept: a process that prints nothing never wakes the lab,
and one that prints a gigabyte wakes it at most every PAUSE_S while the pipe has room.  Records go to a file in memory
that cannot grow beyond RECORDS_MAX_BYTES; they are read once the process has ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import time

TAIL_BYTES = 4096
PIPE_BYTES = 1 << 20
PAUSE_S = 0.02
# So many looks follow without a pause where a pipe was found that full.
HASTE = 256
# Below the largest line that the journal is read with.
RECORDS_MAX_BYTES = 32 << 20


class Tail:
    """The end of what is written into a pipe.  Close it after use.

    writer: the descriptor for the process; keep no more than `limit` bytes
    """

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.reader, False)
        with contextlib.suppress(OSError):  # the limit of unprivileged users may be used up
            fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def drain(self) -> int:
        """Take what is in the pipe now; returns: bytes taken, at most a pipe's content."""
        taken = 0
        while taken < PIPE_BYTES:
            try:
                part = os.read(self.reader, 1 << 16)
            except BlockingIOError:
                break
            if not part:
                break
            taken += len(part)
            self._kept += part[-self._limit :]
            del self._kept[: -self._limit]
        return taken

    def text(self) -> str:
        """What was kept; bytes that are no UTF-8 are replaced."""
        return self._kept.decode(errors="replace")

    def close(self) -> None:
        """Close both ends; whoever still writes gets SIGPIPE."""
        os.close(self.reader)
        os.close(self.writer)


def ended(handle: int, timeout_s: float, tail: Tail) -> bool:
    """Whether the process ended within the time; sleeps unless the process writes.

    handle: its process descriptor
    """
    deadline = time.monotonic() + timeout_s
    poll, alone = select.poll(), select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(tail.reader, select.POLLIN)
    alone.register(handle, select.POLLIN)
    hasty = 0
    while True:
        left_ms = max(0.0, deadline - time.monotonic()) * 1000
        events = dict(poll.poll(left_ms))
        if handle in events:
            return True
        if not events:
            return False
        # A process that writes much must not wait for the lab, one that writes little must not keep waking it.
        hasty = HASTE if tail.drain() >= PIPE_BYTES // 4 else max(0, hasty - 1)
        if not hasty and alone.poll(min(PAUSE_S * 1000, left_ms)):
            return True


class RecordsFile:
    """A file in memory for records, which takes memory only for what is written.  Close it after use."""

    def __init__(self, limit: int = RECORDS_MAX_BYTES) -> None:
        self.limit = limit
        self.descriptor = os.memfd_create("records", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, limit)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)

    def content(self) -> bytes | None:
        """What was written; None if it did not fit.

        The process shares the file's position, which is where its records end
        """
        size = os.lseek(self.descriptor, 0, os.SEEK_CUR)
        # A write that does not fit fails whole or at a page's end.
        if size > self.limit - (1 << 16):
            return None
        parts, start = [], 0
        while start < size:
            part = os.pread(self.descriptor, min(size - start, 1 << 20), start)
            if not part:
                break
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.descriptor)
