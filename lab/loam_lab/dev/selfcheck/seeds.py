"""Do seeds of a simulated machine differ?  One cell of each study, group and machine with two seeds.

    ./loam selfcheck seeds [--study NAME,...] [--json]

A block of a simulated machine is a seed, and intervals are over blocks: if seeds change nothing, an interval has no width and
says nothing.  Of each group on simulated machines, the baseline's cell with the fewest threads runs twice: with one thread no
schedule differs, so that the addresses have to.  The second run is the second copy of the baseline, which differs from the first
in the machine's seed alone.  What the simulated cores counted in the timed part is compared.  Uses the quick forms of the
studies; some two minutes where the programs are built.

Exit status 1 if two seeds gave the same counts, or a run failed; 0 otherwise.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loam_lab.base import subcommands
from loam_lab.campaign.measure import available, plan
from loam_lab.campaign.measure.builds import prepare
from loam_lab.campaign.measure.execution import Execution
from loam_lab.campaign.measure.instruments import RealInstruments
from loam_lab.model import studies
from loam_lab.model.cell import PlannedRun
from loam_lab.model.records import COUNTED
from loam_lab.model.study import Study
from loam_lab.subjects import machines


@dataclass(frozen=True)
class Pair:
    """One cell with two seeds.

    seeds: of the machine; differ: names of the counts that differ; problem: why it was not compared
    """

    study: str
    group: str
    machine: str
    cell: str
    seeds: tuple[int, ...]
    differ: tuple[str, ...]
    problem: str = ""


def simulated(study: Study) -> Study | None:
    """The groups of a study on simulated machines, in their quick form with one block; None if it has none."""
    groups = {group.name for group in study.groups if machines.are_simulated(group.machines)}
    if not groups:
        return None
    kept = available.without(study.quick(1), {group.name for group in study.groups} - groups)
    fewer = tuple(group.model_copy(update={"blocks": 1, "threads": (min(group.threads),)}) for group in kept.groups)
    return kept.model_copy(update={"groups": fewer, "target_width": None})


def chosen(runs: Iterable[PlannedRun]) -> list[list[PlannedRun]]:
    """Both copies of a cell of each group and machine: the first that has two, in its first block."""
    by_place: dict[tuple[str, str], list[PlannedRun]] = {}
    timed = sorted((run for run in runs if run.timing and run.block == 0), key=lambda run: run.order)
    for second in timed:
        if second.copy == 1:
            both = [run for run in timed if run.cell.key == second.cell.key]
            by_place.setdefault((second.cell.group, second.cell.machine), sorted(both, key=lambda run: run.copy))
    return list(by_place.values())


def counts(line: Mapping[str, Any]) -> dict[str, float]:
    """What the simulated cores counted in the timed parts of a run."""
    sums: dict[str, float] = {}
    for record in line["records"]:
        if record["kind"] == "iteration":
            for name, value in record.items():
                if name.startswith(COUNTED):
                    sums[name.removeprefix(COUNTED)] = sums.get(name.removeprefix(COUNTED), 0) + value
    return sums


def compared(study: str, runs: Sequence[PlannedRun], lines: Sequence[Mapping[str, Any]]) -> Pair:
    """What two runs of one cell say."""
    cell = runs[0].cell
    given = tuple(run.seed + run.copy for run in runs)
    failed = [line for line in lines if line["state"] != "ok"]
    one, *others = map(counts, lines)
    differ = tuple(sorted(name for name in one if any(other.get(name) != one[name] for other in others)))
    problem = ""
    if failed:
        problem = f"{failed[0]['failure']}: {failed[0].get('detail', '')}".strip(": ")
    elif not one:
        problem = "nothing was counted"
    return Pair(study, cell.group, cell.machine, cell.words(), given, differ, problem)


def measured(study: Study) -> list[Pair]:
    """Run the cells of a study that are compared."""
    prepare(study)
    planned = plan.make(study)
    execution = Execution(study, planned, RealInstruments("release"))
    pairs = []
    with tempfile.TemporaryDirectory(prefix="loam-seeds-") as scratch:
        for runs in chosen(planned.runs):
            execution.prepare(runs[0].cell)
            lines = [execution.one(run, Path(scratch), 0.0) for run in runs]
            pairs.append(compared(study.name, runs, lines))
    return [*pairs, *uncompared(study, pairs)]


def uncompared(study: Study, pairs: Iterable[Pair]) -> list[Pair]:
    """Groups and machines of a study of which nothing ran."""
    places = {(pair.group, pair.machine) for pair in pairs}
    return [
        Pair(study.name, group.name, machine, "", (), (), "its baseline has no second copy")
        for group in study.groups
        for machine in group.machines
        if (group.name, machine) not in places
    ]


Ask = Callable[[Study], list[Pair]]


def main(arguments: Sequence[str], ask: Ask = measured) -> int:
    """Print a row for each group and machine, as Markdown or with --json as JSON."""
    parser = subcommands.Parser("selfcheck", "seeds", __doc__)
    parser.add_argument("--study", default="", help="names, separated by commas; default: all that have such groups")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = parser.parse_args(arguments)
    names = options.study.split(",") if options.study else list(studies.registry())
    pairs: list[Pair] = []
    for name in names:
        study = simulated(studies.find(name)[0])
        if study is None:
            continue
        pairs += ask(available.present(study)[0])
    same = [pair for pair in pairs if pair.problem or not pair.differ]
    if options.json:
        print(json.dumps({"schema": 1, "pairs": [asdict(pair) for pair in pairs]}, indent=1))
    else:
        print("| study | group | machine | counts that differ between two seeds |\n| --- | --- | --- | --- |")
        for pair in pairs:
            differences = pair.problem or ", ".join(pair.differ) or "none: the seeds change nothing"
            print(f"| {pair.study} | {pair.group} | {pair.machine} | {differences} |")
        print(f"\n{len(pairs) - len(same)} of {len(pairs)} differ")
    return int(bool(same) or not pairs)
