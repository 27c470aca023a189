"""A result: the one document that tables, reports, pages and `--json` are made of; result.json holds it.

Readers get objects.  Every part has a value where a file does not say it, so that results of older labs open.  Names are
those of the JSON keys; units stand at their ends (`_bytes`, `_s`), and without one a value has the unit that its metric
names.  schema/result.schema.json is made from these classes: `python -P -m loam_lab.model.result.schema`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from loam_lab.base.errors import LoamError
from loam_lab.model.result.bench import Candidate, Choice, Finalist, Flame, Recommendation, Round, Search, Winner
from loam_lab.model.result.campaign import (
    Allocator, Build, Cause, Disturbed, FailedCell, Failure, Figure, Group, Stopping, Sync, TimelineRun, Waiting,
)  # fmt: skip
from loam_lab.model.result.cells import (
    Cell, CounterSource, Counts, Factors, Histogram, Memory, Metric, MovedLine, Moves, ProcessorRatio, Ratio,
    Undisturbed,
)  # fmt: skip
from loam_lab.model.result.judged import (
    AcrossMachines, BaselineApart, Best, ChangedLevel, Contrast, Differing, Geomean, Headline, Identical, MachineRatio,
    MachinesCase, Pooled, Ranking, Reversal, ScreenedFactor, Screening,
)  # fmt: skip
from loam_lab.model.result.paper import (
    Assumed, Block, Claim, Compared, Entry, PaperFigure, PaperTable, PaperValue, Placement, Tried, Value,
)  # fmt: skip
from loam_lab.model.result.parts import Better, Ends, Facts, Family, Interval, Level, Parameters, Part
from loam_lab.model.schema import check

AGAIN = "measure again, or restore the file"
__all__ = [
    "AcrossMachines", "Allocator", "Assumed", "BaselineApart", "Best", "Better", "Block", "Build", "Candidate", "Cause",
    "Cell", "ChangedLevel", "Choice", "Claim", "Compared", "Contrast", "CounterSource", "Counts", "Differing",
    "Disturbed", "Ends", "Entry", "Factors", "Facts", "FailedCell", "Failure", "Family", "Figure", "Finalist",
    "Flame", "Geomean", "Group", "Headline", "Histogram", "Identical", "Interval", "Level", "MachineRatio",
    "MachinesCase", "Memory", "Metric", "MovedLine", "Moves", "PaperFigure", "PaperTable", "PaperValue",
    "Parameters", "Part", "Placement", "Pooled", "ProcessorRatio", "Ranking", "Ratio", "Recommendation",
    "Result", "Reversal", "Round", "ScreenedFactor", "Screening", "Search", "Stopping", "Sync", "TimelineRun", "Tried",
    "Undisturbed", "Value", "Waiting", "Winner", "of_json", "read",
]  # fmt: skip


class Result(Part, frozen=True, kw_only=True):
    """The whole of it (docs/internals/report.md).

    units: Parameter.wording of all parameters, by workload; commands: that repeat it or parts; elapsed_s: wall time of it
    machine: that the lab ran on; machines: of the cells, by name; before_own: libraries that serve a program which is
    linked with another allocator; profiles: what programs asked of their allocators (campaign/counters/profile.py)
    """

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({
        "factors", "claims", "paper_figures", "placements", "before_own", "recommendation", "profiles", "flames", "search",
    })  # fmt: skip

    schema: int
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


def read(text: bytes | str, source: str) -> Result:
    """A result from the text of its file; see of_json.

    raises: LoamError if the text is damaged, too
    """
    try:
        decoded = msgspec.json.decode(text, type=Result)
        check(source, decoded.schema)
        return decoded
    except (msgspec.MsgspecError, UnicodeError):
        # Rare, and worth a second look: what is wrong, or only strange, as half a character is.
        try:
            content = json.loads(text)
        except ValueError as problem:
            raise LoamError("result", source, f"is damaged: {problem}", AGAIN) from None
        return of_json(content, source)


def of_json(content: object, source: str = "result") -> Result:
    """A result from the value of its JSON. source: its name for messages

    raises: LoamError if it is no result, of another schema version, or a part is of the wrong type: with its place
    """
    if not isinstance(content, Mapping):
        raise LoamError("result", source, "is not a JSON object", AGAIN)
    check(source, content.get("schema"))
    if "cells" not in content:
        raise LoamError(source, None, "not a result of loam: it has no cells", "name a folder that holds result.json")
    try:
        return msgspec.convert(_known(content), Result)
    except msgspec.ValidationError as problem:
        what, _, where = str(problem).rpartition(" - at `$")
        place = f"{source}: {where.strip('.`')}" if where else source
        raise LoamError(place, None, what or str(problem), AGAIN) from None


def _known(value: Any) -> Any:
    """The value without what is null: a part that is unknown is as one that is missing."""
    if isinstance(value, Mapping):
        return {key: _known(item) for key, item in value.items() if item is not None}
    return [_known(item) for item in value] if isinstance(value, list) else value
