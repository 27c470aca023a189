"""Where things are: the checkout, its builds, the results of the current folder, the user's own files."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from loam_lab.base.errors import LoamError, unknown

# Of loam-paths.json.
SCHEMA = 2


# Of an installed package: the sources that it brings; of a tree that was unpacked from such an archive: what it is.
SOURCES = "sources.tar"
SENT = ".loam-sent"


@functools.cache
def root() -> Path:
    """The checkout this package runs from (the folder that holds ./loam); an installed package unpacks its own.

    raises: LoamError if there is none, or LOAM_ROOT does not name one
    """
    named = os.environ.get("LOAM_ROOT")
    folder = Path(named).resolve() if named else Path(__file__).resolve().parents[3]
    archive = Path(__file__).resolve().parents[1] / SOURCES
    if not named and archive.is_file():
        folder = _unpacked(archive)
    if not (folder / "CMakePresets.json").is_file():
        raise LoamError(
            "LOAM_ROOT",
            named or folder,
            "no checkout of Loam is there",
            "start ./loam from a checkout, or set LOAM_ROOT",
        )
    return folder


def _unpacked(archive: Path) -> Path:
    """The tree that an archive of sources holds, below the user's cache, unpacked when it is first asked for.

    raises: LoamError if it cannot be written
    """
    import hashlib
    import shutil
    import tarfile

    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:32]
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "loam/sources" / digest
    if (folder / SENT).is_file():
        return folder
    part = folder.with_name(f".{digest}.{os.getpid()}")
    try:
        part.mkdir(parents=True)
        with tarfile.open(archive) as opened:
            if hasattr(tarfile, "data_filter"):  # Python 3.11 has it from some patch level on; the archive is our own
                opened.extractall(part, filter="data")
            else:
                opened.extractall(part)
        try:
            part.rename(folder)
        except OSError:
            if not (folder / SENT).is_file():  # another start was not faster
                raise
    except OSError as problem:
        hint = "set XDG_CACHE_HOME to a folder with 1 GB of free space"
        raise LoamError(str(folder), None, f"cannot be written: {problem.strerror}", hint) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


@functools.cache
def sent() -> dict[str, Any] | None:
    """What a tree that was unpacked says of itself: "revision", "files"; None for a checkout of git's."""
    try:
        document: dict[str, Any] = json.loads((root() / SENT).read_text())
    except (OSError, ValueError):
        return None
    return document


def revision() -> str:
    """Git revision of the checkout, with "+" where files were changed since; "" where none is known."""
    if (document := sent()) is not None:
        return str(document["revision"])
    try:
        # Without optional locks: another git command in the same checkout must not find the index taken.
        command = ["git", "--no-optional-locks", "-C", str(root()), "describe"]
        command += ["--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def dot_loam() -> Path:
    """The ignored folder for what set-up unpacks and caches; not necessarily there yet."""
    return root() / ".loam"


def unpacked_root() -> Path:
    """The tree into which set-up unpacks Debian packages when it may not install them."""
    return dot_loam() / "root"


def library_folders() -> tuple[Path, ...]:
    """Folders in which Debian's shared libraries lie, the machine's own before unpacked ones."""
    triple = f"{os.uname().machine}-linux-gnu"
    system = (Path("/usr/lib") / triple, Path("/lib") / triple, Path("/usr/lib64"))  # the last: where others have them
    unpacked = (unpacked_root() / "usr/lib" / triple, unpacked_root() / "lib" / triple)
    return system + unpacked


def find_library(name: str) -> Path | None:
    """The first shared object of that file name in library_folders(), or None."""
    for folder in library_folders():
        candidate = folder / name
        if candidate.exists():
            return candidate
    return None


def user_config() -> Path:
    """The user's own settings: ~/.config/loam, or below XDG_CONFIG_HOME."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "loam"


def allocator_folders() -> tuple[Path, ...]:
    """Folders with allocator files, the tree's own first, then LOAM_ALLOCATOR_PATH, then the user's."""
    extra = tuple(Path(part) for part in os.environ.get("LOAM_ALLOCATOR_PATH", "").split(":") if part)
    return (root() / "allocators", *extra, user_config() / "allocators")


def results_root() -> Path:
    """The folder "results" of the current folder; not necessarily there yet."""
    return Path.cwd() / "results"


def latest_result() -> Path:
    """The folder that results/latest points to.

    raises: LoamError if nothing was measured in this folder yet
    """
    link = results_root() / "latest"
    if not link.exists():
        hint = "run ./loam tour, or name a result's folder"
        raise LoamError("results/latest", None, "there is no result in this folder yet", hint)
    return link.resolve()


def build_folder(preset: str = "release") -> Path:
    """build/<preset> of the checkout."""
    return root() / "build" / preset


def paths_json(preset: str = "release") -> Path:
    """The generated file that names executables and libraries of a build."""
    return build_folder(preset) / "loam-paths.json"


def load_paths(preset: str = "release") -> dict[str, Any]:
    """Content of loam-paths.json: {"schema", "preset", "root", "compiler", "flags", "executables", "libraries"}.

    executables: {"argv", "files", "environment"} of each subject by name; libraries: the lab's native parts, files by name
    Of a preset for simulated machines also "simulated": {"compile", "link"}, the flags of programs for them.
    raises: LoamError if the preset was never configured, or the file is not whole or of another revision
    """
    file = paths_json(preset)
    try:
        content: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        raise LoamError(f"build/{preset}", None, "was never configured", "run ./loam setup") from None
    except (OSError, ValueError) as problem:
        raise LoamError(
            str(file), None, f"cannot be read: {problem}", f"remove build/{preset} and run ./loam setup"
        ) from None
    if content.get("schema") != SCHEMA:
        what = f"has schema {content.get('schema')}, this lab reads {SCHEMA}"
        raise LoamError(str(file), None, what, "run ./loam setup, which writes it again")
    return content


def unknown_sync(name: str, known: Iterable[str], preset: str) -> LoamError:
    """The error for a synchronisation that a build does not have; one of the host may have no simulated build.

    known: what that build has; preset: of that build
    """
    host: Iterable[str] = ()
    with contextlib.suppress(LoamError):  # the host's build was never configured
        host = load_paths()["executables"] if preset != "release" else ()
    if name in host:
        wrong = "has no build with the simulator's hooks, so simulated machines cannot run it"
        return LoamError("--sync", name, wrong, "leave out --machine, or name another")
    return unknown("--sync", name, known, "synchronisation")
