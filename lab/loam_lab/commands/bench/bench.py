"""bench: a command or a server of the user's under every allocator, in the same paired blocks as everything else.

It is run once to see that it works and how long it takes; then at least BLOCKS_MIN blocks, and further ones
until the widest interval is narrow enough or the time budget is used up (never until something looks significant).
"""

from __future__ import annotations

import dataclasses
import functools
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.instruments import Instruments, RealInstruments
from loam_lab.campaign.measure.launch import OVERHEAD_GUESS_S
from loam_lab.campaign.measure.progress import duration
from loam_lab.commands.bench import (
    choices,
    equivalence,
    flames,
    footprint,
    linkage,
    paste,
    profiling,
    recommend,
    several,
    tables,
    target,
)
from loam_lab.commands.bench.job import Job
from loam_lab.commands.run import special_tables
from loam_lab.judging.statistics import intervals, multiplicity

if TYPE_CHECKING:
    from loam_lab.campaign.measure.campaign import Runner
    from loam_lab.commands.campaign import Campaign
    from loam_lab.commands.request import Request
    from loam_lab.model.result import Choice, Recommendation, Result
    from loam_lab.model.study import Study

BLOCKS_MIN, BLOCKS_MAX, BLOCKS_STEP = 10, 60, 5
# Start, previews, summary and report fit beside it into a minute and a half.
BUDGET_S = 86.0
# A server starts, is loaded and stops in each run: the fewest blocks that can tell something, and a minute more.
MORE_FOR_SERVER_S = 64.0
# The least blocks may take this much longer than planned, because disturbed ones are repeated.
REPEATS_ROOM = 1.1
TIMEOUT_S = 600.0


def bench(what: Sequence[str] | Job, request: Request, instruments: Instruments | None = None) -> int:
    """Measure a command or a job and recommend an allocator.

    what: program and arguments, or what to do with a server or several commands
    request: without blocks intervals and budget_s (BUDGET_S where None) decide; of the purposes memory is for memory over
    time, of a server with several processes also without it, and counters and tlb count with the processor's counters or,
    where they stand still, valgrind and a model; flame draws the baseline and the allocator that is recommended
    instruments: None for the real machine
    returns: 0, 1 if a run failed, 130 after Ctrl-C
    raises: LoamError if the command is not found or fails under the baseline
    """
    from loam_lab.commands.bench import rounds

    began, further, output = time.monotonic(), request.further, request.output
    if further.search and isinstance(what, Job) and (what.serves or len(what.commands) > 1):
        raise LoamError("--search", None, "settings are searched by the time of one command", "leave it out")
    goal: target.Target = target.Driven(what) if isinstance(what, Job) else target.Command(what)
    own = linkage.Linked()
    if instruments is None:
        own = _prepared(goal, request)
        instruments = RealInstruments(before_own=own.before_own)
    words = what.options() if isinstance(what, Job) else ["--", *what]
    command = shlex.join(["./loam", "bench", *_words(request), *words])
    campaign = _planned(goal, request, instruments, own, command, began)
    study, folder = campaign.runner.study, campaign.runner.folder
    search_s = further.search_budget_s or rounds.BUDGET_S
    if further.search:
        budget_s = study.budget_s or request.effort.budget_s or BUDGET_S
        first = f"{study.blocks} blocks" if request.effort.blocks else f"at most about {duration(budget_s)}"
        console.note(f"first the allocators, {first}; then settings, {duration(search_s)}")
    result = replace(campaign.run(), before_own=list(own.before_own))
    result = advise(result, goal.text, folder, own.baseline)
    if not campaign.ended.interrupted:
        result = _looked_into(result, goal, campaign.runner, request)
    recommend.save(result, folder)
    if not (output.as_json or output.export):
        tables.show(result)
        profiling.show(result.profiles or ())
        special_tables.show(result)
    if further.search and not campaign.ended.interrupted and campaign.ended.done:
        again = _again(campaign.runner, goal)
        outcome, stopped = rounds.Search(goal.text, folder, goal.run_s, search_s, again).run(result)
        campaign.ended = stopped or campaign.ended
        if outcome is not None:
            result = replace(result, search=outcome)
            recommend.save(result, folder)
    return campaign.close(result, functools.partial(_show, export=output.export))


def _prepared(goal: target.Target, request: Request) -> linkage.Linked:
    """Build what a bench needs; returns: the allocators that its programs are linked with"""
    from loam_lab.setup import build
    from loam_lab.subjects.allocators import building

    further = request.further
    build.ensure_built(["probe"])
    building.ensure(request.selection.allocators)
    tlb = "tlb" in further.purposes
    helpers = {"counted-loop": tlb or "counters" in further.purposes, "tlb": tlb, "stacks": further.flame}
    counter = [profiling.LIBRARIES[further.profile == "sample"]] if further.profile else []
    build.ensure_built([*counter, *(name for name, needed in helpers.items() if needed)])
    return linkage.find(goal.programs)


