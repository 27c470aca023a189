"""All programs by name, in the order of the page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from loam_lab import paths
from loam_lab.allocators import building
from loam_lab.errors import unknown
from loam_lab.programs import interpreters, servers, tools
from loam_lab.programs.running import Program

ALLOCATORS = ("glibc", "loam", "loam:hardened=1")
PROGRAMS = {program.name: program for program in (*tools.PROGRAMS, *interpreters.PROGRAMS, *servers.PROGRAMS)}


def page_parser(module: str, description: str | None, programs: Sequence[str], page: str) -> argparse.ArgumentParser:
    """The command line of a page that runs programs under allocators, the first of which the others are held against.

    programs: the names that are meant where none is asked for; page: its file in docs/performance
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--allocator", default=",".join(ALLOCATORS), help="names, separated by commas; the base first")
    parser.add_argument("--program", default=",".join(programs), help="names, separated by commas")
    parser.add_argument("--short", action="store_true", help="as little work as the tests do")
    parser.add_argument("--page", type=Path, default=paths.root() / "docs" / "performance" / page)
    return parser


def chosen(names: Sequence[str], allocators: Sequence[str]) -> list[Program]:
    """The programs of these names; allocators that are not there yet are built.

    raises: LoamError for a program that is not in the catalogue, and where an allocator is missing
    """
    for name in names:
        if name not in PROGRAMS:
            raise unknown("--program", name, PROGRAMS, "program")
    building.ensure(allocators)
    building.ensure_own(allocators)
    return [PROGRAMS[name] for name in names]
