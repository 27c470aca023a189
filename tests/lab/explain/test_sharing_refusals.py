"""Programs of which `explain -- COMMAND` can say little or nothing: each is told why, and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sampler
from interposing import compile_c

from loam_lab.base.errors import LoamError
from loam_lab.commands.explain.grouping import BlockPair, Kind
from loam_lab.commands.explain.sharing import commands, document, findings, names, run, sentences
from loam_lab.commands.explain.sharing.estimate import Share
from loam_lab.commands.explain.sharing.findings import Finding, Findings
from loam_lab.subjects.symbols import Frame, Place

ALONE = "int main(void) { return 0; }\n"
CRASHES = """
#include <pthread.h>
#include <stdlib.h>
static void* work(void* n) { for (volatile long i = 0; i < 600000000; ++i) {} return n; }
int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, work, NULL);
  work(NULL);
  abort();
}
"""
AT_ONCE = """
#include <pthread.h>
static void* work(void* n) { return n; }
int main(void) {
  pthread_t other;
  return pthread_create(&other, 0, work, 0) || pthread_join(other, 0);
}
"""


@pytest.fixture(scope="module")
def _sampler() -> None:
    sampler.built()


@pytest.mark.usefixtures("_sampler")
@pytest.mark.parametrize(
    ("source", "flags", "why"),
    [
        (ALONE, (), "never started a second thread"),
        (AT_ONCE, ("-static",), r"cannot be watched: .*static.*; link it dynamically$"),
    ],
)
def test_what_cannot_be_explained_is_refused(tmp_path: Path, source: str, flags: tuple[str, ...], why: str) -> None:
    program = compile_c(tmp_path, "program", source, "-pthread", *flags)
    with pytest.raises(LoamError, match=why):
        run.perform([str(program)], "glibc")


@pytest.mark.usefixtures("_sampler")
@pytest.mark.skipif(os.geteuid() != 0, reason="gives a program to another user: root alone can")
def test_a_set_user_id_program_is_refused(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "program", AT_ONCE, "-pthread")
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    with pytest.raises(LoamError, match=r"cannot be watched: .*set-user-id.*; measure a copy without$"):
        run.perform([str(program)], "glibc")


@pytest.mark.usefixtures("_sampler")
def test_a_crash_is_told_and_so_is_what_was_seen_before(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "program", CRASHES, "-pthread")
    performed = run.perform([str(program)], "glibc")
    assert performed.ending == "was ended by SIGABRT"
    assert sum(process.samples for process in performed.processes) > 0
    # Nothing is put apart for the sake of a run that failed: its times would say nothing.
    assert commands.explain([str(program)], apart=tmp_path / "sites", as_json=True) == 1
    assert not (tmp_path / "sites").exists()


@pytest.mark.usefixtures("_sampler")
def test_a_program_that_ends_at_once_is_told_so(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "program", AT_ONCE, "-pthread")
    performed = run.perform([str(program)], "glibc")
    words = document.of([str(program)], "glibc", findings.see(performed.processes, tmp_path))["words"]
    assert any(text.startswith(("No sample was taken", "Only ")) for text in words), words


def test_without_line_tables_it_is_said_how_to_get_lines() -> None:
    share = Share(0.6, 0.5, 0.7, 60, 100)

    def words(line: int, function: str = "make") -> list[str]:
        kind = Kind(8, Place(Frame(function, "program", line), ()))
        finding = Finding(BlockPair("other_block", 6, (kind, kind), 16, (0, 0)), share)
        return sentences.words(Findings(100, 100, share, 1.0, [], [finding], [], []), 200)

    sentence = "The program has no line tables there, so functions are named: compile with -g1 to get source lines."
    assert sentence in words(0)
    assert sentence not in words(7)
    stripped = words(0, "0x1169")
    assert sentence not in stripped
    assert (
        "The program is stripped, so places are addresses in its file: compile with -g1, and do not strip it."
        in stripped
    )


def test_a_place_in_a_stripped_program_is_its_address_and_not_the_caller_in_the_c_library(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "program", AT_ONCE, "-pthread", "-s")
    inner = names._by_symbol(str(program), 0x1169)
    assert inner == Frame("0x1169", "program", 0)
    start = Frame("__libc_start_main", "libc.so.6", 0)
    assert names.best([inner, start]) == inner
    assert names._by_symbol("/no/such/libc.so.6", 0x1169).function == names.UNKNOWN
