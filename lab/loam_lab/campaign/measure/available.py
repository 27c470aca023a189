"""What of a study can be run here: allocators and programs that are installed, thread counts that machines have."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from loam_lab.base.errors import LoamError, unknown
from loam_lab.campaign.measure import plan
from loam_lab.subjects import machines, workloads

if TYPE_CHECKING:
    from loam_lab.model.study import Group, Study


def present(study: Study) -> tuple[Study, list[str]]:
    """The study without allocators that this machine lacks, or with what stands for them, and what to say about them.

    The paper's own versions take the places of allocators where they were built.

    Used where the user did not name them: five allocators measured are worth more than an error about the sixth. Those that
    come as sources and that a claim names are built before
    raises: LoamError if none is left
    """
    from loam_lab.subjects.allocators import building, registry

    study, versions = _as_in_the_paper(study)
    named = list(dict.fromkeys(name for group in study.groups for name in study.allocators_of(group)))
    building.ensure_own(named)
    missing: dict[str, tuple[str, str]] = {}
    problem: LoamError | None = None
    claimed = _claimed(study)
    for name in named:
        if registry.split(name)[0] not in registry.definitions():
            raise unknown("allocators", name, registry.all_names(), "allocator")
        try:
            if name in claimed:
                building.ensure([name])
            registry.load(name)
        except LoamError as error:
            problem = error
            missing[name] = (error.limit, error.hint)
    if problem is not None and len(missing) == len(named):
        raise problem
    if not missing:
        return study, versions
    stand_ins = {name: other for name, other in study.lookalikes.items() if name in missing}
    building.ensure_own(list(stand_ins.values()))
    groups = tuple(
        group.model_copy(update={"allocators": _standing(study.allocators_of(group), missing, stand_ins, group)})
        for group in study.groups
    )
    kept = study.model_copy(
        update={"allocators": _standing(study.allocators, missing, stand_ins, None), "groups": groups}
    )
    notes = versions
    for name, (why, how) in missing.items():
        what = "it is not compared"
        if name in stand_ins:
            what = f"{stand_ins[name]}, which is built like it, stands for it; claims about it are decided by preset"
        notes.append(f"{name} is left out: {why}; {what}; {how}")
    return kept, notes


def _as_in_the_paper(study: Study) -> tuple[Study, list[str]]:
    """The study with the paper's versions in the place of today's, on real machines, where they were built; a note of each.

    A simulated machine charges a call of a native allocator what a table says, and has tables of today's.
    """
    from loam_lab.subjects.allocators import building

    known = building.buildable()
    built: dict[str, str] = {}
    notes = []
    for name, version in study.versions.items():
        if not any(name in study.allocators_of(group) for group in study.groups if not _simulated(group)):
            continue
        if version in known and building.is_current(known[version]):
            built[name] = version
            notes.append(f"{version} takes the place of {name}: it is the version that the paper has")
        else:
            notes.append(f"{name} is not the paper's version; ./loam allocators build {version}")
    if not built:
        return study, notes
    groups = tuple(
        group if _simulated(group) else group.model_copy(
            update={"allocators": tuple(built.get(name, name) for name in study.allocators_of(group))}
        )
        for group in study.groups
    )  # fmt: skip
    return study.model_copy(update={"groups": groups}), notes


def _simulated(group: Group) -> bool:
    return all(machines.find(name, "machines").simulated for name in group.machines)


def _claimed(study: Study) -> set[str]:
    """The allocators of which claims read cells of the study's groups."""
    groups = {group.name for group in study.groups}
    read = [one for claim in study.claims for predicate in claim.predicates for one in predicate.selections()]
    return {name for one in read if one.group in groups for name in one.allocator}


def _standing(
    names: Iterable[str], missing: Container[str], stand_ins: Mapping[str, str], group: Group | None
) -> tuple[str, ...]:
    """The names that are there, and look-alikes in the place of those that are not.

    Not on simulated machines: what is built like another allocator is simulated there access by access, and calls of a
    real one cost what a table says.
    """
    simulated = group is not None and _simulated(group)
    there = (name if name not in missing or simulated else stand_ins.get(name, name) for name in names)
    return tuple(dict.fromkeys(name for name in there if name not in missing))


def fitting(study: Study) -> tuple[Study, list[str]]:
    """The study without thread counts beyond the hardware threads of a group's machines, and what to say about them.

    raises: LoamError if no group has any left, or a machine is unknown
    """
    groups, beyond, limits = [], set(), set()
    for group in study.groups:
        largest = max((machines.find(name, "machines") for name in group.machines), key=lambda machine: machine.threads)
        over = set[int]() if group.oversubscribe else {c for c in group.threads if c > largest.threads}
        beyond |= over
        limits |= {f"{largest.words} has {largest.threads} hardware threads"} if over else set()
        groups.append(group.model_copy(update={"threads": tuple(c for c in group.threads if c not in over)}))
    if not beyond:
        return study, []
    limit = "; ".join(sorted(limits))
    if not any(group.threads for group in groups):
        raise LoamError(
            "threads", ",".join(map(str, sorted(beyond))), limit,
            "add --oversubscribe to run them anyway; they decide nothing",
        )  # fmt: skip
    counts = ", ".join(map(str, sorted(beyond)))
    note = f"threads {counts} are left out: {limit}; claims about them stay undecided; use a larger machine"
    gone = {
        group.name: f"group {group.name} is left out: all its thread counts exceed its machine's; its figures are "
        "missing; use a larger machine"
        for group in groups
        if not group.threads
    }
    return without(study.model_copy(update={"groups": tuple(groups)}), set(gone)), [note, *gone.values()]


def installed(study: Study, preset: str = "release") -> tuple[Study, list[str]]:
    """The study without groups of programs that are not installed, and what to say about them.

    raises: LoamError if no group is left, or a synchronisation or workload is unknown
    """
    lacking = {group.name: lacks for group in study.groups if (lacks := lacks_of(group, preset))}
    if len(lacking) == len(study.groups):
        raise LoamError(
            "study", study.name, "none of its programs is installed", f"lacking: {lacking[study.groups[-1].name]}"
        )
    notes = [
        f"group {group.name} is left out: {group.workload} lacks {lacking[group.name]}; its figures are missing; none"
        for group in study.groups if group.name in lacking
    ]  # fmt: skip
    return without(study, set(lacking)), notes


def lacks_of(group: Group, preset: str = "release") -> str:
    """What the program of a group needs and this machine lacks, with the command that installs it; "" where nothing is missing.

    raises: LoamError if a synchronisation or workload is unknown
    """
    own = machines.find(group.machines[0]).preset or preset
    named = [sync for sync in plan.syncs_of(group, own) if sync != workloads.ALL]
    offered = [one.description.workload(group.workload) for one in workloads.resolve_syncs(named, own)]
    return next((workload.lacks for workload in offered if workload is not None and workload.lacks), "")


def without(study: Study, gone: set[str]) -> Study:
    """The study without some of its groups and the figures that show them."""
    return study.model_copy(update={
        "groups": tuple(group for group in study.groups if group.name not in gone),
        "figures": tuple(figure for figure in study.figures if not set(figure.groups) & gone),
    })  # fmt: skip
