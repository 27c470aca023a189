"""A study: a question, its groups of cells, blocks and figures.  One TOML file, data only.

A group is a family of cells that are compared with one another.  In its `parameters` a scalar is fixed and a list
varies.  Levels of allocator, synchronisation, threads and parameters of the synchronisation share a block, because
figures compare them; levels of a workload's own parameter (another structure, another size) get blocks of their own.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from loam_lab.model import cache, collector
from loam_lab.model.cell import SPECIAL, Purpose
from loam_lab.model.claim import Claim, PaperFigure
from loam_lab.model.spelling import Name

SCHEMA = 2
# A longer one would not fit where tables and figures have names.
LABEL_MAX = 24

# What to change in a file of an older schema.
_CHANGES = {
    1: ": write schema = 2; workloads that only allocate now run on the synchronisation none, so leave out their `sync`, "
    "or name none; a group may name its `machines`"
}

Level = Annotated[int | str, Field(union_mode="left_to_right")]


class Quick(BaseModel):
    """What `--effort quick` changes in a group: fewer blocks, fewer threads, other levels of single parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: Annotated[int, Field(ge=1)] | None = None
    threads: tuple[Annotated[int, Field(ge=1)], ...] | None = None
    warmup_ms: Annotated[int, Field(ge=0)] | None = None
    parameters: dict[str, Level | tuple[Level, ...]] = {}

    @model_validator(mode="before")
    @classmethod
    def _collector_among_parameters(cls, table: Any) -> Any:
        return collector.among_parameters(table)


class Group(BaseModel):
    """Cells that belong together: one workload, and the levels of each factor.

    machines: names of loam list machines; cells of two machines are never compared
    blocks, warmup_ms: of the study where not given; title: how the report calls the group
    blame, memory, counters, callgrind, cachegrind, tlb, profile: whether each cell gets a run of that purpose beside its
    timing runs; of the study where not given
    sync: synchronisations, by name or path; where not given, the lab's default for the workload
    collector: garbage collectors, of synchronisations on a virtual machine; kept among the parameters
    d1: the first-level data cache that cachegrind models, as bytes,ways,line; None for this machine's
    quick: what `--effort quick` changes; without it, only the number of blocks
    oversubscribe: its thread counts beyond those of the machine are run too, marked, and decide no claim
    role: "sequential" marks the group whose allocator ratios are the layout effect without synchronisation, "counted"
    one of which places or counts are read and no speed, or which only claims read, so that no allocator is called best in it
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    title: str = ""
    role: Literal["main", "sequential", "counted"] = "main"
    workload: str
    sync: tuple[str, ...] = ()
    allocators: tuple[str, ...] | None = None
    threads: tuple[Annotated[int, Field(ge=1)], ...] = (1,)
    oversubscribe: bool = False
    machines: tuple[str, ...] = ("host",)
    parameters: dict[str, Level | tuple[Level, ...]] = {}
    blocks: Annotated[int, Field(ge=1)] | None = None
    warmup_ms: Annotated[int, Field(ge=0)] | None = None
    blame: bool | None = None
    memory: bool | None = None
    counters: bool | None = None
    callgrind: bool | None = None
    cachegrind: bool | None = None
    tlb: bool | None = None
    profile: bool | None = None
    d1: str | None = None
    quick: Quick | None = None

    @model_validator(mode="before")
    @classmethod
    def _collector_among_parameters(cls, table: Any) -> Any:
        return collector.among_parameters(table)

    @field_validator("d1")
    @classmethod
    def _is_a_cache(cls, value: str | None) -> str | None:
        if value is not None and (wrong := cache.problem(value)):
            raise ValueError(f"{value!r}: {wrong}, as in {cache.EXAMPLE}")
        return value

    @field_validator("threads", "machines")
    @classmethod
    def _not_empty(cls, value: tuple[object, ...]) -> tuple[object, ...]:
        if not value:
            raise ValueError("needs at least one level")
        return value

    def levels(self) -> dict[str, list[str]]:
        """Levels of every parameter as texts; one level means fixed."""
        return {
            name: [str(v) for v in (value if isinstance(value, tuple) else (value,))]
            for name, value in self.parameters.items()
        }


class Figure(BaseModel):
    """A picture that the report shows of some groups."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["throughput", "aborts", "contrast", "ratios"]
    groups: tuple[str, ...]
    title: str = ""


