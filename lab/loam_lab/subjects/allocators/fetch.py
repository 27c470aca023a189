"""Sources of allocators: crates fetched by cargo and checked file by file, objects out of Debian packages.

No Rust is compiled. The manifests replace every dependency of the crates by an empty one, so cargo brings nothing but
the pinned archives; the lock is of version 3, which Debian 12's cargo reads, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.subjects.allocators import recipe
from loam_lab.subjects.allocators.recipe import Source

TIMEOUT_S = 600.0
# From this cargo on the index is read by HTTP; before, it would clone an index of hundreds of megabytes.
SPARSE_SINCE = (1, 70)


def crate(source: Source, file: Path) -> Path:
    """The crate's folder with verified files; fetched if it is not here yet.

    source: with crate; file: its TOML file
    raises: LoamError offline, without cargo, where a checksum differs
    """
    lock = file.parent / source.lock
    version = recipe.full_version(source, file)
    vendored = recipe.folder() / ".sources" / hashlib.sha256((lock / "Cargo.lock").read_bytes()).hexdigest()[:16]
    home = vendored / f"{source.crate}-{version}"
    if not home.is_dir():
        _vendor(lock, vendored, source.crate)
    if not home.is_dir():
        raise LoamError(str(vendored), None, f"cargo downloaded no {home.name}", f"remove {vendored} and try again")
    _check(home, recipe.locked(source, file))
    return home


def _vendor(lock: Path, target: Path, name: str) -> None:
    """Fetch everything that a lock names into target, all or nothing."""
    from loam_lab.setup import build, debian

    debian.ensure("fetch")
    if os.environ.get("LOAM_NO_SETUP"):
        raise LoamError(
            name, None, "its sources are missing, and --no-setup forbids the download", "leave out --no-setup"
        )
    environment = {**build.tool_environment(), "CARGO_TERM_COLOR": "never"}
    cargo = shutil.which("cargo", path=environment["PATH"])
    if cargo is None:
        raise LoamError("cargo", None, "not found; it downloads the sources", "as root: apt-get install cargo")
    console.note(f"downloading the sources pinned in {lock.name}/Cargo.lock, with cargo ...")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as temporary:
        manifest = Path(temporary) / "manifest"
        _write_manifest(lock, manifest)
        command = [cargo]
        if _version(cargo, environment) < SPARSE_SINCE:
            environment["RUSTC_BOOTSTRAP"] = "1"  # the HTTP index was an unstable option then
            command += ["-Z", "sparse-registry"]
        command += ["vendor", "--locked", "--versioned-dirs", str(Path(temporary) / "vendor")]
        try:
            done = subprocess.run(command, cwd=manifest, env=environment, stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=TIMEOUT_S, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LoamError(name, None, f"cargo did not end within {TIMEOUT_S:.0f} s", _ONLINE) from None
        if done.returncode != 0:
            raise _failed(name, done.stderr)
        if target.exists():
            shutil.rmtree(target)
        (Path(temporary) / "vendor").rename(target)


_ONLINE = "sources come from the registry that cargo is configured for; after the download, builds need no network"


def _failed(name: str, output: str) -> LoamError:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if "changed between lock files" in output or "checksum" in output:
        detail = next((line for line in lines if "checksum" in line), "")
        return LoamError(name, None, f"the archive differs from the locked one: {detail}",
                         "do not build it; find out where it comes from, or correct Cargo.lock if you changed it")  # fmt: skip
    if "`2024` edition" in output or "edition2024" in output:
        return LoamError(name, None, "this cargo is too old for the crate's manifest", "it needs cargo 1.85 or newer")
    if "offline mode" in output:
        return LoamError(name, None, "its sources are missing, and cargo is set to offline", _ONLINE)
    causes = [lines[at + 1] for at, line in enumerate(lines[:-1]) if line == "Caused by:"]
    detail = causes[-1] if causes else lines[-1] if lines else "cargo failed"
    return LoamError(name, None, f"its sources cannot be downloaded: {detail}", _ONLINE)


def _version(cargo: str, environment: dict[str, str]) -> tuple[int, int]:
    done = subprocess.run(
        [cargo, "--version"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    match = re.search(r"cargo (\d+)\.(\d+)", done.stdout)
    if match is None:
        raise LoamError("cargo", cargo, "does not print its version", "check that PATH leads to cargo")
    return int(match[1]), int(match[2])


def _write_manifest(lock: Path, target: Path) -> None:
    """Copy manifest and lock, and make the empty crates that the manifest puts in place of dependencies."""
    target.mkdir()
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(lock / name, target / name)
    packages = {p["name"]: p for p in tomllib.loads((lock / "Cargo.lock").read_text())["package"]}
    (target / "empty.rs").write_text("")
    for name, patch in tomllib.loads((lock / "Cargo.toml").read_text())["patch"]["crates-io"].items():
        home = target / patch["path"]
        home.mkdir(parents=True)
        features = "".join(f'"{feature}" = []\n' for feature in ("default", "derive", "parallel"))
        (home / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "{packages[name]["version"]}"\nedition = "2018"\n\n'
            f'[lib]\npath = "{"../" * len(Path(patch["path"]).parts)}empty.rs"\n\n[features]\n{features}'
        )


def _check(home: Path, checksum: str) -> None:
    """Compare the archive's checksum with the lock, and every file with what the archive had."""
    try:
        sums = json.loads((home / ".cargo-checksum.json").read_text())
        package, files = sums["package"], dict(sums["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise LoamError(str(home), None, "has no checksums of cargo", "remove the folder and build again") from None
    if package != checksum:
        raise LoamError(home.name, package, f"SHA-256 of the archive differs; locked is {checksum}",
                        "do not build it; find out where it comes from")  # fmt: skip
    for name, expected in files.items():
        try:
            with (home / name).open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            digest = "missing"
        if digest != expected:
            raise LoamError(str(home / name), digest, f"SHA-256 differs from the archive's {expected}",
                            f"remove {home.parent} and build again")  # fmt: skip


def debian_object(source: Source, target: Path) -> str:
    """Put the object of a Debian package into target; apt checks its signature.

    returns: the package's version; raises: LoamError offline or where the package has no such file
    """
    from loam_lab.setup import debian

    if os.environ.get("LOAM_NO_SETUP"):
        raise LoamError(source.debian, None, "is missing, and --no-setup forbids the download", "leave out --no-setup")
    with tempfile.TemporaryDirectory(prefix=".deb-", dir=target.parent) as temporary:
        archive = debian.download(source.debian, Path(temporary))
        subprocess.run(["dpkg", "-x", archive, Path(temporary) / "tree"], check=True)
        extracted = Path(temporary) / "tree" / source.path
        if not extracted.is_file():
            raise LoamError(source.debian, None, f"holds no {source.path}", "correct path in its TOML file")
        shutil.copyfile(extracted, target)
    version = archive.name.split("_")[1].replace("%3a", ":")
    return version.partition(":")[2] or version
