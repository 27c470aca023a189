"""A result: the one document that tables, reports, pages and `--json` are made of; result.json holds it.

Readers get objects.  Every part has a value where a file does not say it, so that results of older labs open.  Names are
those of the JSON keys; units stand at their ends (`_bytes`, `_s`), and without one a value has the unit that its metric
names.  schema/result.schema.json is made from these classes: `python -m loam_lab.model.result_schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec

from loam_lab.base.errors import LoamError
from loam_lab.model.schema import SCHEMA, check

Better = Literal["higher", "lower", "neither"]
Level = int | float | str
Parameters = Mapping[str, Level]
# What a machine, an environment or a tool says of itself: each names its own keys.
Facts = dict[str, Any]
_PLAIN = frozenset((float, int, bool, str, type(None)))


class Part(msgspec.Struct, frozen=True):
    """A part of a result. _OPTIONAL: fields that are left out of the JSON where they are None; others are null there"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """The part as the dictionaries and lists of its JSON."""
        found = {}
        for field, key in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            value = getattr(self, field)
            if value is not None or field not in self._OPTIONAL:
                found[key] = _json(value)
        return found


def _json(value: Any) -> Any:
    if isinstance(value, Part):
        return value.as_json()
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Those of numbers are long, and nothing in them is to be made.
        return list(value) if set(map(type, value)) <= _PLAIN else [_json(item) for item in value]
    return value


class Interval(Part, frozen=True):
    """An estimate with its 95 % interval; ends are None where there are too few runs for one."""

    estimate: float
    low: float | None = None
    high: float | None = None


class Ratio(Interval, frozen=True):
    """How many times the baseline's value a cell has, of paired blocks. n: blocks; p: of no difference; q: adjusted p"""

    metric: str = ""
    n: int = 0
    p: float | None = None
    q: float | None = None


class ProcessorRatio(Ratio, frozen=True):
    """A ratio of processor time, with its own verdict."""

    verdict: str = ""
    rough: bool = False


class Undisturbed(Interval, frozen=True):
    """A ratio without the blocks that stayed disturbed. n: the others"""

    n: int = 0


class Metric(Interval, frozen=True):
    """One metric of a cell. better: higher, lower, neither; values: one per block; blocks: their numbers, where known"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"blocks"})

    unit: str = ""
    better: Better = "neither"
    kind: str = ""
    values: list[float] = []
    blocks: list[int] | None = None


class Factors(Part, frozen=True):
    """The levels that every cell has, and the collector of a managed program."""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"collector"})

    workload: str
    allocator: str
    sync: str = ""
    machine: str = "host"
    threads: int = 1
    collector: str | None = None


class Counts(Part, frozen=True):
    """What one source counted of a cell, per operation, or per run of a command; ratios and shares from 0 to 1.

    None: the source does not have it. counted_share: of the time in which a counter was on the processor;
    caches, tlb, peak: what the source says of its own model, or of the program at its peak
    """

    source: str = "counters"
    per: str = "operation"
    instructions: float | None = None
    cycles: float | None = None
    accesses: float | None = None
    l1d_misses: float | None = None
    l1d_miss_ratio: float | None = None
    llc_misses: float | None = None
    llc_miss_ratio: float | None = None
    dtlb_misses: float | None = None
    dtlb_first_misses: float | None = None
    dtlb_misses_large: float | None = None
    hitm: float | None = None
    false_sharing_misses: float | None = None
    true_sharing_misses: float | None = None
    transfers: float | None = None
    upgrades: float | None = None
    memory_reads: float | None = None
    calls: float | None = None
    requested_bytes: float | None = None
    caches: Facts | None = None
    tlb: Facts | None = None
    peak: dict[str, float] | None = None
    padding: float | None = None
    external: float | None = None
    counted_share: float | None = None
    records_mapping: str | None = None

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset(__annotations__) - {"source", "per"}

    def numbers(self) -> dict[str, float]:
        """All that was counted, by name."""
        every = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in every.items() if isinstance(value, int | float)}


class CounterSource(Part, frozen=True):
    """Whether a source counts on the machine, and why not or how that is known."""

    source: str
    counts: bool = False
    why: str = ""


class MovedLine(Part, frozen=True):
    """A cache line that moved between simulated cores. arrived: by core, transfers in each part of the time;
    between: [from, to, transfers]"""

    transfers: int = 0
    true_sharing: int = 0
    false_sharing: int = 0
    asked_by: str = ""
    arrived: dict[str, list[int]] = {}
    between: list[list[int]] = []


class Moves(Part, frozen=True):
    """The lines that moved most in one run. columns: parts of the time; one_in: of so many transfers one was looked at"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"one_in"})

    begin_ms: float = 0.0
    end_ms: float = 0.0
    columns: int = 0
    lines: list[MovedLine] = []
    one_in: int | None = None


