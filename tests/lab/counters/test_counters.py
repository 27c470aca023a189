"""Counters: believed only after a known program, valgrind's models beside them, differences of two runs per operation."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, asking, cells, measure, study

from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters import marks, planning, sources, valgrind
from loam_lab.campaign.counters.events import HARDWARE, SOFTWARE, Count, Counting, Event, events, refusal, scaled
from loam_lab.campaign.counters.observers import PerfObserver
from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.campaign import Runner
from loam_lab.campaign.measure.instruments import RealInstruments
from loam_lab.campaign.process.execute import execute
from loam_lab.campaign.process.observer import Observer
from loam_lab.commands.run import commands
from loam_lab.judging.result import counting, summarise
from loam_lab.judging.statistics import data
from loam_lab.model import cache
from loam_lab.model.cell import SPECIAL, Cell
from loam_lab.model.description import Description, Parameter
from loam_lab.model.schema import SCHEMA
from loam_lab.model.study import Group, Study
from loam_lab.setup import build
from loam_lab.subjects.allocators.probe import Proof
from loam_lab.subjects.subject import Subject
from loam_lab.subjects.workloads import Executable

FAULTS = Event("faults", SOFTWARE, 2)
STANDS_STILL = Event("instructions", SOFTWARE, 7)  # alignment faults: there are none on x86
NOT_THERE = Event("instructions", HARDWARE, 63)
PERF = {"source": "perf_event", "counts": True, "why": "counted"}
NO_PERF = {"source": "perf_event", "counts": False, "why": "this machine offers no such counter"}
VALGRIND = [{"source": tool, "counts": True, "why": "valgrind-3.19.0"} for tool in ("callgrind", "cachegrind")]
OPERATIONS = Parameter(name="operations", type="integer", min=0, max=10**9, default=0)
DURATION = Parameter(name="duration_ms", type="integer", min=0, max=10**9, default=250)

# 4096 pages each in the process, in a thread and in a child.
TOUCH = """
import mmap, os, threading
def touch():
    pages = mmap.mmap(-1, 4096 * 4096)
    for at in range(0, len(pages), 4096): pages[at] = 1
