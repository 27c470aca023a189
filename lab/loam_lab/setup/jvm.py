"""Java, and the jar of jvm/: set up when a synchronisation on the JVM is asked for, and not before.

Maven fetches what the locked versions name into a repository of this checkout's own, with its checksums checked; the
libraries that are run are held against jvm/dependencies.lock besides. After that no network is needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.setup import debian

PREFIX = "jvm-"
VERSION = "17"
PACKAGE = "openjdk-17-jdk-headless"
_HOMES = Path("/usr/lib/jvm")


def folder() -> Path:
    """Where the jar, its libraries, and the repository of Maven are; not necessarily there yet."""
    return paths.dot_loam() / "jvm"


def jar() -> Path:
    """The jar of jvm/; not necessarily there yet."""
    return folder() / "target" / "loam-jvm.jar"


def description(library: str) -> Path:
    """What a library says to --describe; not necessarily there yet."""
    return folder() / "describe" / f"{library}.json"


def _homes() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if _HOMES.is_dir():
        yield from sorted(_HOMES.glob(f"java-{VERSION}-openjdk-*"))
    if program := shutil.which("java"):
        yield Path(program).resolve().parent.parent


def _version(home: Path) -> str:
    """The version of a Java home, by its file "release"; "" if it has none."""
    try:
        match = re.search(r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        return ""
    return match[1] if match else ""


def java_home() -> Path:
    """The home of a Java 17.

    raises: LoamError naming the versions that are there, and the package
    """
    others = []
    for home in _homes():
        version = _version(home)
        if version.split(".")[0] == VERSION and (home / "bin/java").exists():
            return home
        if version:
            others.append(version)
    wrong = f"is of version {', '.join(dict.fromkeys(others))}" if others else "not found"
    raise LoamError(
        "java", None, f"{wrong}, and {PREFIX}... runs on Java {VERSION}", f"as root: apt-get install {PACKAGE}"
    )


def sources() -> list[Path]:
    """The files of which the jar is made."""
    top = paths.root() / "jvm"
    return [top / "pom.xml", top / "dependencies.lock", *sorted((top / "src/main").rglob("*.java"))]


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(paths.root())}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _stamp() -> dict[str, str]:
    try:
        stamp: dict[str, str] = json.loads((folder() / "built.json").read_text())
    except (OSError, ValueError):
        return {}
    return stamp


def is_built() -> bool:
    """Whether the jar is there and made from the sources as they are now. Starts no process."""
    return jar().is_file() and _stamp().get("sources") == _digest(sources())


def ensure() -> None:
    """Make sure that Java, Maven, the libraries and the jar are there.

    raises: LoamError where a package, the network or the compiler fails, or a library is not the locked one
    """
    if is_built():
        java_home()
        return
    debian.ensure("jvm")
    home = java_home()
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if is_built():  # another start built it while this one waited
            return
        built, pom = _digest(sources()), _digest([paths.root() / "jvm/pom.xml"])
        offline = _stamp().get("pom") == pom
        console.note(f"building the jar of jvm/{'' if offline else ' and fetching its libraries'} ...")
        maven(home, "package", "-DskipTests", offline=offline)
        check_libraries()
        _describe(home)
        (folder() / "built.json").write_text(json.dumps({"sources": built, "pom": pom}))


def maven(home: Path, *arguments: str, offline: bool) -> None:
    """Run Maven on jvm/ with its output in .loam/jvm/maven.log; where it fails, the end of that is shown.

    raises: LoamError
    """
    if not shutil.which("mvn"):
        raise LoamError("mvn", None, "not found", "as root: apt-get install maven")
    command = [
        "mvn", "--batch-mode", "--no-transfer-progress", "--strict-checksums", *(["--offline"] if offline else []),
        f"-Dmaven.repo.local={folder() / 'repository'}", f"-Dloam.target={folder() / 'target'}", *arguments,
    ]  # fmt: skip
    log = folder() / "maven.log"
    with log.open("w") as file:
        done = subprocess.run(
            command, cwd=paths.root() / "jvm", env={**os.environ, "JAVA_HOME": str(home)}, stdin=subprocess.DEVNULL,
            stdout=file, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        errors = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("[ERROR]")]
        console.note("\n".join(f"    {line}" for line in errors[:20]))
        raise LoamError("jvm/pom.xml", None, f"mvn {arguments[0]} failed, see above",
                        f"is there a network? all of the output is in {log}", exit_code=1)  # fmt: skip


def check_libraries() -> None:
    """Hold the fetched libraries against jvm/dependencies.lock; raises: LoamError naming the first that differs."""
    lines = [line.split("  ") for line in (paths.root() / "jvm/dependencies.lock").read_text().splitlines()]
    locked = {name: digest for digest, name in lines}
    digests = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (folder() / "target/lib").glob("*.jar")
    }
    for name in sorted(locked.keys() | digests.keys()):
        if locked.get(name) != digests.get(name):
            raise LoamError(
                f".loam/jvm/target/lib/{name}", digests.get(name, "missing"),
                f"jvm/dependencies.lock says {locked.get(name, 'that there is no such library')}",
                "remove .loam/jvm, and name what changed in the lock",
            )  # fmt: skip


def _describe(home: Path) -> None:
    """Ask every library what it is, once: asking takes longer than most commands that want to know.

    The answers appear all at once: a library whose answer is there is taken as set up.
    """
    described, target = folder() / "describe", folder() / "describe.new"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    done = subprocess.run(
        [str(home / "bin/java"), "-jar", str(jar()), "--describe-all", str(target)], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise LoamError(str(jar()), None, f"does not say what it is: {done.stderr.strip()[-300:]}", "run ./loam test",
                        exit_code=1)  # fmt: skip
    shutil.rmtree(described, ignore_errors=True)
    target.rename(described)
