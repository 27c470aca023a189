"""bench --search: measure the rounds and the final of a search (search.py), and say what came out.

Each round is a campaign in a folder of its own below the result's, so an interrupted search goes on where it stopped:
who competes in a round is written down before its first run.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.launch import OVERHEAD_GUESS_S
from loam_lab.campaign.measure.progress import duration
from loam_lab.campaign.measure.schedule import REPEATS_SHARE_MAX
from loam_lab.commands.bench import paste, recommend, search
from loam_lab.judging.statistics.verdicts import percent
from loam_lab.model import result as results
from loam_lab.model.result import Result
from loam_lab.model.store import folder as folders
from loam_lab.model.store import journal

if TYPE_CHECKING:
    from loam_lab.campaign.measure.campaign import Ended, Runner
    from loam_lab.judging.statistics.intervals import Interval

FOLDER = "search"
BUDGET_S = 240.0
_State = dict[str, Any]
_Pairs = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Search:
    """What a search needs from bench.

    text: the command as typed; folder: of the result; run_s: what one run takes; budget_s: for the whole search
    runner: of (allocators, the first being the baseline; blocks; folder; resume; stop early when narrow)
    """

    text: str
    folder: Path
    run_s: float
    budget_s: float
    runner: Callable[[Sequence[str], int, Path, bool, bool], Runner]

    def run(self, result: Result) -> tuple[results.Search | None, Ended | None]:
        """Search the settings of the best two allocators of a bench result.

        returns: what was found and None; None and how it ended where it was interrupted or there is nothing to search
        """
        ranked = ranking(result)
        allocators = search.searchable(ranked)
        candidates = [name for allocator in allocators for name in search.variants(allocator)]
        if not candidates:
            console.warn("nothing to search: no proven allocator here has settings to try")
            return None, None
        state = self._state({"best": ranked[0], "baseline": result.baseline, "run_s": self.run_s, "budget_s": self.budget_s,
                             "rounds": [candidates], "searched": allocators, "by": recommend.decides(result)},
                            {*ranked, result.baseline})  # fmt: skip
        candidates = state["rounds"][0]
        planned = search.plan(len(candidates), state["run_s"] + OVERHEAD_GUESS_S, state["budget_s"])
        most_s = planned.runs * (state["run_s"] + OVERHEAD_GUESS_S)
        console.note(
            f"settings of {' and '.join(state['searched'])}: {len(candidates)} in {len(planned.sizes)} rounds, then a "
            f"final with fresh runs; about {duration(most_s)}, {planned.runs} runs, and at most "
            f"{int(planned.runs * REPEATS_SHARE_MAX)} more where blocks are disturbed"
        )
        rounds: list[results.Round] = []
        pairs: _Pairs = {}
        for number, blocks in enumerate(planned.blocks, 1):
            candidates = self._candidates(state, number, candidates)
            ended = self._measure([state["best"], *candidates], blocks, f"round-{number}", narrow=False)
            if ended.interrupted:
                return None, ended
            scores = self._scores(f"round-{number}", state, pairs)
            estimates = {name: score.estimate if (score := scores[name]) else None for name in candidates}
            after = search.following(estimates, number)
            tried = [results.Candidate(*_ends(scores[n]), n, n in after) for n in candidates]
            rounds.append(results.Round(number, blocks, tried))
            candidates = after
        finalists = self._candidates(state, len(planned.blocks) + 1, candidates)[: search.FINALISTS]
        if not finalists:
            raise LoamError("--search", None, "every setting failed", f"see the journals below {self.folder / FOLDER}")
        plain = [state["best"], *([state["baseline"]] if state["baseline"] != state["best"] else [])]
        ended = self._measure([*plain, *finalists], planned.final_blocks, "final", narrow=True)
        if ended.interrupted:
            return None, ended
        return self._decide(state, finalists, rounds), None

    def _state(self, fresh: _State, measured: Set[str]) -> _State:
        """What was decided before an interruption, else fresh; written down either way.

        measured: the allocators of this command; only settings of these are tried, whatever the file says
        raises: LoamError if the file cannot be read, or names another allocator
        """
        file = self.folder / FOLDER / "search.json"
        if file.exists():
            anew = "begin anew in another folder"
            try:
                kept: _State = json.loads(file.read_text())
                names = [kept["best"], kept["baseline"], *(name for names in kept["rounds"] for name in names)]
                bases = [str(name).partition(":")[0] for name in names]
            except (OSError, ValueError, KeyError, TypeError) as problem:
                raise LoamError(str(file), None, f"cannot be read: {problem}", anew) from None
            known = {name.partition(":")[0] for name in measured}
            if other := next((base for base in bases if base not in known), ""):
                raise LoamError(str(file), None, f"names {other}, which this command does not measure", anew)
            return kept
        file.parent.mkdir(parents=True, exist_ok=True)
        self._save(fresh)
        return fresh

    def _save(self, state: _State) -> None:
        journal.write_whole(self.folder / FOLDER / "search.json", json.dumps(state) + "\n")

    def _candidates(self, state: _State, number: int, names: Sequence[str]) -> list[str]:
        """Who competes in a round; once written down, it stays."""
        if len(state["rounds"]) < number:
            state["rounds"].append(list(names))
            self._save(state)
        chosen: list[str] = state["rounds"][number - 1]
        return chosen

    def _measure(self, allocators: Sequence[str], blocks: int, name: str, *, narrow: bool) -> Ended:
        """Run one round, or what is missing of it; the first allocator is what the others are compared with."""
        folder = self.folder / FOLDER / name
        again = (folder / folders.MANIFEST).exists()
        if not again:
            folders.new("bench", folder)
        return self.runner(allocators, blocks, folder, again, narrow).run()

    def _scores(self, name: str, state: _State, pairs: _Pairs) -> dict[str, Interval | None]:
        """Ratios of time to the best allocator as it is over all rounds so far; None for what failed in this one.

        state: says which time decides; pairs: times of earlier rounds by candidate, to which those of this round are added
        """
        from loam_lab.judging.statistics import data, intervals

        campaign = data.load(self.folder / FOLDER / name)
        cells = {cell.allocator: cell for cell in campaign.cells}
        metric = data.process_metric(state["by"])
        below = campaign.values(cells[state["best"]], 0, metric)
        scores: dict[str, Interval | None] = {}
        for candidate, cell in cells.items():
            above = campaign.values(cell, 0, metric)
            both = [(above[block], below[block]) for block in above if above[block] > 0 and below.get(block, 0) > 0]
            known = pairs.setdefault(candidate, [])
            known += both
            scores[candidate] = intervals.paired_ratio([a for a, _ in known], [b for _, b in known]) if both else None
        return scores

    def _decide(self, state: _State, finalists: Sequence[str], rounds: list[results.Round]) -> results.Search:
        """The final's intervals decide: a winner is faster than the best allocator as it is and than the baseline."""
        from loam_lab.judging.statistics import contrasts, data, multiplicity

        final = data.load(self.folder / FOLDER / "final")
        cells = {cell.allocator: cell for cell in final.cells}
        best, plain = cells[state["best"]], cells[state["baseline"]]
        by = state["by"]
        metric = data.process_metric(by)
        rows = []
        for name in finalists:
            to_best = contrasts.paired(final, (cells[name], 0), (best, 0), metric=metric)
            to_plain = (
                to_best if plain is best else contrasts.paired(final, (cells[name], 0), (plain, 0), metric=metric)
            )
            if to_best is not None and to_plain is not None:
                rows.append((name, to_best, to_plain))
        adjusted = multiplicity.holm([1.0 if to_best.p is None else to_best.p for _, to_best, _ in rows])
        shown = [
            row
            for row, p in zip(rows, adjusted, strict=True)
            if p < multiplicity.SIGNIFICANCE and _below(row[1]) and _below(row[2])
        ]
        final_rows = [
            results.Finalist(name, results.Ends(*to_best.ends), results.Ends(*to_plain.ends), p)
            for (name, to_best, to_plain), p in zip(rows, adjusted, strict=True)
        ]
        outcome = results.Search(
            rounds=rounds, best=state["best"], baseline=state["baseline"], final=final_rows,
            settings_tried=len(state["rounds"][0]),
        )  # fmt: skip
        if not shown:
            text = f"No setting of {' or '.join(state['searched'])} was shown to beat {state['best']} as it is"
            if rows:
                name, to_best, _ = min(rows, key=lambda row: row[1].estimate)
                text += f"; the best try, {name}, {_less(to_best, by)} than it"
            return replace(outcome, text=text + ".")
        name, to_best, to_plain = min(shown, key=lambda row: row[1].estimate)
        text = f"Use {name}: the command {_less(to_best, by)} than with {state['best']} as it is"
        if plain is not best:
            text += f", and {_less(to_plain, by)} than with {state['baseline']}"
        estimate, low, high = to_plain.ends
        check = shlex.join(["./loam", "bench", "--allocator", ",".join([state["best"], name]), "--"]) + " " + self.text
        return replace(
            outcome, winner=winner(name, self.text), estimate=estimate, low=low, high=high, text=text + ".", check=check
        )


