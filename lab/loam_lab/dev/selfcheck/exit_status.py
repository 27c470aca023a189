"""How a check of the instrument ends, as all of them say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from loam_lab.base import console
from loam_lab.base.errors import LoamError

# TOO_FEW: what was measured does not suffice to tell; NOT_RUN: this machine cannot run the check
HOLDS, FAILS, TOO_FEW, NOT_RUN = 0, 1, 3, 4


def of(verdicts: Iterable[bool | None]) -> int:
    """FAILS where one promise is broken, TOO_FEW where of one nothing can be told (None), or there is none at all."""
    every = set(verdicts)
    return FAILS if False in every else TOO_FEW if None in every or not every else HOLDS


def refused(check_machine: Callable[[], None]) -> bool:
    """Whether this machine cannot run a check, which is then said. For where all that was typed is known to be right.

    check_machine: raises LoamError where it cannot
    """
    try:
        check_machine()
    except LoamError as problem:
        console.warn(f"not run: {problem.line()}")
        return True
    return False
