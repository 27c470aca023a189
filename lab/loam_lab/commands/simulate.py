"""`loam simulate`: a program of the user's, from its sources to a table of what it does on a simulated machine.

    ./loam simulate main.c work.c --threads 1,2,4 --allocator glibc,loam -- --workers {threads}

Each source is compiled with the simulator's hooks, the program is linked with the simulator, and it runs once for each allocator,
number of threads and seed. The time is that of the machine, from the begin of the program to its end.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.setup import build
from loam_lab.subjects import machines, symbols
from loam_lab.subjects.allocators import costs, preloading, registry
from loam_lab.subjects.machines import Machine

C, CPP = (".c",), (".cc", ".cpp", ".cxx", ".c++", ".C")
PLACEHOLDER = "{threads}"
# The lines that moved most, of the first run of the last row.
LINES_SHOWN = 5
# Of a run: the slowest take minutes; one that waits for ever is ended by the simulator long before.
TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Row:
    """What was counted of one variant: medians over the seeds.

    ms: of the machine's time, with the least and the most; against_first: how many times the first allocator's time, with
    as many threads; the counts are of all cores, for a thousand accesses
    """

    allocator: str
    threads: int | None
    ms: float
    ms_least: float
    ms_most: float
    against_first: float
    accesses: float
    misses: float
    transfers: float
    true_sharing: float
    false_sharing: float


def _first_lines(text: str, lines: int = 12) -> str:
    """The first lines of what a tool said: the first error matters."""
    all_lines = text.strip().splitlines()
    return "\n".join([*all_lines[:lines], *(["..."] if len(all_lines) > lines else [])])


def _compiler(source: Path) -> str:
    if not source.is_file():
        raise LoamError("simulate", source, "there is no such file")
    if source.suffix in C:
        return os.environ.get("CC") or "gcc"
    if source.suffix in CPP:
        return os.environ.get("CXX") or "g++"
    raise LoamError("simulate", source, f"not a C or C++ source ({' '.join((*C, *CPP))})", "arguments come after --")


def _tool(command: Sequence[str], what: str) -> str:
    """Run a compiler or linker. returns: what it said if it failed, else nothing"""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=build.tool_environment())
    except FileNotFoundError:
        raise LoamError("simulate", command[0], f"is not installed, and {what} needs it", "./loam setup") from None
    return done.stderr if done.returncode != 0 else ""


def compiled(sources: Sequence[Path], flags: Sequence[str], preset: str, folder: Path) -> Path:
    """The program of these sources, for simulated machines.

    preset: that the simulator is built with; folder: where the program goes
    raises: LoamError with what compiler or linker said
    """
    compilers = [_compiler(source) for source in sources]
    content = build.ensure_built(["simulator"], preset)
    simulator, own = Path(content["libraries"]["simulator"]), content["simulated"]
    objects = []
    for number, (source, compiler) in enumerate(zip(sources, compilers, strict=True)):
        made = folder / f"{number}.o"
        hooks = [*own["compile"], "-pthread", "-g1"]
        command = [compiler, *hooks, *(flag for flag in flags if not flag.startswith(("-l", "-L"))), "-c", str(source)]
        if complaint := _tool([*command, "-o", str(made)], str(source)):
            raise LoamError("simulate", source, f"does not compile:\n{_first_lines(complaint)}")
        objects.append(str(made))
    program = folder / "program"
    linker = next((one for source, one in zip(sources, compilers, strict=True) if source.suffix in CPP), compilers[0])
    linked = [*own["link"], str(simulator), f"-Wl,-rpath,{simulator.parent}", "-pthread", *flags]
    if complaint := _tool([linker, "-o", str(program), *objects, *linked], "linking"):
        if "undefined reference to `main'" in complaint:
            raise LoamError(
                "simulate", ", ".join(map(str, sources)), "none of them has a function main", "name all sources"
            )
        raise LoamError(
            "simulate",
            None,
            f"the program does not link:\n{_first_lines(complaint)}",
            "name all sources; --flags has libraries",
        )
    return program


def _environment(name: str, machine: Machine) -> dict[str, str]:
    """Variables of the process: of the machine, and of an allocator, which is preloaded."""
    allocator = registry.load(name, machine.preset or "release")
    preloaded = ":".join(preloading.preloadable(path) for path in allocator.libraries)
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("LOAM_SIM_")}, **machine.environment,
        **allocator.environment, **costs.environment(allocator, machine.description),
        **({"LD_PRELOAD": preloaded} if preloaded else {}),
    }  # fmt: skip


def _run(command: Sequence[str], environment: Mapping[str, str], seed_variable: str, seed: int) -> dict[str, Any]:
    """The statistics of one run."""
    with tempfile.TemporaryDirectory(prefix="loam-simulate-") as scratch:
        file = Path(scratch) / "statistics.json"
        own = {**environment, seed_variable: str(seed), "LOAM_SIM_STATISTICS": str(file)}
        shown = shlex.join(command[1:])
        try:
            done = subprocess.run(command, env=own, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S,
                                  stdin=subprocess.DEVNULL, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LoamError("simulate", shown, f"did not end within {TIMEOUT_S:g} s", "give it less to do") from None
        if done.returncode != 0:
            raise LoamError(
                "simulate", shown, f"the program ended with status {done.returncode}:\n{_first_lines(done.stderr)}"
            )
        if not file.exists():
            raise LoamError("simulate", shown, "the program ended without its counts",
                            "let it return from main or call exit(), not _exit()")  # fmt: skip
        document: dict[str, Any] = json.loads(file.read_text())
        return document


def counted(program: Path, arguments: Sequence[str], allocator: str, machine: Machine, seed: int = 1) -> dict[str, Any]:
    """The simulator's statistics of one run of a compiled program; raises: LoamError if it fails"""
    return _run([str(program), *arguments], _environment(allocator, machine), machine.seed_variable, seed)


