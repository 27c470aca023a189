"""What the tests of the lab's measuring share: a made-up workload, instruments without a real allocator, tiny studies."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import execution
from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.campaign import Ended, Runner
from loam_lab.campaign.measure.disturbance import Disturbance, Load
from loam_lab.campaign.process.execute import Outcome, execute
from loam_lab.commands.bench import target
from loam_lab.commands.request import Effort, Further, Output, Request, Selection
from loam_lab.judging.result import summarise
from loam_lab.model.cell import SPECIAL
from loam_lab.model.study import SCHEMA, Study
from loam_lab.subjects import machines
from loam_lab.subjects.allocators.probe import Proof
from loam_lab.subjects.allocators.registry import Allocator
from loam_lab.subjects.machines import Machine

FAKES = Path(__file__).parent / "fakes"
STM = str(FAKES / "fake-stm")
SEQUENTIAL = str(FAKES / "fake-sequential")
OTHER = str(FAKES / "fake-other")


def asking(**options: Any) -> Request:
    """A request of options by the names of their fields, whichever part they belong to; a purpose that is True is asked for."""
    purposes = [name for name in SPECIAL if options.get(name) is True]
    options = {name: value for name, value in options.items() if name not in purposes}
    options["purposes"] = [*options.get("purposes", ()), *purposes]
    parts = [
        part(**{one.name: options.pop(one.name) for one in fields(part) if one.name in options})
        for part in (Selection, Effort, Further, Output)
    ]
    assert not options, f"no fields of a request: {', '.join(options)}"
    return Request(*parts)


@dataclass
class FakeInstruments:
    """Allocators that are only names, told to the made-up workload through FAKE_ALLOCATOR.

    unproven: names whose proof fails; variables: further environment of every run; cores: of the made-up machine
    disturbed: whether the n-th run that is judged was disturbed; runs: how many were
    own_share: of the time of each run in which it waited for its own processes
    """

    unproven: frozenset[str] = frozenset()
    variables: dict[str, str] = field(default_factory=dict)
    cores: int = 2
    sha256: str = "0" * 64
    disturbed: Callable[[int], bool] = lambda number: False
    runs: int = 0
    own_share: float = 0.0

    def allocator(self, name: str, preset: str | None = None) -> Allocator:
        if name == "missing":
            raise LoamError("--allocator", name, "is not installed")
        return Allocator(
            name=name, base=name, settings={}, path=None, libraries=(), environment={}, version="1", soname="", package="",
            forwards=None, default=True, sha256=self.sha256,
        )  # fmt: skip

    def environment(self, allocator: Allocator, proof_file: Path) -> dict[str, str]:
        return {"FAKE_ALLOCATOR": allocator.name, **self.variables}

    def proof(self, proof_file: Path, allocator: Allocator, outcome: Outcome, argv: Sequence[str]) -> Proof:
        if allocator.name in self.unproven:
            return Proof("unproven", ["made up"], [], [], 0.0)
        return Proof("proven", [], [], [], 1.0)

    def machine(self, name: str) -> Machine:
        facts = {"cpu": "made up", "cores": self.cores, "fingerprint": "0", "aslr": 2}
        return replace(machines.find(name), facts=lambda: facts)

    def load(self) -> Load:
        return Load(0.0, 0.0)

    def disturbance(
        self, before: Load, after: Load, outcome: Outcome, records: Sequence[Mapping[str, Any]], threads: int | None,
        cores: int, all_cpu_s: float | None,
    ) -> Disturbance:  # fmt: skip
        self.runs += 1
        if self.disturbed(self.runs - 1):
            return Disturbance(0.5 * outcome.wall_s, 0.0, 0.0, 0.5, ("run_delay",))
        return Disturbance(0.0, 0.0, 0.0, 0.0, (), own_share=self.own_share)


def stated_times(patched: pytest.MonkeyPatch) -> None:
    """Let a command have taken as long as it says, `took SECONDS` on standard error, and up to 2 % more.

    So a test that compares commands holds on the busiest machine.
    """
    noise = random.Random(1)

    def executed(*arguments: Any, **options: Any) -> Outcome:
        outcome = execute(*arguments, **options)
        match = re.search(r"^took ([\d.]+)$", outcome.stderr_tail, re.MULTILINE)
        return outcome if match is None else replace(outcome, wall_s=float(match[1]) * noise.uniform(1, 1.02))

    for module in (execution, target):
        patched.setattr(module, "execute", executed)


def study(**changed: Any) -> Study:
    """A tiny study: two allocators, one structure, four blocks.  Keys of the group: sync, threads, parameters."""
    group = {"name": "one", "workload": "intset", "sync": [STM], "threads": [1], "parameters": {"structure": "list"}}
    for key in ("sync", "threads", "machines", "parameters", "role", "warmup_ms", "oversubscribe"):
        if key in changed:
            group[key] = changed.pop(key)
    content = {
        "schema": SCHEMA, "name": "tiny", "title": "tiny", "question": "?", "baseline": "plain",
        "allocators": ["plain", "fast"], "blocks": 4, "warmup_ms": 0, "groups": [group],
    }  # fmt: skip
    return Study.model_validate({**content, **changed})


def runner(made: Study, folder: Path, instruments: FakeInstruments | None = None, **options: Any) -> Runner:
    """What runs a study into a folder, with made-up instruments."""
    plan = plans.make(made, oversubscribe=options.pop("oversubscribe", False))
    return Runner(made, plan, folder, instruments or FakeInstruments(), "./loam study run tiny", **options)


def measure(
    made: Study, folder: Path, instruments: FakeInstruments | None = None, **options: Any
) -> tuple[Ended, dict[str, Any]]:
    """Run a study and summarise it: how it ended, and its Result."""
    ended = runner(made, folder, instruments, **options).run()
    return ended, summarise.write(folder, elapsed_s=0.0).as_json()


def forked(action: Callable[[], object]) -> int:
    """Run an action in a child of this process, which then ends with its value as status; returns: its process id."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup has ignored
            value = action()
            status = value if isinstance(value, int) else 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return child


def cells(result: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    """Cells of a Result by factor, parameter or copy."""
    return [
        cell for cell in result["cells"]
        if all({**cell["factors"], **cell["parameters"], "copy": cell["copy"]}[key] == value for key, value in wanted.items())
    ]  # fmt: skip


def matches(pattern: str) -> re.Pattern[str]:
    """A pattern in which blanks match any white space."""
    return re.compile(pattern.replace(" ", r"\s+"))
