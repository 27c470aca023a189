"""Programs that do not end by exit: what the sampler saw of them until then is told, with how they ended."""

from __future__ import annotations

from pathlib import Path

import pytest
import sampler
from interposing import compile_c
from synthetic_watches import file, process, watch

from loam_lab.commands.explain.sharing import document, findings, run, watches
from loam_lab.commands.explain.sharing.run import Performed

CUT = "The process ended by _exit or by a signal, without exit handlers; what was seen until then counts."


@pytest.mark.alone  # two threads must meet
@pytest.mark.parametrize(
    ("how", "ending"),
    [("abort", "SIGABRT"), ("fault", "SIGSEGV"), ("kill", "SIGKILL"), ("_exit", "")],
)
def test_what_was_seen_before_a_crash_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, ending: str
) -> None:
    monkeypatch.setenv("LOAM_SHARING_WINDOW_US", "100000")
    monkeypatch.setenv("LOAM_SHARING_PERIOD_US", "2000")
    sampler.built()
    program = [str(compile_c(tmp_path, "ends", sampler.NEIGHBOURS)), how]
    performed = run.perform(program, None)
    assert performed.ending == (f"was ended by {ending}" if ending else "")
    result = document.of(program, None, findings.see(performed.processes, tmp_path), performed)
    named = [pair["cause"] for pair in result["blocks"] if pair["named"]]
    assert "other_block" in named, result["blocks"]
    assert (CUT in result["words"]) == (not ending), "the run's own end is told once"


@pytest.mark.alone  # two threads must meet
def test_blocks_of_a_forked_child_are_its_own_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOAM_SHARING_WINDOW_US", "100000")
    monkeypatch.setenv("LOAM_SHARING_PERIOD_US", "2000")
    sampler.built()
    performed = run.perform([str(compile_c(tmp_path, "forks", sampler.NEIGHBOURS)), "fork"], None)
    (child,) = performed.processes
    makers = {caught.block.thread for one in child.watches for caught in one.caught if caught.block is not None}
    assert makers == {child.pid}, "its first thread made both, and not the thread of the parent that has called fork"


def test_a_process_that_ended_before_a_word_was_written_is_passed_over(tmp_path: Path) -> None:
    empty, opened, whole = (tmp_path / f"watches.{n}" for n in range(3))
    empty.write_bytes(b"")
    opened.write_bytes(b"\0" * 8192)
    whole.write_bytes(file([watch()]))
    assert [len(one.watches) for one in run._read([empty, opened, whole])] == [1]


def test_of_several_processes_it_is_said_how_many_were_cut_short(tmp_path: Path) -> None:
    cut = watches.read(file([watch()], ended=0))
    several = findings.see([process(watch()), cut], tmp_path)
    words = document.of(["p"], "glibc", several)["words"]
    assert CUT.replace("The process", "1 of the 2 processes") in words
    ended = document.of(["p"], "glibc", several, Performed(ending="was ended by SIGTERM"))["words"]
    assert not [text for text in ended if "_exit" in text]