def _row(allocator: str, threads: int | None, runs: Sequence[Mapping[str, Any]], first_ms: float | None) -> Row:
    times = [run["cycles"] / run["megahertz"] / 1000 for run in runs]
    ms = statistics.median(times)

    def share(name: str) -> float:
        return float(statistics.median(run["total"][name] / max(run["total"]["accesses"], 1) * 1000 for run in runs))

    return Row(
        allocator, threads, ms, min(times), max(times), ms / first_ms if first_ms else 1.0,
        statistics.median(run["total"]["accesses"] for run in runs), share("misses"), share("transfers"),
        share("true_sharing"), share("false_sharing"),
    )  # fmt: skip


def moved(run: Mapping[str, Any], program: Path) -> list[dict[str, Any]]:
    """The lines that moved most: how often, by which sharing, and the source line that asked for each most often."""
    lines = run["lines"][:LINES_SHOWN]
    sites = [
        symbols.Site(number, line["sites"][0]["object"], line["sites"][0]["address"])
        for number, line in enumerate(lines)
        if line["sites"]
    ]
    places = symbols.places(sites, program, Path.cwd())
    rows = []
    for number, line in enumerate(lines):
        own = places[number].own if number in places else None
        kept = {name: line[name] for name in ("address", "transfers", "true_sharing", "false_sharing")}
        rows.append({**kept, "cores": len(line["cores"]), "where": own.place if own else ""})
    return rows


def simulate(
    sources: Sequence[Path], *, machine: str, allocators: Sequence[str], threads: Sequence[int], flags: str, seeds: int,
    arguments: Sequence[str], as_json: bool,
) -> int:  # fmt: skip
    """Print the table, or with as_json the same as one document.

    raises: LoamError for an unknown machine or allocator, sources that do not compile, and a program that fails
    """
    described = machines.find(machine)
    if not described.simulated:
        raise LoamError(
            "--machine", machine, "is no simulated machine", "see ./loam list machines; bench measures on this one"
        )
    if any(PLACEHOLDER in word for word in arguments) != bool(threads):
        hint = f"for example: --threads 1,2,4 ... -- --workers {PLACEHOLDER}"
        raise LoamError(
            "--threads", ",".join(map(str, threads)) or None, f"goes with {PLACEHOLDER} among the arguments", hint
        )
    for name in allocators:
        registry.check(name)
    with tempfile.TemporaryDirectory(prefix="loam-simulate-") as scratch:
        program = compiled(sources, shlex.split(flags), described.preset or "", Path(scratch))
        rows: list[Row] = []
        last: Mapping[str, Any] = {}
        counts: Sequence[int | None] = threads or [None]
        for count, name in itertools.product(counts, allocators):
            words = [word.replace(PLACEHOLDER, str(count)) for word in arguments]
            runs = [counted(program, words, name, described, seed) for seed in range(1, seeds + 1)]
            first = next((row.ms for row in rows if row.threads == count), None)
            rows.append(_row(name, count, runs, first))
            last = runs[0]
        lines = moved(last, program)
    if as_json:
        console.print_json({"schema": 1, "machine": machine, "rows": [asdict(row) for row in rows], "lines": lines})
    else:
        _show(rows, lines, machine, seeds)
    return 0


def _show(rows: Sequence[Row], lines: Sequence[Mapping[str, Any]], machine: str, seeds: int) -> None:
    of_threads = ["threads"] if rows[0].threads is not None else []
    heads = [*of_threads, "ms", "times the first", "misses", "from other cores", "true sharing", "false sharing"]
    table = [
        [
            row.allocator, *([str(row.threads)] if of_threads else []),
            f"{row.ms:.3g} ({row.ms_least:.3g} to {row.ms_most:.3g})", f"{row.against_first:.2f}", f"{row.misses:.3g}",
            f"{row.transfers:.3g}", f"{row.true_sharing:.3g}", f"{row.false_sharing:.3g}",
        ]
        for row in rows
    ]  # fmt: skip
    title = (
        f"on {machine}, {seeds} seed{'s' * (seeds > 1)}; the time of the machine, and counts for a thousand accesses"
    )
    console.out().print(console.table(["allocator", *heads], table, numeric=heads, title=title))
    if not lines:
        return
    heads = ["transfers", "true sharing", "false sharing", "cores"]
    shown = [
        [
            hex(line["address"]),
            *(str(line[name.replace(" ", "_")]) for name in heads),
            line["where"] or "outside of the sources",
        ]
        for line in lines
    ]
    title = f"cache lines that moved most, in the first run of the last row ({rows[-1].allocator})"
    console.out().print(console.table(["line", *heads, "asked for by"], shown, numeric=heads, title=title))
