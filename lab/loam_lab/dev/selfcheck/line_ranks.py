"""Are the cache lines that the sampler finds shared longest those that cores of the simulator share longest?

The same workload runs on this host under the sampler, and on sim:host, which sees each access: how long cores are at a line
that another one used within the time of a watch. Counts of moves are another thing, since who waits at a line does not move
it; how far their ranking is from that of time is computed, too. A line is known in both runs by the code that uses it: they
have other addresses. Lines that the same code uses, such as the nodes of a queue, are one group, whose times are added. The
rank correlation (Spearman) is over the groups that both name. Groups whose times on the simulated machine differ by less than
TIED have one rank: it does not tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.instruments import RealInstruments
from loam_lab.commands.explain import run as simulated
from loam_lab.commands.explain import transfers
from loam_lab.commands.explain.sharing import estimate, findings, run
from loam_lab.commands.explain.sharing.estimate import Basis, Hit, number
from loam_lab.commands.request import Effort, Output, Request, Selection
from loam_lab.subjects import machines, symbols, workloads
from loam_lab.subjects.simulated import PREFIX

if TYPE_CHECKING:
    from loam_lab.commands.explain.sharing.findings import Seen
    from loam_lab.commands.explain.sharing.watches import Watch
    from loam_lab.subjects.symbols import Place

MACHINE = PREFIX + machines.HOST
# Lines whose code is so much the same are one group; a line of the host's belongs to a group from KNOWN on.
ALIKE, KNOWN = 0.5, 0.2
TIED = 1.1
# Of the time of the group that has most: what is shared for less is so before or after the timed part.
WORTH = 0.01
LEAST_RANKS, LEAST_RHO = 3, 0.9
THREADS = 2
PERIOD_US = "1000"  # ten times as many samples as usual: speed is not asked for
DURATION = "duration_ms"
# What the simulator counts besides moves, with the time of a watch: 200 us.
LINE_TIMES = {"LOAM_SIM_LINE_TIMES": "200000"}
_RUNS_MOST = 20

# By file and line, and by file and function: a sample may be told an instruction too late.
Code = tuple[str, str]


@dataclass(frozen=True)
class Program:
    """A workload on a synchronisation under an allocator."""

    workload: str
    sync: str
    allocator: str = "glibc"
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """As a table names it."""
        more = "".join(f" {name}={value}" for name, value in self.parameters.items())
        return f"{self.workload}{more}, {self.sync}, {self.allocator}"


PROGRAMS = (
    Program("queue", "mcs"), Program("queue", "cc-synch"), Program("queue", "two-lock"),
    Program("stack", "mcs"), Program("stack", "cc-synch"), Program("map", "mcs"), Program("map", "cc-synch"),
    Program("intset", "mcs", parameters={"structure": "hash"}), Program("kmeans", "mcs"), Program("intruder", "mcs"),
    Program("lines", "none", parameters={"pattern": "same", "count": "atomic"}), Program("xmalloc", "none", "loam"),
    Program("larson", "none", "loam"), Program("threadtest", "none", "loam"),
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A cache line. codes: what used it, each with how often

    weight: cycles for which cores of the simulated machine shared it, or samples of the host that it stands for
    """

    weight: float
    codes: Mapping[Code, float]
    catches: int = 0
    moves: int = 0


@dataclass
class Group:
    """Lines that the same code uses. cycles, moves: of the simulator; share: of the host's time; catches: that it rests on"""

    codes: dict[Code, float]
    cycles: float
    moves: int = 0
    lines: int = 1
    share: float = 0.0
    catches: int = 0

    @property
    def name(self) -> str:
        """The code that used it most."""
        (place, function), _ = max(self.codes.items(), key=lambda item: item[1])
        return f"{function.partition(' ')[0]} ({place.rpartition('/')[2]})"


