"""What calls of malloc and free of an allocator execute, and what that costs on a simulated machine.

The code of a native allocator has no hooks, so the simulator cannot see what it does. A table says it: one file for each
allocator with its settings, NAME.toml in a folder `costs` beside the allocator's own file. `./loam allocators costs NAME`
counts it with callgrind. A table holds for the version that it was counted with, or for the same file. Where there is none,
each call costs a fixed number of cycles (simulator/engine/call_costs.hpp), and the run's record says so.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import toml_errors
from loam_lab.base.errors import LoamError

if TYPE_CHECKING:
    from loam_lab.subjects.allocators.registry import Allocator
    from loam_lab.subjects.simulated import Simulated

FOLDER = "costs"
VARIABLE = "LOAM_SIM_ALLOCATION"
# Of a size, each as instructions, accesses to memory, and those of them that lock the line.
CALLS = ("malloc", "free", "malloc_miss", "free_miss", "remote_free")
_EACH = 3


@dataclass(frozen=True)
class Executed:
    """What one call executes, on average."""

    instructions: float
    accesses: float
    locked: float

    def cycles(self, machine: Simulated) -> int:
        """On a machine, as it charges the program's own code: accesses, or accesses and the instructions between them."""
        access = machine.number("l1.cycles")
        between = 0.0
        if machine.values.get("core.costs") == "blocks":
            each = float(machine.values.get("core.instruction_cycles", "1"))
            between = max(0.0, self.instructions - self.accesses) * each
        else:
            access += machine.number("core.access_cycles")
        return round(self.accesses * access + between + self.locked * machine.number("atomic.cycles"))


@dataclass(frozen=True)
class Size:
    """Blocks of a size: how many a thread keeps when they are freed, and what each kind of call executes."""

    size: int
    stock: int
    calls: Mapping[str, Executed]


@dataclass(frozen=True)
class Table:
    """The costs of an allocator. version, sha256: of the object that was counted"""

    name: str
    version: str
    sha256: str
    sizes: Sequence[Size]

    def text(self, machine: Simulated) -> str:
        """What the simulator reads."""
        rows = [
            f"{size.size}=" + ",".join(map(str, (size.stock, *(size.calls[call].cycles(machine) for call in CALLS))))
            for size in self.sizes
        ]
        return ";".join([f"{self.name} {self.version}".strip().replace(";", " "), *rows])

    def toml(self) -> str:
        """The file."""
        lines = [
            f"# Counted by callgrind: ./loam allocators costs {self.name}",
            "# For each size in bytes: freed blocks that a thread keeps, and by call [instructions, accesses, locked accesses].",
            f'version = "{self.version}"',
            f'sha256 = "{self.sha256}"',
        ]
        for size in self.sizes:
            lines += ["", f"[size.{size.size}]", f"stock = {size.stock}"]
            for call in CALLS:
                one = size.calls[call]
                numbers = ", ".join(f"{value:g}" for value in (one.instructions, one.accesses, one.locked))
                lines.append(f"{call} = [{numbers}]")
        return "\n".join(lines) + "\n"


def file_of(allocator: Allocator) -> Path:
    """Where the table of an allocator with its settings is, or would be."""
    return Path(allocator.source).parent / FOLDER / f"{allocator.name}.toml"


def find(allocator: Allocator) -> Table | None:
    """The table that holds for this allocator, if there is one.

    raises: LoamError if a file is damaged, naming file and line
    """
    file = file_of(allocator)
    if not allocator.source or not file.exists():
        return None
    table = _read(file, file.stat().st_mtime_ns)
    same = table.sha256 == allocator.sha256 or (table.version != "" and table.version == allocator.version)
    return table if same else None


def environment(allocator: Allocator, machine: Simulated | None) -> dict[str, str]:
    """Variables that tell a simulated machine what the allocator's calls cost; none on one that exists.

    An allocator of the preset for simulated machines is a part of the program, and the simulator charges its accesses.
    """
    table = find(allocator) if machine is not None else None
    return {VARIABLE: table.text(machine)} if table is not None and machine is not None else {}


@functools.lru_cache(maxsize=64)
def _read(file: Path, changed_ns: int) -> Table:
    return read(file, *toml_errors.read(file, subject="allocator"))


def read(file: Path, text: str, content: Mapping[str, Any]) -> Table:
    """The table of a file: its text, and what tomllib made of it.

    raises: LoamError with file and line, key, value and what is allowed
    """

    def wrong(where: toml_errors.Where, limit: str) -> LoamError:
        return LoamError(
            "allocator", f"{file}:{toml_errors.line_of(text, where)}", limit, "./loam allocators costs counts"
        )

    sizes = []
    for key, row in sorted(content.get("size", {}).items(), key=lambda item: int(item[0]) if item[0].isdigit() else 0):
        if not key.isdigit() or int(key) == 0:
            raise wrong(("size", key), f"size.{key}: a size in bytes is allowed")
        if not isinstance(stock := row.get("stock"), int) or stock < 0:
            raise wrong(("size", key), f"size.{key}: stock: a number of blocks is missing")
        for call in CALLS:
            given = row.get(call)
            if (
                not isinstance(given, list)
                or len(given) != _EACH
                or not all(isinstance(one, int | float) and one >= 0 for one in given)
            ):
                raise wrong(
                    ("size", key, call), f"size.{key}: {call}: [instructions, accesses, locked accesses] is allowed"
                )
        sizes.append(Size(int(key), stock, {call: Executed(*map(float, row[call])) for call in CALLS}))
    if not sizes:
        raise wrong((), "size: no size has costs")
    return Table(file.stem, str(content.get("version", "")), str(content.get("sha256", "")), sizes)
