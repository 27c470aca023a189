"""Claims of a study: a sentence of a paper, what it needs, and predicates over measured values.  Data only.

A claim holds if all its predicates hold.  A predicate compares values of cells, which a Selection names; what it may
name is checked when the study is read (groups, levels) and when the executables are known (metrics).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from loam_lab.model import collector
from loam_lab.model.spelling import ClaimId, Unprinted

Level = Annotated[int | str, Field(union_mode="left_to_right")]
Plain = bool | int | float | str
Kind = Literal["ratio_above", "ratio_below", "order", "band", "trend", "steadier"]
Source = Literal["timing", "cachegrind", "counters", "tlb", "profile", "simulator"]
# What the simulated cores count in timed runs: no runs of its own, and one value of each block.
SIMULATOR = "simulator"
# What is counted there is a fact of the program, not a sample: one value decides.
EXACT: tuple[Source, ...] = ("profile",)

BLOCKS = "blocks"
Amount = Annotated[float, Field(ge=0)]

# Verdicts that no measurement changes: the paper's own numbers are against it; the model that ran lacks what it is about.
SELF_CONTRADICTING = "self-contradicting"
CANNOT_BE_DECIDED = "cannot be decided"


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class _Given(BaseModel):
    """A table in which it matters what was left out: written back, it holds what was given and no defaults."""

    @model_serializer(mode="wrap")
    def _given(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in written(self).items() if name in self.model_fields_set}


class Selection(_Given):
    """Cells of one group, one per allocator, and the metric that is read of them.

    group: of the study; allocator: one or several, each of which is asked; threads, sync, machine, parameters: levels that
    choose among those of the group, and so does collector, which is kept among the parameters; metric: "" for the
    workload's first
    source: which runs are read; over: what the observations are, the blocks or the levels of a parameter of the group
    In the `to` of a predicate whatever is left out is as in its `of`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    group: str = ""
    allocator: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = ()
    sync: str = ""
    machine: str = ""
    threads: Annotated[int, Field(ge=1)] | None = None
    parameters: dict[str, Level] = {}
    metric: str = ""
    source: Source = "timing"
    over: str = BLOCKS

    @model_validator(mode="before")
    @classmethod
    def _collector_among_parameters(cls, table: Any) -> Any:
        return collector.among_parameters(table)

    def based_on(self, other: Selection) -> Selection:
        """This selection with everything that it leaves out taken from another."""
        given = {name: getattr(self, name) for name in self.model_fields_set if name != "parameters"}
        return other.model_copy(update={**given, "parameters": {**other.parameters, **self.parameters}})

    def words(self) -> str:
        """Allocators, synchronisation and levels in a few words."""
        levels = [self.sync] if self.sync else []
        levels += [f"{name}={level}" for name, level in self.parameters.items()]
        levels += [f"{self.threads}T"] if self.threads is not None else []
        levels += [f"on {self.machine}"] if self.machine else []
        return " ".join([*([", ".join(self.allocator)] if self.allocator else []), *levels])

    def at(self, factor: str, level: Level) -> Selection:
        """This selection with one level of a factor: "threads", or a parameter."""
        if factor == "threads":
            return self.model_copy(update={"threads": int(level)})
        return self.model_copy(update={"parameters": {**self.parameters, factor: level}})


class Printed(Selection):
    """A number that the paper prints, as a value of the cells that it is about: the claim's own predicates have to hold for it.

    The keys of a Selection name the cells; one that is left out fits every level, but `metric` is the workload's first then.
    where: page, table or sentence; value: the number, or the ends of a range; where the paper prints a ratio alone, one side
    of it is 1; inverse: the number is the reciprocal of our metric (a time where ours is a rate)
    """

    where: str = Field(min_length=1)
    value: Amount | tuple[Amount, Amount]
    inverse: bool = False

    @model_validator(mode="after")
    def _reciprocal(self) -> Self:
        if self.inverse and 0 in (self.value if isinstance(self.value, tuple) else (self.value,)):
            raise ValueError("0 has no reciprocal: leave inverse out")
        return self

    @property
    def ends(self) -> tuple[float, ...]:
        """The number in the unit of our metric, or both ends of its range."""
        given = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple(1 / one for one in given) if self.inverse else given

    def about(self, selection: Selection, allocator: str) -> bool:
        """Whether this is a value of the cells that a selection names for an allocator."""
        named = self.model_fields_set & {"group", "sync", "machine", "threads"}
        return (
            (not self.allocator or allocator in self.allocator)
            and self.metric == selection.metric
            and all(getattr(self, name) == getattr(selection, name) for name in named)
            and all(str(selection.parameters.get(name)) == str(level) for name, level in self.parameters.items())
        )


