"""Whether claims read metrics that the executables have; asked before anything is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loam_lab.base.errors import LoamError, unknown
from loam_lab.model.claim import SIMULATOR
from loam_lab.subjects import machines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loam_lab.model.claim import Selection
    from loam_lab.model.description import Description
    from loam_lab.model.study import Study

# What the lab knows of counter runs; the names are those of `counters` in the result.
COUNTED = (
    "instructions", "cycles", "l1d_misses", "l1d_miss_ratio", "llc_misses", "llc_miss_ratio", "dtlb_misses",
    "dtlb_misses_large", "dtlb_first_misses", "hitm", "calls", "requested_bytes", "padding", "external",
    "accesses", "transfers", "upgrades", "false_sharing_misses", "true_sharing_misses", "memory_reads",
)  # fmt: skip


def check(study: Study, descriptions: Mapping[str, Iterable[Description]]) -> None:
    """Refuse a study that reads a metric which does not exist.

    descriptions: of the executables of each group, by its name
    raises: LoamError naming claim or figure, and the nearest metric
    """
    for claim in study.claims:
        for predicate in claim.predicates:
            for selection in predicate.selections():
                _metric(study, selection, selection.metric, f"claim {claim.id}: metric", descriptions)
    for figure in study.paper_figures:
        for ours in figure.ours:
            for name in ours.metrics:
                _metric(study, ours.select, name, f"{figure.id}: metric", descriptions)


def _metric(
    study: Study, selection: Selection, name: str, subject: str, descriptions: Mapping[str, Iterable[Description]]
) -> None:
    from loam_lab.judging.statistics.data import PROCESS_METRICS

    if selection.group not in descriptions:
        return  # a group that does not run
    if selection.source != "timing":
        if name not in COUNTED:
            raise unknown(subject, name, COUNTED, "counted quantity")
        group = next(group for group in study.groups if group.name == selection.group)
        if selection.source == SIMULATOR:
            if not machines.are_simulated(group.machines):
                raise LoamError(
                    subject, name, f"group {group.name} does not run on simulated machines alone", "name another source"
                )
            return
        if selection.source not in study.purposes_of(group):
            advice = f"add {selection.source} = true to it"
            raise LoamError(subject, name, f"group {group.name} has no {selection.source} runs", advice)
        return
    if not name:
        return
    workload = next(group.workload for group in study.groups if group.name == selection.group)
    for description in descriptions[selection.group]:
        if selection.sync not in ("", description.sync.name):
            continue  # asked of another one, which may not run here
        described = description.workload(workload)
        known = [metric.name for metric in (*PROCESS_METRICS, *(described.metrics if described else ()))]
        if name not in known:
            raise unknown(subject, name, known, f"metric of {workload} in {description.sync.name}")
