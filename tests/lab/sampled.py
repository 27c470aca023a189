"""What tests need that sample cache lines on this machine."""

from __future__ import annotations

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.commands.explain.sharing import run


def skip_without_events() -> None:
    """Skips the test where the kernel gives no events to sample by."""
    try:
        run.check_machine()
    except LoamError as problem:
        pytest.skip(f"not run: {problem}")
