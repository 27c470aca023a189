"""Warnings, each one fact; its consequence; the next step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loam_lab.judging.result import counting as counters
from loam_lab.judging.result import memory
from loam_lab.judging.statistics import contrasts, multiplicity, verdicts, warmup
from loam_lab.model.records import records_mapping, totals

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.model.cell import Cell
    from loam_lab.model.result import Disturbed

# Share of the timed part in which a thread that never sleeps was not on a CPU.
STARVED_MAX = 0.02
UNKNOWN_MAX = 0.01


def of_cell(campaign: Campaign, cell: Cell, copy: int, advice: str) -> list[str]:
    """Warnings about one cell. advice: what its verdict says to do, "" for nothing"""
    warnings = [advice] if advice else []
    runs = campaign.runs(cell, copy)
    bad = [run for run in runs if run.state != "ok"]
    if bad:
        what = f"{len(bad)} of {len(runs)} runs failed ({bad[0].detail})"
        warnings.append(f"{what}; the cell is not compared; see failures in result.json")
    if not runs:
        why = "its allocator could not be proven" if unproven_elsewhere(campaign, cell) else "the campaign ended before"
        warnings.append(f"never run: {why}; there are no values; see failures, or continue with --resume")
    starved = starvation(campaign, cell, copy)
    if starved is not None and starved > STARVED_MAX:
        warnings.append(
            f"its threads were off the CPU for {verdicts.percent(starved)} of the timed part; "
            "other work or the hypervisor took it; stop other programs and repeat"
        )
    asked = dict(cell.parameters).get("mapping")
    begins = {id(run.begin): run.begin for run in runs if run.state == "ok"}  # most runs share one
    got = set(map(records_mapping, begins.values()))
    if asked == "shadow" and got - {"", "shadow-full"}:
        warnings.append(
            f"shadow records fell back to {', '.join(sorted(got - {'shadow-full'}))}; "
            "addresses outside share records as in the table; raise the limit on address space (ulimit -v)"
        )
    if copy == 0:
        warnings += _of_blame(campaign, cell)
        warnings += counters.warnings(campaign, cell)
        warnings += memory.warnings(campaign.special.get("memory", {}).get(cell.key, []))
    if campaign.manifest["kind"] == "bench":
        values = campaign.values(cell, copy, campaign.primary(cell))
        if warmup.cold([values[block] for block in sorted(values)]):
            warnings.append(
                "its first run was slower than the others beyond noise; it still counts; "
                "caches may have been cold: repeat, or use more blocks"
            )
    texts = dict.fromkeys(text for of_run in dict.fromkeys(run.warnings for run in runs) for text in of_run)
    return warnings + list(texts)


def _of_blame(campaign: Campaign, cell: Cell) -> list[str]:
    runs = campaign.blame.get(cell.key, [])
    good = [run for run in runs if run.state == "ok"]
    if runs and not good:
        return [f"its blame run failed ({runs[0].detail}); causes of aborts are not known; see failures in result.json"]
    sums = totals(line for run in good for line in run.records())
    aborts, unknown = sums.get("aborts", 0.0), sums.get("aborts_unknown", 0.0)
    if aborts and unknown / aborts > UNKNOWN_MAX:
        return [
            f"{verdicts.percent(unknown / aborts)} of the aborts of its blame run have no known cause; "
            "the other shares are lower bounds; run longer with --blame"
        ]
    return []


def starvation(campaign: Campaign, cell: Cell, copy: int) -> float | None:
    """Median share of the timed part in which a cell's threads were not on a CPU; None where it cannot be told.

    With more threads than the machine has this is the plan, not a disturbance: None
    """
    if cell.threads > campaign.cores(cell):
        return None
    share = campaign.waited(cell, copy)
    return None if share is None else max(0.0, share)


def unproven_elsewhere(campaign: Campaign, cell: Cell) -> bool:
    """Whether the same allocator failed its proof under the same executable."""
    return any(
        run.state == "unproven"
        for other in campaign.cells
        if (other.allocator, other.sync) == (cell.allocator, cell.sync)
        for run in (*campaign.runs(other, 0), *campaign.runs(other, 1), *campaign.others(other, surrounded=False))
    )


def of_campaign(campaign: Campaign, disturbed: Disturbed) -> list[str]:
    """Warnings about the whole result. disturbed: as diagnostics.disturbed() has it"""
    warnings = list(campaign.manifest["plan"]["notes"])
    done = sum(len(runs) for runs in campaign.timed.values()) + sum(
        len(campaign.others(cell)) for cell in campaign.cells
    )
    planned = campaign.manifest["plan"]["runs"]
    # bench and studies with a target width stop when their intervals are narrow enough, before the last planned block.
    if done < planned and campaign.manifest["kind"] != "bench" and campaign.study.target_width is None:
        what = f"{done} of {planned} planned runs are in the journal"
        warnings.append(
            f"{what}; the rest was not run, after failures or for lack of time; see failures, or continue with --resume"
        )
    warnings += memory.of_campaign(run for runs in campaign.special.get("memory", {}).values() for run in runs)
    warnings += counters.of_campaign(campaign)
    warnings += _disturbed(disturbed)
    warnings += _sentinels(campaign)
    starved = [
        share
        for cell in campaign.cells
        if not campaign.manifest["machines"][cell.machine].get("deterministic")  # nobody else takes its cores
        and (share := starvation(campaign, cell, 0)) is not None
        and share > STARVED_MAX
    ]
    if starved:
        warnings.append(
            f"in {len(starved)} of {len(campaign.cells)} cells threads were off the CPU for up to "
            f"{verdicts.percent(max(starved))} of the timed part; their throughput is too low and noisy; "
            "stop other programs (loam doctor) and repeat"
        )
    if any(
        machine.get("aslr") == 0 and not machine.get("deterministic")
        for machine in campaign.manifest["machines"].values()
    ):
        warnings.append(
            "address space layout is not randomised; all runs share one memory layout, and its luck becomes a result; "
            "set kernel.randomize_va_space to 2"
        )
    return warnings


def _disturbed(counts: Disturbed) -> list[str]:
    if not counts.contaminated:
        return []
    names = {
        "run_delay": "threads waited for a CPU",
        "steal": "the hypervisor took time",
        "pressure": "other tasks ran",
    }
    why = ", ".join(f"{names.get(source, source)} in {count}" for source, count in counts.by.items() if count)
    were = "was" if counts.repeated == 1 else "were"
    again = f", although {counts.repeated} {were} run again" if counts.repeated else ""
    return [
        f"{counts.contaminated} of {counts.blocks} blocks stayed disturbed{again} ({why}); their values are "
        "noisier, and slower than they should be; stop other programs (loam doctor) and repeat"
    ]


def _sentinels(campaign: Campaign) -> list[str]:
    """What the second copy of the baseline says about this machine."""
    ratios = [
        (cell, ratio) for cell in campaign.cells
        if (cell.key, 1) in campaign.timed
        and campaign.group(cell).role != "counted"  # what is counted does not depend on the machine's quiet
        and (ratio := contrasts.to_baseline(campaign, cell, 1)) is not None
    ]  # fmt: skip
    if not ratios:
        return []
    margin = campaign.study.margin
    adjusted = multiplicity.holm([ratio.p if ratio.p is not None else 1.0 for _, ratio in ratios])
    warnings = []
    for (cell, ratio), p in zip(ratios, adjusted, strict=True):
        if p < 0.05 and not 1 - margin < ratio.estimate < 1 + margin:
            warnings.append(
                f"two copies of {cell.words()} differ by {verdicts.percent(abs(ratio.estimate - 1))}; differences of that size "
                "are noise here; stop other programs (loam doctor) and repeat"
            )
    reach = max((verdicts.reach(ratio) for _, ratio in ratios), default=0.0)
    if math.isinf(reach):
        warnings.append(
            "the A/A sentinel has too few blocks for an interval; the noise of this machine is unknown; "
            "use --blocks 10 or more"
        )
    elif reach > margin:
        warnings.append(
            f"two copies of the baseline agree only within {verdicts.percent(reach)}; smaller differences mean nothing here; "
            "run longer, or on a quieter machine (loam doctor)"
        )
    return warnings