def _planned(
    goal: target.Target, request: Request, instruments: Instruments, own: linkage.Linked, command: str, began_s: float
) -> Campaign:  # fmt: skip
    """The campaign, after the goal has been run once; its folder is there. began_s: by time.monotonic()"""
    from loam_lab.campaign.measure.campaign import Runner
    from loam_lab.commands.campaign import INTERRUPTED, Campaign, counted
    from loam_lab.model.store import folder as folders

    effort, purposes, output = request.effort, request.further.purposes, request.output
    for name in request.selection.allocators:
        instruments.allocator(name)
    study, absent = _study(goal, request, own.baseline)
    previewed = time.monotonic()
    try:
        goal.attempt(study, instruments, effort.timeout_s or TIMEOUT_S)
    except KeyboardInterrupt:
        why = "in the first run, which does not count"
        raise LoamError("interrupted", None, why, "start it again", exit_code=INTERRUPTED) from None
    folder = output.folder("bench")
    if output.resume:
        before = folders.read_manifest(folder)["plan"]["study"]
        limits = {key: before[key] for key in ("blocks", "budget_s", "memory", "memory_runs")}
    else:
        left_s = (effort.budget_s or BUDGET_S) - (time.monotonic() - previewed)
        limits = _extent(goal, len(study.allocators), effort.blocks, "memory" in purposes or goal.apart, left_s)
    counting = {name: name in purposes for name in ("counters", "tlb")}
    study, sources, notes = counted(study.model_copy(update={**limits, **counting}))
    plan = goal.plan(study)
    plan.notes += [*own.notes, *absent, *_dropped(goal.dropped), *notes]
    runner = Runner(
        study, plan, folder, instruments, command, resume=output.resume, kind="bench", launchers={goal.sync: goal.launcher},
        enough=None if effort.blocks else _narrow_enough(folder), counter_sources=sources,
    )  # fmt: skip
    return Campaign(runner, output, began_s)


def _words(request: Request) -> list[str]:
    """What of a request is told as options before what is measured."""
    further, allocators = request.further, request.selection.allocators
    words = ["--allocator", ",".join(allocators)] if allocators else []
    words += [f"--{name}" for name in ("memory", "counters", "tlb") if name in further.purposes]
    words += {"full": ["--profile"], "sample": ["--profile-sample"]}.get(further.profile, [])
    words += ["--flame"] * further.flame
    if further.search:
        budget_s = further.search_budget_s
        words += ["--search"] if budget_s is None else ["--search-for", f"{budget_s:g}"]
    return words


def _looked_into(result: Result, goal: target.Target, runner: Runner, request: Request) -> Result:
    """The result with what one more run under each allocator counts, and with call stacks, where they are asked for."""
    profile, timeout_s = request.further.profile, request.effort.timeout_s or TIMEOUT_S
    plan, instruments = runner.plan, runner.instruments
    if profile:
        profiles = profiling.profiles(goal, plan, instruments, sampled=profile == "sample", timeout_s=timeout_s)
        result = replace(result, profiles=profiles)
    if request.further.flame:
        drawn = flames.flames(goal, plan, instruments, result, timeout_s=timeout_s)
        result = replace(result, flames=drawn)
        flames.warn(drawn)
    return result


def _show(result: Result, *, export: str) -> None:
    """Print the result as an export, or what was searched for beside the tables."""
    if export:
        from loam_lab.presenting.report import exported

        console.out().print(exported.render(result, export), markup=False, soft_wrap=True, end="")
    elif result.search is not None:
        from loam_lab.commands.bench import rounds

        rounds.show(result.search)


def advise(result: Result, text: str, folder: Path, own: str = "") -> Result:
    """A Result with its recommendation, of several commands that of each, and the lines to paste.

    text: what was measured, as typed; own: the allocator that the program uses as it is, "" for libc's
    """
    memory = footprint.find(folder)
    commands = list(dict.fromkeys(str(cell.parameters.get("command", "")) for cell in result.cells))
    same = equivalence.find(folder, recommend.decides(result))
    if len(commands) > 1:
        result = several.add(result, commands, memory, same)
    else:
        (only,) = same.values()
        named = recommend.add(result, text, memory.of(), memory.by, only)
        result = choices.add(named, memory.of(), memory.by, only)
    advised = result.recommendation
    assert advised is not None, "it was just added"
    changes = advised.allocator not in ("", own)
    lines = paste.lines(advised.allocator, text, result.before_own or ()) if changes else {}
    if len(commands) == 1:
        advised = replace(advised, choices=_with_lines(advised, text, result))
    if own and not changes and advised.allocator:
        advised = replace(advised, text=f"Change nothing: the program is linked with {own} itself. {advised.text}")
    if memory.why and advised.allocator:
        advised = replace(advised, text=f"{advised.text} Memory decides nothing: {memory.why}.")
    return replace(result, recommendation=replace(advised, lines=lines))


