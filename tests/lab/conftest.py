"""What all tests of the lab need."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from loam_lab.base import console

# Folders of tests that only read results: they neither measure nor run what is built, so that another suite may run
# beside them (loam_lab/dev/testing).
BESIDE = ("across", "claims", "compare", "model", "report", "result", "statistics", "store")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name in BESIDE:
            item.add_marker(pytest.mark.beside)


@pytest.fixture(autouse=True)
def fresh_consoles() -> Iterator[None]:
    """pytest gives each test streams of its own; a console kept from the last test would write to a closed one."""
    yield
    console.out.cache_clear()
    console.err.cache_clear()


@pytest.fixture(autouse=True)
def niceness(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What a command asked for; granted, it would hold for all tests that this process runs later."""
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    return asked


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter: pytest's own is closed to them."""
    with tempfile.TemporaryDirectory(prefix="loam-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
