"""A result: the one document that tables, reports, pages and `--json` are made of; result.json holds it.

Readers get objects.  Every part has a value where a file does not say it, so that results of older labs open.  Names are
those of the JSON keys; units stand at their ends (`_bytes`, `_s`), and without one a value has the unit that its metric
names.  schema/result.schema.json is made from these classes: `python -m loam_lab.model.result_schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from loam_lab.base.errors import LoamError
from loam_lab.model.result.bench import (
    Candidate,
    Choice,
    Finalist,
    Flame,
    Recommendation,
    Round,
    Search,
    Winner,
)  # fmt: skip
from loam_lab.model.result.campaign import (
    Allocator,
    Build,
    Cause,
    Disturbed,
    FailedCell,
    Failure,
    Figure,
    Group,
    Stopping,
    Sync,
    TimelineRun,
    Waiting,
)  # fmt: skip
from loam_lab.model.result.cells import (
    Cell,
    CounterSource,
    Counts,
    Factors,
    Histogram,
    Memory,
    Metric,
    MovedLine,
    Moves,
    ProcessorRatio,
    Ratio,
    Undisturbed,
)  # fmt: skip
from loam_lab.model.result.judged import (
    AcrossMachines,
    BaselineApart,
    Best,
    ChangedLevel,
    Contrast,
    Differing,
    Geomean,
    Headline,
    Identical,
    MachineRatio,
    MachinesCase,
    Pooled,
    Ranking,
    Reversal,
    ScreenedFactor,
    Screening,
)  # fmt: skip
from loam_lab.model.result.paper import (
    Block,
    Claim,
    Compared,
    Entry,
    PaperFigure,
    PaperTable,
    PaperValue,
    Placement,
    Value,
)  # fmt: skip
from loam_lab.model.result.parts import (
    Better,
    Ends,
    Facts,
    Family,
    Interval,
    Level,
    Parameters,
    Part,
)  # fmt: skip
from loam_lab.model.schema import SCHEMA, check

__all__ = [
    "AcrossMachines", "Allocator", "BaselineApart", "Best", "Better", "Block", "Build", "Candidate", "Cause",
    "Cell", "ChangedLevel", "Choice", "Claim", "Compared", "Contrast", "CounterSource", "Counts", "Differing",
    "Disturbed", "Ends", "Entry", "Factors", "Facts", "FailedCell", "Failure", "Family", "Figure", "Finalist",
    "Flame", "Geomean", "Group", "Headline", "Histogram", "Identical", "Interval", "Level", "MachineRatio",
    "MachinesCase", "Memory", "Metric", "MovedLine", "Moves", "PaperFigure", "PaperTable", "PaperValue",
    "Parameters", "Part", "Placement", "Pooled", "ProcessorRatio", "Ranking", "Ratio", "Recommendation",
    "Result", "Reversal", "Round", "ScreenedFactor", "Screening", "Search", "Stopping", "Sync", "TimelineRun",
    "Undisturbed", "Value", "Waiting", "Winner", "of_json", "read",
]  # fmt: skip


class Result(Part, frozen=True, kw_only=True):
    """The whole of it (docs/internals/report.md).

    units: of parameters, by workload and name; commands: that repeat it or parts; elapsed_s: wall time of the command
    machine: that the lab ran on; machines: of the cells, by name; before_own: libraries that serve a program which is
    linked with another allocator; profiles: what programs asked of their allocators (campaign/counters/profile.py)
    """

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({
        "factors", "claims", "paper_figures", "placements", "before_own", "recommendation", "profiles", "flames", "search",
    })  # fmt: skip

    schema: int = SCHEMA
    study: str = ""
    title: str = ""
    question: str = ""
    created_utc: str = ""
    folder: str = ""
    baseline: str = ""
    primary_metrics: dict[str, str] = {}
    units: dict[str, dict[str, str]] = {}
    command: str = ""
    commands: list[str] = []
    blocks: int = 0
    elapsed_s: float | None = None
    machine: Facts = {}
    machines: dict[str, Facts] = {}
    build: Build = Build()
    syncs: list[Sync] = []
    abort_causes: list[Cause] = []
    groups: list[Group] = []
    figures: list[Figure] = []
    allocators: list[Allocator] = []
    counter_sources: list[CounterSource] = []
    cells: list[Cell]
    contrasts: list[Contrast] = []
    headlines: list[Headline] = []
    remember: str = ""
    factors: list[Screening] | None = None
    multiplicity: dict[str, Family] = {}
    disturbed: Disturbed | None = None
    waiting: Waiting | None = None
    timeline: list[TimelineRun] = []
    stopping: Stopping | None = None
    geomeans: list[Geomean] = []
    best: list[Best] = []
    claims: list[Claim] | None = None
    paper_figures: list[PaperFigure] | None = None
    placements: list[Placement] | None = None
    warnings: list[str] = []
    failures: list[Failure] = []
    across_machines: list[AcrossMachines] = []
    identical: list[Identical] = []
    before_own: list[str] | None = None
    recommendation: Recommendation | None = None
    profiles: list[Facts] | None = None
    flames: list[Flame] | None = None
    search: Search | None = None


class _Head(msgspec.Struct):
    schema: Any = None


def of_json(content: Mapping[str, Any], source: str = "result") -> Result:
    """A result from the dictionary of its JSON; see read()."""
    return read(msgspec.json.encode(content), source)


def read(text: bytes | str, source: str) -> Result:
    """A result from the text of its file. source: its name for messages

    raises: LoamError that names what is damaged, the place of a part that is of the wrong type, or the other schema version
    """
    again = "measure again, or restore the file"
    try:
        head = msgspec.json.decode(text, type=_Head)
        check(source, head.schema)
        return msgspec.json.decode(text, type=Result)
    except msgspec.ValidationError as problem:
        what, _, where = str(problem).rpartition(" - at `$")
        if not where:
            raise LoamError(
                source, None, f"not a result of loam: {problem}", "name a folder that holds result.json"
            ) from None
        raise LoamError(f"{source}: {where.strip('.`')}", None, what, again) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise LoamError("result", source, f"is damaged: {problem}", again) from None
