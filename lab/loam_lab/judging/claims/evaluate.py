"""From a campaign to the ledger: every claim reproduced, contradicted, undecided or not asked, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loam_lab.judging import reasons
from loam_lab.judging.claims import figures, judges, predicates
from loam_lab.judging.claims.values import Evidence, cells_of, measured
from loam_lab.judging.reasons import Unmet
from loam_lab.model import result
from loam_lab.model.claim import CANNOT_BE_DECIDED, SELF_CONTRADICTING
from loam_lab.subjects import simulated

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.model.cell import Cell
    from loam_lab.model.claim import Assumption, Claim

REPRODUCED, CONTRADICTED, UNDECIDED = "reproduced", "contradicted", "undecided"
NOT_ASKED = "not asked"
REASONS_SHOWN = 2
# More levels of a parameter than these are told by the first and the last.
LEVELS_SHOWN = 4


def entries(
    campaign: Campaign,
    cells: Mapping[str, result.Cell],
    counter_sources: Sequence[result.CounterSource] = (),
) -> dict[str, Any]:
    """What a result says about a study's paper: `claims`, `paper_figures`, `placements`; nothing where it has none.

    cells: by cell key, as the result has them, copy 0; counter_sources: as the result has them
    """
    study = campaign.study
    if not study.claims and not study.paper_figures:
        return {}
    counters = {key: entry.counters for key, entry in cells.items()}
    evidence = Evidence(campaign, counters, counter_sources)
    return {
        "claims": [_claim(evidence, claim) for claim in study.claims],
        "paper_figures": figures.paper_figures(evidence, cells),
        "placements": figures.placements(campaign),
    }


def _claim(evidence: Evidence, claim: Claim) -> result.Claim:
    at_first, why, decisions = _decide(evidence, claim)
    verdict, reason = _beyond(evidence, claim, at_first, why)
    return result.Claim(
        id=claim.id,
        section=claim.section,
        figure=claim.figure,
        sentence=claim.sentence,
        predicate=claim.words(),
        groups=claim.groups,
        verdict=verdict,
        reason=reason,
        note=claim.note,
        needs=claim.needs.words(),
        paper=[result.PaperValue(value.what, value.value) for value in claim.paper],
        ours=[comparison.of_result() for decision in decisions for comparison in decision.comparisons],
        machine=" ".join(str(one.get("fingerprint", "")) for one in evidence.campaign.manifest["machines"].values()),
        by_preset=at_first in (REPRODUCED, CONTRADICTED) and any(decision.by_preset for decision in decisions),
        self_contradicting=bool(claim.self_contradicting),
        follows_from=list(claim.follows_from),
        **_read_by(evidence, claim),
        assumed=[_assumed(evidence, claim, one) for one in claim.assumes],
    )


def _assumed(evidence: Evidence, claim: Claim, of: Assumption) -> result.Assumed:
    """What a claim assumes, with its verdict at each other value that this campaign measured."""
    ran = {cell.group for cell in evidence.campaign.cells}
    tried = []
    for instead in of.instead:
        if not ran.issuperset(instead.groups.values()):
            continue
        verdict, reason, _ = _decide(evidence, claim.at(instead))
        tried.append(result.Tried(instead.value, verdict, reason))
    return result.Assumed(of.parameter, of.value, tried)


def _read_by(evidence: Evidence, claim: Claim) -> dict[str, Any]:
    """Machines, allocators and inputs of the cells that a claim's predicates read, and what of the machines is guessed."""
    campaign = evidence.campaign
    cells: dict[Cell, None] = {}
    for selection in (one for predicate in claim.predicates for one in predicate.selections()):
        names = measured(campaign, selection.group)
        for name in selection.allocator:
            cells.update(dict.fromkeys(cells_of(campaign, selection, names.get(name, name))))
    inputs: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells:
        own = {parameter.name for parameter in campaign.workload(cell).parameters}
        levels = inputs.setdefault(cell.workload, {})
        for name, level in cell.parameters:
            if name in own:
                levels.setdefault(name, {})[str(level)] = None
    machines = list(dict.fromkeys(cell.machine for cell in cells))
    facts = {name: campaign.manifest["machines"].get(name, {}) for name in machines}
    return {
        "machines": machines,
        "guessed": {name: list(one["assumed"]) for name, one in facts.items() if one.get("assumed")},
        "allocators": list(dict.fromkeys(cell.allocator for cell in cells)),
        "inputs": [
            " ".join([workload, *(f"{name}={_levels(list(values))}" for name, values in levels.items())])
            for workload, levels in inputs.items()
        ],
    }  # fmt: skip


def _levels(values: Sequence[str]) -> str:
    return ",".join(values) if len(values) <= LEVELS_SHOWN else f"{values[0]}..{values[-1]}"


