"""Make what a study runs before it is planned: here, and on a host that an engine reaches."""

from __future__ import annotations

from loam_lab import machines, workloads
from loam_lab.allocators import building, fitting
from loam_lab.model.study import Study
from loam_lab.setup import build


def prepare(study: Study, preset: str = "release") -> None:
    """Make what a study runs, in the build of each machine: the synchronisations that it names, and for other workloads
    what has them by default.

    raises: LoamError for what cannot be built, and for an allocator whose settings do not fit together
    """
    for one in dict.fromkeys(machines.find(name).preset or preset for group in study.groups for name in group.machines):
        _build_preset(study, one)
        building.ensure_own([name for group in study.groups for name in study.allocators_of(group)], one)
    for group in study.groups:
        combined = fitting.combined(study.allocators_of(group))
        building.ensure_own(combined, preset)  # also for a simulated machine: its own library runs nowhere else
        fitting.check(combined, preset, simulated=machines.are_simulated(group.machines))
    # What watches a run is the same on every machine.
    purposes = {purpose for group in study.groups for purpose in study.purposes_of(group)}
    build.ensure_built(["probe", "counted-loop", *(one for one in ("profile", "tlb") if one in purposes)], preset)


def _build_preset(study: Study, preset: str) -> None:
    own = list(dict.fromkeys(sync for group in study.groups for sync in group.sync if "/" not in sync))
    if any(not group.sync for group in study.groups):
        own = list(dict.fromkeys([*own, *workloads.DEFAULTS]))
    build.ensure_built(None if workloads.ALL in own else own, preset)
    by_default = {group.workload for group in study.groups if not group.sync}
    if not all(workloads.default_sync(workload, preset) for workload in by_default):
        build.ensure_built(None, preset)  # perhaps another synchronisation has it
