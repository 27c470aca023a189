"""How an allocator that comes as sources is made: the [source] table of its TOML file, and what was built from it.

Crates are pinned twice: name and version in the table, SHA-256 in the Cargo.lock of the folder that `lock` names.
A built allocator is .loam/allocators/NAME/: the object and built.json, which carries the digest of the recipe.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tomllib
from dataclasses import MISSING, asdict, dataclass
from pathlib import Path
from typing import Any

from loam_lab.base import paths
from loam_lab.base.errors import LoamError

BUILT = "built.json"
SCHEMA = 1


@dataclass(frozen=True)
class Module:
    """A further repository whose files belong into a folder of the first one, as a git submodule does.

    path: of that folder; git, commit, sha256: as of Source
    """

    path: str
    git: str
    commit: str
    sha256: str

    @property
    def repository(self) -> str:
        """As of Source."""
        return repository_name(self.git)


def repository_name(git: str) -> str:
    """The name of a git repository: the last part of its address."""
    return git.rstrip("/").rpartition("/")[2].removesuffix(".git")


@dataclass(frozen=True)
class Source:
    """One [source] table.

    crate, version: on crates.io; lock: folder beside the TOML file with Cargo.toml and Cargo.lock
    git, commit, sha256: instead of a crate a public repository, its commit, and the digest of that commit's files
    (repository.digest); modules: further repositories inside of its folders
    debian, path: instead of a crate a Debian package and the object inside it; nothing is compiled
    release: the allocator's own version; license: as its authors state it
    folder: inside the crate, where the compiler works; flags, files, libraries: for the compiler, relative to it; {here} is
    the folder of the TOML file
    files_from, pattern, exclude: further files, group 1 of each match of pattern in that file, without exclude's globs
    copy: files to put elsewhere before (jemalloc's crate keeps its configure script apart); configure, make: instead of
          files, arguments of ./configure and targets of make; output: where make puts the object
    object: file name of the object; build_s: how long the build took where it was tried (2 cores), for the announcement
    on_request: not built by `loam allocators build` without names
    """

    object: str
    license: str
    release: str = ""
    crate: str = ""
    version: str = ""
    lock: str = "crates"
    git: str = ""
    commit: str = ""
    sha256: str = ""
    modules: tuple[Module, ...] = ()
    debian: str = ""
    path: str = ""
    compiler: str = "gcc"
    folder: str = "."
    flags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    files_from: str = ""
    pattern: str = ""
    exclude: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    copy: tuple[tuple[str, str], ...] = ()
    configure: tuple[str, ...] = ()
    make: tuple[str, ...] = ()
    output: str = ""
    build_s: float = 0.0
    on_request: bool = False

    @property
    def repository(self) -> str:
        """The name of the git repository."""
        return repository_name(self.git)

    @property
    def origin(self) -> str:
        """Where the sources come from, in a few words."""
        if self.crate:
            return f"crate {self.crate} {self.version}"
        return f"{self.git} at {self.commit[:12]}" if self.git else f"Debian package {self.debian}"


@dataclass(frozen=True)
class Installed:
    """What lies in .loam/allocators/NAME. current: made by the recipe as it stands now; release: as built"""

    path: Path
    release: str
    current: bool


_LISTS = ("flags", "files", "exclude", "libraries", "configure", "make")


def expression(text: str, key: str) -> str:
    """A regular expression whose first group is what is looked for; "" for none.

    key: where it stands
    raises: ValueError in words where it cannot serve
    """
    try:
        groups = re.compile(text).groups
    except re.error as problem:
        raise ValueError(f"{key} is no regular expression: {problem.msg}") from None
    if text and not groups:
        raise ValueError(f"{key} has no group: put what is looked for in parentheses")
    return text


def parse(content: dict[str, Any]) -> Source:
    """A [source] table.

    raises: TypeError, ValueError, KeyError for what is wrong, naming the key
    """
    values = dict(content)
    known = Source.__dataclass_fields__
    for key, value in content.items():
        if key not in known:
            raise ValueError(f"source.{key} is no key of [source]; there are {', '.join(known)}")
        if key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise TypeError(f"source.{key} must be a list of strings")
            values[key] = tuple(value)
    if "copy" in content:
        values["copy"] = tuple(sorted(content["copy"].items()))
    if "modules" in content:
        values["modules"] = tuple(_module(one) for one in content["modules"])
    for key, field in known.items():
        if field.default is MISSING and key not in content:
            raise ValueError(f"source.{key} is missing")
    made = Source(**values)
    if [bool(made.crate), bool(made.debian), bool(made.git)].count(True) != 1:
        raise ValueError("source needs one of: crate and version; git, commit and sha256; debian and path")
    if made.crate and not (made.version and (made.files or made.files_from or made.make)):
        raise ValueError("source.crate needs version, and files or make")
    if made.git and not (made.files or made.files_from or made.make):
        raise ValueError("source.git needs files or make")
    if made.modules and not made.git:
        raise ValueError("source.modules belong to source.git")
    repositories = [("source", made.commit, made.sha256)] if made.git else []
    repositories += [(f"source.modules of {one.path}", one.commit, one.sha256) for one in made.modules]
    for place, commit, sha256 in repositories:
        for key, value, length in (("commit", commit, 40), ("sha256", sha256, 64)):
            if not re.fullmatch(f"[0-9a-f]{{{length}}}", value):
                raise ValueError(f"{place}.{key} must be {length} digits of 0-9 a-f")
    if made.debian and not made.path:
        raise ValueError("source.debian needs path")
    expression(made.pattern, "source.pattern")
    if Path(made.object).name != made.object:
        raise ValueError("source.object must be a plain file name")
    return made


def _module(table: object) -> Module:
    keys = tuple(Module.__dataclass_fields__)
    if not isinstance(table, dict) or set(table) != set(keys) or not all(isinstance(table[key], str) for key in keys):
        raise TypeError(f"each of source.modules must be a table of {', '.join(keys)}")
    if Path(table["path"]).is_absolute() or ".." in Path(table["path"]).parts:
        raise ValueError("source.modules.path must be a folder inside of the repository")
    return Module(**table)


def folder() -> Path:
    """Where built allocators lie."""
    return paths.dot_loam() / "allocators"


def digest(source: Source, file: Path) -> str:
    """SHA-256 of everything the object depends on: the table, the locked checksum, files of ours that flags and files name.

    file: the TOML file
    raises: LoamError if the lock does not know the crate
    """
    beside = [
        Path(own.replace("{here}", str(file.parent))).read_text()
        for own in (*source.flags, *source.files) if own.startswith("{here}")
    ]  # fmt: skip
    table = {key: value for key, value in asdict(source).items() if key not in ("build_s", "on_request", "license")}
    # What an older lab built without these keys is built by the same recipe still.
    table = {key: value for key, value in table.items() if value or key not in ("git", "commit", "sha256", "modules")}
    checksum = locked(source, file) if source.crate else ""
    return hashlib.sha256(json.dumps([table, checksum, beside], sort_keys=True).encode()).hexdigest()


def locked(source: Source, file: Path) -> str:
    """The SHA-256 of the crate's archive as the lock has it.

    raises: LoamError if the lock cannot be read or has another version
    """
    lock = file.parent / source.lock / "Cargo.lock"
    try:
        packages = _packages(lock, lock.stat().st_mtime_ns)
    except (OSError, ValueError) as problem:
        raise LoamError(str(lock), None, f"cannot be read: {problem}", "restore it from git") from None
    version, checksum = packages.get(source.crate, ("", ""))
    if version.partition("+")[0] != source.version.partition("+")[0] or not checksum:
        has = f"locks {source.crate} {version}" if version else f"does not lock {source.crate}"
        raise LoamError(str(lock), None, f"{has}; {file.name} asks for {source.version}", "correct one of the two")
    return checksum


@functools.lru_cache(maxsize=16)
def _packages(lock: Path, changed_ns: int) -> dict[str, tuple[str, str]]:
    packages = tomllib.loads(lock.read_text()).get("package", [])
    return {p["name"]: (p["version"], p.get("checksum", "")) for p in packages}


def full_version(source: Source, file: Path) -> str:
    """The crate's version with its build metadata, as the lock and the name of its folder have it."""
    locked(source, file)
    lock = file.parent / source.lock / "Cargo.lock"
    return _packages(lock, lock.stat().st_mtime_ns)[source.crate][0]


def installed(name: str, source: Source, file: Path) -> Installed | None:
    """What was built for an allocator, None where nothing was."""
    home = folder() / name
    try:
        built = json.loads((home / BUILT).read_text())
        recipe, release, made = str(built["recipe"]), str(built["release"]), str(built["object"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not (home / made).is_file():
        return None
    return Installed(home / made, release, recipe == digest(source, file))
