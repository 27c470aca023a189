"""loam explain -- COMMAND: run it, watch it, say which cache lines its threads share, and whose blocks lie in them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.commands.explain import pairs, story
from loam_lab.commands.explain.grouping import BlockPair, LinePair
from loam_lab.commands.explain.sharing import findings, kinds, names, proving, run, sites, told
from loam_lab.commands.explain.sharing.findings import Found

if TYPE_CHECKING:
    from loam_lab.campaign.measure.instruments import Instruments
    from loam_lab.commands.explain.sharing.watches import Process

DEFAULT_ALLOCATOR = "glibc"
PAIRS_SHOWN = 8
SHARED = pairs.Words(
    share="time", one="the access that was sampled", other="the other thread's access",
    title="Lines that meet in one cache line",
)  # fmt: skip


def explain(
    command: Sequence[str],
    *,
    allocator: str | None = None,
    chains: bool = False,
    as_json: bool = False,
    apart: Path | None = None,
    instruments: Instruments | None = None,
) -> int:
    """Explain one run of a command.

    chains: show each line's chain of inlined callers; instruments: None for those of this checkout
    apart: a file for the sites whose blocks are to lie apart, under Loam's malloc; more runs prove what that does
    returns: 0, 1 if the command failed; raises: LoamError
    """
    from loam_lab.setup import build
    from loam_lab.subjects.allocators import building

    allocator = allocator or (DEFAULT_ALLOCATOR if apart is None else proving.ALLOCATOR)
    if apart is not None:
        if allocator != proving.ALLOCATOR:
            raise LoamError(
                "--apart", allocator, "puts no blocks apart: Loam's malloc alone does", "leave --allocator out"
            )
        proving.check_file(apart)
    run.check_machine()
    building.ensure([allocator])
    if instruments is None:
        build.ensure_built(["probe", run.LIBRARY])
        building.ensure_own([allocator], "release")
    performed = run.perform(command, allocator, instruments)
    explained = explanation(command, allocator, performed.processes, Path.cwd())
    explained["run"]["ending"] = performed.ending
    if apart is not None and not performed.ending:
        explained["apart"] = _put_apart(command, apart, performed.processes, instruments)
    if as_json:
        console.print_json(explained)
    else:
        show(explained, chains=chains)
    if performed.ending:
        console.warn(f"the command {performed.ending}; what was seen until then is told")
    return 1 if performed.ending else 0


def _put_apart(
    command: Sequence[str], file: Path, processes: Sequence[Process], instruments: Instruments | None
) -> dict[str, Any] | None:
    """Write the sites at fault and prove what it does to put their blocks apart; None where no site is at fault"""
    named = names.find(processes, Path.cwd())
    before = findings.find(processes, named)
    found = sites.at_fault(processes, named, before)
    if not found:
        return None
    proving.write(file, command, found)
    performed = run.perform(command, proving.ALLOCATOR, instruments, proving.variables(file))
    after = findings.find(performed.processes, names.find(performed.processes, Path.cwd()))
    return proving.as_json(
        file, found, proving.shared(processes, before), proving.shared(performed.processes, after),
        proving.time(command, file, instruments), proving.complaints(performed.stderr_tail),
    )  # fmt: skip


def explanation(command: Sequence[str], allocator: str, processes: Sequence[Process], root: Path) -> dict[str, Any]:
    """All that the watches explain, as one document (`loam explain --json -- COMMAND`). root: files are named from there"""
    found = findings.find(processes, names.find(processes, root))
    window_us = max((process.window_ns for process in processes), default=0) / 1000
    return {
        "schema": 1,
        "run": {
            "command": shlex.join(command), "allocator": allocator, "processes": len(processes),
            "threads": sum(process.threads for process in processes), "source": "clock", "window_us": window_us,
            "period_us": max((process.period_ns for process in processes), default=0) / 1000,
        },
        "samples": found.samples, "watched": found.watched, "beside": found.beside,
        "lost": sum(process.lost for process in processes),
        "shared": found.any.as_json(), "words": told.words(found, window_us),
        "kinds": [
            {"kind": one.key, "meaning": kinds.MEANINGS[str(one.key)], **one.share.as_json()} for one in found.kinds
        ],
        "blocks": [_blocks_json(one) for one in found.blocks],
        "lines": [_lines_json(one) for one in found.lines],
        "threads": [{"threads": one.key, **one.share.as_json()} for one in found.threads],
    }  # fmt: skip


def _blocks_json(one: Found) -> dict[str, Any]:
    assert isinstance(one.key, BlockPair)
    return {
        **one.share.as_json(), "named": one.named, **pairs.pair_of_blocks(one.key, told.UNIT),
        "line": [{"word": number, **counts} for number, counts in one.words.items()],
    }  # fmt: skip


def _lines_json(one: Found) -> dict[str, Any]:
    assert isinstance(one.key, LinePair)
    return {
        **one.share.as_json(), "sampled": pairs.place_json(one.key.lost), "other": pairs.place_json(one.key.won)
    }  # fmt: skip


def show(explained: Mapping[str, Any], *, chains: bool = False) -> None:
    """Print an explanation: words first, then kinds, pairs of blocks, pairs of lines."""
    out, run_ = console.out(), explained["run"]
    out.print(
        f"{run_['command']} under {run_['allocator']}, {run_['threads']} threads: {explained['watched']} watches, "
        f"{explained['shared']['caught']} caught another thread",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    out.print()
    for sentence in explained["words"]:
        out.print(sentence, markup=False, style="head" if sentence == explained["words"][0] else None, soft_wrap=True)
    if "apart" in explained:
        _show_apart(explained["apart"])
    if not explained["kinds"]:
        return
    out.print()
    rows = [
        [story.percent(kind["share"]), _ends(kind), kind["kind"], kind["meaning"]] for kind in explained["kinds"]
    ]  # fmt: skip
    out.print(console.table(["time", "interval", "kind", "meaning"], rows, numeric=["time", "interval"]))
    rows = [[story.percent(pair["share"]), _ends(pair), pair["words"]] for pair in explained["blocks"][:PAIRS_SHOWN]]
    title = "What lies in the shared cache lines"
    out.print(console.table(["time", "interval", "blocks"], rows, numeric=["time", "interval"], title=title))
    pairs.show_lines(explained["lines"][:PAIRS_SHOWN], SHARED, chains=chains, sides=("sampled", "other"))


def _show_apart(apart: Mapping[str, Any] | None) -> None:
    out = console.out()
    out.print()
    if apart is None:
        out.print("No allocation site is at fault: no file of sites was written.")
        return
    for sentence in apart["words"]:
        out.print(sentence, markup=False, soft_wrap=True)
    for complaint in apart["complaints"]:
        console.warn(complaint)


def _ends(share: Mapping[str, Any]) -> str:
    low, high = story.percent(share["low"]), story.percent(share["high"])
    return f"{low.removesuffix(' %')}-{high}"
