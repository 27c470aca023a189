"""What a build of this checkout would make: the names of synchronisations and workloads, read from the folders.

Nothing is built or started. The folders are those that cmake/LoamWorkloads.cmake reads; a name is its file's, with dashes,
and the summary is the first sentence of the comment at the file's head.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base import paths

# Folders with a synchronisation in each file. A later one is taken where two have the same name, as in the build.
_SYNCS = (
    "runtime/tm/algorithms/*.hpp", "runtime/delegation/schemes/*.hpp", "workloads/syncs/*.hpp", "workloads/*/syncs/*.hpp",
)  # fmt: skip
_JVM = "jvm/src/main/java/org/loam/jvm/syncs/*.java"
# Folders of workloads/ without workloads in them: parts that all share, and the same workloads in another form.
_NO_WORKLOADS = ("harness", "syncs", "peers")
# An executable that a family of workloads brings itself, and one that is another form of a built one.
_EXECUTABLE = re.compile(r'loam_workload_executable\(([a-z0-9-]+) "([^"]+)"')
_ENTRY = re.compile(r'\\"([a-z0-9-]+)\\": \{ \\"argv\\"')


@dataclass(frozen=True)
class Source:
    """A synchronisation or workload that a build would make. file: where it is written, below the checkout"""

    name: str
    file: str
    summary: str = ""


def syncs() -> dict[str, Source]:
    """Every synchronisation by name."""
    root = paths.root()
    sources = [_of(file) for pattern in _SYNCS for file in sorted(root.glob(pattern))]
    for file in sorted(root.glob("workloads/*/executables.cmake")):
        for name, header in _EXECUTABLE.findall(file.read_text()):
            written = header.replace("${peers}", "workloads/peers")
            sources.append(Source(name, written, _summary(root / written)))
    entries = root / "cmake/LoamPaths.cmake"
    text = entries.read_text()
    sources += [Source(entry[1], _below(entries), _above(text, entry.start())) for entry in _ENTRY.finditer(text)]
    for file in sorted(root.glob(_JVM)):
        sources.append(Source(f"jvm-{file.stem.lower()}", _below(file), _summary(file)))
    return {source.name: source for source in sorted(sources, key=lambda source: source.file.startswith("workloads/"))}


def workloads() -> dict[str, Source]:
    """Every workload by name; the real programs are rows of a table, not files."""
    from loam_lab.subjects.programs.catalogue import PROGRAMS

    folders = sorted(paths.root().glob("workloads/*/"))
    files = [file for folder in folders if folder.name not in _NO_WORKLOADS for file in sorted(folder.glob("*.cpp"))]
    by_name = {source.name: source for source in map(_of, files)}
    for program in PROGRAMS.values():
        written = "lab/loam_lab/subjects/programs/catalogue.py"
        by_name.setdefault(program.name, Source(program.name, written, program.compares))
    return by_name


def _of(file: Path) -> Source:
    return Source(file.stem.replace("_", "-"), _below(file), _summary(file))


def _below(file: Path) -> str:
    return str(file.relative_to(paths.root()))


def _comment(file: Path) -> Iterator[str]:
    """The words of each line of the comment at a file's head, of C++ or of Java."""
    with file.open() as opened:
        for line in opened:
            if re.match(r"/\*\*|//| \*", line):
                yield re.sub(r"\*/\s*$", "", line).lstrip("/* ").rstrip()
            elif not line.startswith(("package", "import", "\n")):
                return


def _above(text: str, position: int) -> str:
    """The first sentence of the last comment before a position in a file of CMake's."""
    blocks = re.findall(r"(?:^#.*\n)+", text[:position], re.MULTILINE)
    return _sentence(line.lstrip("# ") for line in blocks[-1].splitlines())


def _summary(file: Path) -> str:
    """The first sentence of a head comment; "" where there is none."""
    return _sentence(_comment(file))


def _sentence(lines: Iterable[str]) -> str:
    """The first sentence, without the name in front of it."""
    text = ""
    for line in lines:
        text = f"{text} {line}".strip()
        if ended := re.match(r"(.+?)\.(?:\s|$)", text):
            text = ended[1]
            break
    return re.sub(r"^[a-z0-9-]+: ", "", text)
