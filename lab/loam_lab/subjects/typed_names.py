"""Names that a user typed, checked before anything is installed, built or measured for them.

What a checkout would build is read from its folders, so a name can be wrong before there is a build to ask. Executables that
are built, and peers that are named by their path, know more: they are asked only where the folders do not have the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loam_lab.base.errors import LoamError, unknown
from loam_lab.model.study import Study
from loam_lab.subjects import machines, sources, workloads
from loam_lab.subjects.allocators import registry


def check(
    *,
    of: Sequence[str] = (),
    syncs: Sequence[str] = (),
    allocators: Iterable[str] = (),
    on: Iterable[str] = (),
    where: str = "",
) -> None:
    """Refuse names that no registry has; nothing is built.

    of: workloads; on: machines; where: the place of a study that has the names, "" for the command line
    raises: LoamError with the nearest name
    """
    for machine in on:
        machines.find(machine, f"{where}machines" if where else "--machine")
    for allocator in allocators:
        registry.check(allocator, f"{where}allocators" if where else "--allocator")
    for sync in syncs:
        _sync(sync, f"{where}sync" if where else "--sync")
    for workload in of:
        _workload(workload, [sync for sync in syncs if "/" in sync], f"{where}workload" if where else "WORKLOAD")


def check_study(study: Study) -> None:
    """The same of all names that a study has; raises: LoamError with the place and the nearest name"""
    for group in study.groups:
        where = f"group {group.name}: "
        names = study.allocators_of(group)
        check(of=[group.workload], syncs=group.sync, allocators=names, on=group.machines, where=where)


def _sync(name: str, subject: str) -> None:
    if "/" in name:
        workloads.peer(name)
        return
    if name == workloads.ALL or name in (known := sources.syncs()):
        return
    try:
        built = workloads.subjects_of()
    except LoamError:  # never configured
        built = {}
    if name not in built:
        raise unknown(subject, name, [*known, *built, workloads.ALL], "synchronisation")


def _workload(name: str, peers: Sequence[str], subject: str) -> None:
    known = set(sources.workloads())
    if name in known:
        return
    descriptions = [executable.description for executable in workloads.resolve_syncs(peers)] if peers else []
    known |= {workload.name for description in descriptions for workload in description.workloads}
    if name not in known:
        known |= {workload.name for description in workloads.built() for workload in description.workloads}
    if name not in known:
        raise unknown(subject, name, known, "workload")
