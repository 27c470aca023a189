"""What `loam bench` adds to a result: a recommendation, a search of settings, flame graphs."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from loam_lab.model.result.parts import Ends, Part


class Choice(Part, frozen=True):
    """Which allocator to take for one purpose. command: the line to paste, where it is not that of the recommendation"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"command"})

    purpose: str = msgspec.field(name="for")
    allocator: str = ""
    text: str = ""
    command: str | None = None


class Recommendation(Part, frozen=True):
    """What `bench` advises. by: the metric that decided, memory_by: of memory; of: the command, of several; lines: to paste,
    by place"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset({"of", "each", "choices", "lines", "memory_by"})

    allocator: str = ""
    text: str = ""
    command: str = ""
    by: str = "wall_s"
    of: str | None = None
    each: list[Recommendation] | None = None
    choices: list[Choice] | None = None
    lines: dict[str, str] | None = None
    memory_by: str | None = None


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
