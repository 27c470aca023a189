"""What a simulated machine may be: its keys, their ranges, and what they must be to each other.

The simulator checks the same (simulator/model/machine.cpp; a test compares the two), but late and without the place in the
file. The keys and their meaning: simulator/model/machine.hpp and docs/internals/simulator-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

CORES_MAX, NODES_MAX, DISTANCE_MAX = 128, 16, 4
CYCLES_MAX = 1_000_000

# Whole numbers: the least and the largest.
NUMBERS: dict[str, tuple[int, int]] = {
    "cores": (1, CORES_MAX), "nodes": (1, NODES_MAX),
    "line.bytes": (16, 64), "line.serialised": (0, 1), "page.bytes": (4096, 1 << 30),
    "l1.bytes": (64, 1 << 20), "l1.ways": (1, 64), "l1.cycles": (1, CYCLES_MAX),
    "l2.bytes": (0, 1 << 28), "l2.ways": (1, 64), "l2.shared_by": (1, CORES_MAX), "l2.cycles": (0, CYCLES_MAX),
    "l2.inclusive": (0, 1),
    "l3.bytes": (0, 1 << 30), "l3.ways": (1, 64), "l3.cycles": (0, CYCLES_MAX), "l3.inclusive": (0, 1),
    "memory.uniform": (0, 1),
    "tlb.entries": (0, 4096), "tlb.ways": (1, 64), "tlb.walk_cycles": (0, CYCLES_MAX),
    "tlb2.entries": (0, 65536), "tlb2.ways": (1, 64), "tlb2.cycles": (0, CYCLES_MAX),
    "atomic.cycles": (0, CYCLES_MAX), "fence.cycles": (0, CYCLES_MAX), "store_buffer.entries": (0, 64),
    "transactions.written_lines": (0, 1 << 20), "transactions.begin_cycles": (0, CYCLES_MAX),
    "transactions.commit_cycles": (0, CYCLES_MAX), "transactions.abort_cycles": (0, CYCLES_MAX),
    "interrupt.every_cycles": (0, 1 << 40), "interrupt.cycles": (0, CYCLES_MAX),
    "engine.hot_cycles": (0, 1 << 40), "engine.quantum_cycles": (0, CYCLES_MAX),
    "core.megahertz": (1, 100_000), "core.access_cycles": (0, CYCLES_MAX),
    "thread.block_cycles": (0, CYCLES_MAX), "thread.wake_cycles": (0, CYCLES_MAX),
}  # fmt: skip
# Numbers with at most three decimals, from 0: the largest.
DECIMALS = {"memory.bytes_per_cycle": 4096, "link.bytes_per_cycle": 4096, "core.instruction_cycles": 1000}
# Times by level or by distance: how many at most.
TIMES = {
    "transfer.cycles": DISTANCE_MAX + 2, "invalidate.cycles": DISTANCE_MAX + 2, "line.stay_cycles": DISTANCE_MAX + 2,
    "memory.cycles": DISTANCE_MAX + 1,
}  # fmt: skip
CHOICES = {
    "coherence": ("none", "mesi"),
    "core.costs": ("access", "blocks"),
    "transactions.policy": ("none", "requester-wins", "committer-wins"),
    "transactions.reads": ("l1", "l2", "unlimited"),
}
DISTANCES = "node.distances"
NEEDED = ("cores", "l1.bytes", "l1.ways", "l1.cycles", "memory.cycles")

Wrong = tuple[str, str]  # a key, and what is allowed


def known() -> list[str]:
    """Every key."""
    return [*NUMBERS, *DECIMALS, *TIMES, *CHOICES, DISTANCES]


def wrong_value(key: str, value: str) -> str:
    """What is allowed, if this text is no value of that key; "" if it is."""
    if key in NUMBERS:
        least, most = NUMBERS[key]
        good = value.isdecimal() and least <= int(value) <= most
        return "" if good else f"a whole number from {least} to {most} is allowed"
    if key in DECIMALS:
        whole, point, part = value.partition(".")
        good = whole.isdecimal() and (not point or (part.isdecimal() and len(part) <= 3))
        good = good and float(value) <= DECIMALS[key]
        return "" if good else f"a number from 0 to {DECIMALS[key]} with at most three decimals is allowed"
    if key in TIMES:
        parts = value.split(",")
        good = len(parts) <= TIMES[key] and all(part.isdecimal() and int(part) <= CYCLES_MAX for part in parts)
        return "" if good else f"a list of 1 to {TIMES[key]} whole numbers of cycles up to {CYCLES_MAX} is allowed"
    if key in CHOICES:
        return "" if value in CHOICES[key] else f"allowed are {', '.join(CHOICES[key])}"
    return ""


def disagreements(values: Mapping[str, str]) -> Iterator[Wrong]:
    """Values that do not go together; each value by itself is right."""

    def of(key: str, default: int) -> int:
        return int(values.get(key, default))

    cores, nodes, line = of("cores", 1), of("nodes", 1), of("line.bytes", 64)
    for key in NEEDED:
        if key not in values:
            yield key, "this key is missing"
            return
    if cores % nodes:
        yield "nodes", f"a divisor of cores = {cores} is allowed"
        return
    for key, default in (("line.bytes", 64), ("page.bytes", 4096)):
        if not _power_of_two(of(key, default)):
            yield key, "a power of two is allowed"
    for name in ("l1", "l2", "l3"):
        yield from _cache(name, of, line, cores // nodes)
    for name in ("tlb", "tlb2"):
        entries, ways = of(f"{name}.entries", 0), of(f"{name}.ways", 1)
        if entries % ways or (entries and not _power_of_two(entries // ways)):
            yield f"{name}.entries", f"{name}.ways = {ways} times a power of two, or 0, is allowed"
    if values.get("coherence") == "none" and values.get("transactions.policy", "none") != "none":
        yield "transactions.policy", "only none is allowed where coherence = none"
    if values.get("transactions.reads") == "l2" and not of("l2.bytes", 0):
        yield "transactions.reads", "l1 or unlimited is allowed where there is no l2"
    if values["memory.cycles"].split(",")[0] == "0":
        yield "memory.cycles", "the first one must be more than 0"
    if DISTANCES in values:
        yield from _distances(values[DISTANCES].split(","), nodes)


def _cache(name: str, of: Callable[[str, int], int], line: int, local: int) -> Iterator[Wrong]:
    size, row = of(f"{name}.bytes", 0), line * of(f"{name}.ways", 1)
    if size == 0:
        return
    if size % row:
        yield f"{name}.bytes", f"a multiple of line.bytes x {name}.ways = {row} is allowed"
    elif name == "l1" and not _power_of_two(size // row):
        allowed = f"line.bytes x l1.ways x a power of two is allowed; this makes {size // row} sets"
        yield "l1.bytes", allowed
    if of(f"{name}.cycles", 0) == 0:
        yield f"{name}.cycles", "at least 1 is allowed where the cache is there"
    if name == "l2" and local % of("l2.shared_by", 1):
        yield "l2.shared_by", f"a divisor of the {local} cores of a node is allowed"


def _distances(parts: list[str], nodes: int) -> Iterator[Wrong]:
    if len(parts) != nodes * nodes:
        yield DISTANCES, f"{nodes} rows of {nodes} numbers are allowed"
        return
    if not all(part.isdecimal() for part in parts):
        yield DISTANCES, "whole numbers are allowed"
        return
    rows = [[int(part) for part in parts[row * nodes : (row + 1) * nodes]] for row in range(nodes)]
    for a in range(nodes):
        for b in range(nodes):
            possible = rows[a][b] == 0 if a == b else 1 <= rows[a][b] <= DISTANCE_MAX
            if not possible or rows[a][b] != rows[b][a]:
                allowed = f"0 to itself, 1 to {DISTANCE_MAX} to another, and the same back are allowed"
                yield DISTANCES, f"from {a} to {b} it says {rows[a][b]}; {allowed}"
                return


def _power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
