"""Why an allocator cannot be put into a command: what the program file itself says, before anything runs.

The probe's silence is what counts; this only turns it into a sentence that helps.
"""

from __future__ import annotations

import functools
import mmap
import os
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from loam_lab.base import paths
from loam_lab.subjects.allocators import elf, wrappers
from loam_lab.subjects.allocators.identify import REQUIRED_SYMBOLS


def obstacles(command: Sequence[str]) -> list[str]:
    """Facts about the program of a command (and its interpreter, for a script) that keep preloading from working.

    command: program and arguments as they would be executed
    returns: sentences, empty if the file shows no obstacle
    """
    program = executable(command[0]) if command else None
    if program is None:
        return []
    executed = wrappers.behind(command)
    if len(executed) < len(command):
        # A wrapper that is itself in the way is told first.
        return list(dict.fromkeys([*obstacles(command[:1]), *obstacles(executed)]))
    reasons: list[str] = []
    for _ in range(4):  # a script's interpreter may be a script
        if _privileged(program):
            reasons.append(_privileged(program))
        interpreter = script_interpreter(program)
        if interpreter is None:
            break
        program = interpreter
    try:
        parsed = elf.read(program)
    except (elf.NotElf, OSError):
        return reasons
    return reasons + _linkage(program, parsed)


def contains_private_malloc(program: Path) -> bool:
    """Whether a program has a function malloc that it does not export: its own calls go there, unseen by the linker.

    Stripped programs tell nothing: False.
    """
    try:
        metadata = program.stat()
    except OSError:
        return False
    return _contains_private_malloc(str(program), metadata.st_dev, metadata.st_ino, metadata.st_mtime_ns)


@functools.cache
def _contains_private_malloc(program: str, device: int, inode: int, changed_ns: int) -> bool:
    file = Path(program)
    try:
        if file.stat().st_size == 0:
            return False
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data.find(b"\0malloc\0") < 0:  # decoding the symbols of a large program takes seconds
                return False
        return "malloc" in elf.read(file).private
    except (elf.NotElf, OSError, ValueError):
        return False


def carries_libstdcxx(program: Path) -> bool:
    """Whether a program is linked with libstdc++ statically and asks malloc of a library: its operators are libstdc++'s."""
    try:
        metadata = program.stat()
        return _carries_libstdcxx(str(program), metadata.st_dev, metadata.st_ino, metadata.st_mtime_ns)
    except (elf.NotElf, OSError):
        return False


@functools.cache
def _carries_libstdcxx(program: str, device: int, inode: int, changed_ns: int) -> bool:
    parsed = elf.read(Path(program))
    # What libstdc++'s operator new calls where malloc returns null; a program's own operator new has no need of it.
    return "_ZSt15get_new_handlerv" in parsed.exported and "malloc" in parsed.imported


def linked_allocator(name: str) -> Path | None:
    """The allocator's library that a program is linked with itself, and uses where nothing is preloaded; None without.

    name: of the program, or of a script, whose interpreter counts
    """
    program = executable(name)
    interpreter = script_interpreter(program) if program else None
    try:
        needed = elf.read(interpreter or program).needed if program else ()
    except (elf.NotElf, OSError):
        return None
    for soname in needed:
        library = None if soname.startswith("libc.so") else paths.find_library(soname)
        try:
            if library is not None and set(REQUIRED_SYMBOLS) <= elf.read(library).exported:
                return library
        except (elf.NotElf, OSError):
            continue
    return None


def before(library: Path) -> list[str]:
    """What to preload so that libc serves a program that is linked with another allocator: libc, and libstdc++ where that
    allocator has operators of C++ too.
    """
    from loam_lab.subjects.allocators import registry

    libraries = [registry.libc_path()]
    if "_Znwm" in elf.read(library).exported:
        libraries += [str(libstdcxx)] if (libstdcxx := paths.find_library("libstdc++.so.6")) else []
    return libraries


def executable(name: str) -> Path | None:
    """The file that a command name stands for, or None."""
    path = shutil.which(name)
    return Path(path).resolve() if path else None


def _privileged(program: Path) -> str:
    try:
        mode = program.stat().st_mode
    except OSError:
        return ""
    if mode & stat.S_ISUID or (mode & stat.S_ISGID and mode & stat.S_IXGRP):
        return (
            f"{program} is set-user-id or set-group-id: the dynamic linker ignores LD_PRELOAD; measure a copy without"
        )
    try:
        capable = bool(os.getxattr(program, "security.capability"))
    except OSError:
        capable = False
    if capable:
        return f"{program} has file capabilities: the dynamic linker ignores LD_PRELOAD; measure a copy without"
    return ""


def script_interpreter(program: Path) -> Path | None:
    """The program that the first line of a script names; None for what is no script."""
    try:
        with program.open("rb") as stream:
            first = stream.readline(256)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode("utf-8", "replace").split()
    if not words:
        return None
    if Path(words[0]).name == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return executable(names[0]) if names else None
    return Path(words[0]).resolve()


def _linkage(program: Path, parsed: elf.Elf) -> list[str]:
    here, bits = os.uname().machine, 64 if sys.maxsize > 2**32 else 32
    if parsed.machine != here or parsed.bits != bits:
        return [f"{program} is built for {parsed.machine} with {parsed.bits} bits, the allocators for {here}"]
    reasons: list[str] = []
    go = any(name in (".gopclntab", ".go.buildinfo", ".note.go.buildid") for name in parsed.sections)
    if go:
        reasons.append(
            f"{program} is a Go program: its runtime allocates memory itself and exits without exit handlers"
        )
    if parsed.interpreter is None:
        reasons.append(f"{program} is linked statically: nothing can be preloaded; link it dynamically")
    elif "musl" in Path(parsed.interpreter).name:
        reasons.append(f"{program} runs on musl, which is not the libc that the allocators were built for")
    own = [name for name in REQUIRED_SYMBOLS if name in parsed.exported or name in parsed.private]
    if own and parsed.interpreter is not None:
        reasons.append(f"{program} contains an allocator of its own ({', '.join(own)}): link it without")
    return reasons
