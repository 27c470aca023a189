"""tour, run and study: from what the user asked for to a finished result."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.campaign.fleet.selection import reach
from loam_lab.campaign.measure import open_claims, stopping_rule
from loam_lab.campaign.measure.available import fitting, installed, present
from loam_lab.campaign.measure.builds import prepare
from loam_lab.commands.run.selecting import SIMULATED_BLOCKS, SIMULATED_WARMUP_MS, of_groups, on_machines
from loam_lab.model import cache, collector
from loam_lab.subjects import machines

if TYPE_CHECKING:
    from loam_lab.campaign.measure.campaign import Carrier
    from loam_lab.campaign.measure.instruments import Instruments
    from loam_lab.campaign.measure.plan import Plan
    from loam_lab.commands.request import Request
    from loam_lab.model.result import Result
    from loam_lab.model.study import Group, Study

QUICK_BLOCKS = 6
# The fewest blocks of `run`; more follow while intervals are wide.
RUN_BLOCKS, BLOCKS_MAX = 10, 60
WARMUP = "warmup_ms"
WARMUP_MS = 50


def study_list(*, as_json: bool = False) -> int:
    """Print the studies of the checkout."""
    from loam_lab.model import studies

    loaded = [(file, studies.load(file)) for file in studies.registry().values()]
    if as_json:
        console.print_json({
            "schema": 1,
            "studies": [
                {"name": s.name, "title": s.title, "question": s.question, "aliases": list(s.aliases),
                 "claims": [claim.id for claim in s.claims], "file": str(file)}
                for file, s in loaded
            ],
        })  # fmt: skip
    else:
        from rich.markup import escape

        rows = [
            [escape(s.name), str(len(s.claims)), f"{escape(s.title)}\n[aside]{escape(s.question)}[/aside]"]
            for _, s in loaded
        ]
        console.out().print(console.table(["study", "claims", "title and question"], rows, numeric=["claims"]))
    return 0


def study_run(name: str, request: Request, *, command: str | None = None) -> int:
    """Run a study by name, alias or file.

    request: quick is what the study calls so, else at most QUICK_BLOCKS blocks, the fewest that have an interval; with
    machines, only the groups that the study runs on these; where it has none, all groups, on these; oversubscribed
    thread counts decide nothing
    command: how the user would repeat it, None for `study run` with these options
    returns: 0, 1 if a cell failed, 130 after Ctrl-C
    """
    from loam_lab.model import studies

    study, _ = studies.find(name)
    selection, effort, engine = request.selection, request.effort, request.engine
    if effort.quick:
        study = study.quick(QUICK_BLOCKS).model_copy(update={"target_width": None})
    whole = study.model_copy(update=effort.limits())
    study = of_groups(whole, selection.groups)
    for one in selection.machines:
        machines.find(one, "--machine")
    if selection.machines:
        study = on_machines(study, selection.machines)
    for group in study.groups:
        for one in group.machines:
            machines.find(one, f"group {group.name}: machines")
    asked, carrier, remarks = study, None, list[str]()
    if not engine.local:
        study, carrier, remarks = reach(study, engine)
    options = ["./loam", "study", "run", name, *(["--effort", "quick"] if effort.quick else [])]
    study, notes = present(study)
    notes += remarks
    if not selection.oversubscribe:
        study, too_many = fitting(study)
        notes += too_many
    if engine.local:
        left = open_claims.left_open(whole, asked, study, options, by_group=bool(selection.groups))
        for line in open_claims.lines(whole, left):
            console.note(line)
    return perform(
        study, request, command=command or shlex.join([*options, *_study_words(request)]), where="parameters", notes=notes,
        carrier=carrier,
    )  # fmt: skip


def _study_words(request: Request) -> list[str]:
    """What of a request `study run` is told as options behind its effort."""
    selection = request.selection
    named = {"--machine": selection.machines, "--group": selection.groups}
    words = [word for option, names in named.items() if names for word in (option, ",".join(names))]
    words += ["--oversubscribe"] if selection.oversubscribe else []
    for name, value in request.effort.limits().items():
        words += [f"--{name.removesuffix('_s').replace('_', '-')}", str(value)]
    return words + request.engine.words()


def run(workload: str, request: Request) -> int:
    """An ad-hoc matrix of every combination of the levels given.

    workload: a name, or several with commas between them, each of which becomes a group; they share all levels
    request: no synchronisations for the default of the workload; of the parameters `warmup_ms` is the lab's own and has
    one level; without blocks as many as give every ratio a half-width of target_width (2 % where None), at most max_blocks
    returns: as study_run; raises: LoamError for what no executable, machine or registry has
    """
    from loam_lab.model.study import SCHEMA, Group, Study
    from loam_lab.setup import jvm
    from loam_lab.subjects.allocators import building, registry

    selection, effort, d1 = request.selection, request.effort, request.further.d1
    for one in selection.machines:
        machines.find(one)
    if d1 is not None and (wrong := cache.problem(d1)):
        raise LoamError("--d1", d1, wrong, f"for example --d1 {cache.EXAMPLE}")
    levels: dict[str, list[str]] = {}
    for name, values in selection.parameters:
        levels[name] = list(dict.fromkeys([*levels.get(name, []), *values]))
    warmup_ms = _warmup(levels)
    slow = machines.are_simulated(selection.machines)
    # Under a virtual machine's heap lies the same memory whichever allocator serves the process.
    on_jvm = bool(selection.syncs) and all(sync.startswith(jvm.PREFIX) for sync in selection.syncs)
    chosen = tuple(selection.allocators) or ("glibc",) * on_jvm or tuple(registry.defaults())
    several = list(dict.fromkeys(workload.split(",")))
    group = Group(
        name="run", workload=workload, sync=tuple(selection.syncs), threads=tuple(selection.threads) or (1,),
        machines=tuple(selection.machines) or (machines.HOST,), d1=d1,
        parameters={name: tuple(values) if len(values) > 1 else values[0] for name, values in levels.items()},
    )  # fmt: skip
    groups = tuple(group.model_copy(update={"name": one, "title": one, "workload": one}) for one in several)
    study = Study(
        schema=SCHEMA, name="run", title=f"{workload}: ad-hoc matrix",
        question="What differs between the levels given on the command line?",
        allocators=chosen, baseline="glibc" if "glibc" in chosen else chosen[0],
        blocks=effort.blocks or (SIMULATED_BLOCKS if slow else RUN_BLOCKS),
        target_width=effort.target_width or (None if effort.blocks or slow else stopping_rule.TARGET_WIDTH),
        max_blocks=effort.max_blocks or BLOCKS_MAX, budget_s=effort.budget_s, seed=effort.seed, timeout_s=effort.timeout_s,
        groups=groups if len(several) > 1 else (group,),
        warmup_ms=(SIMULATED_WARMUP_MS if slow else WARMUP_MS) if warmup_ms is None else warmup_ms,
    ).model_copy(update=dict.fromkeys(request.further.purposes, True))  # fmt: skip
    carrier, absent = None, list[str]()
    if not request.engine.local:
        study, carrier, absent = reach(study, request.engine)
    if not selection.allocators:
        study, missing = present(study)
        absent += missing
    else:
        building.ensure(selection.allocators)
    return perform(study, request, command=repeat(study, group, request), notes=absent, carrier=carrier)


def _warmup(levels: dict[str, list[str]]) -> int | None:
    values = levels.pop(WARMUP, None)
    if values is None:
        return None
    if len(values) != 1 or not values[0].isdigit():
        raise LoamError(f"-p {WARMUP}", ",".join(values), "needs one whole number of milliseconds")
    return int(values[0])


def perform(
    study: Study,
    request: Request,
    *,
    command: str,
    notes: Sequence[str] = (),
    where: str = "-p",
    carrier: Carrier | None = None,
    instruments: Instruments | None = None,
) -> int:
    """Plan, run, summarise, report and print a study.

    command: how the user would repeat it; instruments: None for the real machine; notes: warnings to carry along
    where: how errors call the place of a parameter; carrier: what has the runs measured elsewhere, None for here
    returns: 0, 1 if a cell failed, 130 after Ctrl-C
    """
    from loam_lab.campaign.measure import plan as plans
    from loam_lab.campaign.measure.campaign import Runner
    from loam_lab.campaign.measure.instruments import RealInstruments
    from loam_lab.commands.campaign import Campaign, counted

    began, output = time.monotonic(), request.output
    if instruments is None:
        prepare(study)
        instruments = RealInstruments()
    study, sources, counting = counted(study)
    if len(study.groups) > 1:
        study, lacking = installed(study)
        counting += lacking
    plan = plans.make(study, oversubscribe=request.selection.oversubscribe, where=where)
    plan.notes.extend([*notes, *counting])
    _check_claims(study, plan)
    for name in dict.fromkeys(cell.allocator for cell in plan.cells()):
        instruments.allocator(name)  # what cannot be measured is said before a folder is made for it
    runner = Runner(
        study, plan, output.folder(study.name), instruments, command, resume=output.resume, counter_sources=sources,
        carrier=carrier,
    )  # fmt: skip
    campaign = Campaign(runner, output, began)
    parts = [line for group in study.groups if (line := repeat(study, group, request)) != command]
    return campaign.close(campaign.run(parts), _show)


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


def _show(result: Result) -> None:
    from loam_lab.commands.run import factor_tables, special_tables, tables
    from loam_lab.model.result.labelled import labelled

    result = labelled(result)
    if result.factors:
        factor_tables.show(result)
        return
    tables.show(result)
    special_tables.show(result)
    if result.claims:
        from loam_lab.judging.claims import tables as ledger

        ledger.show(result)


def repeat(study: Study, group: Group, request: Request) -> str:
    """The `loam run` command that repeats one group of a study that was requested."""
    words = ["./loam", "run", group.workload]
    for name, values in group.levels().items():
        of_factor = name == collector.NAME
        words += ["--collector", ",".join(values)] if of_factor else ["-p", f"{name}={','.join(values)}"]
    words += ["-p", f"{WARMUP}={study.warmup_of(group)}"]
    words += ["--allocator", ",".join(study.allocators_of(group))]
    if group.sync:
        words += ["--sync", ",".join(group.sync)]
    words += ["--threads", ",".join(str(count) for count in group.threads), "--blocks", str(study.blocks_of(group))]
    if request.engine.local and group.machines != (machines.HOST,):
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
    if request.selection.oversubscribe:
        words.append("--oversubscribe")
    return shlex.join([*words, *request.engine.words()])
