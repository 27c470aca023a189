"""Source lines of what the sampler saw: of each access, and of each call stack that allocated a block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loam_lab.commands.explain.sharing.watches import Process
from loam_lab.subjects import symbols
from loam_lab.subjects.symbols import Frame, Place

UNKNOWN = "??"  # what addr2line calls what it does not know
Chains = dict[tuple[str, int], tuple[Frame, ...]]


@dataclass
class Names:
    """Numbers of sites, and the place of each.

    code: by process and the address behind an instruction; stacks: by process and number of the stack
    """

    places: dict[int, Place] = field(default_factory=dict)
    code: dict[tuple[int, int], int] = field(default_factory=dict)
    stacks: dict[tuple[int, int], int] = field(default_factory=dict)


def find(processes: Sequence[Process], root: Path) -> Names:
    """The names of all that the processes say of code.

    root: files below it are named from there; raises: LoamError if addr2line is missing or fails
    """
    wanted: dict[tuple[int, int], tuple[str, int] | None] = {}
    for at, process in enumerate(processes):
        for address in _addresses(process):
            found = process.loaded.in_file(address - 1)
            wanted[at, address] = found
    chains = _chains((one for one in wanted.values() if one is not None), root)
    names = Names()

    def chain(at: int, address: int) -> tuple[Frame, ...]:
        place = wanted.get((at, address))
        return chains.get(place, ()) if place is not None else ()

    for at, process in enumerate(processes):
        for watch in (one for one in process.watches if one.caught):
            # A sampled address is the instruction's own; one that trapped lies behind it, as a return address does.
            for address in (watch.ip + 1, *(caught.ip for caught in watch.caught)):
                if (at, address) not in names.code:
                    names.code[at, address] = _add(names, chain(at, address))
        for number, callers in process.stacks.items():
            names.stacks[at, number] = _add(names, [frame for caller in callers for frame in chain(at, caller)])
    return names


def _addresses(process: Process) -> set[int]:
    found = {caller for callers in process.stacks.values() for caller in callers}
    for watch in process.watches:
        if watch.caught:
            found |= {watch.ip + 1, *(caught.ip for caught in watch.caught)}
    return found


def _add(names: Names, chain: Sequence[Frame]) -> int:
    number = len(names.places) + 1
    names.places[number] = Place(best(chain), tuple(chain))
    return number


def best(chain: Sequence[Frame]) -> Frame | None:
    """The frame that a user knows best: the innermost line that is not the system's, else the innermost name."""
    own = next((frame for frame in chain if frame.line and not frame.file.startswith(symbols.SYSTEM)), None)
    return own or next((frame for frame in chain if frame.function != UNKNOWN), None)


def _chains(places: Iterable[tuple[str, int]], root: Path) -> Chains:
    """The chain of inlined functions of each place; where no line table covers it, its object file stands for a line."""
    by_file: dict[str, set[int]] = {}
    for file, address in places:
        by_file.setdefault(file, set()).add(address)
    found: Chains = {}
    for file, addresses in by_file.items():
        if not Path(file).is_file():
            continue
        for address, chain in symbols.frames(Path(file), sorted(addresses), root).items():
            found[file, address] = tuple(
                frame if frame.line else Frame(frame.function, Path(file).name, 0) for frame in chain
            )
    return found
