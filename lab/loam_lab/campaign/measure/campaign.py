"""A campaign: run what the plan says and the journal lacks, one process at a time, whatever becomes of each.

Of deterministic machines as many run side by side as there are processors: nothing else changes what they do.

Everything that happens to one cell (a crash, a timeout, a failed verification, an allocator that cannot be proven) is
a line in the journal, and the rest goes on.  Only the disk and the user stop a campaign.
"""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from loam_lab.base import console
from loam_lab.base.interrupts import ends_like_ctrl_c
from loam_lab.campaign.measure import manifest
from loam_lab.campaign.measure.execution import Execution
from loam_lab.campaign.measure.given_up import GivenUp
from loam_lab.campaign.measure.instruments import Instruments, scratch_folder
from loam_lab.campaign.measure.launch import OVERHEAD_GUESS_S
from loam_lab.campaign.measure.live_view import Watched
from loam_lab.campaign.measure.plan import Plan
from loam_lab.campaign.measure.progress import Progress, Remaining
from loam_lab.campaign.measure.schedule import Schedule
from loam_lab.campaign.measure.side_by_side import SideBySide, processors
from loam_lab.campaign.measure.stopping_rule import Narrow
from loam_lab.model.cell import PlannedRun, place_in, place_of
from loam_lab.model.store import folder as folders
from loam_lab.model.store import journal
from loam_lab.model.study import Study
from loam_lab.subjects.machines import HOST

if TYPE_CHECKING:
    from loam_lab.campaign.measure.launch import Launcher
    from loam_lab.campaign.process.execute import Watch

_Carry: TypeAlias = Callable[[Sequence[Sequence[PlannedRun]]], Iterator[tuple[PlannedRun, dict[str, Any] | None]]]

# Repetitions leave a tenth of a time budget alone: later turns may take longer than those so far.
REPEATS_BUDGET_SHARE = 0.9
# The fewest pairs that have a 95 % signed-rank interval.
BLOCKS_FOR_INTERVAL = 6


@dataclass
class Ended:
    """How a campaign ended.

    done, total: runs in the journal, runs planned with those that disturbance added; skipped: given up with their cell
    measured: runs of this start; repeated: runs of blocks that were run again; refused: blocks that stayed disturbed
    because the campaign had spent what it may on repetitions; changed: why cells were given up whose files are not what
    they were when the campaign began
    """

    done: int
    total: int
    skipped: int
    interrupted: bool
    measured: int = 0
    repeated: int = 0
    refused: int = 0
    changed: list[str] = field(default_factory=list)


class Carrier(Protocol):
    """Has runs measured on other machines.  Each of them has a journal of its own in the campaign's folder."""

    def facts(self) -> dict[str, Any]:
        """What each host has, by name, for the manifest."""

    def opened(self, folder: Path) -> contextlib.AbstractContextManager[None]:
        """Get ready for a campaign whose manifest is written; whatever still runs at the end is cancelled."""

    def carry(
        self, blocks: Sequence[Sequence[PlannedRun]], t_s: float, given_up: GivenUp
    ) -> Iterator[tuple[PlannedRun, dict[str, Any] | None]]:
        """Have whole blocks measured; each run with its line, in the order in which they end; None where it is given up.

        t_s: on the campaign's own clock; given_up: kept up to date by the caller
        """

    def problems(self) -> list[str]:
        """Why hosts were given up: fact, consequence, next step."""


