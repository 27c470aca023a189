"""A study: a question, its groups of cells, blocks and figures.  One TOML file, data only.

A group is a family of cells that are compared with one another.  In its `parameters` a scalar is fixed and a list
varies.  Levels of allocator, synchronisation, threads and parameters of the synchronisation share a block, because
figures compare them; levels of a workload's own parameter (another structure, another size) get blocks of their own.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from loam_lab import paths
from loam_lab.errors import LoamError, unknown
from loam_lab.model.cell import SPECIAL, Purpose

SCHEMA = 1

Level = Annotated[int | str, Field(union_mode="left_to_right")]


class Group(BaseModel):
    """Cells that belong together: one workload, and the levels of each factor.

    blocks, warmup_ms: of the study where not given; title: how the report calls the group
    blame, memory, counters, callgrind, cachegrind: whether each cell gets a run of that purpose beside its timing
    runs; of the study where not given
    role: "sequential" marks the group whose allocator ratios are the layout effect without synchronisation
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str = ""
    role: Literal["main", "sequential"] = "main"
    workload: str
    sync: tuple[str, ...] = ("etl-wb",)
    allocators: tuple[str, ...] | None = None
    threads: tuple[Annotated[int, Field(ge=1)], ...] = (1,)
    parameters: dict[str, Level | tuple[Level, ...]] = {}
    blocks: Annotated[int, Field(ge=1)] | None = None
    warmup_ms: Annotated[int, Field(ge=0)] | None = None
    blame: bool | None = None
    memory: bool | None = None
    counters: bool | None = None
    callgrind: bool | None = None
    cachegrind: bool | None = None

    @field_validator("sync", "threads")
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

    margin: half-width of "equivalent" as a fraction; width_max: an interval wider than that (high / low - 1) decides
    nothing; timeout_s: of one run, None for the lab's default
    budget_s: no block beyond the sixth is begun that would end later than this; None for no limit
    claims: their predicates are not evaluated by this version, so the list must be empty
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    version: int = Field(alias="schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
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
    blame: bool = False
    memory: bool = False
    counters: bool = False
    callgrind: bool = False
    cachegrind: bool = False
    margin: float = Field(default=0.02, gt=0, lt=0.5)
    width_max: float = Field(default=0.05, gt=0)
    groups: tuple[Group, ...] = Field(min_length=1)
    figures: tuple[Figure, ...] = ()
    claims: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        names = [group.name for group in self.groups]
        if len(set(names)) != len(names):
            raise ValueError("two groups have the same name")
        for figure in self.figures:
            for name in figure.groups:
                if name not in names:
                    raise ValueError(f"a figure names group {name!r}, which the study does not have")
        if self.claims:
            raise ValueError("claims cannot be evaluated by this version; leave the list empty")
        if self.version != SCHEMA:
            raise ValueError(f"the file has schema {self.version}, this lab reads {SCHEMA}")
        return self

    def blocks_of(self, group: Group) -> int:
        """Blocks of a group."""
        return group.blocks if group.blocks is not None else self.blocks

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

    def allocators_of(self, group: Group) -> tuple[str, ...]:
        """Allocators of a group, the baseline first where it is among them."""
        chosen = group.allocators if group.allocators is not None else self.allocators
        return tuple(sorted(dict.fromkeys(chosen), key=lambda name: name != self.baseline))


def load(file: Path) -> Study:
    """A study from its file.

    raises: LoamError naming file, place and reason
    """
    try:
        content = tomllib.loads(file.read_text())
    except OSError as problem:
        raise LoamError("study", file, f"cannot be read: {problem.strerror}", "see loam study list") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise LoamError("study", file, f"is not TOML: {problem}") from None
    try:
        return Study.model_validate(content)
    except ValidationError as problem:
        raise LoamError("study", file, _where(problem), "see studies/tour.toml for an example") from None


def _where(problem: ValidationError) -> str:
    first = problem.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    message = re.sub(r"^Value error, ", "", first["msg"])
    return f"{place}: {message}" if place else message


def registry() -> dict[str, Path]:
    """Studies of the checkout by name."""
    folder = paths.root() / "studies"
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def find(name: str) -> tuple[Study, Path]:
    """The study of that name or alias, or of that file.

    raises: LoamError with the nearest name if there is none
    """
    known = registry()
    if name in known:
        return load(known[name]), known[name]
    if "/" in name or name.endswith(".toml"):
        return load(Path(name)), Path(name)
    aliases: dict[str, Path] = {}
    for file in known.values():
        for alias in load(file).aliases:
            aliases[alias] = file
    if name in aliases:
        return load(aliases[name]), aliases[name]
    raise unknown("study", name, [*known, *aliases], "study")
