"""What all tests of the lab need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loam_lab import console


@pytest.fixture(autouse=True)
def fresh_consoles() -> Iterator[None]:
    """pytest gives each test streams of its own; a console kept from the last test would write to a closed one."""
    yield
    console.out.cache_clear()
    console.err.cache_clear()
