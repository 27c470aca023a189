"""Programs that are linked with an allocator of their own: such a program as it is is the baseline, not libc's malloc."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base.errors import LoamError


@dataclass(frozen=True)
class Linked:
    """What the programs bring along.

    before_own: what libc needs to serve them; notes: what to say of it
    baseline: the allocator that serves them where nothing is preloaded, by the name that the lab has for it; "" where
    that is libc, where they differ, or where the lab does not know it
    """

    before_own: Sequence[str] = ()
    notes: Sequence[str] = ()
    baseline: str = ""


def find(programs: Sequence[Sequence[str]]) -> Linked:
    """What the programs of some command lines are linked with; of one that a wrapper such as setpriv executes, that one."""
    from loam_lab.subjects.allocators import preflight, wrappers

    names = [wrappers.behind(line)[0] for line in programs]
    linked = {name: library for name in names if (library := preflight.linked_allocator(name))}
    before = list(dict.fromkeys(file for library in linked.values() for file in preflight.before(library)))
    all_of_them = {linked.get(name) for name in names}
    library = next(iter(all_of_them)) if len(all_of_them) == 1 else None
    baseline = name_of(library) if library else ""
    return Linked(before, _notes(linked, baseline), baseline)


def name_of(library: Path) -> str:
    """The allocator whose file a library is, as the lab knows it without settings; "" where there is none."""
    from loam_lab.subjects.allocators import registry

    for name in registry.definitions():
        if ":" in name:
            continue
        try:
            path = registry.load(name).path
        except LoamError:  # not installed, so not the one that the program is linked with
            continue
        if path is not None and os.path.realpath(path) == os.path.realpath(library):
            return name
    return ""


def _notes(linked: Mapping[str, Path], baseline: str) -> list[str]:
    compared = (
        f"the baseline is {baseline}, the program as it is" if baseline else "the baseline is not the program as it is"
    )
    return [
        f"{name} is linked with {library} and uses it where nothing is preloaded; {compared}; under glibc, libc itself is "
        "preloaded before it, and what the program tells of its memory may then be wrong: it asks its own allocator"
        for name, library in linked.items()
    ]
