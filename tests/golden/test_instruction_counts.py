"""Instructions of each step of a transaction, counted exactly by callgrind.

tm_paths.toml holds the accepted counts and an upper bound for each step of etl-wb, algorithm_paths.toml those of the main
steps of every algorithm. With the compiler that they were taken with a count must be equal, so that every change is seen
and accepted on purpose (`./loam test --golden-update`, then read the diff); with another compiler only the upper bound
holds. A section of docs/instruction-counts.md is written from the same files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import counts_page
import pytest

from loam_lab.campaign.counters import valgrind
from loam_lab.setup import build

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("tm_paths.toml")
EACH = Path(__file__).with_name("algorithm_paths.toml")
DEFAULT = "etl-wb"
# The main ones, in the order in which the page shows them.
STEPS = (
    "empty read-only transaction", "empty update transaction", "read, read-only", "read, logged", "read after write",
    "first write, with its commit", "further write of another stripe, with its commit",
)  # fmt: skip
# Room that a new count is given below its upper bound: another compiler may take a few instructions more.
BOUND_FACTOR = 1.15
TITLE = "Transactions"
UPDATE = os.environ.get("LOAM_GOLDEN_UPDATE") == "1"


@dataclass(frozen=True)
class Counted:
    """What the counting program found. steps: instructions by step, of each algorithm"""

    program: str
    steps: dict[str, dict[str, float]]
    compiler: str


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """The counting program, built and run once for each algorithm."""
    if shutil.which("valgrind", path=build.tool_path()) is None:
        pytest.skip("valgrind is not installed")
    build.configure("release", again=True)
    build.build("release", ["loam-golden-tm-paths"], label="the counting program")
    program = str(ROOT / "build" / "release" / "loam-golden-tm-paths")
    names = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    steps, compiler = {}, ""
    for name in names:
        steps[name], compiler = count_steps([program, name], tmp_path_factory.mktemp(name))
    return Counted(program, steps, compiler)


def count_steps(command: list[str], folder: Path) -> tuple[dict[str, float], str]:
    """Run the counting program under callgrind.

    returns: instructions per step (rounded to 0.01) by the step's name, and the compiler's name and version
    """
    done, stretches = valgrind.requested(command, folder, build.tool_environment(), 250.0)
    assert done.returncode == 0, done.stderr[-3000:]
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    for stretch, total in stretches.items():
        step, which, times = stretch.rsplit(";", 2)
        counted.setdefault(step, {})[which] = (int(times), total)
    steps = {}
    for name, two in counted.items():
        (few, less), (more, greater) = two["few"], two["more"]
        steps[name] = round((greater - less) / (more - few), 2)
    return steps, done.stdout.partition("compiler: ")[2].strip()


def read_golden() -> dict[str, Any]:
    return tomllib.loads(GOLDEN.read_text())


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def write_golden(golden: dict[str, Any]) -> None:
    lines = [
        "# Instructions of each step of a transaction (etl-wb over a table), by callgrind; see test_instruction_counts.py.",
        "# count: accepted value.  upper_bound: never to be exceeded, whatever the compiler; raised by a decision record",
        "# only.  budget: what the design set out for.  exact = false: part of it is the C library's.",
        f'compiler = "{golden["compiler"]}"',
    ]
    for name, step in golden["steps"].items():
        lines += ["", f'[steps."{name}"]']
        lines += [f"{key} = {str(value).lower() if isinstance(value, bool) else number(value)}"
                  for key, value in step.items()]  # fmt: skip
    GOLDEN.write_text("\n".join(lines) + "\n")


def section_of(golden: dict[str, Any]) -> list[str]:
    """The section of docs/instruction-counts.md for these counts."""
    lines = [
        f"{golden['compiler']}, algorithm etl-wb with a table or shadow records (one formula), built like workloads.",
        "Callgrind runs the same transaction with a few and with more of one step, and the difference is divided. A count",
        "includes computing the record's address and, for writes, the step's share of the commit.",
        "",
        "| step | instructions | budget | upper bound |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, step in golden["steps"].items():
        budget = number(step["budget"]) if "budget" in step else "-"
        over = " (over budget)" if "budget" in step and step["count"] > step["budget"] else ""
        lines.append(f"| {name}{over} | {number(step['count'])} | {budget} | {number(step['upper_bound'])} |")
    lines += [
        "",
        "*Budget*: the aim of the design. `allocation and free` is a block of 16 bytes created and destroyed in one",
        "transaction, with glibc's `malloc` and `free` and its share of reclamation.",
        "",
        "### Every algorithm",
        "",
        "In brackets: nanoseconds of one thread on the machine of the last update, with all data in the cache.",
        "",
    ]
    algorithms = read_each()["algorithms"]
    if algorithms:
        heads = list(next(iter(algorithms.values())))
        lines += ["| algorithm | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
        for name, steps in algorithms.items():
            cells = [f"{number(steps[head]['count'])} ({number(steps[head]['ns'])})" for head in heads]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def wrong(steps: dict[str, float], accepted: dict[str, dict[str, Any]], *, same_compiler: bool) -> list[str]:
    """The counts that are beyond their bound, or, with the same compiler, others than those accepted."""
    texts = []
    for name, step in accepted.items():
        if steps[name] > step["upper_bound"]:
            texts.append(f"{name}: {number(steps[name])} instructions, upper bound {number(step['upper_bound'])}")
        elif same_compiler and step.get("exact", True) and steps[name] != step["count"]:
            texts.append(f"{name}: {number(steps[name])} instructions, accepted are {number(step['count'])}"
                         " (./loam test --golden-update accepts the new one)")  # fmt: skip
    return texts


def test_instruction_counts(counted: Counted) -> None:
    golden, steps = read_golden(), counted.steps[DEFAULT]
    assert sorted(steps) == sorted(golden["steps"]), "tm_paths.cpp and tm_paths.toml name different steps"
    if UPDATE:
        golden["compiler"] = counted.compiler
        for name, count in steps.items():
            golden["steps"][name]["count"] = count
        write_golden(golden)
        counts_page.put(TITLE, section_of(golden))
    beyond = wrong(steps, golden["steps"], same_compiler=counted.compiler == golden["compiler"])
    assert not beyond, "\n" + "\n".join(beyond)


def test_instruction_counts_of_every_algorithm(counted: Counted) -> None:
    if UPDATE:
        write_each(counted.steps, {name: times(counted.program, name) for name in counted.steps}, counted.compiler)
        counts_page.put(TITLE, section_of(read_golden()))
    golden = read_each()
    gone = golden["algorithms"].keys() - counted.steps.keys()
    assert not gone, f"./loam test --golden-update takes out {', '.join(sorted(gone))}"
    for name in sorted(counted.steps.keys() - golden["algorithms"].keys()):
        warnings.warn(f"{name} has no accepted counts; ./loam test --golden-update takes it in", stacklevel=1)
    same_compiler = counted.compiler == golden["compiler"]
    beyond = [
        f"{name}, {text}"
        for name, accepted in golden["algorithms"].items()
        for text in wrong(counted.steps[name], accepted, same_compiler=same_compiler)
    ]
    assert not beyond, "\n" + "\n".join(beyond)


def times(program: str, name: str) -> dict[str, float]:
    """Nanoseconds of each step of an algorithm, on this machine."""
    done = subprocess.run([program, name, "time"], capture_output=True, text=True, check=True)
    return {
        step: float(value) for step, _, value in (line.partition(";") for line in done.stdout.splitlines()) if value
    }


def read_each() -> dict[str, Any]:
    return tomllib.loads(EACH.read_text()) if EACH.exists() else {"compiler": "", "algorithms": {}}


def write_each(counted: dict[str, dict[str, float]], took_ns: dict[str, dict[str, float]], compiler: str) -> None:
    """Accept new counts; an upper bound once given stays, unless the step had none."""
    before = read_each()["algorithms"]
    lines = [
        "# Instructions of the main steps of every algorithm (over a table), by callgrind; see test_instruction_counts.py.",
        "# count: accepted value.  upper_bound: never to be exceeded.  ns: on the machine of the last update, not tested.",
        f'compiler = "{compiler}"',
    ]
    for name, steps in counted.items():
        for step in STEPS:
            count = steps[step]
            bound = before.get(name, {}).get(step, {}).get("upper_bound", round(count * BOUND_FACTOR + 1))
            lines += ["", f'[algorithms.{name}."{step}"]', f"count = {number(count)}", f"upper_bound = {number(bound)}",
                      f"ns = {number(took_ns[name][step])}"]  # fmt: skip
    EACH.write_text("\n".join(lines) + "\n")


def test_page_shows_the_accepted_counts() -> None:
    counts_page.check(TITLE, section_of(read_golden()))