class Memory(Part, frozen=True):
    """The memory run of a cell. samples: [seconds, RSS, PSS, live bytes or None]; fit: may decide something, reasons: why not"""

    samples: list[list[float | None]] = []
    peak_rss_bytes: float | None = None
    peak_pss_bytes: float | None = None
    mean_pss_bytes: float | None = None
    area_pss_byte_s: float | None = None
    live_peak_bytes: float | None = None
    faults_minor: float | None = None
    faults_major: float | None = None
    fit: bool = True
    reasons: list[str] = []


class Histogram(Part, frozen=True):
    """Counts by the lower bounds of their classes."""

    bounds: list[float] = []
    counts: list[float] = []


class Cell(Part, frozen=True, kw_only=True):
    """One combination of levels. copy: 1 is the A/A sentinel; runs, failed: numbers of processes

    identity: what else its runs share; contaminated: blocks that stayed disturbed; blame: attempts, commits, aborts by cause
    """

    group: str = ""
    factors: Factors
    parameters: Parameters = {}
    identity: Facts | None = None
    copy: int = 0
    runs: int = 0
    failed: int = 0
    state: str = "ok"
    metrics: dict[str, Metric] = {}
    ratio_to_baseline: Ratio | None = None
    contaminated: int = 0
    ratio_without_contaminated: Undisturbed | None = None
    verdict: str = ""
    rough: bool = False
    blame: dict[str, float | None] | None = None
    aborts_per_commit: Histogram | None = None
    counters: list[Counts] = []
    moves: Moves | None = None
    memory: Memory | None = None
    warnings: list[str] = []
    processor_ratio: ProcessorRatio | None = None

    def values(self, metric: str) -> list[float]:
        """Single values of a metric, one per block; none where the cell has not that metric."""
        return self.metrics[metric].values if metric in self.metrics else []


class Contrast(Interval, frozen=True):
    """One way of doing the same against another, for one allocator. level: of the factor, the first one is what it is over"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"level"})

    what: str = ""
    factor: str = ""
    group: str | None = None
    workload: str = ""
    sync: str | None = None
    machine: str | None = None
    threads: int | None = None
    parameters: Parameters = {}
    allocator: str = ""
    metric: str = ""
    better: Better = "neither"
    n: int = 0
    p: float | None = None
    level: Level | None = None
    q: float | None = None
    verdict: str = ""
    rough: bool = False


class Headline(Part, frozen=True, kw_only=True):
    """The best against the worst allocator of a family. p_holm: p adjusted over all; comparisons: how many those are"""

    group: str | None = None
    workload: str = ""
    parameters: Parameters = {}
    sync: str | None = None
    machine: str | None = None
    threads: int | None = None
    metric: str = ""
    best: str
    worst: str
    ratio: Interval
    p: float | None = None
    p_holm: float | None = None
    comparisons: int = 0
    verdict: str = ""
    rough: bool = False
    text: str = ""


class Geomean(Interval, frozen=True):
    """How many times as good as the baseline an allocator is, in the geometric mean of so many cases."""

    what: str = ""
    allocator: str = ""
    machine: str = "host"
    cases: int = 0
    n: int = 0
    p: float | None = None
    rough: bool = False
    q: float | None = None
    verdict: str = ""


class Best(Part, frozen=True):
    """The probability that an allocator is the best of a case."""

    group: str = ""
    label: str = ""
    workload: str = ""
    sync: str = ""
    machine: str = "host"
    threads: int = 1
    parameters: Parameters = {}
    allocator: str = ""
    probability: float | None = None


class ChangedLevel(Part, frozen=True):
    """One setting of a screening against the base; numbers are None where it was not measured."""

    value: str
    verdict: str = ""
    rough: bool = False
    p_holm: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    p: float | None = None


class ScreenedFactor(Part, frozen=True):
    """A design choice. was: its level in the base; levels: the strongest change first"""

    factor: str
    was: str = ""
    verdict: str = ""
    levels: list[ChangedLevel] = []


class Screening(Part, frozen=True):
    """Factors changed one at a time, ranked. size: changes adjusted together; again: the base against itself"""

    baseline: str = ""
    workload: str = ""
    sync: str = ""
    threads: int = 1
    machine: str = "host"
    parameters: Parameters = {}
    title: str = ""
    metric: str = ""
    better: Better = "neither"
    method: str = ""
    size: int = 0
    factors: list[ScreenedFactor] = []
    again: Interval | None = None
    text: list[str] = []


class Family(Part, frozen=True):
    """How many comparisons were adjusted together, and by which method."""

    method: str = ""
    size: int = 0


class Disturbed(Part, frozen=True):
    """Blocks that were measured, run again, stayed disturbed, by source; slices of the runs that count, and left out."""

    blocks: int = 0
    repeated: int = 0
    contaminated: int = 0
    by: dict[str, int] = {}
    slices: int = 0
    slices_left_out: int = 0


class Waiting(Part, frozen=True):
    """Blocks in which a command waited for a processor, and the metric that decides."""

    blocks: int = 0
    disturbed: int = 0
    decides: str = "wall_s"


class TimelineRun(Part, frozen=True, kw_only=True):
    """A timed run. cell: its place among the result's; share: of its time that was disturbed"""

    order: int = 0
    t_s: float | None = None
    cell: int
    block: int = 0
    copy: int = 0
    attempt: int = 0
    value: float | None = None
    share: float | None = None


