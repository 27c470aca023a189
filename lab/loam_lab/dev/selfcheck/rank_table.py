"""The table of `./loam selfcheck sharing --ranks`: lines of our workloads by the sampler and by the simulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from loam_lab.base import console
from loam_lab.commands.explain.sharing import run
from loam_lab.dev.selfcheck import exit_status, line_ranks, weighted_lines
from loam_lab.dev.selfcheck.line_ranks import PROGRAMS, Program, Ranked

_BUSY = 0.9  # on a machine of its own another thread runs in nearly all watches of two threads


def compare(names: Sequence[str], seconds: float, as_json: bool) -> int:
    """Run the programs and print what was found. names: of workloads, all of them where there is none

    returns: the exit status; raises: LoamError
    """
    chosen = line_ranks.chosen((weighted_lines.PLANTED, *PROGRAMS), names)
    if exit_status.refused(run.check_machine):
        return exit_status.NOT_RUN
    _prepare(chosen)
    if not as_json:
        print("| program | cycles | moves | lines | time | catches | used most by |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    ranked = []
    for program in chosen:
        planted = program == weighted_lines.PLANTED
        one = weighted_lines.ranked(seconds) if planted else line_ranks.ranked(program, seconds)
        ranked.append(one)
        if not as_json:
            _show(one)
    if as_json:
        print(json.dumps(document(ranked), indent=1))
    if any(one.beside < _BUSY for one in ranked):
        console.warn("another thread did not run in many watches: the machine is busy, or the threads wait by sleeping")
    return status(ranked)


def status(ranked: Sequence[Ranked]) -> int:
    """HOLDS if the correlation is high enough in all programs that have one, FAILS if not, TOO_FEW where none has one."""
    return exit_status.of(rho >= line_ranks.LEAST_RHO for one in ranked if (rho := one.rho) is not None)


def document(ranked: Sequence[Ranked]) -> dict[str, Any]:
    """As --json prints it."""
    return {
        "schema": 1, "machine": line_ranks.MACHINE, "status": status(ranked),
        "programs": [
            {
                **asdict(one.program), "rank_correlation": one.rho, "rank_correlation_of_moves": one.rho_of_moves,
                "samples": one.samples, "beside": one.beside,
                "groups": [
                    {
                        "used_by": group.name, "cycles": group.cycles, "moves": group.moves, "lines": group.lines,
                        "share": group.share, "catches": group.catches,
                    }
                    for group in one.groups
                ],
            }
            for one in ranked
        ],
    }  # fmt: skip


def _show(one: Ranked) -> None:
    rho = one.rho
    outcome = (
        f"rank correlation {rho:.2f} over {len(one.both)}" if rho is not None else "fewer than three groups told apart"
    )
    if (of_moves := one.rho_of_moves) is not None:
        outcome += f"; of its moves {of_moves:.2f} over {len(one.groups)}"
    print(f"| **{one.program.text}** | | | | | {one.samples} samples | {outcome} |")
    for group in one.groups:
        figures = f"{group.cycles:.0f} | {group.moves} | {group.lines} | {100 * group.share:.1f} % | {group.catches}"
        print(f"| | {figures} | {group.name} |", flush=True)


def _prepare(programs: Sequence[Program]) -> None:
    """Build what the programs need, for both machines."""
    from loam_lab.setup import build
    from loam_lab.subjects import machines
    from loam_lab.subjects.allocators import building

    build.ensure_built(["probe", run.LIBRARY])
    syncs = list(dict.fromkeys(program.sync for program in programs if program != weighted_lines.PLANTED))
    allocators = list(dict.fromkeys(program.allocator for program in programs))
    building.ensure(allocators)
    for machine in (machines.HOST, line_ranks.MACHINE):
        preset = machines.find(machine).preset or "release"
        build.ensure_built(syncs, preset)
        building.ensure_own(allocators, preset)
