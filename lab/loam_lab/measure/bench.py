"""bench: a command of the user's under every allocator, in the same paired blocks as everything else.

The command is run once to see that it works and how long it takes; then at least BLOCKS_MIN blocks, and further ones
until the widest interval is narrow enough or the time budget is used up (never until something looks significant).
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab import console, workloads
from loam_lab.errors import LoamError
from loam_lab.measure import recommend, special_tables
from loam_lab.measure.instruments import Instruments, Machine, scratch_folder
from loam_lab.measure.launch import OVERHEAD_GUESS_S
from loam_lab.measure.progress import duration
from loam_lab.model.description import SCHEMA, Description

if TYPE_CHECKING:
    from loam_lab.measure.launch import CommandLauncher
    from loam_lab.model.study import Study

BLOCKS_MIN, BLOCKS_MAX, BLOCKS_STEP = 10, 60, 5
# Start, previews, summary and report fit beside it into a minute and a half.
BUDGET_S = 86.0
# The least blocks may take this much longer than planned, because disturbed ones are repeated.
REPEATS_ROOM = 1.1
TIMEOUT_S = 600.0
AGAIN_S = 2.0
SYNC = "command"


def bench(
    command: Sequence[str],
    *,
    allocators: Sequence[str] = (),
    blocks: int | None = None,
    seed: int = 1,
    timeout_s: float | None = None,
    budget_s: float = BUDGET_S,
    memory: bool = False,
    counters: bool = False,
    tune: bool = False,
    tune_budget_s: float | None = None,
    resume: bool = False,
    out: Path | None = None,
    as_json: bool = False,
    instruments: Instruments | None = None,
    report: bool = True,
) -> int:
    """Measure a command and recommend an allocator.

    command: program and arguments; blocks: exactly that many, None to let intervals and budget_s decide
    memory: one further run under each allocator, for memory over time
    counters: further runs under each that count, with the processor's counters or, where they stand still, valgrind
    tune: then search the settings of the best two allocators; tune_budget_s: for about so long (tune.BUDGET_S)
    returns: 0, 1 if a run failed, 130 after Ctrl-C
    raises: LoamError if the command is not found or fails under the baseline
    """
    from loam_lab.counters import planning
    from loam_lab.measure import commands
    from loam_lab.measure import folder as folders
    from loam_lab.measure import tune as tuning
    from loam_lab.measure.campaign import Campaign
    from loam_lab.statistics import summarise

    began = time.monotonic()
    argv = [_program(command[0]), *command[1:]]
    if instruments is None:
        from loam_lab.allocators import building
        from loam_lab.setup import build

        build.ensure_built(["probe"])
        building.ensure(allocators)
        if counters:
            build.ensure_built(["counted-loop"])
        instruments = Machine()
    for name in allocators:
        instruments.allocator(name)
    text = shlex.join(command)
    study, absent = _study(argv, text, allocators, seed, timeout_s)
    previewed = time.monotonic()
    launcher, run_s = _preview(argv, text, study.baseline, instruments, timeout_s or TIMEOUT_S)
    folder = folders.started("bench", out) if resume else folders.new("bench", out)
    if resume:
        before = folders.read_manifest(folder)["plan"]["study"]
        limits = {key: before[key] for key in ("blocks", "budget_s")}
    else:
        left_s = budget_s - (time.monotonic() - previewed)
        limits = _limits(left_s, (run_s + OVERHEAD_GUESS_S) * (len(study.allocators) + 1), blocks)
    study = study.model_copy(update={**limits, "memory": memory, "counters": counters})
    sources = commands.counter_sources(study)
    study, counting = planning.resolve(study, sources)
    plan = _plan(study, argv)
    plan.notes += [*absent, *_dropped(launcher.dropped), *counting]
    flags = ["--memory"] * memory + ["--counters"] * counters
    flags += ["--tune"] if tune and tune_budget_s is None else []
    flags += ["--tune-for", f"{tune_budget_s:g}"] if tune and tune_budget_s is not None else []
    chosen = ["--allocator", ",".join(allocators)] if allocators else []
    repeat = shlex.join(["./loam", "bench", *chosen, *flags, "--", *command])
    if tune:
        first = f"{study.blocks} blocks" if blocks else f"at most about {duration(study.budget_s or budget_s)}"
        console.note(f"first the allocators, {first}; then settings, {duration(tune_budget_s or tuning.BUDGET_S)}")
    campaign = Campaign(
        study, plan, folder, instruments, repeat, resume=resume, kind="bench", launcher=launcher,
        enough=None if blocks else _narrow_enough(folder), counter_sources=sources,
    )  # fmt: skip
    ended = campaign.run()
    result = summarise.write(folder, elapsed_s=time.monotonic() - began, commands=[repeat])
    recommend.add(result, text)
    recommend.save(result, folder)
    if not as_json:
        recommend.show(result)
        special_tables.show(result)
    if tune and not ended.interrupted and ended.done:
        again = _again(study, argv, instruments, launcher, repeat)
        search = tuning.Search(text, folder, run_s, tune_budget_s or tuning.BUDGET_S, again)
        found, stopped = search.run(result)
        ended = stopped or ended
        if found is not None:
            result["tuning"] = found
            recommend.save(result, folder)
    reported = not report or not ended.done or commands.make_report(result, folder)
    if as_json:
        console.print_json(result)
    elif "tuning" in result:
        tuning.show(result["tuning"])
    commands.show_warnings(result)
    return commands.finish(ended, result, folder, repeat, time.monotonic() - began) or int(not reported)


def _again(study: Study, argv: Sequence[str], instruments: Instruments, launcher: CommandLauncher, repeat: str) -> Any:
    """Campaigns of the same command under other allocators, for a search (see tune.Search)."""
    from loam_lab.counters import planning
    from loam_lab.measure.campaign import Campaign

    group = study.groups[0].model_copy(update=dict.fromkeys(planning.COUNTING))

    def campaign(allocators: Sequence[str], blocks: int, folder: Path, resume: bool, narrow: bool) -> Campaign:
        changed = {"allocators": tuple(allocators), "baseline": allocators[0], "blocks": blocks, "budget_s": None,
                   "memory": False, "counters": False, "groups": (group,)}  # fmt: skip
        other = study.model_copy(update=changed)
        return Campaign(
            other, _plan(other, argv), folder, instruments, repeat, resume=resume, kind="bench", launcher=launcher,
            enough=_narrow_enough(folder) if narrow else None,
        )  # fmt: skip

    return campaign


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        exists = Path(name).exists()
        limit = "is not executable" if exists else "no such program"
        raise LoamError("bench", name, limit, "name a program on PATH, or a path; a shell line is: sh -c '...'")
    return str(Path(found).absolute())


def _study(
    argv: Sequence[str], text: str, allocators: Sequence[str], seed: int, timeout_s: float | None
) -> tuple[Study, list[str]]:
    from loam_lab.allocators import registry
    from loam_lab.measure.available import present
    from loam_lab.model.study import Group, Study

    chosen = tuple(dict.fromkeys(allocators or registry.defaults()))
    study = Study(
        schema=1,
        name="bench",
        title=f"{Path(argv[0]).name} under {len(chosen)} allocators",
        question=f"Which allocator suits {text}?",
        baseline="glibc" if "glibc" in chosen else chosen[0],
        allocators=chosen,
        blocks=BLOCKS_MIN,
        seed=seed,
        timeout_s=timeout_s,
        groups=(Group(name="bench", workload=Path(argv[0]).name, sync=(SYNC,), parameters={"command": text}),),
    )
    return (study, []) if allocators else present(study)


def _plan(study: Study, argv: Sequence[str]) -> Any:
    """The plan of one command: it looks like an executable with one workload whose metrics the lab measures itself."""
    from loam_lab.measure import plan as plans
    from loam_lab.statistics.data import PROCESS_METRICS

    group = study.groups[0]
    text = group.levels()["command"][0]
    parameter = {"name": "command", "type": "choice", "choices": [text], "default": text, "help": "the command line"}
    description = Description.model_validate({
        "schema": SCHEMA,
        "sync": {"name": SYNC, "summary": text, "threads_max": 1},
        "workloads": [{
            "name": group.workload, "summary": text, "parameters": [parameter],
            "metrics": [metric.model_dump() for metric in PROCESS_METRICS],
        }],
    })  # fmt: skip
    program = Path(argv[0])
    executable = workloads.Executable(SYNC, program, description, workloads.build_id(program))
    return plans.make(study, executables=[executable])


def _preview(
    argv: Sequence[str], text: str, baseline: str, instruments: Instruments, timeout_s: float
) -> tuple[CommandLauncher, float]:
    """Runs that do not count: fill the page cache, show that the command works and how long it takes.

    raises: LoamError if it fails
    """
    from loam_lab.measure.execute import execute
    from loam_lab.measure.launch import CommandLauncher

    launcher = CommandLauncher(argv, os.environ, 0.0)
    allocator = instruments.allocator(baseline)
    with tempfile.TemporaryDirectory(prefix="loam-", dir=scratch_folder()) as scratch:
        environment = {**launcher.environment(), **instruments.environment(allocator, Path(scratch) / "proof")}
        try:
            outcome = execute(argv, environment, timeout_s=timeout_s)
            if outcome.wall_s < AGAIN_S and outcome.exit_code == 0:  # the first one also read the program from disk
                outcome = execute(argv, environment, timeout_s=timeout_s)
        except OSError as problem:
            raise LoamError("bench", text, f"does not start: {problem.strerror}", "try it without loam first") from None
    ended = launcher.judge(outcome, None)
    if ended.state != "ok":
        raise LoamError("bench", text, ended.detail, "it must end with status 0 before it can be compared", exit_code=1)
    return CommandLauncher(argv, os.environ, outcome.wall_s), outcome.wall_s


def _blocks(budget_s: float, block_s: float) -> int:
    return min(BLOCKS_MAX, max(BLOCKS_MIN, int(budget_s / max(block_s, 1e-3))))


def _limits(budget_s: float, block_s: float, blocks: int | None) -> dict[str, float | int | None]:
    """How many blocks are planned, and when none is begun any more, disturbed ones and their repetitions included.

    blocks: what the user asked for, which has no limit of time
    """
    if blocks is not None:
        return {"blocks": blocks, "budget_s": None}
    return {"blocks": _blocks(budget_s, block_s), "budget_s": max(budget_s, BLOCKS_MIN * block_s * REPEATS_ROOM)}


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
        from loam_lab.statistics import contrasts, data

        campaign = data.load(folder)
        ratios = [contrasts.to_baseline(campaign, cell) for cell in campaign.cells]
        widths = [ratio.width for ratio in ratios if ratio is not None]
        return bool(widths) and max(widths) <= campaign.study.margin

    return enough