class Stopping(Part, frozen=True):
    """Whether every ratio became as narrow as asked (half-width, as a fraction), within at most cap_blocks blocks."""

    target_width: float
    reached: bool = False
    cap_blocks: int | None = None
    blocks: int = 0


class PaperValue(Part, frozen=True):
    """A number that a paper prints."""

    what: str = ""
    value: Level | bool | None = None


class Compared(Interval, frozen=True):
    """A comparison that decides a claim."""

    what: str = ""
    unit: str = ""


class Claim(Part, frozen=True):
    """A sentence of a paper and what became of it. machine: fingerprints of those that measured it"""

    id: str
    section: str = ""
    figure: str = ""
    sentence: str = ""
    predicate: str = ""
    verdict: str = "undecided"
    reason: str = ""
    note: str = ""
    needs: list[str] = []
    paper: list[PaperValue] = []
    ours: list[Compared] = []
    machine: str = ""
    by_preset: bool = False
    self_contradicting: bool = False


class Value(Interval, frozen=True):
    """A measured value in a table. unit: "%" where it is a share"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"unit"})

    unit: str | None = None


Entry = Value | Level | bool | None


class PaperTable(Part, frozen=True):
    """A table of a paper, or ours beside it; the first columns name the rows."""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"note"})

    columns: list[str] = []
    rows: list[list[Entry]] = []
    note: str | None = None


class PaperFigure(Part, frozen=True):
    """A figure or table of a paper beside ours. kind: line, bar, table"""

    id: str
    title: str = ""
    kind: str = ""
    paper: PaperTable = PaperTable()
    ours: PaperTable = PaperTable()
    groups: list[str] = []


class Block(Part, frozen=True):
    """A live block. bytes: usable; record: index of its ownership record"""

    thread: int = 0
    address: int = 0
    bytes: int = 0
    record: int = 0


class Placement(Part, frozen=True):
    """Live blocks of one run. shift: bits of an address that records ignore"""

    allocator: str = ""
    kind: str = ""
    title: str = ""
    figure: str = ""
    threads: int = 1
    bytes_per_line: int = 64
    shift: int = 0
    blocks: list[Block] = []


class FailedCell(Part, frozen=True):
    """The cell of a failure, as the journal has it."""

    group: str = ""
    workload: str = ""
    sync: str = ""
    allocator: str = ""
    threads: int = 0
    parameters: Parameters = {}
    warmup_ms: int = 0
    machine: str = "host"


class Failure(Part, frozen=True):
    """A kind of failure of a cell. count: of runs; detail: what the first one said"""

    cell: FailedCell
    state: str = ""
    detail: str = ""
    count: int = 1


class MachineRatio(Interval, frozen=True):
    """An allocator against the baseline on one machine."""

    allocator: str = ""
    machine: str = ""
    n: int = 0
    q: float | None = None
    verdict: str = ""


class Ranking(Part, frozen=True):
    """Allocators from best to worst; apart: whether each is told apart from the next."""

    order: list[str] = []
    apart: list[bool] = []


class Differing(Interval, frozen=True):
    """A rival's ratio on the second of two machines over that on the first. shown: beyond chance"""

    allocator: str = ""
    between: list[str] = []
    p: float | None = None
    shown: bool = False


class MachinesCase(Part, frozen=True):
    """One case on several machines. absent: allocators that some machine lacks; blocks, ranking: by machine"""

    group: str = ""
    workload: str = ""
    sync: str = ""
    threads: int = 1
    parameters: Parameters = {}
    metric: str = ""
    label: str = ""
    baseline: str = ""
    allocators: list[str] = []
    absent: dict[str, str] = {}
    blocks: dict[str, int] = {}
    ratios: list[MachineRatio] = []
    ranking: dict[str, Ranking] = {}
    interaction: str = ""
    p_holm: float | None = None
    differing: list[Differing] = []


