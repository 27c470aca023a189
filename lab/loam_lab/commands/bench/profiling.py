"""The allocation profile of `bench --profile`: one run more under each allocator, with a library of ours in front of it.

lab/interposer/profile.cpp counts, campaign/counters/profile.py reads what it wrote.  Times of these runs count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loam_lab.base import console, paths
from loam_lab.campaign.counters import profile
from loam_lab.campaign.measure.instruments import Instruments, scratch_folder
from loam_lab.campaign.process.execute import execute
from loam_lab.commands.bench.trial import Trial
from loam_lab.commands.run.tables import share
from loam_lab.model import words
from loam_lab.model.protocol import PROFILE
from loam_lab.subjects.allocators import preloading

if TYPE_CHECKING:
    from loam_lab.campaign.measure.launch import Judged
    from loam_lab.campaign.measure.plan import Plan
    from loam_lab.campaign.process.execute import Outcome
    from loam_lab.commands.bench.target import Target
    from loam_lab.model.cell import PlannedRun

# A profile takes longer than a run, and valgrind's factor would be too much.
FACTOR = 4
SAMPLE_BYTES = 512 * 1024
# By whether it samples: which library counts.
LIBRARIES = {False: "profile", True: "profile-sample"}


def profiles(
    goal: Target, plan: Plan, instruments: Instruments, *, sampled: bool, timeout_s: float
) -> list[dict[str, Any]]:
    """One profile for each cell of a plan; {"allocator", "command", "problem"} where there is none."""
    library = paths.load_paths()["libraries"][LIBRARIES[sampled]]
    entries: list[dict[str, Any]] = []
    for run, named in once_each(plan):
        with preloading.folder(scratch_folder()) as scratch:
            variables = instruments.environment(instruments.allocator(run.cell.allocator), scratch / "proof")
            variables = in_front(library, variables)
            variables[PROFILE] = str(scratch / "profile")
            if sampled:
                variables["LOAM_PROFILE_SAMPLE"] = str(SAMPLE_BYTES)
            _, judged = observed(goal, run, variables, timeout_s)
            processes = profile.read(sorted(scratch.glob("profile.*")))
        if judged.state != "ok":
            entries.append({**named, "problem": judged.detail})
        elif not processes:
            entries.append({**named, "problem": profile.silent(goal.programs)})
        else:
            entries.append({**named, "problem": "", **profile.summary(processes)})
    return entries


def once_each(plan: Plan) -> Iterator[tuple[PlannedRun, dict[str, str]]]:
    """The first run of each cell, the baseline's second copy apart, and how the cell is named in a result."""
    done: set[str] = set()
    for run in plan.runs:
        if run.cell.key not in done and run.copy == 0:
            done.add(run.cell.key)
            command = str(dict(run.cell.parameters).get("command", ""))
            yield run, {"allocator": run.cell.allocator, "command": command}


def observed(
    goal: Target, run: PlannedRun, variables: Mapping[str, str], timeout_s: float, tool: Sequence[str] = ()
) -> tuple[Outcome, Judged]:
    """One run whose time does not count. variables: of the process; tool: a command line in front of its own"""
    records, limit_s = goal.launcher.speaks_records, FACTOR * timeout_s
    with Trial(limit_s, what=f"a further run under {run.cell.allocator}, whose time does not count,") as trial:
        outcome = execute(
            [*tool, *goal.launcher.argv(run)], goal.launcher.environment(variables), timeout_s=limit_s, records=records,
            keep_stdout=records, watch=trial.look,
        )  # fmt: skip
    return outcome, goal.launcher.judge(outcome, run)


def in_front(library: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Variables that put an allocator into a process, with a library before it."""
    before = preloading.preloadable(library)
    return {**variables, "LD_PRELOAD": ":".join(part for part in (before, variables.get("LD_PRELOAD", "")) if part)}


def show(entries: Sequence[Mapping[str, Any]]) -> None:
    """Print two tables: what was asked for, and what it took."""
    from rich.text import Text

    good = [one for one in entries if not one["problem"]]
    for one in entries:
        if one["problem"]:
            console.warn(f"no profile under {one['allocator']}: {one['problem']}")
    if not good:
        return
    several = len({one["command"] for one in good}) > 1

    def name(one: Mapping[str, Any]) -> Text:
        return Text(f"{one['allocator']} {one['command']}" if several else one["allocator"])

    columns = ["allocator", "blocks", "bytes", "mean", "short-lived", "freed by another", "threads"]
    rows: list[list[str | Text]] = [
        [name(one), _count(one["calls"]), _bytes(one["bytes"]), _bytes(one["bytes"] / max(1, one["calls"])),
         share(one["short_lived"]), share(one["remote"]), str(one["threads"])]
        for one in good
    ]  # fmt: skip
    about = "estimated from samples" if good[0]["sampled"] else "every call"
    title = f"What the program asks of its allocator ({about}; short-lived: freed within 64 KiB of allocation)"
    console.out().print(console.table(columns, rows, numeric=columns[1:], title=title))
    columns = ["allocator", "requested", "padding", "scattered", "held", "resident"]
    rows = [
        [name(one), _bytes(one["peak"]["requested"]),
         *(share((one["fragmentation"] or {}).get(kind)) for kind in ("padding", "scattered", "held")),
         _bytes(one["peak"]["resident"]) if one["peak"]["resident"] else ""]
        for one in good
    ]  # fmt: skip
    title = "At the peak of live memory, beyond what was requested: padding inside blocks, the rest of their pages, free pages"
    console.out().print(console.table(columns, rows, numeric=columns[1:], title=title))


def _count(value: float) -> str:
    return words.quantity(value, "1")


def _bytes(value: float) -> str:
    return words.quantity(value, "B")