@dataclass(frozen=True)
class Ranked:
    """What was found of one program. samples, beside: of the host, and in which share of its watches another thread ran"""

    program: Program
    groups: Sequence[Group]
    samples: int
    beside: float

    @property
    def both(self) -> list[Group]:
        """The groups that both name."""
        return [group for group in self.groups if group.catches >= findings.NAMED_CAUGHT]

    @property
    def rho(self) -> float | None:
        """The rank correlation; None where the simulator tells fewer than three groups of both apart."""
        return correlation([group.cycles for group in self.both], [group.share for group in self.both])

    @property
    def rho_of_moves(self) -> float | None:
        """The rank correlation of moves and times on the simulated machine: what counts of moves could tell of time."""
        return correlation([group.cycles for group in self.groups], tied([group.moves for group in self.groups]))


def ranked(program: Program, seconds: float) -> Ranked:
    """Run a program on both; raises: LoamError where one fails. seconds: of the host's runs"""
    simulation = asked(program, MACHINE)
    moved = simulated_lines(
        simulated.perform(simulation, _Timing()).statistics, Path(simulation.executable.subject.program)
    )
    known = workloads.resolve_syncs([program.sync])[0].parameters(program.workload)
    timed = {DURATION: str(int(seconds * 1000))} if DURATION in known else {}
    return measured(program, moved, asked(program, machines.HOST, timed).command(), seconds)


def measured(program: Program, moved: Sequence[Line], command: Sequence[str], seconds: float) -> Ranked:
    """Watch runs of a command so long, and compare what they share with what moved; raises: LoamError"""
    lines: list[Line] = []
    samples, ran, wall_s = 0, 0.0, 0.0
    for _ in range(_RUNS_MOST):
        performed = run.perform(command, program.allocator, extra={"LOAM_SHARING_PERIOD_US": PERIOD_US})
        if performed.ending:
            raise LoamError("selfcheck sharing", program.text, performed.ending, exit_code=1)
        seen = findings.see(performed.processes, Path.cwd())
        lines += watched(seen)
        samples, wall_s = samples + seen.findings.samples, wall_s + performed.wall_s
        ran += seen.findings.beside * seen.findings.samples
        if wall_s >= seconds:
            break
    return Ranked(program, matched(moved, lines, samples), samples, ran / samples if samples else 0.0)


class _Timing(RealInstruments):
    """Those of this checkout, with a simulator that counts the times of lines."""

    def machine(self, name: str) -> machines.Machine:
        return timing(super().machine(name))


def timing(machine: machines.Machine) -> machines.Machine:
    """The simulated machine, which also counts for how long cores share each line."""
    return replace(machine, environment={**machine.environment, **LINE_TIMES})


def chosen(programs: Sequence[Program], names: Sequence[str]) -> list[Program]:
    """Those whose workload is named, all of them where no name is given; raises: LoamError for a name that none has"""
    known = dict.fromkeys(program.workload for program in programs)
    for name in names:
        if name not in known:
            raise LoamError("--program", name, f"is none of {', '.join(known)}", "choose one of them")
    return [program for program in programs if not names or program.workload in names]


def asked(program: Program, machine: str, timed: Mapping[str, str] | None = None) -> simulated.Asked:
    """The run of a program on a machine. timed: parameters that say how long"""
    preset = machines.find(machine).preset or "release"
    executable = workloads.resolve_syncs([program.sync], preset)[0]
    parameters = [(name, [value]) for name, value in {**program.parameters, **(timed or {})}.items()]
    selection = Selection(
        [program.allocator], [program.sync], [THREADS], [machine], parameters, oversubscribe=True
    )  # fmt: skip
    request = Request(selection, Effort(seed=1), output=Output())
    return simulated.check(program.workload, request, allocator=program.allocator, executable=executable, every=1)


def simulated_lines(statistics: str, executable: Path) -> list[Line]:
    """The lines that moved most, from the simulator's statistics; raises: KeyError, TypeError or ValueError as transfers.read"""
    lines, sites = transfers.read(statistics, 1)
    places = symbols.places(sites.values(), executable, paths.root())
    return [
        Line(line.shared_cycles, _codes((places.get(site), count) for site, count in line.sites), moves=line.transfers)
        for line in lines
    ]


