"""Source lines of code addresses, by binutils' addr2line, which comes with every compiler that builds the workloads."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.model import functions
from loam_lab.setup import build

TIMEOUT_S = 60
SYSTEM = "/usr/"
# Code between a user and the transaction: he asks which of his own lines it was called from.
RUNTIME = ("runtime/", "workloads/syncs/shared/tm_sync.hpp")


@dataclass(frozen=True)
class Site:
    """An address of code: of what follows a call, relative to the object it is in ("" for the executable)."""

    number: int
    object: str
    address: int


@dataclass(frozen=True)
class Frame:
    """A function and a line; file relative to the checkout where it lies in it.

    line: 0 where there is no line table: file is then the object file, or "??"
    """

    function: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Place:
    """The source of a site: the innermost frame outside of the runtime, and the chain from the innermost frame outwards.

    frame: None where no line table covers the address
    """

    frame: Frame | None = None
    chain: tuple[Frame, ...] = field(default=(), compare=False)

    @property
    def text(self) -> str:
        """File, line and function in one phrase."""
        return f"{self.frame.place} ({self.frame.function})" if self.frame else "an unknown line"

    @property
    def own(self) -> Frame | None:
        """The innermost line that is not the C++ library's: what moves is often the runtime's own."""
        return next((frame for frame in self.chain if frame.line and not frame.file.startswith(SYSTEM)), None)


UNKNOWN = Place()


def places(sites: Iterable[Site], executable: Path, root: Path) -> dict[int, Place]:
    """The source of each site by its number.

    executable: that ran; root: of the checkout, from which files are named
    raises: LoamError if addr2line is missing or fails
    """
    by_object: dict[str, list[Site]] = {}
    for site in sites:
        by_object.setdefault(site.object, []).append(site)
    by_number: dict[int, Place] = {}
    for name, wanted in by_object.items():
        file = Path(name) if name else executable
        if not file.is_file():
            continue
        # A return address belongs to the line after the call; a byte before it is still the call.
        chains = frames(file, [site.address - 1 for site in wanted], root)
        for site in wanted:
            chain = chains.get(site.address - 1, ())
            by_number[site.number] = Place(outside(chain), chain)
    return by_number


def outside(chain: Iterable[Frame]) -> Frame | None:
    """The innermost frame that is not the runtime's own; the innermost of all where there is no other."""
    known = [frame for frame in chain if frame.line]
    return next((frame for frame in known if not frame.file.startswith(RUNTIME)), known[0] if known else None)


def frames(file: Path, addresses: Iterable[int], root: Path) -> Mapping[int, tuple[Frame, ...]]:
    """The chain of inlined functions of each address, innermost first.

    raises: LoamError if addr2line is missing or fails
    """
    command = ["addr2line", "--exe", str(file), "--addresses", "--functions", "--inlines", "--demangle"]
    asked = "".join(f"{address:#x}\n" for address in dict.fromkeys(addresses))
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            env=build.tool_environment(),
        )  # fmt: skip
    except FileNotFoundError:
        raise LoamError("addr2line", None, "is not installed", "install binutils") from None
    except subprocess.TimeoutExpired:
        raise LoamError("addr2line", None, f"did not end within {TIMEOUT_S} s on {file}") from None
    if done.returncode != 0:
        raise LoamError("addr2line", None, f"failed on {file}: {done.stderr.strip()[-200:]}")
    return parse(done.stdout, root)


def parse(text: str, root: Path) -> dict[int, tuple[Frame, ...]]:
    """What addr2line printed: an address, then pairs of a function and FILE:LINE."""
    chains: dict[int, list[Frame]] = {}
    chain: list[Frame] = []
    lines = iter(text.splitlines())
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            chain = chains.setdefault(int(line, 16), [])
            continue
        name, _, number = next(lines, "").partition(" (discriminator")[0].rpartition(":")
        chain.append(Frame(functions.short(line), relative(name, root), int(number) if number.isdigit() else 0))
    return {address: tuple(chain) for address, chain in chains.items()}


def relative(name: str, root: Path) -> str:
    """A file as named from the root, without the detours that a compiler or ccache keeps ("/x/./y", "/x/z/../y")."""
    path = Path(os.path.normpath(name))
    return str(path.relative_to(root)) if path.is_absolute() and path.is_relative_to(root) else str(path)
