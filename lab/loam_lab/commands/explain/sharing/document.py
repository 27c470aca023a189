"""All that a watched run explains, as one document; loam_lab.model.explanation has its shape."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from loam_lab.commands.explain import pairs
from loam_lab.commands.explain.grouping import BlockPair, LinePair
from loam_lab.commands.explain.sharing import kinds, line, refusals, sentences
from loam_lab.commands.explain.sharing.findings import Finding, Seen
from loam_lab.commands.explain.sharing.provider import Provider
from loam_lab.commands.explain.sharing.run import Performed
from loam_lab.commands.explain.sharing.watches import Process

SCHEMA = 1


def of(command: Sequence[str], allocator: str | None, seen: Seen, performed: Performed | None = None) -> dict[str, Any]:
    """All that the watches explain, as one document (`loam explain --json -- COMMAND`).

    allocator: None for the program as it is; performed: how the run went
    """
    findings, processes = seen.findings, seen.processes
    performed = performed or Performed()
    by = performed.provider if allocator is None else Provider(allocator)
    window_us = max((process.window_ns for process in processes), default=0) / 1000
    return {
        "schema": SCHEMA,
        "run": {
            "command": shlex.join(command), "allocator": by.allocator, "processes": len(processes),
            "threads": sum(process.threads for process in processes), "source": "clock", "window_us": window_us,
            "period_us": max((process.period_ns for process in processes), default=0) / 1000,
            "wall_s": performed.wall_s, "ending": performed.ending,
        },
        "samples": findings.samples, "watched": findings.watched, "beside": findings.beside,
        "lost": sum(process.lost for process in processes),
        "shared": findings.any.as_json(),
        "words": [
            *sentences.words(findings, window_us), *refusals.words(processes), *_endings(processes, performed),
            *([by.words] if by.words else []),
        ],
        "kinds": [
            {"kind": one.key, "meaning": kinds.MEANINGS[str(one.key)], **one.share.as_json()} for one in findings.kinds
        ],
        "blocks": [_blocks_json(one, seen) for one in findings.blocks],
        "lines": [_lines_json(one) for one in findings.lines],
        "threads": [{"threads": one.key, **one.share.as_json()} for one in findings.threads],
    }  # fmt: skip


def _endings(processes: Sequence[Process], performed: Performed) -> list[str]:
    """How processes ended of which the run's own end says nothing."""
    cut = sum(not process.ended for process in processes)
    if performed.ending or not cut:
        return []
    which = "The process" if len(processes) == 1 else f"{cut} of the {len(processes)} processes"
    return [f"{which} ended by _exit or by a signal, without exit handlers; what was seen until then counts."]


def _blocks_json(one: Finding, seen: Seen) -> dict[str, Any]:
    assert isinstance(one.key, BlockPair)
    return {
        **one.share.as_json(), "named": one.named, **pairs.pair_of_blocks(one.key, sentences.UNIT),
        "line": [{"word": number, **counts} for number, counts in one.words.items()],
        "picture": line.picture(one, seen),
    }  # fmt: skip


def _lines_json(one: Finding) -> dict[str, Any]:
    assert isinstance(one.key, LinePair)
    return {
        **one.share.as_json(), "sampled": pairs.place_json(one.key.lost), "other": pairs.place_json(one.key.won)
    }  # fmt: skip