class Predicate(_Given):
    """One condition on measured values; the interval decides, never the estimate.

    ratio_above, ratio_below: `of` / `to`, paired by block, is above (below) `limit`; with `than`, that ratio over the
    same ratio elsewhere: `than` says what is different there; with `some`, one of several comparisons is enough
    band: the value of `of`, or the ratio `of` / `to`, lies in [low, high]
    order: allocators in `tiers`, the highest value first: each above each of the next tier
    trend: along the levels of a factor the value of `of`, or the ratio `of` / `to`, at each step `rises` (or `falls`) by
    more than `limit`, or all are `flat`: within 1 +- margin of the first
    steadier: along the levels of a factor the highest value over the lowest is less for `of` than for each of `to`
    printed: "none: why" where the paper prints no number for this predicate, but does for others of its claim
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    of: Selection
    to: Selection | None = None
    than: Selection | None = None
    some: bool = False
    limit: float = Field(default=1.0, gt=0)
    low: float | None = None
    high: float | None = None
    tiers: tuple[tuple[str, ...], ...] = ()
    along: str = ""
    levels: tuple[Level, ...] = ()
    direction: Literal["rises", "falls", "flat"] | None = None
    margin: float = Field(default=0.1, gt=0, lt=1)
    printed: Unprinted = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        needed = {
            "ratio_above": {"of", "to"}, "ratio_below": {"of", "to"}, "band": {"of", "low", "high"},
            "order": {"of", "tiers"}, "trend": {"of", "along", "levels", "direction"},
            "steadier": {"of", "to", "along", "levels"},
        }[self.kind]  # fmt: skip
        allowed = needed | {"kind", "printed"} | {
            "ratio_above": {"limit", "than", "some"}, "ratio_below": {"limit", "than", "some"}, "band": {"to"},
            "order": set[str](), "trend": {"to", "limit", "margin"}, "steadier": set[str](),
        }[self.kind]  # fmt: skip
        for name in sorted(needed - self.model_fields_set):
            raise ValueError(f"{self.kind} needs {name}")
        for name in sorted(self.model_fields_set - allowed):
            raise ValueError(f"{self.kind} has no {name}")
        if not self.of.group:
            raise ValueError("of.group is missing: name a group of the study")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        if self.kind == "order":
            if len(self.tiers) < 2 or not all(self.tiers):
                raise ValueError("order needs at least two tiers of allocators")
        elif not self.of.allocator:
            raise ValueError("of.allocator is missing: name one or several")
        if "levels" in needed and len(set(self.levels)) < max(2, len(self.levels)):
            raise ValueError(f"{self.kind} needs at least two levels, each once")
        return self

    def below(self) -> Selection | None:
        """The selection that `of` is divided by, with what it inherits."""
        return None if self.to is None else self.to.based_on(self.of)

    def elsewhere(self) -> tuple[Selection, Selection] | None:
        """The two selections whose ratio the one of `of` and `to` is compared with."""
        other = self.below()
        if self.than is None or other is None:
            return None
        return self.than.based_on(self.of), self.than.based_on(other)

    def selections(self) -> list[Selection]:
        """Every selection that is read, with its levels filled in."""
        if self.kind == "order":
            return [self.of.model_copy(update={"allocator": tier}) for tier in self.tiers]
        other = self.below()
        read = [self.of, *([] if other is None else [other]), *(self.elsewhere() or ())]
        return [one.at(self.along, level) for one in read for level in self.levels] if self.along else read

    def words(self) -> str:
        """The predicate in one line."""
        of = f"{self.of.metric or 'first metric'} of {self.of.words()}"
        if self.kind == "order":
            return f"order: {of} {' > '.join(' '.join(tier) for tier in self.tiers)}"
        other = self.below()
        if other is not None:
            changed = {name: level for name, level in other.parameters.items() if self.of.parameters.get(name) != level}
            shown = Selection(
                allocator=other.allocator if other.allocator != self.of.allocator else (),
                sync=other.sync if other.sync != self.of.sync else "",
                machine=other.machine if other.machine != self.of.machine else "",
                threads=other.threads if other.threads != self.of.threads else None,
                parameters=changed,
            )
            if self.kind == "steadier":
                return f"steadier: {of} along {self.along} {' '.join(map(str, self.levels))} than {shown.words()}"
            metric = (other.metric or "first metric") if other.metric != self.of.metric else ""
            of += f" / {' of '.join(part for part in (metric, shown.words()) if part)}"
        if self.kind == "trend":
            return f"trend: {of} {self.direction} along {self.along} {' '.join(map(str, self.levels))}"
        if self.than is not None:
            of += f", over the same of {self.than.words()},"
        if self.kind == "band":
            return f"band: {of} in [{self.low:g}, {self.high:g}]"
        of += " of at least one" if self.some else ""
        return f"{self.kind}: {of} {'>' if self.kind == 'ratio_above' else '<'} {self.limit:g}"


class Needs(BaseModel):
    """What it takes to decide a claim; what is missing makes it undecided, with the need named.

    cores: hardware threads; rtm: hardware transactions; counters: hardware counters that count
    allocators: names that must have been measured; workloads, syncs: names that executables must have
    machine: the name of the machine, where only one will do
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cores: Annotated[int, Field(ge=1)] = 1
    rtm: bool = False
    counters: bool = False
    allocators: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    syncs: tuple[str, ...] = ()
    machine: str = ""

    def words(self) -> list[str]:
        """Every need in a few words."""
        needs = [f"{self.cores} cores"] if self.cores > 1 else []
        needs += ["hardware transactions (RTM)"] if self.rtm else []
        needs += ["hardware counters"] if self.counters else []
        needs += [f"allocator {name}" for name in self.allocators]
        needs += [f"workload {name}" for name in self.workloads]
        needs += [f"synchronisation {name}" for name in self.syncs]
        return needs + ([f"machine {self.machine}"] if self.machine else [])


