"""The machines on which a study can run, by name: what each of them has, and how a program is started on it.

Plan, limits of threads, identity of runs, claims, warnings and reports ask the machine of a cell, never the host.
Cells of different machines share no block and no statistic.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loam_lab.base.errors import unknown
from loam_lab.subjects import machine as here
from loam_lab.subjects import machine_keys, simulated
from loam_lab.subjects.simulated import Simulated

HOST = "host"


@dataclass(frozen=True)
class Cache:
    """One cache of a machine; kind: "data", "instruction" or "unified"; shared_by: hardware threads that use it together."""

    level: int
    kind: str
    size_bytes: int
    ways: int
    line_bytes: int
    shared_by: int

    def words(self) -> str:
        """The cache in a few words: "L1d 48 KiB"."""
        letter = {"data": "d", "instruction": "i"}.get(self.kind, "")
        kib = self.size_bytes / 1024
        size = f"{kib / 1024:.3g} MiB" if kib >= 1024 else f"{kib:.3g} KiB"
        shared = f" for {self.shared_by}" if self.shared_by > 1 else ""
        return f"L{self.level}{letter} {size}{shared}"


@dataclass(frozen=True)
class Machine:
    """One machine.

    threads: hardware threads that a run may use; facts: what results record: "cpu", "cores", "fingerprint" and more
    deterministic: the same run takes the same time each time and nothing else disturbs it
    preset: the build whose executables run on it, None for the one that the user chose
    prefix, environment: words in front of each program's command line, and variables of its process
    seed_variable: through which a run's seed reaches the machine, "" where it takes none
    slowdown: how many times longer than its own clocks say a run takes, at most
    transactions: of a simulated one, whether its processors have hardware transactions
    simulated: nothing that is measured on it compares with what is measured on a machine that exists
    description: of a simulated one, its file
    """

    name: str
    threads: int
    facts: Callable[[], dict[str, Any]]
    caches: tuple[Cache, ...] = ()
    deterministic: bool = False
    preset: str | None = None
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    seed_variable: str = ""
    slowdown: float = 1.0
    simulated: bool = False
    transactions: bool = False
    description: Simulated | None = None

    @property
    def words(self) -> str:
        """How messages call it."""
        return "this machine" if self.name == HOST else f"machine {self.name}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """How a program is started on it."""
        return [*self.prefix, *argv]

    def environment_of(self, seed: int) -> dict[str, str]:
        """Variables of the process of a run with that seed."""
        return {**self.environment, **({self.seed_variable: str(seed)} if self.seed_variable else {})}

    def identity(self) -> dict[str, Any]:
        """What belongs to the identity of a run."""
        facts = self.facts()
        own = {"name": self.name, "cpu": facts.get("cpu"), "cores": facts.get("cores")}
        return {**own, "file": facts["fingerprint"]} if self.simulated else own


def host() -> Machine:
    """The machine that the lab runs on."""
    caches = _caches()
    words = ", ".join(cache.words() for cache in caches)

    def facts() -> dict[str, Any]:
        return {**here.fingerprint(), **({"caches": words} if words else {})}

    return Machine(HOST, len(os.sched_getaffinity(0)), facts, caches)


_declared: dict[str, Machine] = {}


def declare(machine: Machine) -> None:
    """Make a machine known for as long as this process lasts: a host that an engine reaches."""
    _declared[machine.name] = machine


def registry() -> dict[str, Machine]:
    """Every machine by name: this one, those of machines/, this one simulated, then those that were declared."""
    this_machine = host()
    described = [*simulated.registry().values(), *([as_found(this_machine)] if this_machine.caches else [])]
    known = {machine.name: machine for machine in (this_machine, *map(_simulated, described))}
    return {**known, **_declared}


# What the kernel does not tell: cycles to use of each level, from another core, from memory; those of a server of today.
_LEVEL_CYCLES = {1: 5, 2: 14, 3: 60}
_TRANSFER_CYCLES, _INVALIDATE_CYCLES, _MEMORY_CYCLES = 80, 60, 250
# Writes that wait for their line, and how long a line of several cores stays with the one that has got it.
_STORE_ENTRIES, _STAY_CYCLES = 64, 4
# Of an atomic operation beside its access, as machines/many-128.toml has it.
_ATOMIC_CYCLES = 18
# 250 interrupts a second of 2.5 microseconds each, at the 1 GHz that a machine has without its own figure.
_INTERRUPTS = "{ every_cycles = 4000000, cycles = 2500 }"


def as_found(machine: Machine) -> simulated.Simulated:
    """This host as a simulated machine: its cores and caches as the kernel tells them, its times assumed.

    A cache whose number of sets is no power of two gets the next lower one; one that the simulator cannot have is left out.
    """
    cores = min(machine.threads, machine_keys.CORES_MAX)
    lines = ['title = "this host as found: its cores and caches, with times of a server of today"', f"cores = {cores}"]
    levels = []
    for cache in machine.caches:
        if cache.kind == "instruction" or cache.level not in _LEVEL_CYCLES or not cache.ways or not cache.line_bytes:
            continue
        sets = 1 << (cache.size_bytes // (cache.ways * cache.line_bytes)).bit_length() - 1
        key, size = f"l{cache.level}", sets * cache.ways * cache.line_bytes
        wrong = (
            machine_keys.wrong_value(f"{key}.{name}", str(of)) for name, of in (("bytes", size), ("ways", cache.ways))
        )
        if any(wrong):
            continue
        shared = f", shared_by = {cache.shared_by}" if cache.level == 2 and cores % cache.shared_by == 0 else ""
        levels.append(key)
        lines.append(
            f"{key} = {{ bytes = {size}, ways = {cache.ways}, cycles = {_LEVEL_CYCLES[cache.level]}{shared} }}"
        )
    lines += [
        f"transfer.cycles = {[_TRANSFER_CYCLES] * 2}", f"invalidate.cycles = {[_INVALIDATE_CYCLES] * 2}",
        f"memory.cycles = [{_MEMORY_CYCLES}]", f"store_buffer.entries = {_STORE_ENTRIES}",
        f"line.stay_cycles = {[_STAY_CYCLES] * 2}", f"atomic.cycles = {_ATOMIC_CYCLES}",
        f"interrupt = {_INTERRUPTS}", "[sources]", 'cores = "the kernel"',
        *(f'{key} = "the kernel; its cycles are assumed"' for key in levels),
        *(f'{key} = "assumed"' for key in ("transfer", "invalidate", "memory", "store_buffer", "line", "atomic", "interrupt")),
    ]  # fmt: skip
    content = "\n".join(lines)
    return simulated.read(Path(HOST), content, tomllib.loads(content))


# One access takes the simulator some 40 ns, of each core in turn.
SLOWDOWN_PER_CORE = 60.0


def _simulated(one: simulated.Simulated) -> Machine:
    caches = tuple(
        Cache(level, "data" if level == 1 else "unified", size, one.number(f"l{level}.ways"),
              one.number("line.bytes") or 64, shared)
        for level in (1, 2, 3)
        if (size := one.number(f"l{level}.bytes"))
        for shared in (_shared_by(one, level),)
    )  # fmt: skip
    cores = one.number("cores")

    def facts() -> dict[str, Any]:
        return {
            "cpu": one.title, "cores": cores, "fingerprint": one.digest(), "simulated": True, "machine_file": one.text(),
            "caches": ", ".join(cache.words() for cache in caches), "assumed": one.assumed_parts(),
        }  # fmt: skip

    return Machine(
        simulated.PREFIX + one.name, cores, facts, caches, deterministic=True, preset=one.preset(),
        environment={"LOAM_SIM_MACHINE": one.text()}, seed_variable="LOAM_SIM_SEED", slowdown=SLOWDOWN_PER_CORE * cores,
        simulated=True, transactions=one.values.get("transactions.policy", "none") != "none", description=one,
    )  # fmt: skip


def _shared_by(one: simulated.Simulated, level: int) -> int:
    if level == 1:
        return 1
    if level == 3:
        return one.number("cores") // (one.number("nodes") or 1)
    return one.number("l2.shared_by") or 1


def find(name: str, option: str = "--machine") -> Machine:
    """The machine of that name; raises: LoamError with the nearest name if there is none."""
    known = registry()
    if name not in known:
        raise unknown(option, name, known, "machine")
    return known[name]


def are_simulated(names: Sequence[str]) -> bool:
    """Whether all of these machines are simulated; False for none."""
    return bool(names) and all(find(name).simulated for name in names)


def _caches() -> tuple[Cache, ...]:
    """The caches of the first processor, as the kernel tells them; none where it does not."""
    caches = []
    for index in range(8):
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{index}"
        texts = {name: here.read(f"{folder}/{name}") for name in ("level", "type", "size", "ways_of_associativity",
                 "coherency_line_size", "shared_cpu_list")}  # fmt: skip
        size = texts["size"].removesuffix("K")
        if not texts["level"].isdigit() or not size.isdigit():
            continue
        caches.append(Cache(
            int(texts["level"]), texts["type"].lower(), int(size) * 1024, _number(texts["ways_of_associativity"]),
            _number(texts["coherency_line_size"]), here.count(texts["shared_cpu_list"]) or 1,
        ))  # fmt: skip
    return tuple(caches)


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