@dataclass
class Runner:
    """All that is needed to run a plan into the folder of a campaign.

    launchers: of executables that speak no records, by label; kind, command: go into the manifest
    enough: asked after each block whether the measured blocks suffice; None to run all that are planned
    counter_sources: what the machine can count with, for the manifest; carrier: what measures elsewhere, None for here
    """

    study: Study
    plan: Plan
    folder: Path
    instruments: Instruments
    command: str
    preset: str = "release"
    resume: bool = False
    kind: str = "study"
    launchers: Mapping[str, Launcher] = field(default_factory=dict)
    enough: Callable[[int], bool] | None = None
    counter_sources: Sequence[Mapping[str, Any]] = ()
    carrier: Carrier | None = None
    _began_s: float = 0.0
    _measured: int = 0
    # Where on the campaign's own clock its last run ended before this start; that clock stands still in between.
    _before_s: float = 0.0

    def __post_init__(self) -> None:
        self._execution = Execution(self.study, self.plan, self.instruments, self.launchers)
        self._lanes = processors()
        self._within: Callable[[tuple[object, ...]], Callable[[Watch | None], Watch] | None] = lambda kind: None

    def run(self) -> Ended:
        """Run what is missing.  Ctrl-C ends it with everything kept.

        raises: LoamError if the folder is locked, used, not writable, or (with resume) of another machine or version
        """
        with journal.lock(self.folder):
            written = self._manifest()
            if self.resume:
                folders.check_same(self.folder, folders.read_manifest(self.folder), written)
            else:
                folders.check_unused(self.folder)
                journal.write_whole(self.folder / folders.MANIFEST, json.dumps(written, ensure_ascii=False) + "\n")
            folders.point_latest(self.folder)
            return self._run()

    def _manifest(self) -> dict[str, Any]:
        named = {file for cell in self.plan.cells() for file in self._execution.prepare(cell)}
        head: dict[str, Any] = {
            "kind": self.kind, "command": self.command, "preset": self.preset,
            "counter_sources": [dict(source) for source in self.counter_sources],
        }  # fmt: skip
        if self.carrier is not None:
            head["hosts"] = self.carrier.facts()
        host = next(iter(self._execution.machines.values())) if self.carrier else self.instruments.machine(HOST)
        # Of two builds of our own, the one for this machine: results name an allocator once.
        allocators = {
            name: one
            for (name, _), one in sorted(self._execution.allocators.items(), key=lambda item: item[0][1] is None)
        }
        return manifest.of(self.study, self.plan, allocators, self._execution.machines, host, named, head)

    def _run(self) -> Ended:
        given_up = GivenUp()
        cells = {cell.key: cell for cell in self.plan.cells()}
        finished: dict[str, Mapping[str, Any]] = {}
        self._before_s = 0.0
        for line in journal.read(self.folder):
            if (planned := cells.get(line["cell"])) is not None:
                given_up.note(planned, line)
            finished[self._name_of(line)] = _outline(line)
            self._before_s = max(self._before_s, line.get("t_s", 0.0) + line.get("wall_s", 0.0))
        self._began_s = time.monotonic()
        self._measured = 0
        names: dict[PlannedRun, str] = {}

        def known(run: PlannedRun) -> Mapping[str, Any] | None:
            if run not in names:
                names[run] = self._name(run)
            return finished.get(names[run])

        adaptive = self.study.target_width is not None
        schedule = Schedule(
            self.plan, known, stops=self._stops_before, sensitive=self._sensitive, spare=self._spare,
            close=Narrow(self.study, self.plan, self.folder).close if adaptive else lambda turn, closed: frozenset(),
            minimum=min(self.study.blocks_of(group) for group in self.study.groups) if adaptive else None,
        )  # fmt: skip
        todo = [run for run in self.plan.runs if known(run) is None]
        remaining = Remaining([(self._kind(run), self._guess_s(run)) for run in todo], at_most=adaptive)
        ended = Ended(len(finished), 0, 0, interrupted=False)
        with contextlib.ExitStack() as stack:
            stack.enter_context(ends_like_ctrl_c())
            progress = stack.enter_context(Progress(self.study.name, len(todo), remaining, Watched(self.folder)))
            self._within = progress.within
            closed: set[int] = set()
            try:
                carry = stack.enter_context(self._carrying(given_up, ended))
                for batch in schedule.batches():
                    if schedule.closed != closed:
                        spared = self._spared(batch[0][0].block, schedule.closed - closed)
                        closed |= schedule.closed
                        for other in spared:
                            remaining.done(self._kind(other), None)
                        progress.grow(-len(spared))
                    for run in batch[0] if batch[0][0].attempt else ():
                        remaining.add(self._kind(run), self._guess_s(run))
                        progress.grow(1)
                    began = time.monotonic()
                    for run, record in carry(batch):
                        now = time.monotonic()
                        if record is None:
                            ended.skipped += 1
                        else:
                            finished[self._name_of(record)] = _outline(record)
                            given_up.note(run.cell, record)
                            self._measured += 1
                        remaining.done(self._kind(run), None if record is None else now - began)
                        began = now
                        progress.step()
            except KeyboardInterrupt:
                ended.interrupted = True
            # An interrupt may have come between the journal's line and its being noted.
            ended.done = len({line["id"] for line in journal.read(self.folder)}) if ended.interrupted else len(finished)
        ended.measured = self._measured
        ended.repeated, ended.refused = schedule.repeated, schedule.refused
        ended.total = len(self.plan.runs) + schedule.repeated
        if self.carrier is not None:
            ended.changed += self.carrier.problems()
        return ended

    @contextlib.contextmanager
    def _carrying(self, given_up: GivenUp, ended: Ended) -> Iterator[_Carry]:
        """What measures a batch: this process, or the carrier."""
        if self.carrier is not None:
            carrier = self.carrier
            with carrier.opened(self.folder):
                yield lambda batch: carrier.carry(batch, self._now_s(), given_up)
            return
        with (
            journal.Journal(self.folder) as writer,
            tempfile.TemporaryDirectory(prefix="loam-", dir=scratch_folder()) as scratch,
            SideBySide(self._lanes) as lanes,
        ):
            yield lambda batch: self._here(batch, given_up, ended, writer, Path(scratch), lanes)

    def _here(
        self,
        batch: Sequence[Sequence[PlannedRun]],
        given_up: GivenUp,
        ended: Ended,
        writer: journal.Journal,
        scratch: Path,
        lanes: SideBySide,
    ) -> Iterator[tuple[PlannedRun, dict[str, Any] | None]]:
        def settled(at_most: int) -> Iterator[tuple[PlannedRun, dict[str, Any]]]:
            for done, line in lanes.settle(at_most):
                writer.append(line)
                yield done, line

        # What runs alone comes first, so that the rest is not waited for in between.
        for run in sorted((run for block in batch for run in block), key=self._side_by_side):
            yield from settled(self._side_by_side(run) - 1)
            cell = run.cell
            files = self._execution.files_of(cell)
            if not given_up.reason(cell) and (changed := self._execution.unchanged.problem(files)):
                given_up.change(cell)
                message = (
                    f"{changed}; cells of it have no further runs; restore it and go on with --resume, or begin anew"
                )
                if message not in ended.changed:
                    ended.changed.append(message)
                    console.warn(message)
            if given_up.reason(cell):
                yield run, None
            elif self._side_by_side(run) > 1:
                own = Path(tempfile.mkdtemp(dir=scratch))
                lanes.start(run, functools.partial(self._execution.one, run, own, self._now_s(), lanes.watch))
            else:
                line = self._execution.one(run, scratch, self._now_s(), self._within(self._kind(run)))
                writer.append(line)
                yield run, line
        yield from settled(0)

    def _now_s(self) -> float:
        return self._before_s + time.monotonic() - self._began_s

    def _name(self, run: PlannedRun) -> str:
        """What a run is known by: its identity, or its place in the plan where only the host that runs it knows that."""
        return self._execution.name(run) if self.carrier is None else place_of(run)

    def _name_of(self, line: Mapping[str, Any]) -> str:
        return str(line["id"]) if self.carrier is None else place_in(line)

    def _stops_before(self, block: int) -> bool:
        """Whether the blocks measured suffice, or the next one would not fit into the time budget."""
        if self.enough is not None and self.enough(block):
            return True
        budget_s = self.study.budget_s
        if budget_s is None or block < BLOCKS_FOR_INTERVAL:
            return False
        return not self._time_for(sum(len(one) for one in self.plan.turns[block]), budget_s)

    def _spare(self, turn: int, runs: int) -> bool:
        """Whether the time budget leaves room to repeat so many runs of a turn after all that is planned."""
        budget_s = self.study.budget_s
        if budget_s is None:
            return True
        planned = sum(len(block) for blocks in self.plan.turns[turn + 1 :] for block in blocks)
        return self._time_for(planned + runs, REPEATS_BUDGET_SHARE * budget_s)

    def _time_for(self, runs: int, budget_s: float) -> bool:
        """Whether so many more runs, each as long as those of this start were on average, fit into the time budget."""
        used_s = time.monotonic() - self._began_s
        return used_s * (1 + runs / max(1, self._measured)) <= budget_s

    def _sensitive(self, run: PlannedRun) -> bool:
        """Counts of addresses or aborts are what they are, however long they took."""
        workload = self.plan.executable(run.cell).workload(run.cell.workload)
        return workload.depends_on_time and not self._execution.machines[run.cell.machine].deterministic

    def _spared(self, block: int, columns: AbstractSet[int]) -> list[PlannedRun]:
        """Runs from a block on that columns which were closed before it will not need."""
        return [run for run in self.plan.runs if run.timing and run.block >= block and run.column in columns]

    def _guess_s(self, run: PlannedRun) -> float:
        slowdown = self._execution.machines[run.cell.machine].slowdown
        seconds = self._execution.launcher(run.cell).duration_s(run) * slowdown + OVERHEAD_GUESS_S
        return seconds / self._side_by_side(run)

    def _side_by_side(self, run: PlannedRun) -> int:
        """How many runs like this one are under way at once."""
        return self._lanes if self._execution.machines[run.cell.machine].deterministic else 1

    @staticmethod
    def _kind(run: PlannedRun) -> tuple[object, ...]:
        cell = run.cell
        return (cell.group, cell.machine, cell.sync, cell.parameters, cell.threads, run.purpose)


def _outline(line: Mapping[str, Any]) -> dict[str, Any]:
    """What the schedule asks of a line; the rest, records above all, need not stay in memory."""
    return {"state": line["state"], "disturbance": line.get("disturbance", {})}