class PaperValue(BaseModel):
    """One value that the paper prints."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    value: str


class Instead(BaseModel):
    """Another value of what is assumed, and the cells that have it.

    value: in words; machine, parameters: of these cells; groups: by a group's name the one that is read in its place, with
    none of the levels that the claim names for the first
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: str = Field(min_length=1)
    machine: str = ""
    parameters: dict[str, Level] = {}
    groups: dict[str, str] = {}

    @model_validator(mode="after")
    def _elsewhere(self) -> Self:
        if not self.machine and not self.parameters and not self.groups:
            raise ValueError("instead names no other cells: give a machine, parameters or groups")
        return self


class Assumption(BaseModel):
    """What the paper does not say and a verdict rests on: the value that was taken, and what others give.

    parameter, value: in words; instead: other values, at which the claim is decided as well
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameter: str = Field(min_length=1)
    value: str = Field(min_length=1)
    instead: tuple[Instead, ...] = ()


class Claim(BaseModel):
    """A sentence of a paper that this study decides.

    id: unique, "000-08"; section, figure: where the paper says it; sentence: in our words
    predicates: all must hold; none only where `needs` names a workload or synchronisation that does not exist yet
    note: what differs from the paper's set-up, or why today's programs behave otherwise; shown beside the verdict
    printed: the paper's own numbers, which the predicates are tested with; or "none: what it has instead"; "" where nobody
    has looked
    all_but: how many predicates need not hold, where the paper says "almost all" or "tends to"
    self_contradicting: why the paper's own numbers say otherwise; the verdict is that, whatever is measured
    model_lacks: what the claim is about and no simulated machine has: there the claim cannot be decided
    follows_from: claims that say it already, if they all hold; it is shown, and not counted a second time
    assumes: what the verdict rests on that the paper does not say
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: ClaimId
    section: str
    figure: str = ""
    sentence: str = Field(min_length=1)
    paper: tuple[PaperValue, ...] = ()
    needs: Needs = Needs()
    predicates: tuple[Predicate, ...] = ()
    note: str = ""
    printed: tuple[Printed, ...] | Unprinted = ""
    all_but: Annotated[int, Field(ge=0)] = 0
    self_contradicting: str = ""
    model_lacks: str = ""
    follows_from: tuple[ClaimId, ...] = ()
    assumes: tuple[Assumption, ...] = ()

    @model_validator(mode="after")
    def _decidable(self) -> Self:
        if not self.predicates and not (self.needs.workloads or self.needs.syncs):
            raise ValueError(f"claim {self.id} has no predicate, so nothing can decide it")
        if self.all_but and self.all_but >= len(self.predicates):
            raise ValueError(
                f"claim {self.id} holds though all but {self.all_but} of {len(self.predicates)} predicates fail"
            )
        return self

    def at(self, instead: Instead) -> Claim:
        """The same claim of the cells that have another value of what it assumes."""

        def moved(of: Selection) -> Selection:
            machine = {"machine": instead.machine} if instead.machine else {}
            if of.group in instead.groups:
                return of.model_copy(
                    update={**machine, "group": instead.groups[of.group], "parameters": instead.parameters}
                )
            return of.model_copy(update={**machine, "parameters": {**of.parameters, **instead.parameters}})

        changed = tuple(one.model_copy(update={"of": moved(one.of)}) for one in self.predicates)
        return self.model_copy(update={"predicates": changed})

    @property
    def groups(self) -> list[str]:
        """The groups of the study that its predicates read, by name."""
        return sorted({selection.group for predicate in self.predicates for selection in predicate.selections()})

    def words(self) -> str:
        """All predicates in one line."""
        lead = f"all but {self.all_but} of: " if self.all_but else ""
        return lead + "; ".join(predicate.words() for predicate in self.predicates) or "none yet"


