"""The sampler of cache lines, for tests that run it."""

from __future__ import annotations

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.commands.explain.sharing import run
from loam_lab.setup import build


def built(*programs: str) -> dict[str, str]:
    """Build the sampler and programs of the tests; their libraries by name. Skips where the kernel gives no events."""
    try:
        run.check_machine()
    except LoamError as problem:
        pytest.skip(f"not run: {problem}")
    found: dict[str, str] = build.ensure_built([*programs, "sharing", "probe"])["libraries"]
    return found
