"""Which counting runs a study gets: the source that counts here, and for each cell two runs whose difference is taken.

A program's start, its filling and its verification are in every count.  Two runs of the same cell, same seed, that differ
only in their number of operations share all of that: the difference over the difference is the cost of one operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loam_lab.model.cell import COUNTING, IN_VALGRIND, Cell, Purpose
from loam_lab.model.study import Group, Study

if TYPE_CHECKING:
    from loam_lab.subjects.workloads import Executable

# Seen also of what a subject starts: processes are looked at from outside, or say it themselves.
OF_OTHERS: tuple[Purpose, ...] = ("memory", "profile")
# Where the source has another name than the purpose.
_SOURCES = {"tlb": "lackey"}
OPERATIONS = "operations"
# Operations of the longer run.  Valgrind takes some 10 s for a list of 4096 elements.
LONGER = {"counters": 200_000, "callgrind": 20_000, "cachegrind": 20_000, "tlb": 4_000, "profile": 200_000}
# The shorter run has a quarter: it is the warm-up of allocator and caches that both runs share.
SHORTER_PART = 4

Changes = tuple[tuple[str, int | str], ...]


def parts(purpose: Purpose, cell: Cell, executable: Executable) -> list[Changes]:
    """What each run of a purpose changes in its cell; none where the purpose cannot be had.

    executable: that runs the cell
    """
    if executable.description.starts_others:
        return [()] if purpose in OF_OTHERS else []
    known = executable.parameters(cell.workload)
    if purpose not in COUNTING:
        return [()]
    if purpose in IN_VALGRIND and cell.threads > 1:
        return []
    parameter = known.get(OPERATIONS)
    if parameter is None or parameter.type != "integer":
        # A command does the same work every time; what runs for a given time does not.
        return [()] if "duration_ms" not in known else []
    asked = int(dict(cell.parameters).get(OPERATIONS, 0))
    longer = asked or LONGER[purpose]
    return [((OPERATIONS, max(1, longer // SHORTER_PART)),), ((OPERATIONS, longer),)]


def notes(purpose: Purpose, group: Group, cells: Sequence[Cell], executable: Executable) -> list[str]:
    """Why cells of a group do without runs of a purpose: fact, consequence, next step."""
    if executable.description.starts_others and purpose not in OF_OTHERS:
        return [
            f"group {group.name}: {executable.label} starts other processes, which are not counted; there are no {purpose} "
            "runs; use loam bench for a command"
        ]
    if purpose not in COUNTING or all(parts(purpose, cell, executable) for cell in cells):
        return []
    if purpose in IN_VALGRIND and any(cell.threads > 1 for cell in cells):
        return [
            f"group {group.name}: inside valgrind threads run one at a time; cells with several have no {purpose} runs; "
            "count one thread"
        ]
    return [
        f"group {group.name}: {group.workload} cannot be given a number of operations; there are no {purpose} runs; "
        "count another workload"
    ]


def resolve(study: Study, sources: Sequence[Mapping[str, Any]]) -> tuple[Study, list[str]]:
    """The study with counters that count here: valgrind's models stand in for a processor that does not.

    sources: as sources.probe() gives them; returns: the study, and what the reader should know
    """
    state = {source["source"]: source for source in sources}
    perf = state.get("perf_event", {"counts": False, "why": "not looked for"})
    lacking = False
    groups = []
    for group in study.groups:
        purposes = study.purposes_of(group)
        wanted: dict[str, bool] = {}
        if "counters" in purposes and not perf["counts"]:
            wanted = {"counters": False, "callgrind": True, "cachegrind": True}
        if "tlb" in purposes and perf["counts"]:
            wanted = {**wanted, "counters": True, "tlb": False}
        for tool in IN_VALGRIND:
            source = state.get(_SOURCES.get(tool, tool), {"counts": False})
            if wanted.get(tool, tool in purposes) and not source["counts"]:
                wanted[tool] = False
                lacking = True
        groups.append(group.model_copy(update=wanted) if wanted else group)
    remarks = []
    if any("counters" in study.purposes_of(group) for group in study.groups) and not perf["counts"]:
        remarks.append(
            f"hardware counters do not count here ({perf['why']}); instructions come from callgrind and miss ratios from "
            "cachegrind, models of one core without prefetching; count on another machine for cycles and sharing"
        )
    asked = [study.purposes_of(group) for group in study.groups]
    if any("tlb" in purposes for purposes in asked) and (perf["counts"] or not lacking):
        remarks.append(
            "misses of the translation buffers are counted by the processor, with all else that it counts"
            if perf["counts"]
            else f"no processor counts misses of the translation buffers here ({perf['why']}); they come from a model, fed "
            "with every access that valgrind's lackey sees; a program takes some thousand times as long"
        )
    if lacking:
        names = [_SOURCES.get(tool, tool) for tool in IN_VALGRIND]
        why = next((str(state[name]["why"]) for name in names if name in state), "not looked for")
        remarks.append(
            f"valgrind does not work here ({why}); there are no runs of {', '.join(names)}; run ./loam setup"
        )
    return study.model_copy(update={"groups": tuple(groups)}), remarks
