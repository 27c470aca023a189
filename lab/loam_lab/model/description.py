"""What an executable says about itself with --describe: synchronisation, workloads, parameters, metrics.

The same form is spoken by the executables of this tree and by peers built elsewhere, so nothing here trusts it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Value = bool | int | float | str
# How shared data is protected; none: threads share nothing, or there is only one.
Kind = Literal["transactional", "lock", "delegation", "structure", "managed", "none"]


class Parameter(BaseModel):
    """One `-p name=value`: an integer in [min, max], one of `choices`, or the path of a file that the workload reads.

    labels: what reports call each of the choices, in their order; none where the choices say it themselves
    label: what reports say in place of "name = value", as words.parameter() fills it in
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1)
    type: Literal["integer", "choice", "file"]
    min: int | None = None
    max: int | None = None
    choices: tuple[str, ...] = ()
    default: int | str
    unit: str = ""
    help: str = ""
    labels: tuple[str, ...] = ()
    label: str = ""

    @property
    def wording(self) -> dict[str, str]:
        """What words.parameter() has to know: the unit by the name, the label of a choice by "name=choice", any by "name=*"."""
        labels = {self.name: self.unit}
        labels |= {f"{self.name}={choice}": label for choice, label in zip(self.choices, self.labels, strict=False)}
        return labels | ({f"{self.name}=*": self.label} if self.label else {})

    @model_validator(mode="after")
    def _whole(self) -> Parameter:
        if self.type == "choice" and not self.choices:
            raise ValueError(f"parameter {self.name}: a choice without choices")
        if self.labels and len(self.labels) != len(self.choices):
            raise ValueError(f"parameter {self.name}: {len(self.choices)} choices and {len(self.labels)} labels")
        return self


class Metric(BaseModel):
    """One value of an `iteration` record; a ratio names the two values whose sums it divides."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1)
    unit: str = "1"
    better: Literal["higher", "lower", "neither"] = "neither"
    kind: Literal["count", "time", "bytes", "ratio"]
    of: tuple[str, str] | None = None

    @model_validator(mode="after")
    def _ratio_of_two(self) -> Metric:
        if self.kind == "ratio" and self.of is None:
            raise ValueError(f"metric {self.name}: a ratio must name the two values it divides")
        return self


class Workload(BaseModel):
    """A workload of an executable; its first metric is the one by which cells are compared.

    kinds: of the synchronisations that it can run on
    files: further ones that decide what it does; lacks: what is missing here to run it, and how to get it
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1)
    summary: str = ""
    kinds: tuple[Kind, ...] = Field(min_length=1)
    parameters: tuple[Parameter, ...] = ()
    metrics: tuple[Metric, ...] = Field(min_length=1)
    files: tuple[str, ...] = ()
    lacks: str = ""

    def metric(self, name: str) -> Metric | None:
        """The metric of that name, or None."""
        return next((metric for metric in self.metrics if metric.name == name), None)

    @property
    def depends_on_time(self) -> bool:
        """Whether the first metric, by which cells are compared, is a time or holds one."""
        first = self.metrics[0]
        times = {metric.name for metric in self.metrics if metric.kind == "time"} | {"elapsed_s"}
        return first.kind == "time" or (first.of is not None and bool(times & set(first.of)))


class AbortCause(BaseModel):
    """Why attempts abort: records count it as `aborts_<name>`, reports call it by its words."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1)
    words: str = Field(min_length=1)
    meaning: str = ""


class TransactionalMemory(BaseModel):
    """What only a transactional memory says of itself."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    abort_causes: tuple[AbortCause, ...] = ()


class Sync(BaseModel):
    """The synchronisation that an executable was built with.

    cpus_reserved: processors that it keeps for itself; needs: what not every machine has, lacks: why it cannot run on
    this one; caution: what there is to know of it on this one; tm: of a transactional memory that counts what it does
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1)
    summary: str = ""
    kind: Kind
    threads_max: int = Field(ge=1)
    cpus_reserved: int = Field(default=0, ge=0)
    paper: str = ""
    guarantees: str = ""
    blame: bool = False
    needs: str = ""
    lacks: str = ""
    caution: str = ""
    parameters: tuple[Parameter, ...] = ()
    tm: TransactionalMemory | None = None


class Build(BaseModel):
    """How an executable was built."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    compiler: str = ""
    preset: str = ""
    flags: str = ""
    revision: str = ""


class Description(BaseModel):
    """The whole answer to --describe.

    starts_others: what is measured are processes that it starts; they get the allocator, it says what they used
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    version: int = Field(alias="schema")
    sync: Sync
    build: Build = Build()
    workloads: tuple[Workload, ...]
    starts_others: bool = False

    def workload(self, name: str) -> Workload | None:
        """The workload of that name, or None."""
        return next((workload for workload in self.workloads if workload.name == name), None)

    def parameters(self, workload: str) -> dict[str, Parameter]:
        """Parameters of the synchronisation and of one workload, which share one name space."""
        described = self.workload(workload)
        return {p.name: p for p in (*self.sync.parameters, *(described.parameters if described else ()))}
