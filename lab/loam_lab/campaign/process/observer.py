"""What the lab does beside a run that is not timed: nothing for most, else what the purpose of the run asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loam_lab.campaign.process.execute import Outcome, Watch


class Observer:
    """Accompanies one run. This one does nothing, as timing demands; others change what they need.

    watch: for execute(); timeout_min_s: the run may take at least that long
    environment: variables of the process beside those that it has anyway, known once command() was called
    front: a library before the allocator, "" for none; variables: of every process that the allocator serves
    """

    watch: Watch | None = None
    timeout_min_s = 0.0
    environment: Mapping[str, str] = {}
    front = ""
    variables: Mapping[str, str] = {}

    def command(self, argv: Sequence[str]) -> list[str]:
        """The program and arguments to start for this command; raises: LoamError where a tool is missing."""
        return list(argv)

    def begin(self) -> None:
        """Called just before the process starts."""

    def end(self, outcome: Outcome) -> tuple[dict[str, Any], str]:
        """Called once it has ended: what was observed (empty for nothing), and why that cannot be used ("" if it can)."""
        return {}, ""

    def close(self) -> None:
        """Called in every case, also where the process did not start."""
