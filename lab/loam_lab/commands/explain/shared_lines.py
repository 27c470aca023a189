"""Explains a workload that reports no aborts: by the cache lines that its threads share.

On the host the sampler watches it as any program. On a simulated machine every access is seen, so the lines are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.commands.explain import run, transfers
from loam_lab.subjects import machines, symbols

if TYPE_CHECKING:
    from loam_lab.campaign.measure.instruments import Instruments

SCHEMA = 1
# Of the transfers of all lines that are listed, one in so many: a line with fewer is not what a reader should know first.
_WORTH_SAYING = 20


def explain(
    asked: run.Asked, *, as_json: bool = False, chains: bool = False, instruments: Instruments | None = None
) -> int:
    """Explain one run; returns: 0; raises: LoamError. chains: on the host, each line's chain of inlined callers"""
    if not machines.find(asked.machine).simulated:
        from loam_lab.commands.explain.sharing import commands as sharing

        return sharing.explain(
            asked.command(), allocator=asked.allocator, chains=chains, as_json=as_json, instruments=instruments
        )
    explained = explanation(asked, run.perform(asked, instruments))
    if as_json:
        console.print_json(explained)
    else:
        _show(explained)
    return 0


def explanation(asked: run.Asked, performed: run.Performed) -> dict[str, Any]:
    """What the simulator counted, as one document (`loam explain WORKLOAD --machine sim:... --json`)."""
    begin = next(line for line in performed.records if line["kind"] == "begin")
    try:
        lines, sites = transfers.read(performed.statistics, 1)
    except (KeyError, TypeError, ValueError) as problem:
        raise LoamError(asked.workload, None, f"the simulator's statistics do not fit this lab: {problem!r}",
                        "build the simulator and this lab from one revision", exit_code=1) from None  # fmt: skip
    places = symbols.places(sites.values(), asked.executable.subject.program, paths.root())
    shown = transfers.as_json(lines, (), places)
    return {
        "schema": SCHEMA,
        "run": {
            "workload": asked.workload, "allocator": asked.allocator, "sync": begin["sync"], "threads": asked.threads,
            "parameters": begin["parameters"], "seed": asked.seed, "machine": asked.machine,
        },
        "words": sentences(shown), "moved": shown,
    }  # fmt: skip


def sentences(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader should know first. lines: as transfers.as_json makes them, the most moved first"""
    if not lines or not lines[0]["transfers"]:
        return ["No cache line moved between cores: the threads share nothing."]
    most, total = lines[0], sum(line["transfers"] for line in lines)
    if most["transfers"] * _WORTH_SAYING < total:
        return [
            f"No cache line stands out: the one that moved most has {most['transfers']} of the {total} transfers of the "
            f"{len(lines)} lines that moved most."
        ]
    why = {
        "true": "a core used what another had written",
        "false": "the cores used different bytes of it: false sharing",
        "both": "partly a core used what another had written, partly different bytes",
        "none": "it was taken away before it was used again",
    }[most["sharing"]]
    by = f", asked for most often by {most['asked_by'][0]['place']}" if most["asked_by"] else ""
    return [f"One cache line moved {most['transfers']} times between {len(most['cores'])} cores{by}; {why}."]


def _show(explained: Mapping[str, Any]) -> None:
    out, run_ = console.out(), explained["run"]
    head = (
        f"{run_['workload']} under {run_['allocator']}, {run_['sync']}, {run_['threads']} threads on {run_['machine']}"
    )
    out.print(head, markup=False, soft_wrap=True)
    out.print()
    for sentence in explained["words"]:
        out.print(sentence, markup=False, style="head", soft_wrap=True)
    transfers.show(explained["moved"])
