"""Mistakes with memory: what Loam's malloc finds, by default and hardened, every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.presenting.pages import hardening
from loam_lab.subjects.allocators import building

# By mistake: what the message says.
DEFAULT = {
    "double-free": "double free", "double-free-after-another": "double free", "double-free-much-later": "double free",
    "free-of-a-stack-address": "on the stack", "free-of-a-static-address": "invalid free",
    "delete-of-another-type": "wrong size",
}  # fmt: skip
# By kind; an empty one: a crash will do.
HARDENED = {
    "second free": "free", "free of no block": "free", "free with a wrong size": "wrong size",
    "write past the end": "past the end", "write past the end, never freed": "past the end",
    "write before the start": "before the start", "write before the start, never freed": "before the start",
    "far write": "", "access to no bytes": "", "write after free": "freed block", "write after realloc": "freed block",
    "reuse of what is stale": "", "impossible size": "",
}  # fmt: skip
SOMETIMES = {
    # Where another block lies at that distance, nothing is noticed before that one is freed.
    ("write-a-mebibyte-past-the-end", 24), ("write-a-mebibyte-past-the-end", 500),
    ("write-a-mebibyte-past-the-end", 20000), ("write-a-mebibyte-past-the-end", 300000),
    ("write-a-mebibyte-before-the-start", 24), ("write-a-mebibyte-before-the-start", 500),
    ("write-a-mebibyte-before-the-start", 20000), ("write-a-mebibyte-before-the-start", 300000),
    # Of a long block some bytes are looked at; of one without a guard page, none.
    ("write-at-the-end-of-a-freed-block", 300000), ("write-in-a-freed-block-of-another-size", 20000),
}  # fmt: skip


@pytest.fixture(scope="module")
def program() -> Path:
    building.ensure_own(["loam"])
    return hardening.program()


# Longer blocks have no class: a second free is an invalid one, and the size is not looked at.
@pytest.mark.parametrize("size", [size for size in hardening.SIZES if size < 32 << 10])
@pytest.mark.parametrize("mistake", DEFAULT)
def test_the_default_finds(program: Path, mistake: str, size: int) -> None:
    outcome = hardening.commit(program, "loam", mistake, size)
    if outcome.runs == 0:
        pytest.skip("the program has no C++ allocation functions")
    assert outcome.times == outcome.runs
    assert outcome.message.startswith("loam malloc: ") and DEFAULT[mistake] in outcome.message


def test_there_are_cases_enough(program: Path) -> None:
    assert sum(len(one.sizes()) for one in hardening.mistakes(program)) >= 150
    assert {one.kind for one in hardening.mistakes(program)} == set(HARDENED)


@pytest.mark.parametrize("kind", HARDENED)
def test_hardened_finds(program: Path, kind: str) -> None:
    missed = []
    for one in hardening.mistakes(program):
        for size in one.sizes() if one.kind == kind else ():
            outcome = hardening.commit(program, "loam:hardened=1", one.name, size)
            if (one.name, size) in SOMETIMES or outcome.runs == 0:
                continue
            if outcome.times != outcome.runs or HARDENED[kind] not in outcome.message:
                missed.append((one.name, size, outcome))
    assert not missed


@pytest.mark.parametrize("kind", ["write before the start", "write past the end, never freed", "access to no bytes"])
def test_samples_hide_nothing(program: Path, kind: str) -> None:
    for one in hardening.mistakes(program):
        if one.kind == kind:
            outcome = hardening.commit(program, "loam:hardened=1", one.name, one.sizes()[0], LOAM_MALLOC_GUARD_MS="1")
            assert outcome.times == outcome.runs, one.name
