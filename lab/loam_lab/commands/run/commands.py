"""tour, run and study: from what the user asked for to a finished result."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.campaign.fleet.selection import Choice, reach
from loam_lab.campaign.measure import foretold, stopping_rule
from loam_lab.campaign.measure.available import fitting, installed, present
from loam_lab.campaign.measure.builds import prepare
from loam_lab.campaign.measure.progress import duration
from loam_lab.commands.run.selecting import SIMULATED_BLOCKS, SIMULATED_WARMUP_MS, of_groups, on_machines
from loam_lab.model import cache, collector
from loam_lab.subjects import machines

if TYPE_CHECKING:
    from loam_lab.campaign.measure.campaign import Carrier, Ended
    from loam_lab.campaign.measure.instruments import Instruments
    from loam_lab.campaign.measure.plan import Plan
    from loam_lab.model.cell import Purpose
    from loam_lab.model.result import Result
    from loam_lab.model.study import Study

INTERRUPTED = 130
HERE = Choice()
QUICK_BLOCKS = 6
# The fewest blocks of `run`; more follow while intervals are wide.
RUN_BLOCKS, BLOCKS_MAX = 10, 60
WARMUP = "warmup_ms"
WARMUP_MS = 50


def tour(*, resume: bool = False, out: Path | None = None, as_json: bool = False) -> int:
    """The study `tour`.

    returns: 0, 1 if a cell failed, 130 after Ctrl-C
    """
    return study_run("tour", resume=resume, out=out, as_json=as_json, command="./loam tour")


def study_list(*, as_json: bool = False) -> int:
    """Print the studies of the checkout."""
    from loam_lab.model import studies

    found = [(file, studies.load(file)) for file in studies.registry().values()]
    if as_json:
        console.print_json({
            "schema": 1,
            "studies": [
                {"name": s.name, "title": s.title, "question": s.question, "aliases": list(s.aliases),
                 "claims": [claim.id for claim in s.claims], "file": str(file)}
                for file, s in found
            ],
        })  # fmt: skip
    else:
        from rich.markup import escape

        rows = [
            [escape(s.name), str(len(s.claims)), f"{escape(s.title)}\n[aside]{escape(s.question)}[/aside]"]
            for _, s in found
        ]
        console.out().print(console.table(["study", "claims", "title and question"], rows, numeric=["claims"]))
    return 0


def study_run(
    name: str,
    *,
    effort: str = "full",
    machine: Sequence[str] = (),
    group: Sequence[str] = (),
    target_width: float | None = None,
    max_blocks: int | None = None,
    budget_s: float | None = None,
    oversubscribe: bool = False,
    engine: Choice = HERE,
    resume: bool = False,
    out: Path | None = None,
    as_json: bool = False,
    command: str | None = None,
) -> int:
    """Run a study by name, alias or file.

    effort: "quick" is what the study calls so, else at most QUICK_BLOCKS blocks, the fewest that have an interval
    group: names: only these groups
    machine: names: only the groups that the study runs on these; where it has none, all groups, on these
    engine: where its runs are measured
    oversubscribe: run also the thread counts of the study beyond this machine's, which decide nothing
    returns: as tour
    """
    from loam_lab.model import studies

    study, _ = studies.find(name)
    if effort == "quick":
        study = study.quick(QUICK_BLOCKS).model_copy(update={"target_width": None})
    chosen = {"target_width": target_width, "max_blocks": max_blocks, "budget_s": budget_s}
    study = study.model_copy(update={name: value for name, value in chosen.items() if value is not None})
    whole, study = study, of_groups(study, group)
    for one in machine:
        machines.find(one, "--machine")
    if machine:
        study = on_machines(study, machine)
    for one_group in study.groups:
        for one in one_group.machines:
            machines.find(one, f"group {one_group.name}: machines")
    asked, carrier, told = study, None, list[str]()
    if not engine.local:
        study, carrier, told = reach(study, engine)
    options = ["./loam", "study", "run", name, *(["--effort", effort] if effort != "full" else [])]
    if command is None:
        words = [*options, *(["--machine", ",".join(machine)] if machine else [])]
        words += ["--group", ",".join(group)] if group else []
        words += ["--oversubscribe"] if oversubscribe else []
        names = {"--target-width": target_width, "--max-blocks": max_blocks, "--budget": budget_s}
        words += [word for option, value in names.items() if value is not None for word in (option, str(value))]
        command = shlex.join([*words, *engine.words()])
    study, notes = present(study)
    notes += told
    if not oversubscribe:
        study, too_many = fitting(study)
        notes += too_many
    if engine.local:
        for line in foretold.told(whole, foretold.left_open(whole, asked, study, options, by_group=bool(group))):
            console.note(line)
    return perform(
        study, command=command, resume=resume, out=out, as_json=as_json, oversubscribe=oversubscribe,
        where="parameters", notes=notes, carrier=carrier, engine=engine,
    )  # fmt: skip


def run(
    workload: str,
    *,
    allocators: Sequence[str] = (),
    syncs: Sequence[str] = (),
    threads: Sequence[int] = (),
    machine: Sequence[str] = (),
    parameters: Sequence[tuple[str, Sequence[str]]] = (),
    blocks: int | None = None,
    target_width: float | None = None,
    max_blocks: int | None = None,
    budget_s: float | None = None,
    seed: int = 1,
    timeout_s: float | None = None,
    purposes: Sequence[Purpose] = (),
    d1: str | None = None,
    oversubscribe: bool = False,
    engine: Choice = HERE,
    resume: bool = False,
    out: Path | None = None,
    as_json: bool = False,
) -> int:
    """An ad-hoc matrix of every combination of the levels given.

    workload: a name, or several with commas between them, each of which becomes a group; they share all levels
    syncs: none for the default of the workload
    parameters: (name, levels); `warmup_ms` is the lab's own and has one level
    blocks: exactly that many, or the least number where target_width is given too; None for as many as give every
    ratio a half-width of target_width (2 % where None), at most max_blocks
    purposes: what every cell gets a further run for; d1: cachegrind's first-level data cache, bytes,ways,line
    returns: as tour; raises: LoamError for what no executable, machine or registry has
    """
    from loam_lab.model.study import SCHEMA, Group, Study
    from loam_lab.setup import jvm
    from loam_lab.subjects.allocators import building, registry

    for one in machine:
        machines.find(one)
    if d1 is not None and (wrong := cache.problem(d1)):
        raise LoamError("--d1", d1, wrong, f"for example --d1 {cache.EXAMPLE}")
    levels: dict[str, list[str]] = {}
    for name, values in parameters:
        levels[name] = list(dict.fromkeys([*levels.get(name, []), *values]))
    warmup_ms = _warmup(levels)
    slow = machines.are_simulated(machine)
    # Under a virtual machine's heap lies the same memory whichever allocator serves the process.
    on_jvm = bool(syncs) and all(sync.startswith(jvm.PREFIX) for sync in syncs)
    chosen = tuple(allocators) or ("glibc",) * on_jvm or tuple(registry.defaults())
    several = list(dict.fromkeys(workload.split(",")))
    group = Group(
        name="run",
        workload=workload,
        sync=tuple(syncs),
        threads=tuple(threads) or (1,),
        machines=tuple(machine) or (machines.HOST,),
        parameters={name: tuple(values) if len(values) > 1 else values[0] for name, values in levels.items()},
        d1=d1,
    )
    study = Study(
        schema=SCHEMA,
        name="run",
        title=f"{workload}: ad-hoc matrix",
        question="What differs between the levels given on the command line?",
        baseline="glibc" if "glibc" in chosen else chosen[0],
        allocators=chosen,
        blocks=blocks or (SIMULATED_BLOCKS if slow else RUN_BLOCKS),
        target_width=target_width if target_width is not None or blocks or slow else stopping_rule.TARGET_WIDTH,
        max_blocks=max_blocks or BLOCKS_MAX,
        budget_s=budget_s,
        seed=seed,
        timeout_s=timeout_s,
        groups=(group,)
        if len(several) == 1
        else tuple(group.model_copy(update={"name": one, "title": one, "workload": one}) for one in several),
        warmup_ms=(SIMULATED_WARMUP_MS if slow else WARMUP_MS) if warmup_ms is None else warmup_ms,
    ).model_copy(update=dict.fromkeys(purposes, True))
    carrier, absent = None, list[str]()
    if not engine.local:
        study, carrier, absent = reach(study, engine)
    if not allocators:
        study, missing = present(study)
        absent += missing
    else:
        building.ensure(allocators)
    return perform(
        study, command=repeat(study, group, oversubscribe=oversubscribe, engine=engine), resume=resume, out=out,
        as_json=as_json, oversubscribe=oversubscribe, notes=absent, carrier=carrier, engine=engine,
    )  # fmt: skip


def _warmup(levels: dict[str, list[str]]) -> int | None:
    values = levels.pop(WARMUP, None)
    if values is None:
        return None
    if len(values) != 1 or not values[0].isdigit():
        raise LoamError(f"-p {WARMUP}", ",".join(values), "needs one whole number of milliseconds")
    return int(values[0])


def perform(
    study: Study,
    *,
    command: str,
    resume: bool = False,
    out: Path | None = None,
    as_json: bool = False,
    oversubscribe: bool = False,
    preset: str = "release",
    instruments: Instruments | None = None,
    where: str = "-p",
    notes: Sequence[str] = (),
    report: bool = True,
    carrier: Carrier | None = None,
    engine: Choice = HERE,
) -> int:
    """Plan, run, summarise, report and print a study.

    command: how the user would repeat it; instruments: None for the real machine; notes: warnings to carry along
    carrier: what has the runs measured elsewhere, None for here; engine: the options that chose it
    returns: 0, 1 if a cell failed, 130 after Ctrl-C
    """
    from loam_lab.campaign.counters import planning
    from loam_lab.campaign.measure import plan as plans
    from loam_lab.campaign.measure.campaign import Runner
    from loam_lab.campaign.measure.instruments import RealInstruments
    from loam_lab.judging.result import summarise
    from loam_lab.model.store import folder as folders

    began = time.monotonic()
    if instruments is None:
        prepare(study, preset)
        instruments = RealInstruments(preset)
    sources = counter_sources(study)
    study, counting = planning.resolve(study, sources)
    if len(study.groups) > 1:
        study, lacking = installed(study, preset)
        counting += lacking
    plan = plans.make(study, oversubscribe=oversubscribe, preset=preset, where=where)
    plan.notes.extend([*notes, *counting])
    _check_claims(study, plan)
    for name in dict.fromkeys(cell.allocator for cell in plan.cells()):
        instruments.allocator(name)  # what cannot be measured is said before a folder is made for it
    folder = folders.started(study.name, out) if resume else folders.new(study.name, out)
    runner = Runner(
        study,
        plan,
        folder,
        instruments,
        command,
        preset=preset,
        resume=resume,
        counter_sources=sources,
        carrier=carrier,
    )
    ended = runner.run()
    commands = [
        command,
        *(
            line
            for g in study.groups
            if (line := repeat(study, g, oversubscribe=oversubscribe, engine=engine)) != command
        ),
    ]
    result = summarise.write(folder, elapsed_s=time.monotonic() - began, commands=commands, notes=ended.changed)
    reported = not report or not ended.done or make_report(result, folder)
    _print(result, as_json=as_json)
    return finish(ended, result, folder, command, time.monotonic() - began) or int(not reported)


def _check_claims(study: Study, plan: Plan) -> None:
    from loam_lab.judging.claims import check

    descriptions = {
        group.name: [
            plan.executables[place].description
            for place in {(c.machine, c.sync) for c in plan.cells() if c.group == group.name}
        ]
        for group in study.groups
    }
    check.check(study, descriptions)


def counter_sources(study: Study) -> list[dict[str, Any]]:
    """What this machine can count with; asked only for a study that counts, or makes claims about counts."""
    from loam_lab.campaign.counters import planning
    from loam_lab.model.cell import COUNTING

    counting = {purpose for group in study.groups for purpose in study.purposes_of(group)} & set(COUNTING)
    counting -= set(planning.OF_OTHERS)  # which need nothing of the machine
    if not counting and not study.claims:
        return []
    if counting:
        from loam_lab.setup import debian

        debian.ensure("count")
    from loam_lab.campaign.counters import sources

    return sources.probe()


def make_report(result: Result, folder: Path) -> bool:
    """Write the report into the folder; False if that failed.

    Whatever goes wrong here is told and not raised: the figures are still to be printed, and the report is made from
    result.json alone and can be made again.
    """
    try:
        from loam_lab.judging.claims import together
        from loam_lab.presenting import report

        report.build(result, folder, others=together.beside(folder, result.study) if result.claims else ())
        return True
    except Exception as problem:
        what = problem.line() if isinstance(problem, LoamError) else f"{type(problem).__name__}: {problem}"
        console.warn(f"no report: {what}; the measurements are kept; run ./loam report {folder}")
        return False


def _print(result: Result, *, as_json: bool) -> None:
    from loam_lab.commands.run import factor_tables, special_tables, tables

    if as_json:
        console.print_json(result)
        show_warnings(result)
        return
    from loam_lab.model.result.labelled import labelled

    result = labelled(result)
    if result.factors:
        factor_tables.show(result)
    else:
        tables.show(result)
        special_tables.show(result)
        if result.claims:
            from loam_lab.judging.claims import tables as ledger

            ledger.show(result)
    show_warnings(result)


def show_warnings(result: Result) -> None:
    """Print the warnings of a Result on standard error."""
    for text in result.warnings:
        console.warn(text)


def finish(ended: Ended, result: Result, folder: Path, command: str, elapsed_s: float) -> int:
    """Say where the result is and how to go on; returns the exit status."""
    if ended.interrupted:
        again = f"{command} --resume --out {shlex.quote(str(folder))}"
        console.note(f"interrupted: {ended.done} of {ended.total} runs are kept; continue with: {again}")
        return INTERRUPTED
    pages = [name for name in ("report.html", "index.html") if (folder / name).exists()]
    where = folder / pages[0] if pages else folder
    console.note(f"{ended.measured} runs in {duration(elapsed_s)}; result: {where}")
    if result.failures:
        failed = sum(failure.count for failure in result.failures)
        console.note(f"{failed} runs failed; see failures in {folder / 'result.json'}")
        return 1
    return int(bool(ended.changed))


def repeat(study: Study, group: Any, *, oversubscribe: bool = False, engine: Choice = HERE) -> str:
    """The `loam run` command that repeats one group of a study."""
    words = ["./loam", "run", group.workload]
    for name, values in group.levels().items():
        of_factor = name == collector.NAME
        words += ["--collector", ",".join(values)] if of_factor else ["-p", f"{name}={','.join(values)}"]
    words += ["-p", f"{WARMUP}={study.warmup_of(group)}"]
    words += ["--allocator", ",".join(study.allocators_of(group))]
    if group.sync:
        words += ["--sync", ",".join(group.sync)]
    words += ["--threads", ",".join(str(count) for count in group.threads), "--blocks", str(study.blocks_of(group))]
    if engine.local and group.machines != (machines.HOST,):
        words += ["--machine", ",".join(group.machines)]
    if study.target_width is not None:
        words += ["--target-width", str(study.target_width), "--max-blocks", str(study.max_blocks)]
    if group.name == "run" and study.budget_s is not None:
        words += ["--budget", str(study.budget_s)]
    if study.seed != 1:
        words += ["--seed", str(study.seed)]
    words += [f"--{purpose}" for purpose in study.purposes_of(group)]
    if group.d1 and "cachegrind" in study.purposes_of(group):
        words += ["--d1", group.d1]
    if oversubscribe:
        words.append("--oversubscribe")
    return shlex.join([*words, *engine.words()])