def _beyond(evidence: Evidence, claim: Claim, at_first: str, why: str) -> tuple[str, str]:
    """The verdict and its reason, where no measurement can give it; else those of what was measured."""
    here = f"here: {at_first}, {why}"
    if claim.self_contradicting:
        return SELF_CONTRADICTING, f"{claim.self_contradicting}; {here}"
    groups = {selection.group for predicate in claim.predicates for selection in predicate.selections()}
    machines = {cell.machine for cell in evidence.campaign.cells if cell.group in groups}
    if claim.model_lacks and any(machine.startswith(simulated.PREFIX) for machine in machines):
        return CANNOT_BE_DECIDED, f"{claim.model_lacks}; {here}"
    return at_first, why


def _decide(evidence: Evidence, claim: Claim) -> tuple[str, str, list[predicates.Decision]]:
    missing = [reasons.words(one) for one in unmet(evidence, claim)]
    absent = _absent(evidence, claim)
    if absent:
        why = f"needs {'; '.join(missing)}" if missing else ""
        return NOT_ASKED, why or f"{'group' if len(absent) == 1 else 'groups'} {', '.join(absent)} did not run", []
    if missing:
        return UNDECIDED, f"needs {'; '.join(missing)}", []
    if not claim.predicates:
        return UNDECIDED, "its needs are met, but the study states no predicate yet", []
    decisions = predicates.decide(evidence, claim.predicates, claim.all_but)
    failed = [decision for decision in decisions if decision.outcome == judges.FAILS]
    if len(failed) > claim.all_but:
        return CONTRADICTED, _together(failed), decisions
    still_open = [decision for decision in decisions if decision.outcome == judges.OPEN]
    if len(failed) + len(still_open) > claim.all_but:
        elsewhere = [decision for decision in still_open if decision.not_run]
        if len(failed) + len(still_open) - len(elsewhere) > claim.all_but:
            return UNDECIDED, _together(still_open), decisions
        # What ran agrees with it, and the rest is for another run.
        return NOT_ASKED, _part(elsewhere, len(claim.predicates)), decisions
    return REPRODUCED, _together([one for one in decisions if one.outcome == judges.HOLDS]), decisions


def _part(elsewhere: Sequence[predicates.Decision], of: int) -> str:
    groups = list(dict.fromkeys(group for decision in elsewhere for group in decision.not_run))
    named = f"{'group' if len(groups) == 1 else 'groups'} {', '.join(groups)} did not run"
    return f"{named}: {len(elsewhere)} of its {of} predicates were not asked"


def _together(decisions: Sequence[predicates.Decision]) -> str:
    """The reasons of several predicates: two of them, and how many more there are."""
    texts = list(dict.fromkeys(decision.reason for decision in decisions))
    more = len(texts) - REASONS_SHOWN
    return "; ".join(texts[:REASONS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _fewest_cores(evidence: Evidence, claim: Claim) -> tuple[str, int]:
    """The machine that a claim's selections run on, and its hardware threads: of several the one with the fewest.

    Several machines of one selection pool their blocks, and the largest of them counts. Where no group of the claim runs, it
    is the largest of the campaign.
    """
    cores = {name: int(facts.get("cores", 0)) for name, facts in evidence.campaign.manifest["machines"].items()}
    largest = []
    for selection in (one for predicate in claim.predicates for one in predicate.selections()):
        ran = {cell.machine for cell in evidence.campaign.cells if cell.group == selection.group}
        own = [name for name in cores if name in ran and selection.machine in ("", name)]
        largest += [max(own, key=cores.__getitem__)] if own else []
    asked = min(largest, key=cores.__getitem__) if largest else max(cores, key=cores.__getitem__, default="host")
    return asked, cores.get(asked, 0)


def _absent(evidence: Evidence, claim: Claim) -> list[str]:
    """The groups that decide a claim, if none of them is in this campaign."""
    ran = {cell.group for cell in evidence.campaign.cells}
    wanted = list(dict.fromkeys(one.group for predicate in claim.predicates for one in predicate.selections()))
    return [] if ran & set(wanted) else wanted


def unmet(evidence: Evidence, claim: Claim) -> list[Unmet]:
    """What a claim needs and this campaign had not."""
    needs, campaign = claim.needs, evidence.campaign
    machines = campaign.manifest["machines"].values()
    lacking = []
    name, cores = _fewest_cores(evidence, claim)
    if cores < needs.cores:
        lacking.append(Unmet("cores", needs.cores, cores, name))
    if needs.rtm and all(machine.get("rtm") != "works" for machine in machines):
        lacking.append(Unmet("rtm"))
    if needs.counters and not any(s.source == "perf_event" and s.counts for s in evidence.counter_sources):
        why = next((s.why for s in evidence.counter_sources if s.source == "perf_event"), "not looked for")
        lacking.append(Unmet("counters", has=why))
    names = measured(campaign)
    lacking += [Unmet("allocator", name) for name in needs.allocators if name not in names]
    known = {workload.name for description in campaign.descriptions.values() for workload in description.workloads}
    if workloads := tuple(name for name in needs.workloads if name not in known):
        lacking.append(Unmet("workloads", workloads))
    syncs = {description.sync.name for description in campaign.descriptions.values()}
    lacking += [Unmet("sync", name) for name in needs.syncs if name not in syncs]
    if needs.machine and needs.machine not in {cell.machine for cell in campaign.cells}:
        lacking.append(Unmet("machine", needs.machine))
    return lacking
