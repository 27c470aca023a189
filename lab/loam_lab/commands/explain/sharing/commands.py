"""loam explain -- COMMAND: run it, watch it, say which cache lines its threads share, and whose blocks lie in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.commands.explain import pairs, story
from loam_lab.commands.explain.sharing import comparison, document, findings, proof, run, sites
from loam_lab.commands.explain.sharing.findings import Seen

if TYPE_CHECKING:
    from loam_lab.campaign.measure.instruments import Instruments
    from loam_lab.commands.bench.job import Job

PAIRS_SHOWN = 8
SHARED = pairs.Words(
    share="time", one="the access that was sampled", other="the other thread's access",
    title="Lines that meet in one cache line",
)  # fmt: skip


def explain(
    what: Sequence[str] | Job,
    *,
    allocator: str | None = None,
    chains: bool = False,
    as_json: bool = False,
    apart: Path | None = None,
    page: Path | None = None,
    instruments: Instruments | None = None,
) -> int:
    """Explain one run of a command, or of a server under its load.

    allocator: None for the program as it is, with the one that it brings; with `apart` that is Loam's
    chains: show each line's chain of inlined callers; instruments: None for those of this checkout
    page: a file for the page with pictures of the lines
    apart: a file for the sites whose blocks are to lie apart, under Loam's malloc; more runs prove what that does
    returns: 0, 1 if the command failed; raises: LoamError
    """
    if apart is not None:
        allocator = allocator or proof.ALLOCATOR
        if allocator != proof.ALLOCATOR:
            raise LoamError(
                "--apart", allocator, "puts no blocks apart: Loam's malloc alone does", "leave --allocator out"
            )
        check_file("--apart", apart)
    if page is not None:
        check_file("--page", page)
    _prepare([allocator] if allocator else [], instruments)
    performed = run.perform(what, allocator, instruments)
    seen = findings.see(performed.processes, Path.cwd())
    explained = document.of(run.words(what), allocator, seen, performed)
    if apart is not None and not performed.ending:
        explained["apart"] = _put_apart(run.words(what), apart, seen, instruments)
    if page is not None:
        from loam_lab.model import explanation
        from loam_lab.presenting.report import explanation_page as pages

        page.write_text(pages.render(explanation.typed(explained)), encoding="utf-8")
        console.note(f"wrote {page}")
    if as_json:
        console.print_json(explained)
    else:
        show(explained, chains=chains)
    if performed.ending:
        console.warn(f"the command {performed.ending}; what was seen until then is told")
    return 1 if performed.ending else 0


def compare(
    what: Sequence[str] | Job,
    allocators: Sequence[str],
    *,
    as_json: bool = False,
    instruments: Instruments | None = None,
) -> int:
    """Explain a run of a command, or of a server under its load, under each allocator, side by side.

    instruments: None for those of this checkout
    returns: 0, 1 if the command failed under one; raises: LoamError
    """
    _prepare(allocators, instruments)

    def explained(allocator: str) -> dict[str, Any]:
        performed = run.perform(what, allocator, instruments)
        return document.of(run.words(what), allocator, findings.see(performed.processes, Path.cwd()), performed)

    runs = comparison.run(allocators, explained)
    result = comparison.as_json(run.words(what), runs)
    if as_json:
        console.print_json(result)
    else:
        comparison.show(result)
    return 1 if any(one.problem for one in runs) else 0


def check_file(option: str, file: Path) -> None:
    """Nothing if a file may be written there; raises: LoamError before anything runs"""
    if file.is_dir():
        raise LoamError(option, str(file), "is a folder", "name a file")
    if not file.absolute().parent.is_dir():
        raise LoamError(option, str(file), "is in a folder that does not exist", "make the folder first")


def _prepare(allocators: Sequence[str], instruments: Instruments | None) -> None:
    """Build and install what runs under these allocators need; raises: LoamError where nothing can be watched"""
    from loam_lab.setup import build
    from loam_lab.subjects.allocators import building

    run.check_machine()
    building.ensure(allocators)
    if instruments is None:
        build.ensure_built(["probe", run.LIBRARY])
        building.ensure_own(allocators, "release")


def _put_apart(
    command: Sequence[str], file: Path, before: Seen, instruments: Instruments | None
) -> dict[str, Any] | None:
    """Write the sites at fault and prove what it does to put their blocks apart; None where no site is at fault"""
    at_fault = sites.at_fault(before)
    if not at_fault:
        return None
    proof.write(file, command, at_fault)
    performed = run.perform(command, proof.ALLOCATOR, instruments, proof.variables(file))
    after = findings.see(performed.processes, Path.cwd())
    return proof.as_json(
        file, at_fault, proof.shared(before), proof.shared(after),
        proof.time(command, file, instruments), proof.complaints(performed.stderr_tail),
    )  # fmt: skip


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
    return story.interval(share["low"], share["high"], "-")
