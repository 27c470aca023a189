"""What is measured: a program with its arguments, the files that it consists of, and its environment.

A compiled executable, a script, a jar with its virtual machine, and a command of the user's are all subjects. The digest
of the files is part of every run's identity; a campaign asks before each run whether they are still the same.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loam_lab.base.errors import LoamError

# In an entry of loam-paths.json: the Python that runs the lab.
PYTHON = "{python}"


@dataclass(frozen=True)
class Subject:
    """A program as it is started.

    argv: the program's path and the arguments that come before all others
    files: paths of all files whose content decides what it does; environment: variables that it needs, by name
    """

    argv: tuple[str, ...]
    files: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(program: Path) -> Subject:
        """A program that is one file."""
        return Subject((str(program),), (str(program),))

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> Subject:
        """An entry of loam-paths.json or of a manifest: {"argv", "files", "environment"}."""
        argv = tuple(sys.executable if word == PYTHON else word for word in entry["argv"])
        return Subject(argv, tuple(entry["files"]), tuple(entry["environment"].items()))

    @property
    def program(self) -> Path:
        """The file that is executed."""
        return Path(self.argv[0])

    def as_json(self) -> dict[str, Any]:
        """The inverse of from_json()."""
        return {"argv": list(self.argv), "files": list(self.files), "environment": dict(self.environment)}

    def missing(self) -> str:
        """The first file that is not there; "" if all are."""
        return next((file for file in (self.argv[0], *self.files) if not Path(file).is_file()), "")

    def digest(self) -> str:
        """What identifies the subject: see digest_of(); raises: LoamError if a file cannot be read."""
        return digest_of(self.files)


def of_command(argv: Iterable[str]) -> Subject:
    """A command line: its program, the interpreter of a script, and the files that arguments name are its files."""
    from loam_lab.subjects.allocators.preflight import script_interpreter

    words = tuple(argv)
    files = [word for word in words if Path(word).is_file()]
    interpreter = script_interpreter(Path(words[0]))
    return Subject(words, tuple(dict.fromkeys([*files, *([str(interpreter)] if interpreter else [])])))


def digest_of(files: Iterable[str]) -> str:
    """What identifies files: GNU build-id of a single one that has it, else "sha256:" and a digest of all contents.

    raises: LoamError if one cannot be read
    """
    digests = [_digest(file) for file in files]
    if len(digests) == 1:
        return digests[0]
    return "sha256:" + hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _digest(file: str) -> str:
    try:
        status = Path(file).stat()
        return _content(file, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    except OSError as problem:
        raise LoamError(file, None, f"cannot be read: {problem.strerror}", "restore the file") from None


@functools.lru_cache(maxsize=4096)
def _content(path: str, device: int, inode: int, mtime_ns: int, size: int) -> str:
    with Path(path).open("rb") as file:
        if file.read(4) == b"\x7fELF":
            from loam_lab.subjects.allocators.identify import identify

            build_id = identify(Path(path)).build_id
            if build_id:
                return build_id
        file.seek(0)
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


class Unchanged:
    """Whether files are still those that a campaign began with; asked before each run, which costs a stat per file."""

    def __init__(self) -> None:
        self._begun: dict[str, str] = {}

    def problem(self, files: Iterable[str]) -> str:
        """Which file is gone or has another content than when it was first asked for; "" if none."""
        for file in files:
            try:
                now = _digest(file)
            except LoamError:
                return f"{file} is gone"
            if self._begun.setdefault(file, now) != now:
                return f"{file} was changed while the campaign ran"
        return ""
