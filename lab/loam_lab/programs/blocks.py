"""Runs of programs in blocks: a block runs each program once under each allocator, in an order that is drawn.

With a folder every run is journalled before the next one starts, and a later call goes on from what the journal holds.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from loam_lab import machine
from loam_lab.allocators import registry
from loam_lab.errors import LoamError
from loam_lab.measure import journal
from loam_lab.model.cell import digest
from loam_lab.programs import catalogue
from loam_lab.programs.running import Outcome, Program, lacking, run_apart
from loam_lab.report.paired import Case

# Those whose work is fixed, and done by what is waited for: no servers, and nothing that runs for a given time.
FIXED = ("awk", "sort", "gcc", "g++", "git", "sqlite3", "gs", "python3", "perl", "lua", "node", "java")
SEED = 1

Runs = dict[str, dict[str, list[Outcome]]]  # by program, then by allocator: one for each block
_One = Callable[[Program, str, int], Outcome]  # a run of a program under an allocator in a block


def page_parser(module: str, description: str | None, page: str, blocks: int) -> argparse.ArgumentParser:
    """The command line of a page of such runs: catalogue.page_parser and how many there are.

    page: its file in docs/performance; blocks: where none are asked for
    """
    parser = catalogue.page_parser(module, description, FIXED, page)
    parser.add_argument(
        "--blocks", type=int, default=blocks, help="how often each runs under each; 6 or more for intervals"
    )
    parser.add_argument("--out", type=Path, help="folder of a journal, from which a later call goes on")
    return parser


def asked_for(options: argparse.Namespace, environment: Mapping[str, str] | None = None) -> Runs:
    """The runs that a command line asks for, of those programs that are installed.

    raises: LoamError as measure(), and where the command line asks for something that there is not
    """
    allocators = options.allocator.split(",")
    if options.blocks < 1:
        raise LoamError("--blocks", options.blocks, "must be 1 or more", "6 or more give intervals")
    if len(allocators) < 2:
        raise LoamError("--allocator", options.allocator, "must be two names or more, the base first")
    found = [program for program in catalogue.chosen(options.program.split(","), allocators) if not lacking(program)]
    if not found:
        raise LoamError("programs", None, "none of them is installed", "./loam setup --programs")
    return measure(found, allocators, options.blocks, short=options.short, environment=environment, folder=options.out)


def measure(
    programs: Sequence[Program], allocators: Sequence[str], blocks: int, *, short: bool,
    environment: Mapping[str, str] | None = None, folder: Path | None = None,
) -> Runs:  # fmt: skip
    """All runs of all blocks.

    short: the tests' amount of work instead of the long one; environment: as for running.session()
    folder: of the journal; None: nothing is kept
    raises: LoamError where a run fails, or comes to something else than another one, and where the folder holds runs
            that could not be compared with those to come
    """

    def fresh(program: Program, name: str, block: int) -> Outcome:
        done = run_apart(program, name, program.short if short else program.long, environment)
        if done is None:
            raise LoamError(program.name, None, f"fails under {name} in block {block + 1}; why stands above")
        return done

    if folder is None:
        return _blocks(programs, allocators, blocks, fresh)
    about = digest({
        "libraries": {name: registry.load(name).sha256 for name in allocators}, "cpu": machine.cpu_model(),
        "short": short, "environment": dict(environment or {}),
    })  # fmt: skip
    with journal.lock(folder):
        known = _known(folder, about)
        with journal.Journal(folder) as kept:

            def one(program: Program, name: str, block: int) -> Outcome:
                key = {"program": program.name, "allocator": name, "block": block}
                if tuple(key.values()) in known:
                    return known[tuple(key.values())]
                done = fresh(program, name, block)
                values = {"result": done.result.hex(), "peak_bytes": done.peak_bytes, "cpu_s": done.cpu_s}
                kept.append({"schema": journal.SCHEMA, "about": about, **key, **values})
                return done

            return _blocks(programs, allocators, blocks, one)


def cases(runs: Runs, value: Callable[[Outcome], float | None]) -> list[Case]:
    """A case for each program, without a number of threads: what a run came to, by allocator and block."""
    return [
        Case(program, 0, {name: [value(one) for one in own] for name, own in by.items()})
        for program, by in runs.items()
    ]


def _blocks(programs: Sequence[Program], allocators: Sequence[str], blocks: int, one: _One) -> Runs:
    runs: Runs = {program.name: {name: [] for name in allocators} for program in programs}
    expected: dict[str, bytes] = {}
    order = random.Random(SEED)
    for block in range(blocks):
        for program in programs:
            for name in order.sample(allocators, len(allocators)):
                done = one(program, name, block)
                if expected.setdefault(program.name, done.result) != done.result:
                    raise LoamError(program.name, None, f"comes to something else under {name} than before")
                runs[program.name][name].append(done)
    return runs


def _known(folder: Path, about: str) -> dict[tuple[object, ...], Outcome]:
    """What a journal holds, by program, allocator and block.

    raises: LoamError if it is about something else
    """
    lines = journal.read(folder)
    if any(line.get("about") != about for line in lines):
        what = "holds runs of other libraries, of another amount of work or of another machine"
        raise LoamError("--out", folder, what, "choose another folder")
    return {
        (line["program"], line["allocator"], line["block"]): Outcome(
            bytes.fromhex(line["result"]), line["peak_bytes"], line["cpu_s"]
        )
        for line in lines
    }
