"""Counting runs in a result: `counters` of its cells, its `counter_sources`, and their warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loam_lab.judging.statistics import simulator
from loam_lab.model.cell import COUNTING, IN_VALGRIND
from loam_lab.model.records import COUNTED, records_mapping
from loam_lab.model.result import CounterSource, Counts

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign, Run
    from loam_lab.model.cell import Cell

# What hardware counters give per operation as they are.
_PER_OPERATION = ("instructions", "cycles", "l1d_misses", "llc_misses", "dtlb_misses", "hitm")


def of_cell(campaign: Campaign, cell: Cell) -> list[Counts]:
    """What was counted of a cell, one entry per source.

    returns: source, per ("operation", or "run" of a command), counts per that, ratios from 0 to 1; a value that the
    source does not have is left out
    """
    every = []
    for purpose in COUNTING:
        counted = _difference(campaign, cell, campaign.special.get(purpose, {}).get(cell.key, []))
        if counted is not None:
            every.append(counted)
    if campaign.manifest["machines"][cell.machine].get("simulated"):
        every += _simulated(campaign, cell)
    return every


def _simulated(campaign: Campaign, cell: Cell) -> list[Counts]:
    """What the simulated cores counted in the timed runs, all seeds together: a ratio of sums."""
    operations = campaign.primary(cell).of
    runs = [run for run in campaign.runs(cell, 0) if run.state == "ok"]
    done = sum(run.sums.get(operations[0], 0.0) for run in runs) if operations else 0.0
    if done <= 0:
        return []
    sums = {name: sum(run.sums.get(COUNTED + name, 0.0) for run in runs) for name in simulator.SHOWN}
    entry: dict[str, Any] = {shown: sums[name] / done for name, shown in simulator.SHOWN.items()}
    if sums["accesses"]:
        entry[simulator.RATIO] = sums["misses"] / sums["accesses"]
    return [Counts("simulator", **entry)]


def _difference(campaign: Campaign, cell: Cell, runs: Sequence[Run]) -> Counts | None:
    good = sorted((run for run in runs if run.state == "ok" and run.observed), key=lambda run: run.block)
    if not good or len(good) != len(runs):
        return None
    last = good[-1]
    if len(good) == 1:
        per, divisor = "run", 1.0
        counts = {name: float(value) for name, value in last.observed["events"].items()}
    else:
        per, operations = "operation", campaign.primary(cell).of
        if operations is None:
            return None
        first = good[0]
        divisor = last.sums.get(operations[0], 0.0) - first.sums.get(operations[0], 0.0)
        if divisor <= 0:
            return None
        before = first.observed["events"]
        counts = {name: value - before[name] for name, value in last.observed["events"].items() if name in before}
    source = last.observed["source"]
    parts = last.observed.get("fragmentation") or {}
    shares = last.observed.get("shares") or {}
    fields: dict[str, Any] = _READERS.get(source, from_valgrind)(counts, divisor)
    fields |= {name: dict(given) for name in ("caches", "tlb", "peak") if (given := last.observed.get(name))}
    return Counts(
        source, per, **fields,
        padding=parts.get("padding"), external=parts["scattered"] + parts["held"] if "held" in parts else None,
        counted_share=min(shares.values(), default=None), records_mapping=records_mapping(last.begin) or None,
    )  # fmt: skip


def from_perf(counts: Mapping[str, float], divisor: float) -> dict[str, float]:
    """Hardware counts as the result has them; a difference below 0 is noise around 0."""
    figures = {name: max(0.0, counts[name]) / divisor for name in _PER_OPERATION if name in counts}
    for level in ("l1d", "llc"):
        loads = counts.get(f"{level}_loads", 0.0)
        if loads > 0 and f"{level}_misses" in counts:
            figures[f"{level}_miss_ratio"] = max(0.0, counts[f"{level}_misses"]) / loads
    return figures


def from_valgrind(counts: Mapping[str, float], divisor: float) -> dict[str, float]:
    """Valgrind's counts as the result has them: instructions; with cachegrind data misses of reads and writes.

    Of accesses that always hit, the last bits of two runs may differ either way: below 0 is 0
    """
    figures = {"instructions": counts["Ir"] / divisor}
    accesses = counts.get("Dr", 0.0) + counts.get("Dw", 0.0)
    if accesses > 0:
        for level, names in (("l1d", ("D1mr", "D1mw")), ("llc", ("DLmr", "DLmw"))):
            misses = max(0.0, sum(counts.get(name, 0.0) for name in names))
            figures[f"{level}_misses"] = misses / divisor
            figures[f"{level}_miss_ratio"] = misses / accesses
        figures["accesses"] = accesses / divisor
    return figures


def from_lackey(counts: Mapping[str, float], divisor: float) -> dict[str, float]:
    """What the model of the translation buffers counted, as the result has it (see campaign/counters/tlb.py).

    dtlb_misses: walks of the page tables, with pages of 4 KiB, what processors count; dtlb_misses_large: with 2 MiB;
    dtlb_first_misses: pages that the first level did not have, with pages of 4 KiB
    """
    names = {"accesses": "Accesses", "instructions": "Ir", "dtlb_misses": "walks", "dtlb_first_misses": "first_misses",
             "dtlb_misses_large": "walks_large"}  # fmt: skip
    return {name: max(0.0, counts[of]) / divisor for name, of in names.items()}


def from_profile(counts: Mapping[str, float], divisor: float) -> dict[str, float]:
    """What was asked of the allocator, as the result has it."""
    return {name: max(0.0, counts[name]) / divisor for name in ("calls", "requested_bytes")}


_READERS = {"perf_event": from_perf, "lackey": from_lackey, "profile": from_profile}


def of_result(campaign: Campaign) -> list[CounterSource]:
    """The sources of counts: as the machine was asked when the campaign began, and what was really used."""
    asked: Iterable[Mapping[str, Any]] = campaign.manifest.get("counter_sources", ())
    by_name = {str(source["source"]): CounterSource(**source) for source in asked}
    for purpose in COUNTING:
        for runs in campaign.special.get(purpose, {}).values():
            for run in runs:
                if run.state == "ok" and run.observed:
                    name = str(run.observed["source"])
                    by_name.setdefault(name, CounterSource(name, True, "used in this campaign"))
    return list(by_name.values())


def warnings(campaign: Campaign, cell: Cell) -> list[str]:
    """What the reader of a cell's counts should know."""
    texts = []
    for purpose in COUNTING:
        runs = campaign.special.get(purpose, {}).get(cell.key, [])
        bad = next((run for run in runs if run.state != "ok"), None)
        if bad is not None:
            texts.append(
                f"its {purpose} run failed ({bad.detail}); its counts are not known; see failures in result.json"
            )
    return texts


def of_campaign(campaign: Campaign) -> list[str]:
    """What the reader of all counts should know: shadow records that valgrind leaves no room for."""
    fell = 0
    got: set[str] = set()
    for cell in campaign.cells:
        if dict(cell.parameters).get("mapping") != "shadow":
            continue
        runs = [run for tool in IN_VALGRIND for run in campaign.special.get(tool, {}).get(cell.key, ())]
        other = {records_mapping(run.begin) for run in runs} - {"", "shadow-full"}
        fell += bool(other)
        got |= other
    if not fell:
        return []
    return [
        f"{fell} cells with shadow records had {', '.join(sorted(got))} records inside valgrind, which needs the address "
        "space for itself; their callgrind and cachegrind counts are those of the fallback; compare them with table cells"
    ]
