"""A cell of a result: its metrics, its ratio to the baseline, and what was counted beside time."""

from __future__ import annotations

from typing import ClassVar

from loam_lab.model.result.parts import Better, Facts, Interval, Parameters, Part


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
    blame: dict[str, float] | None = None
    aborts_per_commit: Histogram | None = None
    counters: list[Counts] = []
    moves: Moves | None = None
    memory: Memory | None = None
    warnings: list[str] = []
    processor_ratio: ProcessorRatio | None = None

    @property
    def allocator(self) -> str:
        """Its level of the factor that most tables compare."""
        return self.factors.allocator

    @property
    def name(self) -> str:
        """The allocator, told apart where it is the second copy of the baseline."""
        return f"{self.allocator}, again" if self.copy else self.allocator

    def values(self, metric: str) -> list[float]:
        """Single values of a metric, one per block; none where the cell has not that metric."""
        return self.metrics[metric].values if metric in self.metrics else []
