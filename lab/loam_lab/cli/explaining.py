"""The command that says why: who shares cache lines, who aborts whom, and which factor of an allocator decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loam_lab.base.errors import LoamError
from loam_lab.cli import completing
from loam_lab.cli.benching import Fill, Load, Ready, Server
from loam_lab.cli.options import AsJson, Blocks, Out, Resume, Seed, allocator_names, at_least, check, names

if TYPE_CHECKING:
    from loam_lab.commands.bench.job import Job

EACH = "each"  # in place of an allocator: all that are installed
Workload = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORKLOAD | -- COMMAND...",
        autocompletion=completing.workload,
        help="A workload (see: list workloads), or any program and its arguments.",
        show_default=False,
    ),
]
# Set where the line has "--", which the parser itself swallows.
Program = Annotated[bool, typer.Option("--program", hidden=True)]
Allocator = Annotated[
    str | None,
    typer.Option(
        "--allocator",
        metavar="A",
        autocompletion=completing.allocator,
        help="One allocator, with settings as in glibc:tcache=0 (default: glibc, or what a program brings itself). With a "
        "program also several, A,B, or each: all that are installed.",
    ),
]
Sync = Annotated[
    str | None,
    typer.Option(
        "--sync",
        metavar="S",
        autocompletion=completing.sync,
        help="One algorithm that reports the causes of aborts (default: etl-wb).",
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Threads, at least 2 (default: all of this machine).")
]
Parameter = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="A parameter of the workload or algorithm."),
]
Every = Annotated[int | None, typer.Option("--every", metavar="N", help="Record every N-th abort of a thread.")]
Chains = Annotated[bool, typer.Option("--chains", help="Show each source line with the functions it was inlined into.")]
Apart = Annotated[
    Path | None,
    typer.Option(
        "--apart",
        metavar="FILE",
        help="With a program: write the allocation sites whose blocks share cache lines, and prove what it does to "
        "put them apart (Loam's malloc).",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        "--page", metavar="FILE", help="With a program: write a page (HTML) with a picture of each shared line."
    ),
]
Machine = Annotated[
    str,
    typer.Option(
        "--machine",
        metavar="M",
        autocompletion=completing.machine,
        help="The machine; host is this one. See list machines.",
    ),
]
Oversubscribe = Annotated[bool, typer.Option("--oversubscribe", help="Allow more threads than this machine has.")]
Factors = Annotated[
    bool,
    typer.Option("--factors", help="Measure which setting of an allocator decides: each changed alone, ranked."),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="A",
        autocompletion=completing.allocator,
        help="With --factors: the allocator that is changed (default: design:base).",
    ),
]
Factor = Annotated[
    list[str] | None,
    typer.Option(
        "--factor",
        metavar="F,F=V",
        autocompletion=completing.settings,
        help="With --factors: only these settings, or one value of them.",
    ),
]


def explain(
    words: Workload = None,
    allocator: Allocator = None,
    sync: Sync = None,
    threads: Threads = None,
    machine: Machine = "host",
    parameter: Parameter = None,
    every: Every = None,
    seed: Seed = 1,
    chains: Chains = False,
    factors: Factors = False,
    base: Base = None,
    factor: Factor = None,
    blocks: Blocks = None,
    oversubscribe: Oversubscribe = False,
    resume: Resume = False,
    out: Out = None,
    as_json: AsJson = False,
    apart: Apart = None,
    page: Page = None,
    server: Server = None,
    ready: Ready = None,
    load: Load = None,
    fill: Fill = "",
    program: Program = False,
) -> int:
    """Why: which cache lines the threads of any program share, who aborts whom in a workload, which setting decides.

    After -- a program of yours, or with --server, --ready and --load a server: the blocks and source lines that meet in one
    cache line. With a workload: who aborts whom in one run. With --factors: which setting of an allocator decides.
    """
    at_least("--every", every, 1)
    at_least("--threads", threads, 1)
    check(blocks, None, seed)
    for option, value in (("--allocator", allocator), ("--sync", sync)):
        several = (program or server is not None) and option == "--allocator" and len(names([value or ""])) > 0
        if value is not None and len(names([value])) != 1 and not several:
            raise LoamError(option, value, "explain takes one value", "explain each value in a separate run")
    if program or any((server, ready, load, fill)):
        of_workloads: dict[str, Any] = {
            "--sync": sync, "--threads": threads, "--machine": machine != "host", "-p": parameter, "--every": every,
            "--factors": factors, "--base": base, "--factor": factor, "--blocks": blocks, "--resume": resume, "--out": out,
        }  # fmt: skip
        _for_programs(of_workloads)
        from loam_lab.commands.bench import job_options

        what = job_options.to_watch(
            "explain", words or [], server=server, ready=ready, load=load, fill=fill, timeout_s=job_options.TIMEOUT_S
        )
        return _program(what, allocator, apart=apart, page=page, chains=chains, as_json=as_json)
    for option, file in (("--apart", apart), ("--page", page)):
        if file is not None:
            raise LoamError(
                option, str(file), "is for programs", f"for example: explain {option} {file.name} -- ./program"
            )
    if len(words or ()) != 1:
        raise LoamError(
            "WORKLOAD", " ".join(words or ()) or None, "explain takes one workload, or a program after --",
            "for example: explain intset, or: explain -- ./program argument",
        )  # fmt: skip
    workload = (words or [""])[0]
    only_factors: dict[str, Any] = {
        "--base": base, "--factor": factor, "--blocks": blocks, "--resume": resume, "--out": out,
    }  # fmt: skip
    only_aborts: dict[str, Any] = {"--allocator": allocator, "--every": every, "--chains": chains}
    for option, given in (only_aborts if factors else only_factors).items():
        if given:
            if factors:
                raise LoamError(
                    option, None, "has no effect with --factors", "--base names the allocator that is changed"
                )
            raise LoamError(option, None, "belongs to --factors", "add --factors, or leave it out")
    parameters = [_key_value(item) for item in parameter or ()]
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names

    typed_names.check(
        of=[workload], syncs=names([sync or ""]), allocators=allocator_names([allocator or ""]), on=[machine]
    )
    from loam_lab.commands.request import Effort, Output, Request, Selection

    selection = Selection(
        [allocator] if allocator else [], [sync] if sync else [], [threads] if threads else [], [machine], parameters,
        oversubscribe=oversubscribe,
    )  # fmt: skip
    if factors:
        from loam_lab.commands.explain import factors as designs
        from loam_lab.commands.explain import screening

        bases = allocator_names([base]) if base is not None else [screening.BASE]
        if len(bases) != 1:
            raise LoamError("--base", base, "--factors takes one base", "screen each one in a separate run")
        designs.check(bases[0], names(factor))
        debian.ensure("measure")
        request = Request(
            replace(selection, allocators=bases), Effort(blocks, seed=seed), output=Output(out, resume, as_json)
        )
        return screening.explain(workload, request, names(factor))
    debian.ensure("measure")
    from loam_lab.commands.explain import commands

    request = Request(selection, Effort(seed=seed), output=Output(as_json=as_json))
    return commands.explain(workload, request, every=every or 1, chains=chains)


def _for_programs(of_workloads: Mapping[str, Any]) -> None:
    """Raises: LoamError for an option that is for workloads alone"""
    for option, given in of_workloads.items():
        if given:
            raise LoamError(option, None, "is for workloads and has no effect on a program", "leave it out")


def _program(
    what: Sequence[str] | Job,
    allocator: str | None,
    *,
    apart: Path | None,
    page: Path | None,
    chains: bool,
    as_json: bool,
) -> int:
    """Explain a program of the user's, or a server of theirs under its load."""
    from loam_lab.commands.bench.job import Job
    from loam_lab.setup import debian
    from loam_lab.subjects import typed_names

    if apart is not None and isinstance(what, Job):
        raise LoamError(
            "--apart", str(apart), "proves what it does by the time of a command",
            "write the file from a command; then measure the server by bench --server, with LOAM_MALLOC_APART set",
        )  # fmt: skip
    chosen = allocator_names([allocator or ""])
    several = len(chosen) > 1 or EACH in chosen
    for option, given in {"--apart": apart is not None, "--page": page is not None, "--chains": chains}.items():
        if several and given:
            raise LoamError(option, None, "is for one allocator", "explain each allocator in a separate run")
    typed_names.check(allocators=[name for name in chosen if name != EACH])
    from loam_lab.commands.explain.sharing import run

    run.check_machine()
    debian.ensure("measure", "explain")
    from loam_lab.commands.explain.sharing import commands, comparison

    if several:
        every = [one for name in chosen for one in (comparison.installed() if name == EACH else [name])]
        return commands.compare(what, list(dict.fromkeys(every)), as_json=as_json)
    return commands.explain(what, allocator=allocator, chains=chains, as_json=as_json, apart=apart, page=page)


def _key_value(text: str) -> tuple[str, list[str]]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise LoamError("-p", text, "not of the form key=value", "for example -p structure=list")
    return key, names([value])
