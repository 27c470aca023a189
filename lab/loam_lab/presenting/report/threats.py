"""What limits a result: one row per threat, with its size and its consequence, from what the Result says."""

from __future__ import annotations

import math

from loam_lab.judging.result import processor
from loam_lab.model import result, words
from loam_lab.presenting.report import findings, listing, rounding
from loam_lab.presenting.report.view import Study, number


def table(study: Study) -> listing.Table:
    """Every limit that applies to this result; those that were looked for and not found are said too."""
    rows = [
        *_excluded(study), *_disturbed(study), *_waiting(study), *_families(study), *_stopping(study), *_memory(study),
        *_counters(study), *_threads(study), *_assumed(study), *_proofs(study), *_noise(study),
    ]  # fmt: skip
    columns = (listing.Column("Threat"), listing.Column("Here"), listing.Column("Consequence"))
    return listing.Table("Threat by threat", columns, tuple(rows))


def _excluded(study: Study) -> list[tuple[str, str, str]]:
    lost = [cell for cell in study.cells if cell.state != "ok"]
    failed = sum(cell.failed for cell in study.cells if cell.state == "ok")
    here = f"{len(lost)} of {len(study.cells)} cells without a result"
    here += f"; {failed} failed runs in other cells" if failed else ""
    consequence = (
        "nothing is averaged over them; a failed cell is a result" if lost or failed else "nothing was left out"
    )
    return [("Excluded and failed cells", here, consequence)]


def _disturbed(study: Study) -> list[tuple[str, str, str]]:
    given = study.raw.disturbed or result.Disturbed()
    blocks, stayed, repeated = given.blocks, given.contaminated, given.repeated
    if not blocks:
        return []
    by = [f"{n} by {name.replace('_', ' ')}" for name, n in given.by.items() if n]
    here = f"{repeated} of {blocks} blocks repeated, {stayed} stayed disturbed"
    here += f" ({rounding.percent(stayed / blocks, 2)})" + (f": {words.listing(by)}" if by else "")
    slices, left_out = given.slices, given.slices_left_out
    here += f"; {rounding.percent(left_out / slices, 2)} of all slices left out" if slices else ""
    consequence = (
        "intervals include them; hatched cells also give the ratio without them"
        if stayed
        else "intervals are of quiet blocks"
    )
    return [("Disturbance from outside", here, consequence)]


def _waiting(study: Study) -> list[tuple[str, str, str]]:
    """Of commands that waited for a processor, which time decides."""
    given = study.raw.waiting
    if given is None or given.decides != "processor_s":
        if given is not None and processor.crowded(given):
            here = f"its own threads, or its load, had the processors in {given.own} of {given.blocks} blocks"
            return [("Waiting for a processor", here, "this is part of what is measured")]
        return []
    here = f"threads waited in {given.disturbed} of {given.blocks} blocks"
    return [
        ("Waiting for a processor", here, "processor time (user and system) decides the recommendation, not wall time")
    ]


def _families(study: Study) -> list[tuple[str, str, str]]:
    rows = []
    for key, what, noun in (("headlines", "Best and worst", "cases"), ("cells", "Heat map", "comparisons")):
        family = study.raw.multiplicity.get(key)
        if family and family.size:
            here = f"{family.size} {noun}, adjusted by {family.method or 'an unnamed method'}"
            consequence = "a difference that chance can explain is not shown as a difference"
            rows.append((f"Many comparisons: {what.lower()}", here, consequence))
    if not rows and (count := sum(cell.ratio_to_baseline is not None for cell in study.cells)) > 1:
        consequence = "expect about one in twenty intervals to miss its value"
        rows.append(("Many comparisons", f"{count} ratios, cells not adjusted", consequence))
    return rows


def _stopping(study: Study) -> list[tuple[str, str, str]]:
    given = study.raw.stopping
    if given is None:
        return []
    width, reached = rounding.percent(given.target_width), given.reached
    here = f"intervals of {width} {'reached' if reached else 'not reached'} after {given.blocks} blocks"
    here += f" (at most {given.cap_blocks})" if given.cap_blocks else ""
    consequence = (
        "checking after every batch raises the true error rate a little"
        if reached
        else "small differences stay undecided"
    )
    return [("Stopping rule", here, consequence)]


def _memory(study: Study) -> list[tuple[str, str, str]]:
    runs = [cell.memory for cell in study.cells if cell.memory]
    unfit = [memory for memory in runs if not memory.fit]
    if not runs:
        return []
    reasons = dict.fromkeys(reason for memory in unfit for reason in memory.reasons)
    here = f"{len(unfit)} of {len(runs)} memory runs unfit" + (f": {'; '.join(reasons)}" if reasons else "")
    return [("Memory figures", here, "no verdict on memory from those" if unfit else "verdicts on memory may be drawn")]


def _counters(study: Study) -> list[tuple[str, str, str]]:
    given = study.raw.counter_sources
    if not given:
        return []
    silent = [f"{one.source}: {one.why or 'does not count'}" for one in given if not one.counts]
    counting = [one.source for one in given if one.counts]
    here = f"counting: {words.listing(counting) or 'none'}" + (
        f"; not available: {'; '.join(silent)}" if silent else ""
    )
    consequence = (
        "simulated counts are of one core, without sharing" if "perf_event" not in counting else "measured on the cores"
    )
    return [("Counter sources", here, consequence)]


def _threads(study: Study) -> list[tuple[str, str, str]]:
    machines = study.raw.machines
    cores = {name: number(facts.get("cores")) or math.inf for name, facts in machines.items()}
    over: dict[str, set[int]] = {}
    for group in study.groups:
        if group.threads > cores.get(group.machine, math.inf):
            over.setdefault(group.machine, set()).add(group.threads)
    if not over:
        return []
    here = "; ".join(
        f"{words.listing(map(str, sorted(counts)))} threads on {cores[name]:.0f} cores" for name, counts in over.items()
    )
    return [("More threads than cores", here, "those cells show scheduling too and decide nothing")]


def _assumed(study: Study) -> list[tuple[str, str, str]]:
    """Of simulated machines: what their files do not take from a source."""
    consequence = "verdicts on these machines rest on these guesses; orders are safer than sizes"
    return [
        (f"Assumed numbers of {name}", ", ".join(facts["assumed"]), consequence)
        for name, facts in study.raw.machines.items()
        if facts.get("assumed")
    ]


def _proofs(study: Study) -> list[tuple[str, str, str]]:
    given = study.raw.allocators
    proven = sum(one.proof == "proven" for one in given)
    if not given:
        return []
    consequence = (
        "every figure is of the allocator it names" if proven == len(given) else "unproven ones have no figures"
    )
    return [("Wrong allocator measured", f"interposition proven for {proven} of {len(given)}", consequence)]


def _noise(study: Study) -> list[tuple[str, str, str]]:
    fit = findings.fitness(study)
    if fit is None:
        if any(cell.copy for cell in study.cells):
            here = f"the second copy of {study.baseline} has too few blocks for an interval"
            return [("Noise of the instrument", here, "the smallest visible difference is unknown")]
        return [
            (
                "Noise of the instrument",
                "no second copy of the baseline ran",
                "the smallest visible difference is unknown",
            )
        ]
    here = f"two copies of {study.baseline} agree within {rounding.tenths(fit.limit)}"
    return [("Noise of the instrument", here, "smaller differences mean nothing here")]