class Study(BaseModel):
    """A whole study file.

    margin: half-width of "equivalent" as a fraction; width_max: beside an interval wider than that (high / low - 1)
    stands "roughly"; timeout_s: of one run, None for the lab's default
    budget_s: no block beyond the sixth is begun that would end later than this; None for no limit
    quick_budget_s: the same under `--effort quick`
    target_width: half-width of the ratios to reach, as a fraction: `blocks` is then the least number of blocks and
    max_blocks the largest; None to run exactly `blocks`
    claims: what a paper says and how it is decided; paper_figures: its figures and tables, shown beside ours
    labels: what readers see instead of the name of an allocator
    lookalikes: by the name of an absent allocator, the measured one that is built like it
    versions: by the name of an allocator, the paper's own version of it: where that was built, real machines run it instead
    screening: the allocators are the baseline with one setting changed each, and the result ranks what the changes do
    identical: sets of machines that are declared to be of one kind: their A/A comparison is made, and their blocks are pooled
    beside each machine's own figures if it passes
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    version: int = Field(alias="schema")
    name: Name
    title: str
    question: str
    aliases: tuple[str, ...] = ()
    baseline: str = "glibc"
    allocators: tuple[str, ...] = ()
    blocks: int = Field(default=20, ge=1)
    seed: int = Field(default=1, ge=0)
    warmup_ms: int = Field(default=50, ge=0)
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    budget_s: Annotated[float, Field(gt=0)] | None = None
    quick_budget_s: Annotated[float, Field(gt=0)] | None = None
    target_width: Annotated[float, Field(gt=0, lt=1)] | None = None
    max_blocks: int = Field(default=60, ge=1)
    blame: bool = False
    memory: bool = False
    memory_runs: int = Field(default=1, ge=1)
    counters: bool = False
    callgrind: bool = False
    cachegrind: bool = False
    tlb: bool = False
    profile: bool = False
    margin: float = Field(default=0.02, gt=0, lt=0.5)
    width_max: float = Field(default=0.05, gt=0)
    groups: tuple[Group, ...] = Field(min_length=1)
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    paper_figures: tuple[PaperFigure, ...] = ()
    labels: dict[str, Annotated[str, Field(min_length=1, max_length=LABEL_MAX)]] = {}
    lookalikes: dict[str, str] = {}
    versions: dict[str, str] = {}
    screening: bool = False
    identical: tuple[tuple[str, ...], ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        names = [group.name for group in self.groups]
        if len(set(names)) != len(names):
            raise ValueError("two groups have the same name")
        if self.version != SCHEMA:
            raise ValueError(
                f"the file has schema {self.version}, this lab reads {SCHEMA}{_CHANGES.get(self.version, '')}"
            )
        return self

    def blocks_of(self, group: Group) -> int:
        """Blocks of a group."""
        return group.blocks if group.blocks is not None else self.blocks

    def cap_of(self, group: Group) -> int:
        """The most blocks that a group may get."""
        blocks = self.blocks_of(group)
        return blocks if self.target_width is None else max(blocks, self.max_blocks)

    def warmup_of(self, group: Group) -> int:
        """Warm-up of a group in milliseconds."""
        return group.warmup_ms if group.warmup_ms is not None else self.warmup_ms

    def blame_of(self, group: Group) -> bool:
        """Whether a group's cells get one blame run each."""
        return "blame" in self.purposes_of(group)

    def purposes_of(self, group: Group) -> tuple[Purpose, ...]:
        """For which purposes, other than timing, a group's cells get a run each."""
        own = {purpose: getattr(group, purpose) for purpose in SPECIAL}
        return tuple(
            purpose for purpose in SPECIAL if (getattr(self, purpose) if own[purpose] is None else own[purpose])
        )

    def quick(self, blocks: int) -> Study:
        """The study with what its groups change for a first look, and at most `blocks` blocks where they say nothing."""
        groups = []
        for group in self.groups:
            quick = group.quick or Quick()
            changed: dict[str, object] = {"blocks": quick.blocks or min(self.blocks_of(group), blocks)}
            changed["parameters"] = {**group.parameters, **quick.parameters}
            for name in ("threads", "warmup_ms"):
                if getattr(quick, name) is not None:
                    changed[name] = getattr(quick, name)
            groups.append(group.model_copy(update=changed))
        return self.model_copy(
            update={
                "groups": tuple(groups),
                "blocks": min(self.blocks, blocks),
                "target_width": None,
                "budget_s": self.quick_budget_s or self.budget_s,
            }
        )

    def allocators_of(self, group: Group) -> tuple[str, ...]:
        """Allocators of a group, the baseline first where it is among them."""
        chosen = group.allocators if group.allocators is not None else self.allocators
        return tuple(sorted(dict.fromkeys(chosen), key=lambda name: name != self.baseline))