touch()
thread = threading.Thread(target=touch); thread.start(); thread.join()
if os.fork() == 0: touch(); os._exit(0)
os.wait()
"""


def cell(threads: int = 1, **parameters: int | str) -> Cell:
    return Cell("g", "intset", "etl-wb", "glibc", threads, tuple(parameters.items()), 0)


def test_a_counter_follows_the_next_program_with_threads_and_children_and_not_the_lab() -> None:
    observer = PerfObserver([FAULTS])
    observer.begin()
    for page in range(1 << 14):  # the lab's own faults, between opening and starting
        bytearray(4096)[0] = page % 256
    outcome = execute([sys.executable, "-c", TOUCH], {}, timeout_s=60)
    observed, problem = observer.end(outcome)
    observer.close()
    assert problem == ""
    assert observed["events"]["faults"] == pytest.approx(outcome.faults_minor + outcome.faults_major, rel=0.02)
    assert observed["events"]["faults"] > 3 * 4096
    assert observed["shares"] == {"faults": 1.0}


def test_a_counter_that_does_not_exist_or_stands_still_is_not_used() -> None:
    for event, message in ((NOT_THERE, "offers no such counter"), (STANDS_STILL, "all counters stood still")):
        observer = PerfObserver([event])
        observer.begin()
        outcome = execute(["/bin/true"], {}, timeout_s=20)
        observed, problem = observer.end(outcome)
        observer.close()
        assert observed == {}
        assert message in problem


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOENT, "offers no such counter"),
        (errno.EACCES, "perf_event_paranoid="),
        (errno.EPERM, "perf_event_paranoid="),
        (errno.ENOSYS, "without perf events"),
        (errno.EMFILE, os.strerror(errno.EMFILE)),
    ],
)
def test_refusals_are_explained(number: int, message: str) -> None:
    assert message in refusal(number)


def test_a_count_that_shared_its_register_is_scaled() -> None:
    assert scaled(100, 1000, 250) == Count(400.0, 0.25)
    assert scaled(100, 1000, 0) is None


def test_hitm_is_only_asked_of_processors_that_have_it() -> None:
    assert [event.name for event in events("GenuineIntel")][-1] == "hitm"
    assert "hitm" not in [event.name for event in events("AuthenticAMD")]


@pytest.mark.parametrize(
    ("share", "believed"), [(1.0, True), (1.009, True), (0.991, True), (1.011, False), (0.66, False), (0.0, False)]
)
def test_a_counter_is_believed_within_one_per_cent(
    share: float, believed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counting, "read", lambda self: {FAULTS.name: Count(share * sources.LOOP_INSTRUCTIONS, 1.0)})
    counts, why = sources.judged(Path("/bin/true"), event=FAULTS, run=lambda program: None)
    assert counts is believed
    assert f"{share * sources.LOOP_INSTRUCTIONS:.0f} instructions" in why


def test_no_counter_and_no_program_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sources.judged(event=NOT_THERE) == (False, "this machine offers no such counter")
    monkeypatch.setattr(sources, "_built", lambda: None)
    counts, why = sources.judged(event=FAULTS)
    assert not counts
    assert "not built" in why
    counts, why = sources.judged(Path("/bin/true"), event=STANDS_STILL)
    assert (counts, why.startswith("the counter opens but counted 0 ")) == (False, True)


def test_the_known_program_has_the_instructions_it_says(tmp_path: Path) -> None:
    program = build.ensure_built([sources.PROGRAM])["libraries"][sources.PROGRAM]
    counted = []
    for count in (1_000, 101_000):
        valgrind.clear(tmp_path)
        outcome = execute(valgrind.command("callgrind", [program, str(count)], tmp_path), {}, timeout_s=60)
        totals, _, problem = valgrind.read(tmp_path, outcome.pid)
        assert problem == ""
        counted.append(totals["Ir"])
    # Main thread and second thread; the child has a file of its own.
    assert counted[1] - counted[0] == pytest.approx(4 * 100_000, rel=0.005)
    assert subprocess.run([program], check=False, capture_output=True).returncode == 1


def knowing(*parameters: Parameter, starts_others: bool = False) -> Executable:
    """An executable whose workload has these parameters."""
    described = Description.model_validate({
        "schema": SCHEMA, "sync": {"name": "s", "kind": "none", "threads_max": 2}, "starts_others": starts_others,
        "workloads": [{
            "name": cell().workload, "kinds": ["none"], "metrics": [{"name": "m", "kind": "count"}],
            "parameters": [parameter.model_dump() for parameter in parameters],
        }],
    })  # fmt: skip
    return Executable("s", Subject.of(Path("s")), described, "0")


def test_counting_runs_come_in_pairs_of_operations() -> None:
    known = knowing(OPERATIONS, DURATION)
    longer = planning.LONGER["cachegrind"]
    assert planning.parts("cachegrind", cell(), known) == [(("operations", longer // 4),), (("operations", longer),)]
    assert planning.parts("callgrind", cell(operations=400), known) == [(("operations", 100),), (("operations", 400),)]
    assert len(planning.parts("counters", cell(threads=2), known)) == 2
    assert planning.parts("memory", cell(threads=2), known) == [()]
    assert planning.parts("callgrind", cell(), knowing(DURATION.model_copy(update={"name": "command"}))) == [()]
    assert planning.parts("callgrind", cell(), knowing(DURATION)) == []
    assert planning.parts("cachegrind", cell(threads=2), known) == []


def test_cells_without_counting_runs_are_named() -> None:
    (group,) = study(sync=[STM]).groups
    known = knowing(OPERATIONS, DURATION)
    assert planning.notes("cachegrind", group, [cell()], known) == []
    (sentence,) = planning.notes("cachegrind", group, [cell(), cell(threads=2)], known)
    assert "threads run one at a time" in sentence
    (sentence,) = planning.notes("counters", group, [cell()], knowing(DURATION))
    assert "cannot be given a number of operations" in sentence
    plan = plans.make(study(sync=[STM], cachegrind=True))
    assert {run.purpose for run in plan.runs} == {"timing"}
    assert any("cannot be given a number of operations" in note for note in plan.notes)


def test_of_other_processes_memory_and_what_they_ask_for_is_known_and_no_count_else() -> None:
    (group,) = study(sync=[STM]).groups
    starting = knowing(OPERATIONS, starts_others=True)
    for purpose in planning.OF_OTHERS:
        assert planning.parts(purpose, cell(), starting) == [()]
        assert planning.notes(purpose, group, [cell()], starting) == []
    for purpose in set(SPECIAL) - set(planning.OF_OTHERS):
        assert planning.parts(purpose, cell(), starting) == []
        (note,) = planning.notes(purpose, group, [cell()], starting)
        assert f"there are no {purpose} runs" in note


def purposes(made: Study) -> tuple[str, ...]:
    return made.purposes_of(made.groups[0])


def test_valgrind_stands_in_for_counters_that_do_not_count() -> None:
    asked = study(counters=True)
    kept, notes = planning.resolve(asked, [PERF, *VALGRIND])
    assert (purposes(kept), notes) == (("counters",), [])
    modelled, notes = planning.resolve(asked, [NO_PERF, *VALGRIND])
    assert purposes(modelled) == ("callgrind", "cachegrind")
    assert "do not count here (this machine offers no such counter)" in notes[0]
    missing = [{"source": tool, "counts": False, "why": "not installed"} for tool in ("callgrind", "cachegrind")]
    nothing, notes = planning.resolve(asked, [NO_PERF, *missing])
    assert purposes(nothing) == ()
    assert "valgrind does not work here (not installed)" in notes[1]
    assert planning.resolve(study(), [NO_PERF]) == (study(), [])


CACHEGRIND = """desc: I1 cache:         32768 B, 64 B, 8-way associative
desc: D1 cache:         32768 B, 64 B, 8-way associative
desc: LL cache:         8388608 B, 64 B, direct-mapped
cmd: ./x
events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw
fl=x
1 2 3
summary: 1000 1 1 300 30 3 100 10 1
"""


def test_output_of_both_tools_is_read() -> None:
    counts, caches = valgrind.parse(CACHEGRIND)
    assert (counts["Ir"], counts["D1mr"], counts["DLmw"]) == (1000, 30, 1)
    assert caches == {"I1": "32768,8,64", "D1": "32768,8,64", "LL": "8388608,1,64"}
    assert valgrind.parse("events: Ir Dr\nfn=a\n1 2\n\ntotals: 77\n") == ({"Ir": 77, "Dr": 0}, {})
    assert valgrind.parse(CACHEGRIND.partition("summary")[0])[0] == {}
    assert valgrind.parse("events: Ir\nsummary: many\n")[0] == {}


def test_missing_and_cut_output_is_told_with_what_valgrind_said(tmp_path: Path) -> None:
    (tmp_path / valgrind.LOG).write_text("==1== bad option --D1=5\n")
    assert valgrind.read(tmp_path, 1)[2] == "valgrind wrote no output: ==1== bad option --D1=5"
    (tmp_path / f"{valgrind.OUTPUT}.1").write_text("events: Ir\n")
    assert valgrind.read(tmp_path, 1)[2].startswith("valgrind's output has no totals")
    valgrind.clear(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_counts_become_values_per_operation() -> None:
    counts = valgrind.parse(CACHEGRIND)[0]
    values = counting.from_valgrind({name: float(value) for name, value in counts.items()}, 10.0)
    assert values == {
        "instructions": 100.0, "l1d_misses": 4.0, "l1d_miss_ratio": 0.1, "llc_misses": 0.4, "llc_miss_ratio": 0.01,
        "accesses": 40.0,
    }  # fmt: skip
    read = counting.from_perf({"instructions": 50.0, "l1d_misses": -2.0, "l1d_loads": 20.0, "hitm": 5.0}, 10.0)
    assert read == {"instructions": 5.0, "l1d_misses": 0.0, "l1d_miss_ratio": 0.0, "hitm": 0.5}


def test_a_campaign_without_counting_says_so(tmp_path: Path) -> None:
    _, result = measure(study(), tmp_path / "out", FakeInstruments())
    assert result["counter_sources"] == []
    assert all(entry["counters"] == [] for entry in result["cells"])


def proven(campaign: data.Campaign, purposes: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    names = {place.key: place.allocator for place in campaign.cells}
    return {
        (purpose, names[key]): [str(run.proof["status"]) for run in runs]
        for purpose in purposes
        for key, runs in campaign.special[purpose].items()
    }


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_allocators_are_preloaded_inside_valgrind_and_show_in_its_counts(tmp_path: Path) -> None:
    content: dict[str, Any] = {
        "schema": 2, "name": "counted", "title": "counted", "question": "?", "allocators": ["glibc", "jemalloc"],
        "callgrind": True, "cachegrind": True, "memory": True, "blocks": 1, "warmup_ms": 0,
        "groups": [{
            "name": "g", "workload": "intset", "sync": ["sequential"], "d1": "4096,2,64",
            "parameters": {"structure": "list", "range": 1024, "elements": 512, "operations": 2000},
        }],
    }  # fmt: skip
    made = Study.model_validate(content)
    build.ensure_built(["sequential", "probe"])
    out = tmp_path / "out"
    ended = Runner(made, plans.make(made), out, RealInstruments(), "x", counter_sources=[NO_PERF, *VALGRIND]).run()
    result = summarise.write(out, elapsed_s=0.0).as_json()
    assert ended.measured == 1 * 3 + 2 * 2 * 2 + 2
    assert result["failures"] == []
    campaign = data.load(out)
    tools = ("callgrind", "cachegrind")
    assert proven(campaign, tools) == {
        (tool, name): ["proven", "proven"] for tool in tools for name in ("glibc", "jemalloc")
    }
    counted = {entry["factors"]["allocator"]: entry["counters"] for entry in cells(result, copy=0)}
    for instructions, caches in counted.values():
        assert (instructions["source"], caches["source"]) == ("callgrind", "cachegrind")
        assert {instructions["per"], caches["per"]} == {"operation"}
        assert caches["caches"]["D1"] == "4096,2,64"
        # The same work, counted by two tools: half of 512 elements are passed on average, some instructions each.
        assert instructions["instructions"] == pytest.approx(caches["instructions"], rel=1e-6)
        assert 500 < instructions["instructions"] < 5000
    # glibc's blocks of a node lie 32 bytes apart, jemalloc's 16 or 24: more nodes share a line.
    misses = {name: entry[1]["l1d_misses"] for name, entry in counted.items()}
    assert misses["jemalloc"] < misses["glibc"]
    assert result["counter_sources"] == [NO_PERF, *VALGRIND]
    for entry in cells(result, copy=0):
        # Two sentinels and 512 nodes of 16 bytes, and the key that the thread may have inserted last.
        assert entry["memory"]["live_peak_bytes"] in (514 * 16, 515 * 16)


# Threads begin late, so that who waits for them at the barrier spins and yields meanwhile: what a busy machine does.
LATE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
struct start { void* (*body)(void*); void* argument; };
static void* late(void* given) {
  struct start start = *(struct start*)given;
  const struct timespec pause = {0, atol(getenv("LATE_NS"))};
  nanosleep(&pause, 0);
  return start.body(start.argument);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static struct start start;
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = dlsym(RTLD_NEXT, "pthread_create");
  start = (struct start){body, argument};
  return real(thread, attributes, late, &start);
}
"""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_waiting_for_the_start_is_in_no_count(tmp_path: Path) -> None:
    source, library = tmp_path / "late.c", tmp_path / "late.so"
    source.write_text(LATE)
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    program = build.ensure_built(["sequential"])["executables"]["sequential"]["argv"][0]
    work = ["intset", "--seed", "3", "-p", "structure=list", "-p", "range=256", "-p", "elements=64"]

    def counted(tool: str, late_ns: int, operations: int) -> int:
        valgrind.clear(tmp_path)
        argv = valgrind.command(tool, [program, *work, "-p", f"operations={operations}"], tmp_path)
        outcome = execute(argv, {"LD_PRELOAD": str(library), "LATE_NS": str(late_ns)}, timeout_s=120)
        totals, _, problem = valgrind.read(tmp_path, outcome.pid)
        assert problem == ""
        return totals["Ir"]

    prompt = counted("callgrind", 0, 1000)
    assert counted("callgrind", 400_000_000, 1000) == prompt
    assert counted("cachegrind", 200_000_000, 1000) == prompt
    # Nothing but the work: no start, no filling, no check.
    assert counted("callgrind", 0, 2000) == pytest.approx(2 * prompt, rel=0.05)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_the_work_of_threads_that_a_worker_makes_is_counted(tmp_path: Path) -> None:
    program = build.ensure_built(["none"])["executables"]["none"]["argv"][0]
    instructions = []
    for operations in (1000, 3000):
        valgrind.clear(tmp_path)
        argv = valgrind.command("callgrind", [program, "larson", "-p", f"operations={operations}"], tmp_path)
        outcome = execute(argv, {}, timeout_s=120)
        counts, _, problem = valgrind.read(tmp_path, outcome.pid)
        assert problem == ""
        instructions.append(counts["Ir"])
    assert (instructions[1] - instructions[0]) / 2000 > 50, "a replacement frees a block and allocates one"


