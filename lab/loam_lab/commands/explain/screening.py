"""loam explain --factors: an allocator with one of its settings changed at a time, in the same blocks, ranked."""

from __future__ import annotations

import functools
import json
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters import profile
from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.builds import prepare
from loam_lab.campaign.measure.instruments import RealInstruments, scratch_folder
from loam_lab.campaign.measure.launch import WorkloadLauncher
from loam_lab.campaign.process.execute import execute
from loam_lab.commands.bench import profiling
from loam_lab.commands.explain import factors as designs
from loam_lab.commands.explain.run import DURATION
from loam_lab.commands.request import Request
from loam_lab.commands.run import commands
from loam_lab.judging.statistics.intervals import BLOCKS_MIN
from loam_lab.model.study import SCHEMA, Group, Study
from loam_lab.subjects import machines, workloads

BASE = "design:base"
# Short runs and many: what differs between two runs of one design is averaged by blocks, not within a run.
DURATION_MS, WARMUP_MS = 100, 20
SIMULATED_MS, SIMULATED_WARMUP_MS = 2, 0
# A process of ours makes some hundred blocks before it does anything: threads, streams, parameters.
BLOCKS_ASKED_MIN = 1000
COUNTED_UNDER = "glibc"


def explain(workload: str, request: Request, asked: Sequence[str] = ()) -> int:
    """Measure which setting of an allocator decides how fast a workload is.

    request: its one allocator, BASE where it names none, is changed; without threads as many as the machine has; without
    blocks as many as a verdict among so many changes needs, and a few more
    asked: settings as NAME or NAME=VALUE, none for all
    returns: 0, 1 if a run failed, 130 after Ctrl-C
    raises: LoamError for what is unknown or does not fit, and for a workload that hardly allocates
    """
    from loam_lab.subjects.allocators import building, settings_check

    selection, effort = request.selection, request.effort
    base, machine = next(iter(selection.allocators), BASE), next(iter(selection.machines), machines.HOST)
    where = machines.find(machine)
    building.ensure([base])
    transactions = where.transactions if where.simulated else where.facts().get("rtm") == "works"
    screened = designs.screened(base, asked, functools.cache(settings_check.misfit), transactions=transactions)
    size = len(screened.changed)
    needed = max(BLOCKS_MIN, designs.blocks_needed(size))
    study = Study(
        schema=SCHEMA,
        name="factors",
        title=f"{workload}: which factor of {base} decides",
        question=f"Which single change of {base} changes what {workload} does, and by how much?",
        baseline=base,
        allocators=(base, *screened.changed),
        blocks=effort.blocks or needed + designs.SPARE_BLOCKS,
        seed=effort.seed,
        warmup_ms=SIMULATED_WARMUP_MS if where.simulated else WARMUP_MS,
        groups=(
            Group(
                name="factors", workload=workload, sync=tuple(selection.syncs), machines=(machine,),
                threads=tuple(selection.threads) or (max(2, where.threads),), parameters=_one_each(selection.parameters),
            ),
        ),
        screening=True,
    )  # fmt: skip
    prepare(study)
    study = _with_duration(study, where)
    if not where.simulated:
        _check_allocates(study, oversubscribe=selection.oversubscribe)
    notes = [f"left out: {reason}" for reason in screened.left_out]
    if study.blocks < needed:
        notes.append(
            f"{study.blocks} blocks; among {size} changes none can be shown in fewer than {needed}, whatever it does; "
            f"use --blocks {needed + designs.SPARE_BLOCKS}, or fewer factors (--factor)"
        )
    words = ["./loam", "explain", "--factors", workload, "--base", base, "--blocks", str(study.blocks)]
    words += ["--factor", ",".join(asked)] if asked else []
    words += ["--sync", *selection.syncs] if selection.syncs else []
    words += ["--machine", machine] if machine != machines.HOST else []
    for name, values in study.groups[0].levels().items():
        words += ["-p", f"{name}={values[0]}"]
    words += ["--threads", str(study.groups[0].threads[0])]
    words += ["--seed", str(effort.seed)] if effort.seed != 1 else []
    words += ["--oversubscribe"] if selection.oversubscribe else []
    return commands.perform(study, request, command=shlex.join(words), notes=notes)


def _one_each(parameters: Sequence[tuple[str, Sequence[str]]]) -> dict[str, int | str | tuple[int | str, ...]]:
    """The parameters with their one value.

    raises: LoamError for one with several
    """
    chosen: dict[str, int | str | tuple[int | str, ...]] = {}
    for name, values in parameters:
        if len(values) != 1 or name in chosen:
            raise LoamError(f"-p {name}", ",".join(values), "--factors takes one value of each parameter",
                            "screen each one in a separate run")  # fmt: skip
        chosen[name] = values[0]
    return chosen


def _with_duration(study: Study, where: machines.Machine) -> Study:
    """The study with short runs, where its workload has a duration and none was asked for."""
    group = study.groups[0]
    preset = where.preset or "release"
    executables = workloads.resolve_syncs(plans.syncs_of(group, preset), preset)
    known = executables[0].parameters(group.workload)
    if DURATION not in known or {DURATION, "operations"} & set(group.parameters):
        return study
    length = SIMULATED_MS if where.simulated else DURATION_MS
    changed = group.model_copy(update={"parameters": {**group.parameters, DURATION: length}})
    return study.model_copy(update={"groups": (changed,)})


def _check_allocates(study: Study, *, oversubscribe: bool) -> None:
    """Refuse a workload that asks its allocator for nearly nothing: no setting could matter to it.

    raises: LoamError with how many blocks a run of it asked for
    """
    from loam_lab.setup import build

    build.ensure_built(["profile", "probe"])
    counted = study.model_copy(update={"baseline": COUNTED_UNDER, "allocators": (COUNTED_UNDER,), "blocks": 1})
    plan = plans.make(counted, oversubscribe=oversubscribe)
    run = plan.runs[0]
    launcher, instruments = WorkloadLauncher(plan.executable(run.cell)), RealInstruments()
    with tempfile.TemporaryDirectory(prefix="loam-factors-", dir=scratch_folder()) as folder:
        variables = instruments.environment(instruments.allocator(COUNTED_UNDER), Path(folder) / "proof")
        variables = profiling.in_front(paths.load_paths("release")["libraries"]["profile"], variables)
        variables["LOAM_PROFILE"] = str(Path(folder) / "profile")
        execute(
            launcher.argv(run), launcher.environment(variables), timeout_s=launcher.timeout_s(run), records=True,
            keep_stdout=True,
        )  # fmt: skip
        profiles = [json.loads(file.read_text()) for file in sorted(Path(folder).glob("profile.*"))]
    asked = profile.summary(profiles)["calls"] if profiles else 0
    # A program that says nothing, as one that ends by _exit, is measured: what it does is seen there.
    if profiles and asked < BLOCKS_ASKED_MIN:
        raise LoamError(
            study.groups[0].workload, None, f"asks its allocator for {asked} blocks in a whole run, so none of its settings can "
            "matter", "choose a workload that allocates, such as threadtest; see ./loam list workloads",
        )  # fmt: skip