def ranking(result: Result) -> list[str]:
    """Allocators of a bench result by estimated time, best first; those that failed or were not proven are left out."""
    scores: dict[str, float] = {}
    for cell in result.cells:
        ratio, name = cell.ratio_to_baseline, cell.allocator
        if cell.copy == 0 and cell.verdict == "baseline":
            scores[name] = 1.0
        elif cell.copy == 0 and ratio is not None and cell.verdict not in ("unproven", "failed"):
            scores[name] = ratio.estimate
    return sorted(scores, key=lambda name: (scores[name], name))


def winner(name: str, command: str) -> results.Winner:
    """How to use an allocator with settings without loam."""
    from loam_lab.subjects.allocators import registry

    base, settings = registry.split(name)
    try:
        environment = dict(registry.load(name).environment)
    except LoamError:  # known to the instruments, not to this machine's registry
        environment = {}
    return results.Winner(base, name, settings, environment, paste.shell(name, command))


def show(outcome: results.Search) -> None:
    """Print the outcome, the line to paste, and what each round kept."""
    from rich.text import Text

    out = console.out()
    out.print(Text(outcome.text, style="head"), soft_wrap=True)
    if outcome.winner is not None:
        out.print(Text(f"  {outcome.winner.command}", style="command"), soft_wrap=True)
        out.print(Text(f"check it with fresh runs: {outcome.check}", style="aside"), soft_wrap=True)
    rows = [
        [str(number.round), Text(c.allocator), _number(c.estimate), _low_high(c), "yes" if c.kept else ""]
        for number in outcome.rounds
        for c in sorted(number.candidates, key=lambda c: (c.estimate is None, c.estimate or 0))
    ]
    rows += [
        ["final", Text(row.allocator), _number(row.to_best.estimate), _low_high(row.to_best), ""]
        for row in outcome.final
    ]
    columns = ["round", "settings", f"of {outcome.best}", "interval", "kept"]
    title = (
        "Wall time against the best allocator as it is, over all rounds so far; the final has fresh runs and decides"
    )
    out.print(console.table(columns, rows, numeric=columns[2:4], title=title))


def _ends(ratio: Interval | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if ratio is None else ratio.ends


def _below(ratio: Interval) -> bool:
    return ratio.high is not None and ratio.high < 1


def _less(ratio: Interval, by: str) -> str:
    """ "takes 4.0 % less time [3.0 %, 5.0 %]"."""
    text = recommend.less(ratio, by)
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text} [{percent(1 - ratio.high)}, {percent(1 - ratio.low)}]"


def _number(value: float | None) -> str:
    return "failed" if value is None else f"{value:.3f}"


def _low_high(interval: results.Ends) -> str:
    return "" if interval.low is None else f"{interval.low:.3f} to {interval.high:.3f}"