def test_a_workload_counts_its_work_and_nothing_else() -> None:
    """Page faults stand for what a processor would count: 200 blocks of ten pages each, and hardly any other."""
    program = build.ensure_built(["none"])["executables"]["none"]["argv"][0]
    work = ["malloc-loop", "--records", "3", "-p", "size=32768", "-p", "blocks=200"]
    faults = {}
    for operations in (1, 200):
        observer = PerfObserver([FAULTS])
        argv = observer.command([program, *work, "-p", f"operations={operations}"])
        observer.begin()
        # Blocks lie side by side, and only their first and last words are written.
        outcome = execute(argv, dict(observer.environment), timeout_s=60, records=True)
        observed, problem = observer.end(outcome)
        observer.close()
        assert problem == ""
        assert observed["shares"] == {"faults": 1.0}
        faults[operations] = observed["events"]["faults"]
        assert faults[operations] < outcome.faults_minor - 100, "start and end have hundreds of their own"
    assert faults[1] < 20
    assert 200 <= faults[200] < 500


def test_a_program_without_marks_is_counted_whole(tmp_path: Path) -> None:
    assert not marks.marked("/bin/true")
    assert not marks.marked(str(tmp_path / "missing"))
    assert "--toggle-collect" not in " ".join(valgrind.command("callgrind", ["/bin/true"], tmp_path))
    program = build.ensure_built(["none"])["executables"]["none"]["argv"][0]
    assert f"--toggle-collect={marks.WORK}" in valgrind.command("cachegrind", [program], tmp_path)