class PaperTable(BaseModel):
    """Columns and rows of plain values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[str, ...] = Field(min_length=1)
    rows: tuple[tuple[Plain, ...], ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _rectangular(self) -> Self:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row has {len(row)} values for {len(self.columns)} columns")
        return self


class Ours(BaseModel):
    """How our counterpart of a paper's figure is made of a group's cells.

    grid: a row per level of `rows` (allocator, threads or a parameter), a column per metric and, unless the rows are
    the allocators, per allocator
    extremes: a row per level of `rows`: the best and the worst allocator, and how many times better the best is
    reach: a row per allocator: the last level of `rows` up to which the first metric keeps `share` of its first value
    neighbours, records: the blocks of one run of each allocator, as the workload `blocks` gives their addresses
    select: levels that stay fixed; metrics: names, the first metric of the workload where none is given
    label: what tells these rows from those of the other tables of the figure; "" for none
    relative: whether a grid with a row per allocator shows values over the baseline's, paired by block
    percent: whether a grid shows shares as per cent, as the paper does
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["grid", "extremes", "reach", "neighbours", "records"] = "grid"
    select: Selection
    rows: str = "allocator"
    metrics: tuple[str, ...] = ()
    share: float = Field(default=0.5, gt=0, lt=1)
    label: str = ""
    relative: bool = False
    percent: bool = False

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        if self.percent and self.kind != "grid":
            raise ValueError("percent is for a grid")
        if self.relative and (self.kind != "grid" or self.rows != "allocator"):
            raise ValueError("relative is for a grid with a row per allocator")
        return self

    @property
    def drawn(self) -> bool:
        """Whether this is a picture of addresses, not a table."""
        return self.kind in ("neighbours", "records")


class PaperFigure(BaseModel):
    """A figure or table of the paper, shown beside ours.

    groups: of the study, from which ours is made; paper: its values, as far as it prints them
    ours: tables of the same columns are put one below the other, others beside each other by their first column;
    a placement is drawn from live addresses (see placements in the result)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    title: str
    kind: Literal["line", "bar", "table", "placement"]
    groups: tuple[str, ...] = ()
    paper: PaperTable
    ours: tuple[Ours, ...] = ()
