"""bench: a command or a server of the user's under every allocator, in the same paired blocks as everything else.

It is run once to see that it works and how long it takes; then at least BLOCKS_MIN blocks, and further ones
until the widest interval is narrow enough or the time budget is used up (never until something looks significant).
"""

from __future__ import annotations

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
    alike,
    choices,
    flames,
    footprint,
    linked,
    paste,
    profiling,
    recommend,
    several,
    shown,
    target,
)
from loam_lab.commands.bench.job import Job
from loam_lab.commands.run import special_tables
from loam_lab.judging.statistics import intervals, multiplicity

if TYPE_CHECKING:
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


def bench(
    what: Sequence[str] | Job,
    *,
    allocators: Sequence[str] = (),
    blocks: int | None = None,
    seed: int = 1,
    timeout_s: float | None = None,
    budget_s: float = BUDGET_S,
    memory: bool = False,
    counters: bool = False,
    tlb: bool = False,
    profile: str = "",
    flame: bool = False,
    search: bool = False,
    search_budget_s: float | None = None,
    resume: bool = False,
    out: Path | None = None,
    as_json: bool = False,
    export: str = "",
    instruments: Instruments | None = None,
    report: bool = True,
) -> int:
    """Measure a command or a job and recommend an allocator.

    what: program and arguments, or what to do with a server or several commands
    blocks: exactly that many, None to let intervals and budget_s decide
    memory: further runs under each allocator, for memory over time; of a server with several processes also without it
    counters: further runs under each that count, with the processor's counters or, where they stand still, valgrind
    tlb: the same for misses of the translation buffers, which a model stands in for
    profile: "full" or "sample" for one further run under each that counts what is asked of it
    flame: then call stacks of the baseline and the allocator that is recommended: time and allocation
    search: then search the settings of the best two allocators; search_budget_s: for about so long (rounds.BUDGET_S)
    export: "markdown" or "csv" to print the result so, in place of tables
    returns: 0, 1 if a run failed, 130 after Ctrl-C
    raises: LoamError if the command is not found or fails under the baseline
    """
    from loam_lab.campaign.counters import planning
    from loam_lab.campaign.measure.campaign import Runner
    from loam_lab.commands.bench import rounds
    from loam_lab.commands.run import commands
    from loam_lab.judging.result import summarise
    from loam_lab.model.store import folder as folders

    began = time.monotonic()
    if search and isinstance(what, Job) and (what.serves or len(what.commands) > 1):
        raise LoamError("--search", None, "settings are searched by the time of one command", "leave it out")
    goal: target.Target = target.Driven(what) if isinstance(what, Job) else target.Command(what)
    own = linked.Linked()
    if instruments is None:
        from loam_lab.setup import build
        from loam_lab.subjects.allocators import building

        build.ensure_built(["probe"])
        building.ensure(allocators)
        helpers = {"counted-loop": counters or tlb, "tlb": tlb, "stacks": flame}
        counter = [profiling.LIBRARIES[profile == "sample"]] if profile else []
        build.ensure_built([*counter, *(name for name, needed in helpers.items() if needed)])
        own = linked.find(goal.programs)
        instruments = RealInstruments(before_own=own.before_own)
    for name in allocators:
        instruments.allocator(name)
    study, absent = _study(goal, allocators, seed, None if isinstance(what, Job) else timeout_s, own.baseline)
    previewed = time.monotonic()
    try:
        goal.attempt(study, instruments, timeout_s or TIMEOUT_S)
    except KeyboardInterrupt:
        raise LoamError(
            "interrupted",
            None,
            "in the first run, which does not count",
            "start it again",
            exit_code=commands.INTERRUPTED,
        ) from None
    folder = folders.started("bench", out) if resume else folders.new("bench", out)
    if resume:
        before = folders.read_manifest(folder)["plan"]["study"]
        limits = {key: before[key] for key in ("blocks", "budget_s", "memory", "memory_runs")}
    else:
        limits = _extent(
            goal, len(study.allocators), blocks, memory or goal.apart, budget_s - (time.monotonic() - previewed)
        )
    study = study.model_copy(update={**limits, "counters": counters, "tlb": tlb})
    sources = commands.counter_sources(study)
    study, counting = planning.resolve(study, sources)
    plan = goal.plan(study)
    plan.notes += [*own.notes, *absent, *_dropped(goal.dropped), *counting]
    flags = ["--memory"] * memory + ["--counters"] * counters + ["--tlb"] * tlb
    flags += {"full": ["--profile"], "sample": ["--profile-sample"]}.get(profile, [])
    flags += ["--flame"] * flame
    flags += ["--search"] if search and search_budget_s is None else []
    flags += ["--search-for", f"{search_budget_s:g}"] if search and search_budget_s is not None else []
    chosen = ["--allocator", ",".join(allocators)] if allocators else []
    words = what.options() if isinstance(what, Job) else ["--", *what]
    repeat = shlex.join(["./loam", "bench", *chosen, *flags, *words])
    if search:
        first = f"{study.blocks} blocks" if blocks else f"at most about {duration(study.budget_s or budget_s)}"
        console.note(f"first the allocators, {first}; then settings, {duration(search_budget_s or rounds.BUDGET_S)}")
    runner = Runner(
        study, plan, folder, instruments, repeat, resume=resume, kind="bench", launchers={goal.sync: goal.launcher},
        enough=None if blocks else _narrow_enough(folder), counter_sources=sources,
    )  # fmt: skip
    ended = runner.run()
    result = summarise.write(folder, elapsed_s=time.monotonic() - began, commands=[repeat], notes=ended.changed)
    result = advise(replace(result, before_own=list(own.before_own)), goal.text, folder, own.baseline)
    if profile and not ended.interrupted:
        least_s = timeout_s or TIMEOUT_S
        found = profiling.profiles(goal, plan, instruments, sampled=profile == "sample", timeout_s=least_s)
        result = replace(result, profiles=found)
    if flame and not ended.interrupted:
        drawn = flames.flames(goal, plan, instruments, result, timeout_s=timeout_s or TIMEOUT_S)
        result = replace(result, flames=drawn)
        flames.warn(drawn)
    recommend.save(result, folder)
    if not (as_json or export):
        shown.show(result)
        profiling.show(result.profiles or ())
        special_tables.show(result)
    if search and not ended.interrupted and ended.done:
        again = _again(study, goal, instruments, repeat)
        searching = rounds.Search(goal.text, folder, goal.run_s, search_budget_s or rounds.BUDGET_S, again)
        outcome, stopped = searching.run(result)
        ended = stopped or ended
        if outcome is not None:
            result = replace(result, search=outcome)
            recommend.save(result, folder)
    reported = not report or not ended.done or commands.make_report(result, folder)
    if as_json:
        console.print_json(result)
    elif export:
        from loam_lab.presenting.report import exported

        console.out().print(exported.render(result, export), markup=False, soft_wrap=True, end="")
    elif result.search is not None:
        rounds.show(result.search)
    commands.show_warnings(result)
    return commands.finish(ended, result, folder, repeat, time.monotonic() - began) or int(not reported)


