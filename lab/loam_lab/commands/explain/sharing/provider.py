"""What serves a program that no allocator was chosen for: libc, a library that it is linked with, or its own malloc."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from loam_lab.commands.bench import linkage
from loam_lab.subjects.allocators import probe, registry

LIBC = "glibc"
OWN = "its own malloc"


@dataclass(frozen=True)
class Provider:
    """The program as it is. allocator: as a table names it; words: a sentence for the reader, "" where libc serves it"""

    allocator: str = LIBC
    words: str = ""


def find(proof_file: Path, front: str, watched: Container[int]) -> Provider:
    """By what the probe told of the processes of a run.

    front: the library that was put before the allocator; watched: numbers of the processes that count
    """
    providers = probe.providers(proof_file, front)
    return of(file for pid, file in providers.items() if pid in watched)


def of(files: Iterable[tuple[str, str]]) -> Provider:
    """By program and the file that serves it, of each process; a file of the program's own comes before libc."""
    libc = os.path.realpath(registry.libc_path())
    for program, file in files:
        if os.path.realpath(file) == os.path.realpath(program):
            return Provider(
                OWN,
                "The program has a malloc of its own and was watched as it is; no allocator can take the place of that one, and "
                "its blocks are not seen: a cache line is named by the variable that it lies in, or not at all.",
            )
        if os.path.realpath(file) != libc:
            known = linkage.name_of(Path(file))
            return Provider(
                known or Path(file).name,
                f"The program brings an allocator of its own, {file}, and was watched with it, as it is; --allocator puts "
                "another in its place.",
            )
    return Provider()
