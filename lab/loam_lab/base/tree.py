"""The files by which Linux shows and takes its settings: /proc and /sys, or a copy of them for tests."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

NEEDS_ROOT = "only root may write it"


@dataclass(frozen=True)
class Tree:
    """Reads and writes settings below a root; names are absolute ("/proc/sys/vm/swappiness") whatever the root is.

    root: "/" for the machine; a test's folder otherwise
    """

    root: Path = Path("/")

    def path(self, name: str) -> Path:
        """Where a name lies."""
        return self.root / name.lstrip("/")

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return self.path(name).exists()

    def read(self, name: str) -> str:
        """Text without the last newline; "" where the file is absent or cannot be read."""
        try:
            return self.path(name).read_text(errors="replace").rstrip("\n")
        except OSError:
            return ""

    def value(self, name: str) -> str:
        """What is set: the word in brackets of a choice such as "always [madvise] never", else the stripped text."""
        text = self.read(name).strip()
        chosen = re.search(r"\[([^\]]+)\]", text)
        return chosen[1] if chosen else text

    def number(self, name: str) -> int | None:
        """The integer that the file holds; None where it holds none."""
        try:
            return int(self.read(name).split()[0])
        except (ValueError, IndexError):
            return None

    def glob(self, pattern: str) -> list[str]:
        """Names that match an absolute pattern, in natural order (cpu2 before cpu10)."""
        names = ["/" + str(file.relative_to(self.root)) for file in self.root.glob(pattern.lstrip("/"))]
        return sorted(names, key=lambda name: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)])

    def locked(self, name: str) -> str:
        """Why a setting cannot be written by this process; "" where it can."""
        file = self.path(name)
        if os.access(file, os.W_OK, effective_ids=True):
            return ""
        try:
            read_only = bool(os.statvfs(file).f_flag & os.ST_RDONLY)
        except OSError as problem:
            return str(problem.strerror)
        if read_only:
            return "its file system is mounted read-only, as containers have it"
        return "it is read-only even for root" if os.geteuid() == 0 else NEEDS_ROOT

    def write(self, name: str, value: str) -> None:
        """Set a value in one write, as the kernel wants it; never makes a file.

        raises: OSError as the kernel gives it
        """
        descriptor = os.open(self.path(name), os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, value.encode() + b"\n")
        finally:
            os.close(descriptor)
