"""Mistakes with memory: what Loam's malloc finds, by default and hardened, every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.presenting.pages import hardening
from loam_lab.subjects.allocators import building

ALWAYS = {
    "double-free": "double free", "double-free-after-another": "double free", "double-free-much-later": "double free",
    "free-of-a-stack-address": "on the stack", "free-of-a-static-address": "invalid free",
    "delete-of-another-type": "wrong size",
}  # fmt: skip
HARDENED = ALWAYS | {
    "free-inside-a-block": "inside a block", "free-of-an-odd-address": "inside a block",
    "write-1-past-the-end": "past the end", "write-8-past-the-end": "past the end",
    "write-32-past-the-end": "past the end",
    "write-to-a-freed-block": "freed block", "write-at-the-end-of-a-freed-block": "freed block",
    "write-to-a-freed-block-before-the-end": "freed block",
}  # fmt: skip

# Found where a block that is held, or that waits, lies before the one that is written in front of.
SOMETIMES = {"write-8-before-the-start"}


@pytest.fixture(scope="module")
def program() -> Path:
    building.ensure_own(["loam"])
    return hardening.program()


@pytest.mark.parametrize("size", hardening.SIZES)
@pytest.mark.parametrize("mistake", ALWAYS)
def test_the_default_finds(program: Path, mistake: str, size: int) -> None:
    found = hardening.commit(program, "loam", mistake, size, times=2)
    if found.runs == 0:
        pytest.skip("the program has no C++ allocation functions")
    assert found.times == found.runs
    assert found.message.startswith("loam malloc: ") and ALWAYS[mistake] in found.message


@pytest.mark.parametrize("size", hardening.SIZES)
@pytest.mark.parametrize("mistake", HARDENED)
def test_hardened_finds(program: Path, mistake: str, size: int) -> None:
    found = hardening.commit(program, "loam:hardened=1", mistake, size, times=3)
    if found.runs == 0:
        pytest.skip("the program has no C++ allocation functions")
    assert found.times == found.runs
    assert found.message.startswith("loam malloc: ") and HARDENED[mistake] in found.message


def test_every_mistake_has_an_expectation(program: Path) -> None:
    assert set(hardening.mistakes(program)) == set(HARDENED) | SOMETIMES
