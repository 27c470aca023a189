"""From a study to the list of runs: complete blocks in seeded order.

A block holds every combination that figures compare, plus a second copy of the baseline (the A/A sentinel): it shows
what difference this machine makes out of nothing.  All runs of a block share one seed and one amount of environment
padding, because a workload's keys and the stack's alignment would otherwise differ between what is compared.
Blocks of all groups are interleaved, so that a slow drift of the machine falls on all of them.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from loam_lab.base.errors import LoamError, unknown
from loam_lab.campaign.counters import planning
from loam_lab.model.cell import COUNTING, SPECIAL, Cell, PlannedRun, Purpose
from loam_lab.model.study import Group, Study
from loam_lab.subjects import machines, workloads
from loam_lab.subjects.machines import Machine
from loam_lab.subjects.workloads import Executable

# Runs of another purpose than timing count as a block of their own, so that they never share a timed seed.  They come
# first: they show early what does not work, and a campaign that runs out of time loses whole blocks and nothing else.
SPECIAL_BLOCK = 1_000_000
PADDING_BYTES_MAX = 4096
# A page: ASLR moves the stacks of threads by whole pages only.  The step keeps the alignment that the ABI asks for.
STACK_BYTES_MAX, STACK_STEP_BYTES = 4096, 16


@dataclass
class Plan:
    """What a campaign will run.

    runs: in order, timing runs last; turns: the timing runs by turn and block, in the same order
    executables: by machine and label; notes: what the reader of the plan should know
    """

    runs: list[PlannedRun] = field(default_factory=list)
    turns: list[list[list[PlannedRun]]] = field(default_factory=list)
    executables: dict[tuple[str, str], Executable] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def cells(self) -> list[Cell]:
        """Every cell once, in the order of the study's levels."""
        return list(self._cells)

    def executable(self, cell: Cell) -> Executable:
        """What is started for a cell."""
        return self.executables[cell.machine, cell.sync]

    _cells: list[Cell] = field(default_factory=list)


def make(
    study: Study,
    *,
    oversubscribe: bool = False,
    preset: str = "release",
    where: str = "-p",
    executables: Sequence[Executable] | None = None,
) -> Plan:
    """The plan of a study, after every name, value and thread count has been checked.

    where: how errors call the place of a parameter; executables: of every group, None to find them by their names
    raises: LoamError
    """
    plan = Plan()
    blocks: list[list[list[PlannedRun]]] = []
    for group in study.groups:
        for name in group.machines:
            blocks += _on_machine(study, group, machines.find(name), plan, oversubscribe, preset, where, executables)
    for group in study.groups:
        plan.notes += _uncounted(study, group, plan)
    planned = [run for purpose in SPECIAL for run in _special_runs(study, plan, purpose)]
    plan.runs = [replace(run, order=order) for order, run in enumerate(planned)]
    for index in range(max(len(column) for column in blocks)):
        turn = [
            [replace(run, column=number) for run in column[index]]
            for number, column in enumerate(blocks)
            if index < len(column)
        ]
        random.Random(_seed(study.seed, "columns", index)).shuffle(turn)
        numbered = []
        for block in turn:
            numbered.append([replace(run, order=len(plan.runs) + place) for place, run in enumerate(block)])
            plan.runs += numbered[-1]
        plan.turns.append(numbered)
    return plan


def syncs_of(group: Group, preset: str = "release") -> tuple[str, ...]:
    """The synchronisations that a group names, or the one that is taken where it names none.

    raises: LoamError if no executable that is built offers its workload
    """
    if group.sync:
        return group.sync
    default = workloads.default_sync(group.workload, preset)
    if default is None:
        known = {workload.name for description in workloads.built(preset) for workload in description.workloads}
        raise unknown("WORKLOAD", group.workload, known, "workload")
    return (default,)


