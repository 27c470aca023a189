"""What several cells of a result give together: contrasts, headlines, means, screenings, machines."""

from __future__ import annotations

from typing import ClassVar

from loam_lab.model.result.parts import Better, Ends, Family, Interval, Level, Parameters, Part


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


class ChangedLevel(Ends, frozen=True, kw_only=True):
    """One setting of a screening against the base; numbers are None where it was not measured."""

    value: str
    verdict: str = ""
    rough: bool = False
    p_holm: float | None = None
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
