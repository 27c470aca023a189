"""Builds of the C++ side: configure once, build only what a command needs, and know fast that nothing changed.

A start that finds everything built costs one walk over the sources' stat data (a few milliseconds) and no process.
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
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.setup import jvm

# Everything a workload, a test or a library is made of; a change elsewhere rebuilds nothing.
_SOURCE_FOLDERS = (
    "include",
    "runtime",
    "structures",
    "workloads",
    "simulator",
    "cmake",
    "lab/probe",
    "lab/interposer",
    "lab/programs",
    "tests/planted",
    "tests/simulator",
)
PROGRAMS = "programs"
_SOURCE_FILES = ("CMakeLists.txt", "CMakePresets.json", "lab/loam_lab/__init__.py")
_STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)$")


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)
            elif not entry.name.startswith("."):
                yield entry


def sources_fingerprint() -> str:
    """Hash of names, sizes and modification times of all C++ sources and build files, and of the compiler."""
    top = paths.root()
    digest = hashlib.blake2b(digest_size=16)
    for name in _SOURCE_FOLDERS:
        folder = top / name
        if folder.is_dir():
            for entry in sorted(_walk(str(folder)), key=lambda directory_entry: directory_entry.path):
                status = entry.stat()
                digest.update(f"{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    for file in [top / name for name in _SOURCE_FILES] + [Path(tool) for tool in _compilers().values() if tool]:
        with contextlib.suppress(FileNotFoundError):
            status = file.stat()
            digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _compilers() -> dict[str, str | None]:
    return {"c++": os.environ.get("CXX") or shutil.which("g++"), "cmake": shutil.which("cmake", path=tool_path())}


def tool_path() -> str:
    """PATH for build tools: the machine's own, then what set-up unpacked without root."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(paths.unpacked_root() / "usr/bin")])


