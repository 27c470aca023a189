"""Does the lab find what was planted, on this machine?  Studies of a workload with a known slow-down, again and again.

    ./loam selfcheck detection [--minutes 10] [--studies 100] [--out DIR]

A third of the studies plant 5 % in ten blocks, a third 5 % in twenty, a third 3 % in thirty; the sentinel of each is 0 %.
The slow-down is exact: a library asks the workload for so much more of the same work (tests/planted).  Every study's outcome is
appended to DIR/outcomes.jsonl, and a further start goes on from there; --minutes 0 prints what there is.  Wants a quiet
machine.  Exit status 1 if a goal is missed, 3 while there are too few studies to tell.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from loam_lab.base import console, paths, subcommands
from loam_lab.dev.selfcheck import exit_status
from loam_lab.model.result import Result

# (planted per cent, blocks of a study)
KINDS = ((5, 10), (5, 20), (3, 30))
BASELINE = "planted-exact-0"
# Verdicts are to be the same the second time from this number of blocks on, the default of a study.  A signed-rank interval
# of ten blocks has no room for one outlier: its end is a mean of two blocks, of which the outlier may be one.
STABLE_BLOCKS = 20
RUN_MS, WARM_UP_MS = 30, 5
# Fewer studies than this cannot tell 90 % from much less.
STUDIES_MIN = 20
FOUND_MIN, BIAS_MAX_POINTS, CHANGES_MAX, FALSE_MAX = 0.90, 0.5, 0.02, 0.057
NO_GOAL = "as it comes"


@dataclass(frozen=True)
class Trial:
    """What one study said of one comparison.

    planted: per cent; blocks: of the study; study: its number among those of its kind; ratio, low, high: of units per
    second to the baseline's, ends None where it has no interval; verdict: as in the result
    """

    planted: int
    blocks: int
    study: int
    ratio: float
    low: float | None
    high: float | None
    verdict: str


@dataclass(frozen=True)
class Row:
    """One goal. studies: that decide it; kept: None while there are too few"""

    what: str
    studies: int
    value: float
    unit: str
    goal: str
    kept: bool | None


Measure = Callable[[int, int, int], list[Trial]]


def measure(planted: int, blocks: int, number: int) -> list[Trial]:
    """Run one study on this machine.

    planted: per cent; blocks: of the study; number: gives its seed; returns: of the planted library and of the sentinel
    raises: KeyboardInterrupt; LoamError if something cannot be built or started
    """
    from loam_lab.campaign.measure import plan as plans
    from loam_lab.campaign.measure.campaign import Runner
    from loam_lab.campaign.measure.instruments import RealInstruments
    from loam_lab.judging.result import summarise
    from loam_lab.model.study import SCHEMA, Group, Study
    from loam_lab.setup import build

    name = f"planted-exact-{planted}"
    built = build.ensure_built(["probe", "planted-workload", BASELINE, name])
    os.environ["LOAM_ALLOCATOR_PATH"] = str(paths.root() / "tests" / "planted" / "allocators")
    group = Group(
        name="planted", workload="units", sync=(built["libraries"]["planted-workload"],),
        parameters={"duration_ms": RUN_MS},
    )  # fmt: skip
    study = Study(
        schema=SCHEMA, name="planted", title="planted slow-downs", question="Does the lab find them?", baseline=BASELINE,
        allocators=(BASELINE, name), blocks=blocks, seed=1 + number, warmup_ms=WARM_UP_MS, groups=(group,),
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="loam-planted-") as scratch:
        folder = Path(scratch) / "result"
        folder.mkdir()
        ended = Runner(study, plans.make(study), folder, RealInstruments(), "loam_lab.dev.selfcheck.detection").run()
        if ended.interrupted:
            raise KeyboardInterrupt
        result = summarise.summarise(folder)
    return outcomes_of(result, planted, blocks, number)


def outcomes_of(result: Result, planted: int, blocks: int, number: int) -> list[Trial]:
    """The outcomes that a result holds: the sentinel is 0 %, the other one what was planted."""
    trials = []
    for cell in result.cells:
        ratio = cell.ratio_to_baseline
        if ratio is not None:
            percent = 0 if cell.copy else planted
            trials.append(Trial(percent, blocks, number, ratio.estimate, ratio.low, ratio.high, cell.verdict))
    return trials


def read(file: Path) -> list[Trial]:
    """The outcomes so far; a line that a kill tore is left out."""
    trials = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            trials.append(Trial(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return trials


def run(file: Path, *, minutes: float, studies: int, one: Measure = measure) -> list[Trial]:
    """Go on until the time is over or each kind has so many studies; returns all outcomes.

    No study is begun that would probably end later; Ctrl-C ends it too, and nothing that was finished is lost.
    """
    begun, longest = time.monotonic(), 0.0
    trials = read(file)
    while True:
        done = {kind: {o.study for o in trials if (o.planted, o.blocks) == kind} for kind in KINDS}
        planted, blocks = min(KINDS, key=lambda kind: len(done[kind]))
        left = minutes * 60 - (time.monotonic() - begun)
        if len(done[planted, blocks]) >= studies or left <= longest:
            return trials
        started = time.monotonic()
        try:
            outcomes = one(planted, blocks, max(done[planted, blocks], default=-1) + 1)
        except KeyboardInterrupt:
            return trials
        longest = max(longest, time.monotonic() - started)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            # The planted one last: a study counts once its line is there, and both are written at once.
            ordered = sorted(outcomes, key=lambda outcome: outcome.planted)
            lines.write("".join(json.dumps(asdict(outcome)) + "\n" for outcome in ordered))
        trials += outcomes


def rows(outcomes: Sequence[Trial]) -> list[Row]:
    """The goals and how far they are reached."""
    goals = []
    for planted, blocks in KINDS:
        own = [o for o in outcomes if (o.planted, o.blocks) == (planted, blocks)]
        enough = len(own) >= STUDIES_MIN
        where = f"planted {planted} %, {blocks} blocks"
        share = sum(o.verdict == "worse" for o in own) / max(1, len(own))
        goals.append(
            Row(f"{where}: found", len(own), 100 * share, "%", "at least 90 %", share >= FOUND_MIN if enough else None)
        )
        if own:
            bias = statistics.median(100 * (1 / o.ratio - 1) for o in own) - planted
            kept = abs(bias) < BIAS_MAX_POINTS if enough else None
            goals.append(Row(f"{where}: bias of the slow-down", len(own), bias, "points", "within ± 0.5 points", kept))
    null = [o for o in outcomes if o.planted == 0]
    share = sum(o.verdict in ("better", "worse") for o in null) / max(1, len(null))
    few = len(null) < STUDIES_MIN
    goals.append(
        Row(
            "planted 0 %: better or worse",
            len(null),
            100 * share,
            "%",
            "at most 5.7 %",
            None if few else share <= FALSE_MAX,
        )
    )
    return goals + _changes(outcomes)


def _changes(outcomes: Sequence[Trial]) -> list[Row]:
    """How often two runs of the same study, one after the other, disagree."""
    flips = pairs_of_all = 0
    goals = []
    for planted, blocks in sorted({(o.planted, o.blocks) for o in outcomes}):
        own = sorted((o for o in outcomes if (o.planted, o.blocks) == (planted, blocks)), key=lambda o: o.study)
        pairs = list(zip(own[::2], own[1::2], strict=False))
        reversals = sum({a.verdict, b.verdict} == {"better", "worse"} for a, b in pairs)
        flips, pairs_of_all = flips + reversals, pairs_of_all + len(pairs)
        if planted in (0, 5) and pairs:
            share = (sum(a.verdict != b.verdict for a, b in pairs) - reversals) / len(pairs)
            what = f"planted {planted} %, {blocks} blocks: another verdict the second time"
            if blocks < STABLE_BLOCKS:
                goals.append(Row(what, len(own), 100 * share, "%", NO_GOAL, True))
                continue
            kept = share <= CHANGES_MAX if len(own) >= STUDIES_MIN else None
            goals.append(Row(what, len(own), 100 * share, "%", "at most 2 %", kept))
    kept = flips == 0 if len(outcomes) >= STUDIES_MIN else None
    goals.append(Row("better one time and worse the other", 2 * pairs_of_all, float(flips), "pairs", "none", kept))
    return goals


def main(arguments: Sequence[str], one: Measure = measure) -> int:
    """Measure for a while, then print the table as Markdown, or with --json as JSON."""
    parser = subcommands.Parser("selfcheck", "detection", __doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long to measure; 0: only print")
    parser.add_argument(
        "--studies", type=subcommands.count, default=100, help="of each kind, with those measured before"
    )
    parser.add_argument("--out", type=Path, help="folder of outcomes.jsonl; results/detection without it")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = parser.parse_args(arguments)
    folder = options.out if options.out is not None else paths.results_root() / "detection"
    goals = rows(run(folder / "outcomes.jsonl", minutes=options.minutes, studies=options.studies, one=one))
    if options.json:
        print(json.dumps({"schema": 1, "rows": [asdict(row) for row in goals]}, indent=1))
    else:
        print("| what | studies | found | goal | |\n| --- | ---: | ---: | ---: | --- |")
    for row in () if options.json else goals:
        word = {True: "reached", False: "missed", None: "too few studies"}[row.kept] if row.goal != NO_GOAL else ""
        print(f"| {row.what} | {row.studies} | {row.value:.2f} {row.unit} | {row.goal} | {word} |")
    status = exit_status.of(row.kept for row in goals)
    if status == exit_status.TOO_FEW:
        console.note(f"fewer than {STUDIES_MIN} studies of a kind tell nothing; go on with --minutes")
    return status
