"""What an object file is: soname, version, build-id, SHA-256, machine; and whether it can serve as an allocator.

Everything is read from outside the measured process and cached by (device, inode, modification time, size), in memory
and below XDG_CACHE_HOME: hashing again in every start would cost more than the start itself.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from loam_lab.base.errors import LoamError
from loam_lab.subjects.allocators import elf

# All eight must come from one object: a block of one allocator freed by another corrupts the heap.
REQUIRED_SYMBOLS = (
    "malloc",
    "free",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "malloc_usable_size",
)
_CACHE_SCHEMA = 1


@dataclass(frozen=True)
class Identity:
    """One object file: symbolic links resolved, version "" where unknown, the rest as the file says."""

    path: str
    soname: str
    version: str
    build_id: str
    sha256: str
    machine: str


@dataclass(frozen=True)
class VersionProbe:
    """How to learn a version: a pattern over the bytes of an object (group 1), or a function that returns an integer.

    pattern: regular expression; call: name of the function; object: file name beside the allocator to look into
    """

    pattern: str = ""
    call: str = ""
    object: str = ""


def identify(path: Path | str, probe: VersionProbe | None = None) -> Identity:
    """Identity of an object file.

    path: the file; probe: how to learn its version (without: version "")
    raises: LoamError if it is missing or no ELF file
    """
    file = Path(path)
    try:
        real = file.resolve(strict=True)
        metadata = real.stat()
    except OSError as problem:
        raise LoamError("allocator path", path, problem.strerror or "cannot be read", "check the path") from None
    key = f"{metadata.st_dev}:{metadata.st_ino}:{metadata.st_mtime_ns}:{metadata.st_size}:{real}"
    base = _identify_cached(str(real), key)
    if probe is None:
        return base
    version_key = f"{key}|{probe.pattern}|{probe.call}|{probe.object}"
    return replace(base, version=_version_cached(str(real), version_key, probe))


@functools.cache
def _identify_cached(path: str, key: str) -> Identity:
    known = _cache_read().get(key)
    if isinstance(known, dict):
        with contextlib.suppress(TypeError):
            return Identity(**known)
    try:
        parsed = elf.read(Path(path))
    except elf.NotElf as problem:
        raise LoamError("allocator path", path, str(problem), "name a shared object (.so)") from None
    except OSError as problem:
        raise LoamError("allocator path", path, problem.strerror or "cannot be read", "check its permissions") from None
    with Path(path).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    identity = Identity(path, parsed.soname or "", "", parsed.build_id or "", digest, parsed.machine)
    _cache_write(key, asdict(identity))
    return identity


@functools.cache
def _version_cached(path: str, key: str, probe: VersionProbe) -> str:
    known = _cache_read().get(key)
    if isinstance(known, str):
        return known
    version = _version(Path(path), probe)
    _cache_write(key, version)
    return version


def _version(path: Path, probe: VersionProbe) -> str:
    target = path.parent / probe.object if probe.object else path
    if probe.pattern:
        try:
            match = re.search(probe.pattern.encode(), target.read_bytes())
        except OSError:
            return ""
        return match.group(1).decode("ascii", "replace") if match else ""
    if probe.call:
        return _version_by_call(target, probe.call)
    return ""


def _version_by_call(path: Path, function: str) -> str:
    """Load the object in a process of its own (never in the lab's) and call a function without arguments.

    returns: "2.0.9" for 209 and "2.5.2" for 20502 (the schemes of mimalloc), "" if the call fails
    """
    code = "import ctypes, sys; print(getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])())"
    command = [sys.executable, "-I", "-S", "-c", code, str(path), function]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        number = int(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    if number >= 10000:
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return f"{number // 100}.{number // 10 % 10}.{number % 10}"


def require_allocator(path: Path | str) -> elf.Elf:
    """Check that an object file can be preloaded as an allocator on this machine.

    raises: LoamError for a missing file, no ELF file, no shared object, another class or machine, no malloc,
            or a malloc without its whole family
    """
    file = Path(path)
    if not file.exists():
        raise LoamError("allocator path", path, "no such file", "check the path")
    if not file.is_file():
        raise LoamError("allocator path", path, "not a regular file", "name a shared object (.so)")
    try:
        parsed = elf.read(file.resolve())
    except elf.NotElf as problem:
        raise LoamError("allocator path", path, str(problem), "name a shared object (.so)") from None
    except OSError as problem:
        raise LoamError("allocator path", path, problem.strerror or "cannot be read", "check its permissions") from None
    here = os.uname().machine
    if parsed.machine != here or parsed.bits != (64 if sys.maxsize > 2**32 else 32):
        raise LoamError(
            "allocator path", path, f"built for {parsed.machine} with {parsed.bits} bits", f"this machine needs {here}"
        )
    if parsed.kind != "shared" or not parsed.dynamic:
        what = "an executable" if parsed.kind == "executable" else f"of kind {parsed.kind}"
        raise LoamError("allocator path", path, f"{what}, no shared object", "link it with -shared")
    missing = [name for name in REQUIRED_SYMBOLS if name not in parsed.exported]
    if "malloc" in missing:
        raise LoamError("allocator path", path, "defines no malloc", "export it with default visibility")
    if missing:
        raise LoamError(
            "allocator path",
            path,
            "defines malloc but not " + ", ".join(missing),
            "blocks of libc would reach its free; export the whole family",
        )
    return parsed


def check_allocator(path: Path | str) -> frozenset[str]:
    """Exported names of an object file that can be preloaded as an allocator, checked once per file and process.

    raises: LoamError as require_allocator does
    """
    file = Path(path)
    try:
        metadata = file.stat()
    except OSError:
        return require_allocator(path).exported
    return _exported(file, metadata.st_dev, metadata.st_ino, metadata.st_mtime_ns)


@functools.cache
def _exported(file: Path, device: int, inode: int, changed_ns: int) -> frozenset[str]:
    return require_allocator(file).exported


def _cache_file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else Path.home() / ".cache"
    return folder / "loam" / f"objects-{_CACHE_SCHEMA}.json"


@functools.cache
def _cache_read_once(file: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(file).read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _cache_read() -> dict[str, Any]:
    return _cache_read_once(str(_cache_file()))


def _cache_write(key: str, value: object) -> None:
    """Best effort: a read-only home costs time at the next start, nothing else."""
    file = _cache_file()
    content = _cache_read()
    content[key] = value
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w") as stream:
            json.dump(dict(content), stream)  # a copy: other threads add to the cache meanwhile
        Path(temporary).replace(file)
