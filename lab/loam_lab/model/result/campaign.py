"""What a campaign was made of, and what it met on its way."""

from __future__ import annotations

from typing import ClassVar

from loam_lab.model.result.parts import Facts, Parameters, Part


class Allocator(Part, frozen=True):
    """An allocator as it was found. proof: proven, unproven, wrong, not measured

    label: what its study calls it; where that stands for the name (labelled.py), the name
    """

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"label"})

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
    label: str | None = None


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


class Disturbed(Part, frozen=True):
    """Blocks that were measured, run again, stayed disturbed, by source; slices of the runs that count, and left out."""

    blocks: int = 0
    repeated: int = 0
    contaminated: int = 0
    by: dict[str, int] = {}
    slices: int = 0
    slices_left_out: int = 0


class Waiting(Part, frozen=True):
    """Blocks in which a command waited for a processor, and the metric that decides.

    disturbed: for other work; own: for its own processes and threads
    """

    blocks: int = 0
    disturbed: int = 0
    own: int = 0
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
