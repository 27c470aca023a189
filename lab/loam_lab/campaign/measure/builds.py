"""Builds what a study runs, before the study is planned: on this machine, and on a host that an engine uses."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from loam_lab.model.study import Study
from loam_lab.setup import build
from loam_lab.subjects import machines, workloads
from loam_lab.subjects.allocators import building, settings_check


def prepare(study: Study, preset: str = "release") -> None:
    """Build what a study runs, in the build of each machine: the synchronisations that it names, and for workloads
    without one the synchronisation that is their default.

    raises: LoamError if something cannot be built, or if settings of an allocator do not fit together
    """
    for one in dict.fromkeys(machines.find(name).preset or preset for group in study.groups for name in group.machines):
        _build_preset(study, one)
        building.ensure_own([name for group in study.groups for name in study.allocators_of(group)], one)
    for group in study.groups:
        combined = settings_check.combined(study.allocators_of(group))
        # Also for a simulated machine, whose own library runs only there: the check below runs on this machine.
        building.ensure_own(combined, preset)
        settings_check.check(combined, preset, simulated=machines.are_simulated(group.machines))
    # The programs that observe a run are the same on every machine.
    purposes = {purpose for group in study.groups for purpose in study.purposes_of(group)}
    build.ensure_built(["probe", "counted-loop", *(one for one in ("profile", "tlb") if one in purposes)], preset)


def _build_preset(study: Study, preset: str) -> None:
    own = list(dict.fromkeys(sync for group in study.groups for sync in group.sync if "/" not in sync))
    build.ensure_built(None if workloads.ALL in own else own, preset)
    _ensure_defaults({group.workload for group in study.groups if not group.sync}, preset)


def default_sync(workload: str, preset: str = "release", defaults: Sequence[str] = workloads.DEFAULTS) -> str | None:
    """The synchronisation that runs a workload where none is named, built; None where nothing has the workload.

    defaults: those that are preferred, in order; raises: LoamError if something cannot be built
    """
    _ensure_defaults([workload], preset, defaults)
    return workloads.default_sync(workload, preset, defaults)


def _ensure_defaults(by_default: Collection[str], preset: str, defaults: Sequence[str] = workloads.DEFAULTS) -> None:
    """Build the synchronisations that run workloads by default: the last first, which has the least to compile and is all
    that workloads need which share nothing. Where no default has a workload, all are built: perhaps another one has it.
    """
    left = set(by_default)
    for name in reversed(defaults):
        if left:
            build.ensure_built([name], preset)
            left = {workload for workload in left if workloads.default_sync(workload, preset, [name]) != name}
    if left:
        build.ensure_built(None, preset)
