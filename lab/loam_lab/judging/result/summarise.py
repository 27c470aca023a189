"""From a campaign's journal to its Result: the one document that tables, reports and --json are made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from loam_lab.judging.across import judge as across
from loam_lab.judging.across import pooling
from loam_lab.judging.claims import evaluate
from loam_lab.judging.result import counting as counters
from loam_lab.judging.result import derived, diagnostics, headlines, memory, processor, remember, screening, warnings
from loam_lab.judging.statistics import bootstrap, contrasts, histograms, intervals, multiplicity, verdicts
from loam_lab.judging.statistics.data import PROCESS_METRICS, Campaign, Run, load, state_of
from loam_lab.model import collector, result
from loam_lab.model.records import totals
from loam_lab.model.result import Family, Result
from loam_lab.model.schema import SCHEMA
from loam_lab.model.store import journal
from loam_lab.model.store.folder import RESULT

if TYPE_CHECKING:
    from pathlib import Path

    from loam_lab.model.cell import Cell
    from loam_lab.model.description import Metric


# Of more blocks than this only the primary metric's single values are in the result; all are in the journal.
VALUES_MAX = 200


def write(folder: Path, *, elapsed_s: float, commands: list[str] | None = None, notes: Sequence[str] = ()) -> Result:
    """Summarise a campaign and write <folder>/result.json.

    elapsed_s: wall time of the whole command; commands: that repeat parts (of the manifest's study where None)
    notes: warnings that the journal does not tell
    raises: LoamError if the folder holds no campaign or cannot be written
    """
    summary = summarise(folder, elapsed_s=elapsed_s, commands=commands)
    summary = replace(summary, warnings=[*notes, *summary.warnings])
    journal.write_whole(folder / RESULT, text(summary))
    return summary


def text(summary: Result) -> str:
    """The result as JSON text, one line per key, and one per item of a list: to be compared and searched by lines."""

    def line(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    def lines(value: object) -> str:
        if not isinstance(value, list) or not value:
            return line(value)
        return "[\n  " + ",\n  ".join(map(line, value)) + "\n ]"

    return "{\n " + ",\n ".join(f"{line(key)}: {lines(value)}" for key, value in summary.as_json().items()) + "\n}\n"


def summarise(folder: Path, *, elapsed_s: float = 0.0, commands: list[str] | None = None) -> Result:
    """The Result of a campaign folder (see write)."""
    unreadable: list[str] = []
    campaign = load(folder, unreadable.append)
    manifest, study = campaign.manifest, campaign.study
    ratios = _ratios(campaign)
    by_processor = processor.ratios(campaign)
    cells = [
        _cell(campaign, cell, copy, ratio, by_processor.get(cell) if copy == 0 else None)
        for (cell, copy), ratio in ratios.items()
    ]
    disturbed = diagnostics.disturbed(campaign)
    headline_rows, families = headlines.headlines(campaign), derived.families(campaign)
    contrast_rows = contrasts.contrasts(campaign)
    factors = screening.screened(campaign, {key: None if one is None else one.interval for key, one in ratios.items()})
    units: dict[str, dict[str, str]] = {}
    for cell in {(cell.workload, cell.sync): cell for cell in campaign.cells}.values():
        units.setdefault(cell.workload, {}).update(campaign.units(cell))
    builds = [executable["description"]["build"] for executable in manifest["executables"]]
    sources = counters.of_result(campaign)
    summary = Result(
        schema=SCHEMA,
        study=study.name,
        title=study.title,
        question=study.question,
        created_utc=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        folder=str(folder),
        baseline=campaign.baseline(campaign.cells[0]),
        primary_metrics={cell.workload: campaign.primary(cell).name for cell in campaign.cells},
        units=units,
        command=manifest["command"],
        commands=commands if commands is not None else [manifest["command"]],
        blocks=max((len(runs) for runs in campaign.timed.values()), default=0),
        elapsed_s=round(elapsed_s, 2),
        machine=manifest["machine"],
        machines=manifest["machines"],
        build=result.Build(
            compiler=next((b["compiler"] for b in builds if b["compiler"]), ""),
            preset=manifest["preset"],
            flags=next((b["flags"] for b in builds if b["flags"]), ""),
            revision=manifest["revision"],
        ),
        syncs=[
            result.Sync(
                name=e["name"],
                machine=e["machine"],
                path=e["argv"][0],
                build_id=e["build_id"],
                summary=e["description"]["sync"]["summary"],
                kind=e["description"]["sync"]["kind"],
            )
            for e in manifest["executables"]
        ],
        abort_causes=_abort_causes(campaign),
        groups=[result.Group(g.name, g.title, g.role, g.workload) for g in study.groups],
        figures=[result.Figure(one.kind, list(one.groups), one.title) for one in study.figures],
        allocators=[_allocator(campaign, allocator) for allocator in manifest["allocators"]],
        counter_sources=sources,
        cells=cells,
        contrasts=contrast_rows,
        headlines=headline_rows,
        remember=remember.text(headline_rows, cells, units),
        factors=factors or None,
        multiplicity={
            "headlines": Family("Holm", len(headline_rows)),
            "cells": Family(
                "Benjamini-Hochberg", sum(one is not None and one.q is not None for one in ratios.values())
            ),
            "contrasts": Family("Benjamini-Hochberg", len(contrast_rows)),
        },
        disturbed=disturbed,
        waiting=processor.waiting(campaign),
        timeline=diagnostics.timeline(campaign, {(cell.key, copy): place for place, (cell, copy) in enumerate(ratios)}),
        stopping=diagnostics.stopping(campaign, [ratio.interval for ratio in ratios.values() if ratio is not None]),
        geomeans=derived.geomeans(campaign, families),
        best=derived.best(campaign, families),
        **evaluate.entries(
            campaign,
            {cell.key: entry for (cell, copy), entry in zip(ratios, cells, strict=True) if copy == 0},
            sources,
        ),
        warnings=unreadable + warnings.of_campaign(campaign, disturbed),
        failures=_failures(campaign),
    )
    # From the cells as they stand in the result, so that `compare` says the same of two results.
    identical = pooling.of_result(summary, study.identical)
    return replace(
        summary, across_machines=across.of_result(summary, study.margin), identical=identical,
        warnings=[*summary.warnings, *pooling.warnings(identical)],
    )  # fmt: skip


def _abort_causes(campaign: Campaign) -> list[result.Cause]:
    """Every cause of aborts that an executable describes, once, in the order of the first that does."""
    by_name: dict[str, result.Cause] = {}
    for description in campaign.descriptions.values():
        for cause in description.sync.tm.abort_causes if description.sync.tm else ():
            by_name.setdefault(cause.name, result.Cause(cause.name, cause.words, cause.meaning))
    return list(by_name.values())


@dataclass(frozen=True)
class Ratio:
    """A cell against its baseline. q: probability adjusted within the study, None for the sentinel

    family: how many were adjusted together
    """

    interval: intervals.Interval
    q: float | None
    family: int


def _ratios(campaign: Campaign) -> dict[tuple[Cell, int], Ratio | None]:
    """Every cell and sentinel of the result in its order, with its ratio to the baseline where it has one."""
    ratios: dict[tuple[Cell, int], intervals.Interval | None] = {}
    for cell in campaign.cells:
        for copy in (0, 1) if (cell.key, 1) in campaign.timed else (0,):
            good = state_of(campaign.runs(cell, copy)) == "ok"
            ratios[cell, copy] = contrasts.to_baseline(campaign, cell, copy) if good else None
    # The sentinel is the measure of noise and claims nothing.
    family = {key: p for key, ratio in ratios.items() if key[1] == 0 and ratio and (p := ratio.p) is not None}
    adjusted = dict(zip(family, multiplicity.benjamini_hochberg(list(family.values())), strict=True))
    return {
        key: None if ratio is None else Ratio(ratio, adjusted.get(key), len(family)) for key, ratio in ratios.items()
    }


def _cell(
    campaign: Campaign, cell: Cell, copy: int, compared: Ratio | None, by_processor: result.ProcessorRatio | None
) -> result.Cell:
    runs = campaign.runs(cell, copy)
    state = state_of(runs)
    metrics: dict[str, result.Metric] = {}
    primary = campaign.primary(cell)
    for metric in (*campaign.workload(cell).metrics, *PROCESS_METRICS):
        estimated = estimate(campaign, cell, copy, metric)
        if estimated is not None:
            known = campaign.series(cell, copy, metric)[1].size
            few = metric.name == primary.name or known <= VALUES_MAX
            shown = list(campaign.values(cell, copy, metric).values()) if few else []
            blocks = campaign.series(cell, copy, primary)[0].tolist() if metric.name == primary.name else None
            metrics[metric.name] = result.Metric(
                *estimated.ends, metric.unit, metric.better, metric.kind, shown, blocks
            )
    verdict = _verdict(campaign, cell, copy, state, compared)
    clean = None if compared is None else diagnostics.without_contaminated(campaign, cell, copy)
    return result.Cell(
        group=cell.group,
        factors=result.Factors(
            cell.workload, cell.allocator, cell.sync, cell.machine, cell.threads, **collector.factors(dict(cell.parameters))
        ),
        parameters=dict(cell.parameters),
        identity=_identity(runs),
        copy=copy,
        runs=len(runs),
        failed=sum(run.state != "ok" for run in runs),
        state=state,
        metrics=metrics,
        ratio_to_baseline=None if compared is None else result.Ratio(
            *compared.interval.ends, primary.name, compared.interval.n, compared.interval.p, compared.q
        ),
        contaminated=len(diagnostics.contaminated(campaign, cell, copy)),
        ratio_without_contaminated=None if clean is None else result.Undisturbed(*clean.ends, clean.n),
        verdict=verdict,
        rough=compared is not None and verdicts.rough(compared.interval, campaign.study.width_max),
        blame=_blame(campaign, cell) if copy == 0 else None,
        aborts_per_commit=histograms.total(runs, "aborts_per_commit") if copy == 0 else None,
        counters=counters.of_cell(campaign, cell) if copy == 0 else [],
        moves=_moves(runs) if copy == 0 else None,
        memory=memory.of_cell(campaign.special.get("memory", {}).get(cell.key, [])) if copy == 0 else None,
        warnings=warnings.of_cell(campaign, cell, copy, _advice(campaign, cell, compared, verdict)),
        processor_ratio=by_processor,
    )  # fmt: skip


def _moves(runs: list[Run]) -> result.Moves | None:
    """The lines that moved in the first run that saw any."""
    seen = next((run.observed["moves"] for run in runs if run.observed.get("moves")), None)
    return None if seen is None else msgspec.convert(seen, result.Moves)


def _identity(runs: list[Run]) -> dict[str, Any] | None:
    """What a cell's runs have in common of their identities: what else may be compared with them; None without runs."""
    if not runs:
        return None
    return dict(runs[0].identity)


def _verdict(campaign: Campaign, cell: Cell, copy: int, state: str, compared: Ratio | None) -> str:
    if state == "skipped":
        # Given up because its allocator was not proven in a sister cell, or not reached before Ctrl-C.
        return "unproven" if warnings.unproven_elsewhere(campaign, cell) else "skipped"
    if state != "ok":
        return state
    if copy == 0 and cell.allocator == campaign.baseline(cell):
        return "baseline"
    if compared is None:
        return "inconclusive"
    better = campaign.primary(cell).better
    return verdicts.decide(compared.interval, better, margin=campaign.study.margin, adjusted=compared.q)


def _advice(campaign: Campaign, cell: Cell, compared: Ratio | None, verdict: str) -> str:
    if compared is None or verdict != "inconclusive":
        return ""
    return verdicts.advice(
        compared.interval,
        "inconclusive",
        better=campaign.primary(cell).better,
        margin=campaign.study.margin,
        adjusted=compared.q,
        family=compared.family,
    )


def estimate(campaign: Campaign, cell: Cell, copy: int, metric: Metric) -> intervals.Interval | None:
    """A cell's value of a metric: the pooled ratio where counts are divided by counts, else the median over blocks."""
    if metric.kind == "ratio" and metric.of is not None:
        kinds = {m.name: m.kind for m in campaign.workload(cell).metrics}
        if all(kinds.get(part) == "count" for part in metric.of):
            sums = campaign.columns(cell, copy, metric.of)
            if sums is not None:
                above, below = sums
                return bootstrap.ratio_of_sums(above, below)
    values = campaign.series(cell, copy, metric)[1]
    return intervals.median(values) if values.size else None


def _blame(campaign: Campaign, cell: Cell) -> dict[str, float] | None:
    good = [run for run in campaign.blame.get(cell.key, []) if run.state == "ok"]
    if not good:
        return None
    sums = totals(line for run in good for line in run.records())
    counts: dict[str, float] = {
        name: int(value) for name, value in sums.items()
        if name in ("attempts", "commits", "aborts") or (name.startswith("aborts_") and name != "aborts_per_attempt")
    }  # fmt: skip
    if attempts := sums.get("attempts"):
        counts["aborts_per_attempt"] = sums.get("aborts", 0.0) / attempts
    return counts


def _allocator(campaign: Campaign, allocator: dict[str, Any]) -> result.Allocator:
    """The allocator with what the probes of all its runs said."""
    keys = {cell.key for cell in campaign.cells if cell.allocator == allocator["name"]}
    runs = [run for (key, _), attempts in campaign.timed.items() if key in keys for run in attempts]
    runs += [run for cell in campaign.cells if cell.key in keys for run in campaign.others(cell, surrounded=False)]
    statuses = {str(run.proof.get("status")) for run in runs if run.state in ("ok", "unproven")}
    worst = next((status for status in ("wrong", "unproven", "proven") if status in statuses), "not measured")
    reasons = dict.fromkeys(
        str(reason) for run in runs if run.state == "unproven" for reason in run.proof.get("reasons", [])
    )
    label = campaign.study.labels.get(allocator["name"])
    return result.Allocator(**allocator, proof=worst, reasons=list(reasons), label=label)


def _failures(campaign: Campaign) -> list[result.Failure]:
    """Every kind of failure of every cell, with how often it happened and what the first one said."""
    by_kind: dict[tuple[str, str], result.Failure] = {}
    for cell in campaign.cells:
        runs = [run for copy in (0, 1) for run in campaign.runs(cell, copy)] + campaign.others(cell)
        for run in runs:
            if run.state == "ok":
                continue
            state = {"killed": "signal", "failed": "exit"}.get(run.state, run.state)
            if run.failure == "verification":
                state = run.failure
            known = by_kind.get((cell.key, state))
            if known is None:
                known = result.Failure(result.FailedCell(**cell.as_json()), state, run.detail, 0)
            by_kind[cell.key, state] = replace(known, count=known.count + 1)
    return list(by_kind.values())
