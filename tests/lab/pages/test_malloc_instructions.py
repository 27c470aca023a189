"""The page that sets our instructions beside the peers'."""

from __future__ import annotations

import shutil

import pytest

from loam_lab.presenting.pages import malloc_instructions
from loam_lab.presenting.pages.malloc_instructions import SIZES, WHATS, Counts, Uncounted
from loam_lab.setup import build


def counts(of: float) -> Counts:
    return {size: {what: of + index for index, what in enumerate(WHATS)} for size in SIZES}


def test_the_fewest_are_bold_and_what_could_not_be_counted_is_named() -> None:
    text = malloc_instructions.page({"ours": counts(15.3), "peer": counts(16), "other": None})
    assert "| malloc | 16 B | 64 B | 256 B | 1024 B | 4096 B | 16384 B | 32768 B |" in text
    assert "| ours | " + " | ".join(["**15.3**"] * 7) + " |" in text
    assert "| peer | " + " | ".join(["17.0"] * 7) + " |" in text, "the second table: free"
    assert "does not run under valgrind: other." in text


def test_glibc_is_counted_and_a_program_that_fails_is_not() -> None:
    if shutil.which("valgrind", path=build.tool_path()) is None:
        pytest.skip("valgrind is not installed")
    malloc_instructions.build_program()
    instructions = malloc_instructions.count([], {})
    assert set(instructions) == set(SIZES)
    assert 20 < instructions[16]["malloc"] < 1000 and 40 < instructions[16]["pair"] < 1000
    with pytest.raises(Uncounted):
        malloc_instructions.count([], {"VALGRIND_OPTS": "--no-such-option"})