def tool_environment() -> dict[str, str]:
    """Environment in which cmake, ninja and compilers run; no allocator under test leaks into a build."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    environment["PATH"] = tool_path()
    unpacked = paths.unpacked_root()
    if unpacked.is_dir():
        triple = f"{os.uname().machine}-linux-gnu"
        folders = [str(unpacked / "usr/lib" / triple), str(unpacked / "lib" / triple)]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join([*folders, os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")
        environment["CMAKE_PREFIX_PATH"] = str(unpacked / "usr")
    return environment


def _require_tools() -> None:
    for tool, package in (("g++", "g++"), ("cmake", "cmake"), ("ninja", "ninja-build")):
        if tool == "g++" and os.environ.get("CXX"):
            continue
        if not shutil.which(tool, path=tool_path()):
            raise LoamError(tool, None, "not found, and the workloads are built on this machine",
                            f"as root: apt-get install {package}, or ./loam setup")  # fmt: skip


def _stamp_file(preset: str) -> Path:
    return paths.build_folder(preset) / ".loam-built.json"


def _read_stamp(preset: str) -> dict[str, Any]:
    try:
        stamp: dict[str, Any] = json.loads(_stamp_file(preset).read_text())
    except (OSError, ValueError):
        return {}
    return stamp


def _files_of(content: dict[str, Any], targets: Sequence[str] | None, preset: str) -> dict[str, Path]:
    """The files to build for the named targets: executables and libraries of loam-paths.json by their short names."""
    programs = {name: entry["argv"][0] for name, entry in content["executables"].items()}
    known = {name: Path(file) for name, file in {**programs, **content["libraries"]}.items()}
    names = list(known) if targets is None else [target.removeprefix("loam-workload-") for target in targets]
    if PROGRAMS in names:  # those that are compiled
        names += [name for name in known if name.startswith("program-")]
    for name in names:
        if name not in known:
            raise paths.unknown_sync(name, content["executables"], preset)
    built = paths.build_folder(preset)
    return {name: known[name] for name in names if known[name].is_relative_to(built)}  # a script is not built


def is_built(targets: Sequence[str] | None = None, preset: str = "release") -> bool:
    """Whether the targets are there and made from the sources as they are now. Starts no process."""
    stamp = _read_stamp(preset)
    if stamp.get("fingerprint") != sources_fingerprint() or stamp.get("root") != str(paths.root()):
        return False
    try:
        files = _files_of(paths.load_paths(preset), targets, preset)
    except LoamError:
        return False
    return all(name in stamp.get("targets", []) and file.exists() for name, file in files.items())


def sources_changed() -> bool:
    """Whether something is built of sources that are no longer as they were then. Starts no process."""
    stamp = _read_stamp("release")
    return bool(stamp) and stamp.get("fingerprint") != sources_fingerprint()


def ensure_built(targets: Sequence[str] | None = None, preset: str = "release") -> dict[str, Any]:
    """Build what is missing or out of date, and nothing else.

    targets: short names as in loam-paths.json ("etl-wb", "probe", "planted-10"); None for all of them
    returns: the content of loam-paths.json; progress goes to standard error
    raises: LoamError if a name is unknown, a tool is missing, the folder cannot be written or the compiler fails
    """
    if any(target.startswith(jvm.PREFIX) for target in targets or ()):
        jvm.ensure()
    if is_built(targets, preset):
        return paths.load_paths(preset)
    with _lock(preset):
        if is_built(targets, preset):  # another start may have built it while this one waited
            return paths.load_paths(preset)
        _require_tools()
        fingerprint = sources_fingerprint()  # before the build: a file saved meanwhile must count as changed
        configure(preset)
        content = _configured(preset)
        if any(
            name.removeprefix("loam-workload-") not in {**content["executables"], **content["libraries"]}
            for name in targets or ()
        ):
            configure(preset, again=True)  # a synchronisation may have been added since cmake looked
            content = paths.load_paths(preset)
        files = _files_of(content, targets, preset)
        folder = paths.build_folder(preset)
        if files:
            build(preset, [os.path.relpath(file, folder) for file in files.values()], label=", ".join(files))
        stamp = _read_stamp(preset)
        done = set(files)
        if stamp.get("fingerprint") == fingerprint:
            done.update(stamp["targets"])
        _write_whole(
            _stamp_file(preset),
            json.dumps({"root": str(paths.root()), "fingerprint": fingerprint, "targets": sorted(done)}),
        )
        return content


def ensure_targets(preset: str, targets: Sequence[str], *, label: str = "") -> None:
    """Build targets of ninja that loam-paths.json does not name, such as programs of the tests.

    raises: LoamError as build() does
    """
    with _lock(preset):
        configure(preset)
        build(preset, targets, label=label)


def _configured(preset: str) -> dict[str, Any]:
    """The content of loam-paths.json; written anew where another revision of the checkout wrote it."""
    try:
        return paths.load_paths(preset)
    except LoamError:
        configure(preset, again=True)
        return paths.load_paths(preset)


def _write_whole(file: Path, text: str) -> None:
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_text(text)
    part.replace(file)


@contextlib.contextmanager
def _lock(preset: str) -> Iterator[None]:
    """One build of a preset at a time; a second start waits for the first and then finds its work done."""
    folder = paths.build_folder(preset)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle: TextIO = (folder / ".loam-lock").open("w")
    except OSError as problem:
        raise LoamError(str(folder), None, f"cannot be written: {problem.strerror}",
                        "use a checkout in a folder of your own with free space") from problem  # fmt: skip
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            console.note(f"waiting for another build of build/{preset} ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def configure(preset: str, *, again: bool = False) -> None:
    """Run cmake's configure step if the preset has none yet, or the checkout was moved. Output goes to the build log.

    again: run it even so
    raises: LoamError if cmake fails
    """
    folder = paths.build_folder(preset)
    cache = folder / "CMakeCache.txt"
    if cache.is_file() and f"CMAKE_HOME_DIRECTORY:INTERNAL={paths.root()}\n" not in cache.read_text():
        cache.unlink()
        shutil.rmtree(folder / "CMakeFiles", ignore_errors=True)
    if not again and cache.is_file() and (folder / "build.ninja").is_file():
        return  # ninja re-runs cmake by itself where a build file or a globbed folder changed
    console.note(f"configuring build/{preset} ...")
    _run(["cmake", "--preset", preset], preset, what="cmake could not configure the build")


def build(preset: str, targets: Sequence[str] = (), *, label: str = "") -> float:
    """Run cmake's build step for the given ninja targets (all where none is given), showing how far it is.

    returns: seconds it took
    raises: LoamError if a compiler or the linker fails; the whole output is in build/<preset>/loam-build.log
    """
    started = time.monotonic()
    command = ["cmake", "--build", str(paths.build_folder(preset)), "-j", str(len(os.sched_getaffinity(0)))]
    if targets:
        command += ["--target", *targets]
    _run(command, preset, what=f"building {label or 'everything'} failed", progress=True)
    return time.monotonic() - started


def _run(command: list[str], preset: str, *, what: str, progress: bool = False) -> None:
    """Run a build tool with its output in the log; the end of the output is shown where it fails."""
    log = paths.build_folder(preset) / "loam-build.log"
    live = sys.stderr.isatty()
    tail: list[str] = []
    shown = -1
    try:
        log.parent.mkdir(parents=True, exist_ok=True)  # a configure step may be the first that writes there
        with log.open("a") as copy, subprocess.Popen(
            command, cwd=paths.root(), env=tool_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        ) as process:  # fmt: skip
            copy.write(f"$ {' '.join(command)}\n")
            assert process.stdout is not None
            for line in process.stdout:
                copy.write(line)
                tail = [*tail[-59:], line.rstrip("\n")]
                step = _STEP.match(line)
                if progress and step:
                    shown = _show_step(preset, int(step[1]), int(step[2]), step[3], live, shown)
    except OSError as problem:
        raise LoamError(
            str(log), None, f"cannot be written: {problem.strerror}", "check the folder and the free space"
        ) from problem
    if progress and live and shown >= 0:
        console.beneath(sys.stderr).write("\r\x1b[K")
    if process.returncode != 0:
        console.note("\n".join(tail))
        where = f"the end of the output is above, all of it in build/{preset}/loam-build.log"
        raise LoamError(f"build/{preset}", None, what, where, exit_code=1)


def _show_step(preset: str, step: int, steps: int, what: str, live: bool, shown: int) -> int:
    """Show the step on one line that is rewritten (terminal), or a line per fifth (log). Returns the fifth shown last."""
    fifth = 5 * step // steps
    if live:
        width = shutil.get_terminal_size().columns
        console.beneath(sys.stderr).write(
            "\r\x1b[K" + f"building build/{preset}: {step}/{steps} {Path(what.split()[-1]).name}"[: width - 1]
        )
        sys.stderr.flush()
    elif fifth != shown:
        console.note(f"building build/{preset}: {step}/{steps}")
    return fifth
