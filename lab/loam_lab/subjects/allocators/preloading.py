"""How an allocator and the probe get into a process, and where the process reports.

A service that root starts goes on as another user.  That user must be able to load what is preloaded, and to write its
records, although the lab's own folders are closed to it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from loam_lab.subjects.allocators import registry
from loam_lab.subjects.allocators.registry import Allocator

# What each copy was made of, by its path.
_originals: dict[str, str] = {}


def environment(allocator: Allocator, probe_path: Path, proof_file: Path) -> dict[str, str]:
    """Environment variables that put an allocator and the probe into a command.

    allocator: as loaded; probe_path: libloam-probe.so; proof_file: where the processes append their records
    returns: variables to set; remove registry.setting_variables() from what the command inherits first
    """
    preload = [*([allocator.front] if allocator.front else []), *allocator.libraries, str(probe_path)]
    return {
        "LD_PRELOAD": ":".join(preloadable(path) for path in preload),
        # As the kernel names it: by that the probe finds the descriptor that it was given.
        "LOAM_PROBE": os.path.realpath(proof_file),
        # A value of the same length under every allocator, because programs copy their environment.
        "LOAM_PROBE_FORWARDS": "1" if allocator.path is None or allocator.forwards == "glibc" else "0",
        "LOAM_PROBE_VARIABLES": ",".join(sorted(registry.setting_variables() | set(allocator.environment))),
        **allocator.environment,
    }


@contextlib.contextmanager
def place(within: Path | None = None) -> Iterator[Path]:
    """A new, empty file for the records of one run; gone afterwards, with its folder.

    Root may start services that become another user and close the descriptor that the probe keeps: they can write to
    the file by its name.  Nobody else learns that name, because nobody can list the folder.
    """
    folder = Path(tempfile.mkdtemp(prefix="loam-proof-", dir=within))
    file = folder / secrets.token_hex(16)
    try:
        file.touch(mode=0o600)
        if os.geteuid() == 0:
            file.chmod(0o622)
            folder.chmod(0o711)
        yield file
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def folder(within: Path | None = None) -> Iterator[Path]:
    """A new, empty folder in which the processes of one run make files of their own; gone afterwards.

    As with place(), those that have become another user can, and nobody else learns its name.
    """
    outer = Path(tempfile.mkdtemp(prefix="loam-", dir=within))
    inner = outer / secrets.token_hex(16)
    try:
        inner.mkdir(mode=0o700)
        if os.geteuid() == 0:
            inner.chmod(0o1733)
            outer.chmod(0o711)
        yield inner
    finally:
        shutil.rmtree(outer, ignore_errors=True)


def original(path: str) -> str:
    """The file that a preloaded copy was made of; any other path as it is."""
    return _originals.get(path, path)


def preloadable(path: str) -> str:
    """A path that LD_PRELOAD can hold, and whose file every user that root may become can read.

    LD_PRELOAD separates paths by colons and blanks and has no quoting: such a path gets a link without them.
    """
    if os.geteuid() == 0 and Path(path).is_file() and not readable_by_all(Path(path)):
        return _copied(path)
    if not set(path) & set(": \t\n"):
        return path
    link = _folder() / f"{hashlib.sha256(path.encode()).hexdigest()[:16]}.so"
    if not link.is_symlink():
        link.symlink_to(path)
    return str(link)


def readable_by_all(file: Path) -> bool:
    """Whether users without any special right can read a file that is there."""
    real = Path(os.path.realpath(file))
    enterable = all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents)
    return enterable and bool(real.stat().st_mode & stat.S_IROTH)


def _copied(path: str) -> str:
    """A copy of a library that root alone can read; a library that changed gets another one."""
    metadata = Path(path).stat()
    name = f"{path}\n{metadata.st_ino}\n{metadata.st_mtime_ns}\n{metadata.st_size}"
    copy = _folder() / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.so"
    if str(copy) not in _originals:
        shutil.copyfile(path, copy)
        copy.chmod(0o755)
        _originals[str(copy)] = path
    return str(copy)


@functools.cache
def _folder() -> Path:
    """A folder of this process alone: what lies in it is preloaded, so nobody else may write there or list it."""
    folder = Path(tempfile.mkdtemp(prefix="loam-links-"))
    if os.geteuid() == 0:
        folder.chmod(0o711)
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked copy of it leaves the folder alone
        shutil.rmtree(folder, ignore_errors=True)