def advise(result: Result, text: str, folder: Path, own: str = "") -> Result:
    """A Result with its recommendation, of several commands that of each, and the lines to paste.

    text: what was measured, as typed; own: the allocator that the program uses as it is, "" for libc's
    """
    memory = footprint.find(folder)
    commands = list(dict.fromkeys(str(cell.parameters.get("command", "")) for cell in result.cells))
    same = alike.find(folder, recommend.decides(result))
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


def _again(study: Study, goal: target.Target, instruments: Instruments, repeat: str) -> Any:
    """Runners of the same command under other allocators, for a search (see rounds.Search)."""
    from loam_lab.campaign.measure.campaign import Runner
    from loam_lab.model.cell import COUNTING

    group = study.groups[0].model_copy(update=dict.fromkeys(COUNTING))

    def runner(allocators: Sequence[str], blocks: int, folder: Path, resume: bool, narrow: bool) -> Runner:
        changed = {"allocators": tuple(allocators), "baseline": allocators[0], "blocks": blocks, "budget_s": None,
                   "memory": False, "counters": False, "tlb": False, "groups": (group,)}  # fmt: skip
        other = study.model_copy(update=changed)
        return Runner(
            other, goal.plan(other), folder, instruments, repeat, resume=resume, kind="bench",
            launchers={goal.sync: goal.launcher}, enough=_narrow_enough(folder) if narrow else None,
        )  # fmt: skip

    return runner


def _study(
    goal: target.Target, allocators: Sequence[str], seed: int, timeout_s: float | None, own: str = ""
) -> tuple[Study, list[str]]:
    """The study and what is said of it. own: the allocator that the program uses as it is, "" for libc's"""
    from loam_lab.campaign.measure.available import present
    from loam_lab.model.study import SCHEMA as STUDY_SCHEMA
    from loam_lab.model.study import Group, Study
    from loam_lab.subjects.allocators import registry

    chosen = tuple(dict.fromkeys([*([own] if own else []), *(allocators or registry.defaults())]))
    study = Study(
        schema=STUDY_SCHEMA,
        name="bench",
        title=f"{goal.workload} under {len(chosen)} allocators",
        question=f"Which allocator suits {goal.text}?",
        baseline=own or ("glibc" if "glibc" in chosen else chosen[0]),
        allocators=chosen,
        blocks=BLOCKS_MIN,
        seed=seed,
        timeout_s=timeout_s,
        groups=(Group(name="bench", workload=goal.workload, sync=(goal.sync,), parameters=goal.levels()),),
    )
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
    found = _limits(
        left_s + goal.serves * MORE_FOR_SERVER_S, run_s * (allocators + 1), blocks, least if goal.serves else BLOCKS_MIN,
        memory_s,
    )  # fmt: skip
    return {**found, "memory": memory, "memory_runs": memory_runs}


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
