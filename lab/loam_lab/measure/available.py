"""What of a study this machine can run: allocators that are here, thread counts that it has processors for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loam_lab.errors import LoamError, unknown

if TYPE_CHECKING:
    from loam_lab.model.study import Study


def present(study: Study) -> tuple[Study, list[str]]:
    """The study without allocators that this machine lacks, and what to say about them.

    Used where the user did not name them: five allocators measured are worth more than an error about the sixth
    raises: LoamError if none is left
    """
    from loam_lab.allocators import building, registry

    named = list(dict.fromkeys(name for group in study.groups for name in study.allocators_of(group)))
    building.ensure_own(named)
    missing: dict[str, tuple[str, str]] = {}
    problem: LoamError | None = None
    for name in named:
        if registry.split(name)[0] not in registry.definitions():
            raise unknown("allocators", name, registry.all_names(), "allocator")
        try:
            registry.load(name)
        except LoamError as found:
            problem = found
            missing[name] = (found.limit, found.hint)
    if problem is not None and len(missing) == len(named):
        raise problem
    if not missing:
        return study, []
    groups = tuple(
        g.model_copy(update={"allocators": tuple(a for a in study.allocators_of(g) if a not in missing)})
        for g in study.groups
    )
    kept = study.model_copy(
        update={"allocators": tuple(a for a in study.allocators if a not in missing), "groups": groups}
    )
    return kept, [
        f"{name} is left out: {why}; nothing is known about it here; {how}" for name, (why, how) in missing.items()
    ]


def fitting(study: Study, cores: int) -> tuple[Study, list[str]]:
    """The study without thread counts beyond the hardware threads, and what to say about them.

    raises: LoamError if no group has any left
    """
    beyond = sorted({count for group in study.groups for count in group.threads if count > cores})
    if not beyond:
        return study, []
    groups = [
        group.model_copy(update={"threads": tuple(count for count in group.threads if count <= cores)})
        for group in study.groups
    ]
    kept = tuple(group for group in groups if group.threads)
    if not kept:
        raise LoamError(
            "threads", ",".join(map(str, beyond)), f"this machine has {cores} hardware threads",
            "add --oversubscribe to run them all the same; they decide nothing",
        )  # fmt: skip
    left_out = f"threads {', '.join(map(str, beyond))} are left out: this machine has {cores} hardware threads"
    note = f"{left_out}; claims about them stay undecided; use a larger machine"
    gone = [group.name for group in groups if not group.threads]
    notes = [note] + [f"group {name} is left out: all its thread counts are beyond this machine's; "
                      "its figures are missing; use a larger machine" for name in gone]  # fmt: skip
    figures = tuple(figure for figure in study.figures if not set(figure.groups) & set(gone))
    return study.model_copy(update={"groups": kept, "figures": figures}), notes