def test_a_run_that_fails_inside_valgrind_says_nothing_about_other_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two unproven counting runs come first; timing goes on, and the allocator counts as proven."""
    made = study(callgrind=True)
    monkeypatch.setattr(planning, "parts", lambda purpose, cell, known: [()])
    monkeypatch.setattr("loam_lab.campaign.measure.observe.observer", lambda run, scratch: Failing(run.purpose))
    _, result = measure(made, tmp_path / "out", Doubting())
    assert {entry["state"] for entry in result["cells"]} == {"ok"}
    assert {entry["runs"] for entry in result["cells"]} == {made.blocks}
    assert {entry["proof"] for entry in result["allocators"]} == {"proven"}
    assert sum(failure["count"] for failure in result["failures"]) == 2
    assert all("its callgrind run failed" in " ".join(entry["warnings"]) for entry in cells(result, copy=0))


class Failing(Observer):
    """Marks runs of other purposes than timing in the environment of what follows."""

    def __init__(self, purpose: str) -> None:
        Doubting.purpose = purpose


class Doubting(FakeInstruments):
    """Proves timing runs only."""

    purpose = "timing"

    def proof(self, *arguments: Any) -> Proof:
        status = "proven" if Doubting.purpose == "timing" else "unproven"
        return Proof(status, [], [], [], 1.0)


@pytest.mark.parametrize("geometry", ["5", "32768,8", "30000,8,64", "32768,8,8", "a,b,c", "98304,8,48", "0,8,64"])
def test_a_cache_that_cannot_be_is_refused(geometry: str) -> None:
    assert cache.problem(geometry)
    with pytest.raises(LoamError) as problem:
        commands.run("intset", asking(d1=geometry))
    assert problem.value.line().startswith("--d1")
    with pytest.raises(ValueError, match="as in 32768,8,64"):
        Group(name="g", workload="intset", d1=geometry)


@pytest.mark.parametrize("geometry", ["32768,8,64", "49152,12,64", "4096,1,16"])
def test_a_cache_of_whole_sets_is_taken(geometry: str) -> None:
    assert cache.problem(geometry) == ""


def test_the_command_that_repeats_a_group_asks_for_its_counts() -> None:
    group = Group(name="g", workload="intset", d1="32768,8,64", cachegrind=True, memory=True)
    made = study().model_copy(update={"groups": (group,)})
    assert "--memory --cachegrind --d1 32768,8,64" in commands.repeat(made, group, asking())
