"""How a check of the instrument ends, as all of them say it."""

from __future__ import annotations

from collections.abc import Iterable

# TOO_FEW: what was measured does not suffice to tell; NOT_RUN: this machine cannot run the check
HOLDS, FAILS, TOO_FEW, NOT_RUN = 0, 1, 3, 4


def of(verdicts: Iterable[bool | None]) -> int:
    """FAILS where one promise is broken, TOO_FEW where of one nothing can be told (None), or there is none at all."""
    every = set(verdicts)
    return FAILS if False in every else TOO_FEW if None in every or not every else HOLDS