def watched(seen: Seen) -> list[Line]:
    """The lines that watches of a run caught another thread in, each with the samples that it stands for."""
    ranked: list[Line] = []
    basis = Basis.of([watch for process in seen.processes for watch in process.watches], seen.findings.samples)
    for at, process in enumerate(seen.processes):
        lines: dict[int, list[Watch]] = {}
        for watch in process.watches:
            if watch.caught:
                lines.setdefault(watch.line, []).append(watch)
        for watches in lines.values():
            hits = [
                Hit(
                    watch,
                    frozenset(number(one.word) for one in watch.caught),
                    frozenset(one.thread for one in watch.caught),
                )
                for watch in watches
            ]
            share = estimate.share(hits, basis)
            codes = _codes((seen.names.places.get(site), 1.0) for watch in watches for site in _sites(at, watch, seen))
            ranked.append(Line(share.share * basis.samples, codes, share.caught))
    return ranked


def _sites(at: int, watch: Watch, seen: Seen) -> Iterator[int]:
    yield seen.names.of_code(at, watch.ip + 1, watch.callers)
    yield from {seen.names.of_code(at, one.ip, one.callers) for one in watch.caught}


def _codes(places: Iterable[tuple[Place | None, float]]) -> dict[Code, float]:
    counts: dict[Code, float] = {}
    for place, count in places:
        own = place.own if place is not None else None
        if own is not None:
            code = (own.place, f"{own.function} {own.file}")
            counts[code] = counts.get(code, 0.0) + count
    return counts


def matched(moved: Iterable[Line], lines: Iterable[Line], samples: int) -> list[Group]:
    """The groups of lines that moved, those of most time first, each with what the host's lines of the same code have."""
    groups: list[Group] = []
    for line in sorted(moved, key=lambda one: -one.weight):
        if not line.codes:
            continue
        like = next((group for group in groups if alike(group.codes, line.codes) >= ALIKE), None)
        if like is None:
            groups.append(Group(dict(line.codes), line.weight, line.moves))
            continue
        like.cycles, like.moves, like.lines = like.cycles + line.weight, like.moves + line.moves, like.lines + 1
        for code, count in line.codes.items():
            like.codes[code] = like.codes.get(code, 0.0) + count
    groups.sort(key=lambda group: -group.cycles)
    groups = [group for group in groups if group.cycles >= WORTH * groups[0].cycles]
    for line in lines:
        nearest = max(groups, key=lambda group: alike(group.codes, line.codes), default=None)
        if nearest is not None and alike(nearest.codes, line.codes) >= KNOWN:
            nearest.share += line.weight / samples
            nearest.catches += line.catches
    return groups


def alike(one: Mapping[Code, float], other: Mapping[Code, float]) -> float:
    """How much of the use of two lines is by the same code, 0 to 1: the mean of that by lines and that by functions."""
    return sum(_overlap(_by(one, part), _by(other, part)) for part in (0, 1)) / 2


def _by(codes: Mapping[Code, float], part: int) -> dict[str, float]:
    total, shares = math.fsum(codes.values()), dict[str, float]()
    for code, count in codes.items():
        shares[code[part]] = shares.get(code[part], 0.0) + count / total
    return shares


def _overlap(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return math.fsum(min(share, other.get(name, 0.0)) for name, share in one.items())


def tied(values: Sequence[float]) -> list[float]:
    """The values, each in the place of the smallest of those from which it is reached in steps of less than TIED."""
    ties: dict[float, float] = {}
    last = None
    for value in sorted(values):
        ties[value] = ties[last] if last is not None and value < last * TIED else value
        last = value
    return [ties[value] for value in values]


def correlation(times: Sequence[float], other: Sequence[float]) -> float | None:
    """The rank correlation with times of the simulated machine; None where it tells fewer than LEAST_RANKS apart."""
    ranks = tied(times)
    return spearman(ranks, other) if len(set(ranks)) >= LEAST_RANKS else None


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The rank correlation of two rows of numbers, -1 to 1; 0 where one of them has a single rank."""
    first, second = _ranks(one), _ranks(other)
    middle = (len(one) + 1) / 2
    both = math.fsum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    spread = math.fsum((a - middle) ** 2 for a in first) * math.fsum((b - middle) ** 2 for b in second)
    return both / math.sqrt(spread) if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """From 1 on; equal values share the mean of their ranks."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]  # fmt: skip
