"""What of a study the user asked for: groups by name, and the groups of some machines."""

from __future__ import annotations

from collections.abc import Sequence

from loam_lab.base.errors import unknown
from loam_lab.campaign.measure.available import without
from loam_lab.model.study import Study
from loam_lab.subjects import machines

# Of a simulated machine: milliseconds of its own time, in which it does what a host does in them, thousands of times slower.
SIMULATED_BLOCKS, SIMULATED_WARMUP_MS, SIMULATED_MS = 5, 1, 10


def of_groups(study: Study, names: Sequence[str]) -> Study:
    """What of a study runs of some groups alone; all of it where none is named.

    raises: LoamError with the nearest name for one that it does not have
    """
    known = [group.name for group in study.groups]
    for name in names:
        if name not in known:
            raise unknown("--group", name, known, f"group of study {study.name}")
    return without(study, set(known) - set(names)) if names else study


def on_machines(study: Study, machine: Sequence[str]) -> Study:
    """What of a study runs on some machines: the groups that name them, else all of its groups, moved there."""
    kept = {group.name: tuple(one for one in group.machines if one in machine) for group in study.groups}
    named = any(kept.values())
    places = (kept[group.name] or group.machines if named else tuple(machine) for group in study.groups)
    groups = (group.model_copy(update={"machines": some}) for group, some in zip(study.groups, places, strict=True))
    moved = study.model_copy(update={"groups": tuple(groups)})
    return without(moved, {name for name, some in kept.items() if not some}) if named else _simulated_times(moved)


def _simulated_times(study: Study) -> Study:
    """The study with groups on simulated machines that run for as long as these need: their blocks are seeds."""
    groups = []
    for group in study.groups:
        if machines.are_simulated(group.machines):
            short = {"duration_ms": SIMULATED_MS} if "duration_ms" in group.parameters else {}
            group = group.model_copy(update={
                "parameters": {**group.parameters, **short}, "blocks": min(SIMULATED_BLOCKS, study.blocks_of(group)),
                "warmup_ms": min(SIMULATED_WARMUP_MS, study.warmup_of(group)),
            })  # fmt: skip
        groups.append(group)
    if groups and all(machines.are_simulated(group.machines) for group in groups):
        study = study.model_copy(update={"target_width": None})
    return study.model_copy(update={"groups": tuple(groups)})