def again(plan: Plan, block: Sequence[PlannedRun], attempt: int) -> list[PlannedRun]:
    """The same block once more: same seed and offsets, so that it measures the same, in another order.

    block: its runs as planned; attempt: 1 for the first repetition; returns: runs whose order no other run has
    """
    runs = list(block)
    random.Random(_seed(runs[0].seed, "order", attempt)).shuffle(runs)
    orders = sorted(run.order for run in runs)
    return [
        replace(run, attempt=attempt, order=order + attempt * len(plan.runs))
        for run, order in zip(runs, orders, strict=True)
    ]


def _on_machine(
    study: Study, group: Group, machine: Machine, plan: Plan, oversubscribe: bool, preset: str, where: str,
    executables: Sequence[Executable] | None,
) -> list[list[list[PlannedRun]]]:  # fmt: skip
    """The columns of a group on one machine, checked; what the reader should know goes into the plan's notes."""
    oversubscribe = oversubscribe or group.oversubscribe
    preset = machine.preset or preset
    given = workloads.resolve_syncs(syncs_of(group, preset), preset) if executables is None else list(executables)
    every = executables is None and workloads.ALL in group.sync
    able, skipped = workloads.fitting(given, group.workload, preset)
    able, lacking = workloads.able(able, machine)
    skipped += lacking
    # Of several synchronisations some have fewer threads: their cells are left out.
    kept, slow = workloads.within_threads(able, group.threads)
    some = every or (len(able) > 1 and len(kept) == len(able))
    if some:
        able = kept
        skipped += slow
    plan.notes += skipped
    for executable in able:
        executable.check_runs(group.workload)
        plan.executables.setdefault((machine.name, executable.label), executable)
    threads = group.threads
    if len(group.machines) > 1 and not oversubscribe:
        threads = tuple(count for count in group.threads if count <= machine.threads)
        if threads != group.threads:
            plan.notes.append(
                f"group {group.name}: {machine.words} has {machine.threads} hardware threads; its cells with more are left "
                "out; see those of other machines"
            )
    workloads.check_instrumented(able, machine)
    workloads.check_threads(threads, () if some else able, machine, oversubscribe=oversubscribe)
    plan.notes += workloads.crowded(threads, able, machine) + workloads.cautions(able, machine)
    if any(count > machine.threads for count in threads):
        plan.notes.append(
            f"group {group.name} has more threads than {machine.words}; its times describe the scheduler; "
            "they decide no claim"
        )
    allocators = study.allocators_of(group)
    if not allocators:
        raise LoamError("--allocator", "", "no allocator was chosen", "see loam list allocators")
    levels = workloads.check_parameters(group.levels(), group.workload, able, where)
    if study.blame_of(group) and not any(e.description.sync.blame for e in able):
        labels = ", ".join(executable.label for executable in able)
        plan.notes.append(f"group {group.name}: {labels} do not report the causes of aborts; there are no blame runs")
    own = group.model_copy(update={"threads": threads})
    return _group(study, own, machine.name, able, allocators, levels, plan)


