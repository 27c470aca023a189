"""The same program under several allocators: what its threads share under each, side by side, and what to do by that."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.commands.explain import story
from loam_lab.commands.explain.sharing.sentences import EXCLUDED_ABOVE
from loam_lab.model import words
from loam_lab.subjects.allocators import registry

SCHEMA = 1
Explain = Callable[[str], dict[str, Any]]


@dataclass(frozen=True)
class Ran:
    """A run under one allocator. explained: its document, None where the run could not be watched; problem: why, else "" """

    allocator: str
    explained: dict[str, Any] | None
    problem: str = ""

    @property
    def share(self) -> dict[str, float]:
        """The share of the time at shared lines, with its interval."""
        assert self.explained is not None
        return dict(self.explained["shared"])

    @property
    def worst(self) -> dict[str, Any] | None:
        """The pair of blocks with the largest share, where enough watches caught one."""
        pairs = self.explained["blocks"] if self.explained else []
        return next((pair for pair in pairs if pair["named"]), None)


def installed() -> list[str]:
    """The allocators of this machine that serve any program: glibc, installed and built ones; not those of the lab alone."""
    names = []
    for name, definition in registry.definitions().items():
        if ":" in name or (definition.targets and not definition.default):
            continue
        try:
            registry.load(name)
        except LoamError:
            continue
        names.append(name)
    return names


def run(allocators: Iterable[str], explain: Explain) -> list[Ran]:
    """Explain a run under each, one after the other.

    explain: makes the document of a run under an allocator
    raises: LoamError if no run could be watched, with the reason of the first
    """
    runs, problems = [], []
    for allocator in allocators:
        console.note(f"watching a run under {allocator}")
        try:
            explained = explain(allocator)
            runs.append(Ran(allocator, explained, explained["run"]["ending"]))
        except LoamError as problem:
            problems.append(problem)
            runs.append(Ran(allocator, None, problem.line()))
    if problems and len(problems) == len(runs):
        raise problems[0]
    return runs


def advice(runs: Sequence[Ran]) -> str:
    """What to do, by what was found. A difference of two shares is one only where their intervals lie apart."""
    good = [one for one in runs if one.explained is not None and not one.problem]
    if len(good) < 2:
        return "Fewer than two runs went well, so there is nothing to compare."
    least = min(good, key=lambda one: (one.share["high"], one.share["share"]))
    more = [one for one in good if one.share["low"] > least.share["high"]]
    if more:
        same = [one.allocator for one in good if one is not least and one not in more]
        also = f"; {words.listing(same)} cannot be told apart from it" if same else ""
        return (
            f"Take {least.allocator}: threads meet in cache lines for {_share(least)} of the time there, and under "
            f"{words.listing([f'{one.allocator} for {_share(one)}' for one in more])}{also}."
        )
    worst = [one.worst for one in good]
    if not any(worst):
        widest = max(good, key=lambda one: one.share["high"])
        if (most := widest.share["high"]) > EXCLUDED_ABOVE:
            return (
                f"Too little was seen to tell: under {widest.allocator} up to {story.percent(most)} of the time may be spent on "
                "shared lines; let the command run longer."
            )
        return "Under none of them a cache line is shared for long: the allocator is not what slows this program by sharing."
    causes = {pair["cause"] for pair in worst if pair is not None}
    why = ": the program itself shares the word, whoever places it" if causes == {"same_word"} and all(worst) else ""
    return f"No allocator shares less than another as far as these runs tell, because the intervals overlap{why}."


def as_json(command: Sequence[str], runs: Sequence[Ran]) -> dict[str, Any]:
    """The document of a comparison (`loam explain --allocator A,B --json -- COMMAND`)."""
    return {
        "schema": SCHEMA, "command": shlex.join(command), "words": [advice(runs)],
        "runs": [
            {"allocator": one.allocator, "problem": one.problem, "explained": one.explained} for one in runs
        ],
    }  # fmt: skip


def show(compared: Mapping[str, Any]) -> None:
    """Print a comparison: the advice, then a row for each allocator."""
    out = console.out()
    out.print(
        f"{compared['command']} under {len(compared['runs'])} allocators, one run each", markup=False, soft_wrap=True
    )
    out.print()
    for sentence in compared["words"]:
        out.print(sentence, markup=False, style="head", soft_wrap=True)
    out.print()
    rows = [_row(Ran(one["allocator"], one["explained"], one["problem"])) for one in compared["runs"]]
    heads = ["allocator", "shared", "interval", "time", "the pair of blocks that is shared longest"]
    out.print(console.table(heads, rows, numeric=["shared", "interval", "time"]))
    out.print("Times are of single runs that were watched: they tell no difference of a few percent.", markup=False)


def _row(one: Ran) -> list[str]:
    if one.explained is None:
        return [one.allocator, "", "", "", one.problem]
    share = one.share
    pair = one.worst
    what = f"{story.percent(pair['share'])}: {pair['words']}" if pair is not None else "none"
    if one.problem:
        what = f"the command {one.problem}; until then: {what}"
    wall = f"{one.explained['run']['wall_s']:.2f} s"
    ends = story.interval(share["low"], share["high"], "-")
    return [one.allocator, story.percent(share["share"]), ends, wall, what]


def _share(one: Ran) -> str:
    share = one.share
    return f"{story.percent(share['share'])} ({story.interval(share['low'], share['high'])})"
