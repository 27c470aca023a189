"""Where things are: the checkout, its builds, the results of the current folder, the user's own files."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

from loam_lab.errors import LoamError


@functools.cache
def root() -> Path:
    """The checkout this package runs from (the folder that holds ./loam).

    raises: LoamError if the package was installed elsewhere and LOAM_ROOT does not name a checkout
    """
    named = os.environ.get("LOAM_ROOT")
    folder = Path(named).resolve() if named else Path(__file__).resolve().parents[2]
    if not (folder / "CMakePresets.json").is_file():
        raise LoamError(
            "LOAM_ROOT",
            named or folder,
            "no checkout of Loam is there",
            "start ./loam from a checkout, or set LOAM_ROOT",
        )
    return folder


def dot_loam() -> Path:
    """The ignored folder for what set-up unpacks and caches; not necessarily there yet."""
    return root() / ".loam"


def unpacked_root() -> Path:
    """The tree into which set-up unpacks Debian packages when it may not install them."""
    return dot_loam() / "root"


def library_folders() -> tuple[Path, ...]:
    """Folders in which Debian's shared libraries lie, the machine's own before unpacked ones."""
    triple = f"{os.uname().machine}-linux-gnu"
    system = (Path("/usr/lib") / triple, Path("/lib") / triple)
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


def results_root(cwd: Path | None = None) -> Path:
    """The folder "results" of the current folder (or of cwd); not necessarily there yet."""
    return (cwd or Path.cwd()) / "results"


def latest_result(cwd: Path | None = None) -> Path:
    """The folder that results/latest points to.

    raises: LoamError if nothing was measured in this folder yet
    """
    link = results_root(cwd) / "latest"
    if not link.exists():
        raise LoamError(
            "results/latest",
            None,
            "there is no result in this folder yet",
            "run ./loam tour, or name a result's folder",
        )
    return link.resolve()


def build_folder(preset: str = "release") -> Path:
    """build/<preset> of the checkout."""
    return root() / "build" / preset


def paths_json(preset: str = "release") -> Path:
    """The generated file that names executables and libraries of a build."""
    return build_folder(preset) / "loam-paths.json"


def load_paths(preset: str = "release") -> dict[str, Any]:
    """Content of loam-paths.json: {"preset", "root", "compiler", "flags", "executables": {...}, "libraries": {...}}.

    raises: LoamError if the preset was never configured or the file is not whole
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
    return content
