"""From verified sources to .loam/allocators/NAME: compile into a temporary folder, check, rename.

Nothing half-made is ever found: a folder without its last rename is swept away by the next build.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.subjects.allocators import fetch, identify, recipe, repository
from loam_lab.subjects.allocators.recipe import Source

# Initial-exec: thread-local variables of a preloaded object need no call, and none that would allocate.
# No builtin malloc: GCC would turn malloc + memset inside calloc into a call of calloc.
FLAGS = ("-O3", "-DNDEBUG", "-fPIC", "-pthread", "-ftls-model=initial-exec", "-fno-builtin-malloc")


def make(name: str, source: Source, file: Path) -> dict[str, Any]:
    """Build one allocator, whatever was there before.

    name: of the allocator; source, file: its recipe and TOML file
    returns: content of built.json: {"schema", "name", "recipe", "release", "object", "sha256", "bytes", "seconds",
             "crate", "crate_version", "crate_sha256", "git", "commit", "git_sha256", "debian", "compiler", "commands"}
    raises: LoamError if sources cannot be had or differ, a tool is missing, a command fails, the object is no allocator
    """
    home = recipe.folder()
    home.mkdir(parents=True, exist_ok=True)
    with _lock(home):
        for left in home.glob(".make-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".make-", dir=home, ignore_cleanup_errors=True) as temporary:
            folder = Path(temporary) / "done"
            folder.mkdir()
            built = _into(name, source, file, Path(temporary), folder)
            (folder / recipe.BUILT).write_text(json.dumps(built, indent=1) + "\n")
            _put(folder, home / name, Path(temporary) / "before")
    return built


def _into(name: str, source: Source, file: Path, scratch: Path, folder: Path) -> dict[str, Any]:
    built: dict[str, Any] = {"schema": recipe.SCHEMA, "name": name, "recipe": recipe.digest(source, file)}
    target = folder / source.object
    if source.debian:
        began = time.monotonic()
        built |= {"debian": source.debian, "release": fetch.debian_object(source, target), "commands": []}
    else:
        crate = fetch.crate(source, file) if source.crate else repository.whole(source, scratch)
        began = time.monotonic()
        log = _Log(name, scratch / "log", recipe.folder() / f"{name}.log")
        built |= {"release": source.release} | (
            {"git": source.git, "commit": source.commit, "git_sha256": source.sha256} if source.git else
            {"crate": source.crate, "crate_version": recipe.full_version(source, file),
             "crate_sha256": recipe.locked(source, file)}
        )  # fmt: skip
        commands = (_configure if source.make else _compile)(source, file, crate, scratch, target, log)
        built |= {"compiler": log.version(source.compiler), "commands": commands}
    identify.require_allocator(target)
    with target.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    seconds = round(time.monotonic() - began, 1)
    return built | {
        "object": source.object, "sha256": digest, "bytes": target.stat().st_size, "seconds": seconds
    }  # fmt: skip


def _compile(source: Source, file: Path, crate: Path, scratch: Path, target: Path, log: _Log) -> list[str]:
    """Compile file by file, then link. Paths of this machine are kept out of the object."""
    where = crate / source.folder
    mapped = f"-ffile-prefix-map={crate}={source.crate or source.repository}"
    flags = [*FLAGS, mapped, *(flag.replace("{here}", str(file.parent)) for flag in source.flags)]
    compiles = []
    for index, name in enumerate(_files(source, crate)):
        own = name.replace("{here}", str(file.parent))
        compiles.append([source.compiler, *flags, "-c", own, "-o", str(scratch / f"{index}.o")])
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda command: log.run(command, where), compiles))
    link = [source.compiler, "-shared", "-pthread", f"-Wl,-soname,{source.object}", "-Wl,--build-id=sha1"]
    link += [str(scratch / f"{index}.o") for index in range(len(compiles))]
    link += [f"-l{library}" for library in source.libraries]
    log.run([*link, "-o", str(target)], where)
    return [" ".join(_plain(command, crate, scratch, file)) for command in (compiles[0], link)]


def _plain(command: Sequence[str], crate: Path, scratch: Path, file: Path) -> list[str]:
    return [
        word.replace(str(crate), "CRATE").replace(str(scratch), ".").replace(str(file.parent), "allocators")
        for word in command
    ]


def _files(source: Source, crate: Path) -> list[str]:
    """The files to compile, relative to source.folder."""
    names = list(source.files)
    if source.files_from:
        text = (crate / source.files_from).read_text()
        names += [name for name in re.findall(source.pattern, text) if (crate / source.folder / name).is_file()]
    return [name for name in dict.fromkeys(names) if not any(fnmatch(name, glob) for glob in source.exclude)]


def _configure(source: Source, file: Path, crate: Path, scratch: Path, target: Path, log: _Log) -> list[str]:
    """Copy, ./configure where there is one, make."""
    del file
    tree = scratch / "tree"
    shutil.copytree(crate, tree, symlinks=True)
    for name, other in source.copy:
        shutil.copy(tree / name, tree / other)
    where = tree / source.folder
    commands = [["make", f"-j{len(os.sched_getaffinity(0))}", *source.make]]
    if (where / "configure").exists():
        (where / "configure").chmod(0o755)
        commands.insert(0, ["./configure", *source.configure])
    for command in commands:
        log.run(command, where)
    shutil.copyfile(where / source.output, target)
    return [" ".join(command) for command in commands]


class _Log:
    """Runs build commands, collects what they say; keeps it as .loam/allocators/NAME.log where one fails."""

    def __init__(self, name: str, file: Path, kept: Path) -> None:
        from loam_lab.setup import build

        self._name, self._file, self._kept = name, file, kept
        self._environment = build.tool_environment() | {"LC_ALL": "C.UTF-8"}

    def run(self, command: Sequence[str], where: Path) -> None:
        try:
            done = subprocess.run(command, cwd=where, env=self._environment, stdin=subprocess.DEVNULL, text=True,
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # fmt: skip
        except FileNotFoundError:
            raise LoamError(command[0], None, f"not found; it builds {self._name}",
                            f"as root: apt-get install {command[0]}") from None  # fmt: skip
        with self._file.open("a") as file:
            file.write(f"$ {' '.join(command)}\n{done.stdout}")
        if done.returncode != 0:
            shutil.copyfile(self._file, self._kept)
            lines = [line for line in done.stdout.splitlines() if "error" in line.lower()] or done.stdout.splitlines()
            console.note("\n".join(lines[:20]))
            raise LoamError(self._name, None, f"{command[0]} ended with {done.returncode}", f"see {self._kept}",
                            exit_code=1)  # fmt: skip

    def version(self, compiler: str) -> str:
        done = subprocess.run(
            [compiler, "--version"], env=self._environment, capture_output=True, text=True, check=False
        )
        return done.stdout.partition("\n")[0]


def _put(folder: Path, target: Path, before: Path) -> None:
    """Two renames; a process that has the old object mapped keeps it."""
    if target.exists():
        target.rename(before)
    folder.rename(target)


@contextlib.contextmanager
def _lock(home: Path) -> Iterator[None]:
    """One build at a time."""
    with (home / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            console.note("waiting for another build of allocators ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