def _seed(*parts: object) -> int:
    """A 32-bit seed from its parts; the same parts give the same seed on every machine and Python."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _group(
    study: Study,
    group: Group,
    machine: str,
    executables: Sequence[Executable],
    allocators: Sequence[str],
    levels: Mapping[str, Sequence[int | str]],
    plan: Plan,
) -> list[list[list[PlannedRun]]]:
    """Columns of blocks of a group on a machine: one column per combination of the workload's own varied parameters."""
    own = {parameter.name for e in executables for parameter in e.workload(group.workload).parameters}
    split = [name for name in levels if len(levels[name]) > 1 and name in own]
    columns = []
    for chosen in itertools.product(*(levels[name] for name in split)):
        fixed = dict(zip(split, chosen, strict=True))
        chosen_levels = {n: [fixed[n]] if n in fixed else v for n, v in levels.items()}
        cells = _cells(study, group, machine, executables, allocators, chosen_levels)
        plan._cells.extend(cells)
        column = []
        for block in range(study.cap_of(group)):
            seed = _seed(study.seed, group.name, sorted(fixed.items()), block)
            padding = _seed(seed, "padding") % PADDING_BYTES_MAX
            stack = _seed(seed, "stack") % (STACK_BYTES_MAX // STACK_STEP_BYTES) * STACK_STEP_BYTES
            runs = [PlannedRun(cell, block, 0, seed, 0, padding, stack=stack) for cell in cells]
            runs.append(PlannedRun(cells[0], block, 1, seed, 0, padding, stack=stack))
            random.Random(_seed(seed, "order")).shuffle(runs)
            column.append(runs)
        columns.append(column)
    return columns


def _cells(
    study: Study,
    group: Group,
    machine: str,
    executables: Sequence[Executable],
    allocators: Sequence[str],
    levels: Mapping[str, Sequence[int | str]],
) -> list[Cell]:
    """Cells of one column, the baseline at the first level of everything first.

    A parameter that only some of the synchronisations have is left out for the others, without repeating their cells.
    """
    cells: dict[Cell, None] = {}
    for executable in executables:
        known = executable.parameters(group.workload)
        names = [name for name in levels if name in known]
        for values in itertools.product(*(levels[name] for name in names)):
            limit = executable.description.sync.threads_max
            for threads in (count for count in group.threads if count <= limit):
                for allocator in allocators:
                    parameters = tuple(zip(names, values, strict=True))
                    cells[
                        Cell(
                            group.name,
                            group.workload,
                            executable.label,
                            allocator,
                            threads,
                            parameters,
                            study.warmup_of(group),
                            machine,
                        )
                    ] = None
    return list(cells)


def _special_runs(study: Study, plan: Plan, purpose: Purpose) -> list[PlannedRun]:
    """The runs of one purpose other than timing: one per cell that can have it, or two, in seeded order of cells.

    Of memory there are as many as the study asks for, in blocks of their own.
    """
    if purpose == "memory" and study.memory_runs > 1:
        first = _of_purpose(study, plan, purpose)
        return [run for number in range(study.memory_runs) for run in _as_block(study, first, number)]
    return _of_purpose(study, plan, purpose)


def _as_block(study: Study, runs: Sequence[PlannedRun], number: int) -> list[PlannedRun]:
    """The n-th block of runs that are not timed: other seeds, another order."""
    again = [replace(run, block=run.block + number, seed=_seed(run.seed, number)) for run in runs]
    random.Random(_seed(study.seed, "block", number)).shuffle(again)
    return again


def _of_purpose(study: Study, plan: Plan, purpose: Purpose) -> list[PlannedRun]:
    """One run of a purpose for each cell that can have it, or two."""
    groups = {group.name: group for group in study.groups}
    runs = []
    for cell in plan.cells():
        group, executable = groups[cell.group], plan.executable(cell)
        if purpose not in study.purposes_of(group):
            continue
        if purpose == "blame" and not executable.description.sync.blame:
            continue
        # Counts of different tools are of the same work.
        what = "counting" if purpose in COUNTING else purpose
        seed = _seed(study.seed, cell.group, sorted(cell.parameters), what)
        tool = (f"--D1={group.d1}",) if purpose == "cachegrind" and group.d1 else ()
        parts = planning.parts(purpose, cell, executable)
        runs.append([
            PlannedRun(cell, SPECIAL_BLOCK + part, 0, seed, 0, 0, purpose, changed=changed, tool=tool)
            for part, changed in enumerate(parts)
        ])  # fmt: skip
    random.Random(_seed(study.seed, f"{purpose} order")).shuffle(runs)
    return [run for of_cell in runs for run in of_cell]


def _uncounted(study: Study, group: Group, plan: Plan) -> list[str]:
    """Why cells of a group do without counting runs that the study asks for."""
    reasons: dict[str, None] = {}
    for purpose in study.purposes_of(group):
        for place, executable in plan.executables.items():
            cells = [c for c in plan.cells() if (c.group, c.machine, c.sync) == (group.name, *place)]
            if cells:
                reasons.update(dict.fromkeys(planning.notes(purpose, group, cells, executable)))
    return list(reasons)
