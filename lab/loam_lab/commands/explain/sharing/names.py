"""Source lines of what the sampler saw: of each access, and of each call stack that allocated a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loam_lab.commands.explain.sharing.watches import Process
from loam_lab.model import functions
from loam_lab.subjects import symbols, symtab
from loam_lab.subjects.symbols import Frame, Place

# Nobody looks for his own lines in these, also where their debug symbols are installed: a wait in one of them is named by
# who called it.
RUNTIME = ("libc.so", "libstdc++.so", "libgcc_s.so", "libm.so", "libpthread.so", "ld-linux")
UNKNOWN = "??"  # what addr2line calls what it does not know
ADDRESS = "0x"  # what the name of a place begins with that has neither a line nor a symbol
Chains = dict[tuple[str, int], tuple[Frame, ...]]


@dataclass
class Names:
    """Numbers of sites, and the place of each.

    code: by process, the address behind an instruction and the callers of its function
    stacks: by process and number of the stack
    """

    places: dict[int, Place] = field(default_factory=dict)
    code: dict[tuple[int, int, tuple[int, ...]], int] = field(default_factory=dict)
    stacks: dict[tuple[int, int], int] = field(default_factory=dict)

    def of_code(self, at: int, address: int, callers: tuple[int, ...]) -> int:
        """The site of an instruction; 0 where it has none."""
        return self.code.get((at, address, callers), 0)


def find(processes: Sequence[Process], root: Path) -> Names:
    """The names of all that the processes say of code.

    root: files below it are named from there; raises: LoamError if addr2line is missing or fails
    """
    wanted: dict[tuple[int, int], tuple[str, int]] = {}
    for at, process in enumerate(processes):
        for address in _addresses(process):
            if (place := process.loaded.in_file(address - 1)) is not None:
                wanted[at, address] = place
    chains = _chains(wanted.values(), root)
    names = Names()

    def chain(at: int, addresses: Iterable[int]) -> list[Frame]:
        return [
            frame
            for address in addresses
            if (place := wanted.get((at, address))) is not None
            for frame in chains.get(place, ())
        ]

    for at, process in enumerate(processes):
        for address, callers in _code(process):
            if (at, address, callers) not in names.code:
                own = chain(at, [address])
                names.code[at, address, callers] = _add(names, own, chain(at, callers))
        for number, callers in process.stacks.items():
            names.stacks[at, number] = _add(names, chain(at, callers))
    return names


def _code(process: Process) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The instructions of watches that caught something, each with the callers of its function.

    A sampled address is the instruction's own; one that trapped lies behind it, as a return address does.
    """
    for watch in process.watches:
        if watch.caught:
            yield watch.ip + 1, watch.callers
            yield from ((caught.ip, caught.callers) for caught in watch.caught)


def _addresses(process: Process) -> set[int]:
    addresses = {caller for callers in process.stacks.values() for caller in callers}
    for address, callers in _code(process):
        addresses |= {address, *callers}
    return addresses


def _add(names: Names, chain: Sequence[Frame], outer: Sequence[Frame] = ()) -> int:
    number = len(names.places) + 1
    names.places[number] = Place(best(chain, outer), (*chain, *outer))
    return number


def best(chain: Sequence[Frame], outer: Sequence[Frame] = ()) -> Frame | None:
    """The frame that a user knows best: the innermost line that is not the system's, else the innermost name.

    outer: frames of the callers; where the line is one of theirs, the function that they called is named with it
    """
    inner = next((frame for frame in chain if frame.function != UNKNOWN), None)
    if (own := _own(chain)) is not None:
        return own
    if (own := _own(outer)) is None:
        return inner or next((frame for frame in outer if frame.function != UNKNOWN), None)
    return Frame(f"{own.function}, in {inner.function}", own.file, own.line) if inner else own


def _own(chain: Sequence[Frame]) -> Frame | None:
    return next((frame for frame in chain if frame.line and not frame.file.startswith(symbols.SYSTEM)), None)


def _chains(places: Iterable[tuple[str, int]], root: Path) -> Chains:
    """The chain of inlined functions of each place; where no line table covers it, its object file stands for a line."""
    by_file: dict[str, set[int]] = {}
    for file, address in places:
        by_file.setdefault(file, set()).add(address)
    chains: Chains = {}
    for file, addresses in by_file.items():
        if not Path(file).is_file():
            continue
        for address, chain in symbols.frames(Path(file), sorted(addresses), root).items():
            lines = () if Path(file).name.startswith(RUNTIME) else tuple(frame for frame in chain if frame.line)
            chains[file, address] = lines or (_by_symbol(file, address),)
    return chains


def _by_symbol(file: str, address: int) -> Frame:
    """Addr2line names the nearest symbol before an address; here an address behind the symbol's end has no name.

    In a file of the program's own that is stripped the address stands for one: it is the program that allocates, or waits.
    """
    own, name = Path(file).name, symtab.function(file, address).partition("@")[0]
    if name:
        return Frame(functions.short(name), own, 0)
    return Frame(UNKNOWN if own.startswith(RUNTIME) else f"{ADDRESS}{address:x}", own, 0)