def _with_lines(advised: Recommendation, text: str, result: Result) -> list[Choice] | None:
    """The choices, each with the line to paste where it is neither the recommendation nor to change nothing."""
    if advised.choices is None:
        return None
    return [
        choice if choice.allocator in (result.baseline, advised.allocator)
        else replace(choice, command=paste.shell(choice.allocator, text, result.before_own or ()))
        for choice in advised.choices
    ]  # fmt: skip


def _again(first: Runner, goal: target.Target) -> Any:
    """Runners of the same command under other allocators, for a search (see rounds.Search)."""
    from loam_lab.model.cell import COUNTING

    group = first.study.groups[0].model_copy(update=dict.fromkeys(COUNTING))

    def runner(allocators: Sequence[str], blocks: int, folder: Path, resume: bool, narrow: bool) -> Runner:
        changed = {"allocators": tuple(allocators), "baseline": allocators[0], "blocks": blocks, "budget_s": None,
                   "memory": False, "counters": False, "tlb": False, "groups": (group,)}  # fmt: skip
        other, enough = first.study.model_copy(update=changed), _narrow_enough(folder) if narrow else None
        return dataclasses.replace(
            first, study=other, plan=goal.plan(other), folder=folder, resume=resume, enough=enough, counter_sources=()
        )

    return runner


def _study(goal: target.Target, request: Request, own: str = "") -> tuple[Study, list[str]]:
    """The study and what is said of it. own: the allocator that the program uses as it is, "" for libc's"""
    from loam_lab.campaign.measure.available import present
    from loam_lab.model.study import SCHEMA, Group, Study
    from loam_lab.subjects.allocators import registry

    allocators = request.selection.allocators
    chosen = tuple(dict.fromkeys([*([own] if own else []), *(allocators or registry.defaults())]))
    study = Study(
        schema=SCHEMA, name="bench", title=f"{goal.workload} under {len(chosen)} allocators",
        question=f"Which allocator suits {goal.text}?", allocators=chosen, blocks=BLOCKS_MIN, seed=request.effort.seed,
        baseline=own or ("glibc" if "glibc" in chosen else chosen[0]),
        timeout_s=None if isinstance(goal, target.Driven) else request.effort.timeout_s,
        groups=(Group(name="bench", workload=goal.workload, sync=(goal.sync,), parameters=goal.levels()),),
    )  # fmt: skip
    return (study, []) if allocators else present(study)


def telling(rivals: int) -> int:
    """The fewest blocks in which one of so many rivals can be told from the baseline, after correction for all of them."""
    blocks = intervals.BLOCKS_MIN
    while max(1, rivals) * 2.0 ** (1 - blocks) >= multiplicity.SIGNIFICANCE:
        blocks += 1
    return blocks


def _extent(
    goal: target.Target, allocators: int, blocks: int | None, memory: bool, left_s: float
) -> dict[str, float | int | None]:
    """How many blocks and memory runs a study has, and its budget of time. left_s: for all of them"""
    least = telling(allocators - 1)
    run_s = goal.run_s + OVERHEAD_GUESS_S
    memory_runs = min(blocks or least, least) if memory else 1
    memory_s = run_s * allocators * memory_runs * memory
    limits = _limits(
        left_s + goal.serves * MORE_FOR_SERVER_S, run_s * (allocators + 1), blocks, least if goal.serves else BLOCKS_MIN,
        memory_s,
    )  # fmt: skip
    return {**limits, "memory": memory, "memory_runs": memory_runs}


def _blocks(budget_s: float, block_s: float, least: int = BLOCKS_MIN) -> int:
    return min(BLOCKS_MAX, max(least, int(budget_s / max(block_s, 1e-3))))


def _limits(
    budget_s: float, block_s: float, blocks: int | None, least: int = BLOCKS_MIN, before_s: float = 0.0
) -> dict[str, float | int | None]:
    """How many blocks are planned, and when none is begun any more, disturbed ones and their repetitions included.

    blocks: what the user asked for, which has no limit of time; least: as many are begun in any case
    before_s: what other runs take first
    """
    if blocks is not None:
        return {"blocks": blocks, "budget_s": None}
    wanted = _blocks(budget_s - before_s, block_s, least)
    return {"blocks": wanted, "budget_s": max(budget_s, before_s + least * block_s * REPEATS_ROOM)}


def _dropped(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [
        f"{', '.join(sorted(names))} of your environment is not passed on; it would change the allocator under test; none"
    ]


def _narrow_enough(folder: Path) -> Any:
    """A question to ask before each block: are all intervals narrower than the margin of equivalence?

    It depends on widths alone.  Asked every BLOCKS_STEP blocks from BLOCKS_MIN on
    """

    def enough(block: int) -> bool:
        if block < BLOCKS_MIN or block % BLOCKS_STEP:
            return False
        from loam_lab.judging.statistics import contrasts, data

        campaign = data.load(folder)
        ratios = [contrasts.to_baseline(campaign, cell) for cell in campaign.cells]
        widths = [ratio.width for ratio in ratios if ratio is not None]
        return bool(widths) and max(widths) <= campaign.study.margin

    return enough