class Reversal(Part, frozen=True):
    """Two allocators that change places from one machine to another."""

    case: str
    better: str
    than: str
    on: str
    ratio: Interval
    but_worse_on: str
    ratio_there: Interval
    p_holm: float | None = None


class AcrossMachines(Part, frozen=True):
    """Whether the ranking holds across machines. pairs: of allocators, by how they are told apart"""

    machines: list[str] = []
    holds: str = ""
    text: str = ""
    cases: list[MachinesCase] = []
    pairs: dict[str, int] = {}
    reversals: list[Reversal] = []
    multiplicity: dict[str, Family] = {}


class BaselineApart(Interval, frozen=True):
    """The baseline on the second of two machines over that on the first; within: the whole interval is near 1."""

    case: str = ""
    between: list[str] = []
    within: bool = False


class Pooled(Interval, frozen=True):
    """An allocator against the baseline over the blocks of identical machines."""

    case: str = ""
    allocator: str = ""
    baseline: str = ""
    n: int = 0
    q: float | None = None
    verdict: str = ""


class Identical(Part, frozen=True):
    """Machines that were declared identical: their A/A comparison, and their blocks together where it passes."""

    machines: list[str] = []
    passed: bool = False
    reasons: list[str] = []
    baseline: list[BaselineApart] = []
    pooled: list[Pooled] = []


class Allocator(Part, frozen=True):
    """An allocator as it was found. proof: proven, unproven, wrong, not measured"""

    name: str
    version: str | None = None
    path: str | None = None
    soname: str | None = None
    build_id: str | None = None
    sha256: str | None = None
    package: str | None = None
    settings: Facts = {}
    proof: str = ""
    reasons: list[str] = []


class Build(Part, frozen=True):
    """What the workloads were compiled by and from."""

    compiler: str = ""
    preset: str = ""
    flags: str = ""
    revision: str = ""


class Sync(Part, frozen=True):
    """An executable. kind: transactional, none, ..."""

    name: str
    machine: str = "host"
    path: str = ""
    build_id: str = ""
    summary: str = ""
    kind: str = ""


class Cause(Part, frozen=True):
    """A cause of aborts: what reports call it, and what it means."""

    name: str
    words: str = ""
    meaning: str = ""


class Group(Part, frozen=True):
    """A group of the study. role: main, counted, sequential"""

    name: str
    title: str = ""
    role: str = "main"
    workload: str = ""


class Figure(Part, frozen=True):
    """A picture that the study asks for."""

    kind: str = ""
    groups: list[str] = []
    title: str = ""


class Choice(Part, frozen=True):
    """Which allocator to take for one purpose."""

    purpose: str = msgspec.field(name="for")
    allocator: str = ""
    text: str = ""


class Recommendation(Part, frozen=True):
    """What `bench` advises. by: the metric that decided; of: the command, of several; lines: to paste, by place"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"of", "each", "choices", "lines"})

    allocator: str = ""
    text: str = ""
    command: str = ""
    by: str = "wall_s"
    of: str | None = None
    each: list[Recommendation] | None = None
    choices: list[Choice] | None = None
    lines: dict[str, str] | None = None


class Ends(Part, frozen=True):
    """An interval that may be missing."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class Candidate(Ends, frozen=True):
    """A setting in a round of a search. kept: it competes in the next"""

    allocator: str = ""
    kept: bool = False


class Round(Part, frozen=True):
    """A round of a search."""

    round: int = 0
    blocks: int = 0
    candidates: list[Candidate] = []


class Finalist(Part, frozen=True):
    """A setting in the final: against the best allocator as it is, and against the baseline."""

    allocator: str = ""
    to_best: Ends = Ends()
    to_baseline: Ends = Ends()
    p_holm: float | None = None


class Winner(Part, frozen=True):
    """How to use an allocator with settings without loam."""

    allocator: str = ""
    name: str = ""
    settings: dict[str, str] = {}
    environment: dict[str, str] = {}
    command: str = ""


class Search(Ends, frozen=True):
    """What a search of settings found; the interval is the winner's against the baseline."""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"check"})

    rounds: list[Round] = []
    best: str = ""
    baseline: str = ""
    final: list[Finalist] = []
    settings_tried: int = 0
    winner: Winner | None = None
    text: str = ""
    check: str | None = None


class Flame(Part, frozen=True):
    """Call stacks of one run. tree: [name, value, [children]], missing where there is a problem; unit: of its values"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"tree"})

    allocator: str = ""
    command: str = ""
    kind: str = ""
    unit: str = ""
    problem: str = ""
    tree: list[Any] | None = None


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
