"""`explain --allocator A,B -- COMMAND`: the advice by what was found, runs that fail, names that are checked first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from synthetic_watches import LINE, block, caught, process, watch

from loam_lab.base.errors import LoamError
from loam_lab.cli import explaining
from loam_lab.commands.explain.sharing import commands, comparison, document, findings
from loam_lab.commands.explain.sharing.comparison import Ran
from loam_lab.commands.explain.sharing.run import Performed


def document_of(allocator: str, hits: int, watches: int, *, other: int = LINE + 16) -> dict[str, Any]:
    """A run of which so many watches caught another thread."""
    start = LINE if other == LINE else other
    each = [watch(), caught(other), block(LINE, LINE, 8), block(other, start, 8)]
    seen = findings.see([process(*each * hits, *[watch()] * (watches - hits))], Path("/"))
    return document.of(["./p"], allocator, seen, Performed(list(seen.processes), "", 1.25))


def ran(allocator: str, hits: int, watches: int = 1000, *, other: int = LINE + 16) -> Ran:
    return Ran(allocator, document_of(allocator, hits, watches, other=other))


def test_the_allocator_under_which_less_is_shared_is_advised() -> None:
    advice = comparison.advice([ran("glibc", 200), ran("tbb", 10), ran("loam", 0), ran("jemalloc", 1)])
    assert advice.startswith("Take loam: threads meet in cache lines for 0 % (0 to ")
    assert "and under glibc for 47 % (" in advice and "tbb for 2.3 % (" in advice
    assert advice.endswith("; jemalloc cannot be told apart from it.")


def test_a_difference_whose_intervals_overlap_is_not_told() -> None:
    advice = comparison.advice([ran("glibc", 20), ran("loam", 15)])
    assert advice == "No allocator shares less than another as far as these runs tell, because the intervals overlap."
    assert "Take" not in comparison.advice([ran("glibc", 3, 10), ran("loam", 0, 10)])


def test_one_word_is_said_to_be_the_programs_own_only_where_all_share_it() -> None:
    words = [ran("glibc", 200, other=LINE), ran("loam", 205, other=LINE)]
    assert comparison.advice(words).endswith("overlap: the program itself shares the word, whoever places it.")
    assert "itself" not in comparison.advice([*words, ran("tbb", 86)])


def test_where_nothing_is_shared_no_allocator_is_advised() -> None:
    assert comparison.advice([ran("glibc", 0), ran("loam", 1)]).startswith("Under none of them")


def test_where_too_little_was_seen_the_allocator_is_not_acquitted() -> None:
    advice = comparison.advice([ran("glibc", 0, 30), ran("loam", 0, 20)])
    assert advice.startswith("Too little was seen to tell: under loam up to ")
    assert advice.endswith("; let the command run longer.")


def test_a_run_that_failed_is_told_and_gives_no_advice() -> None:
    crashed = Ran("tbb", document_of("tbb", 0, 1000), "was ended by SIGSEGV")
    unwatched = Ran("scudo", None, "scudo: no")
    advice = comparison.advice([ran("glibc", 200), crashed, unwatched])
    assert advice == "Fewer than two runs went well, so there is nothing to compare."
    assert "tbb" not in comparison.advice([ran("glibc", 200), ran("loam", 0), crashed, unwatched])


def test_the_table_has_a_row_for_each_run(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [ran("glibc", 200), ran("loam", 0), Ran("scudo", None, "scudo: is not proven")]
    comparison.show(comparison.as_json(["./p", "a b"], runs))
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("./p 'a b' under 3 allocators, one run each")
    assert "glibc 47 %" in printed and "1.25 s 47 %: " in printed
    assert "loam 0 % 0-0." in printed and "1.25 s none" in printed and "scudo: is not proven" in printed


def test_a_run_that_cannot_be_watched_is_a_row_unless_all_are() -> None:
    def explain(allocator: str) -> dict[str, Any]:
        if allocator == "glibc":
            return document_of(allocator, 3, 10)
        raise LoamError("--allocator", allocator, "is not proven")

    runs = comparison.run(["loam", "glibc"], explain)
    assert [one.problem for one in runs] == ["--allocator=loam: is not proven", ""]
    with pytest.raises(LoamError, match="loam: is not proven"):
        comparison.run(["loam", "tbb"], explain)


def test_names_are_checked_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(commands, "compare", lambda *_, **__: pytest.fail("it ran"))
    monkeypatch.setattr(commands, "explain", lambda *_, **__: pytest.fail("it ran"))
    for names, option, why in (
        ("glibc,jemaloc", {}, "jemalloc"),
        ("each,jemaloc", {}, "jemalloc"),
        ("glibc,jemalloc", {"apart": tmp_path / "sites"}, "--apart.*one allocator"),
        ("each", {"chains": True}, "--chains.*one allocator"),
    ):
        with pytest.raises(LoamError, match=why):
            explaining.explain(["true"], names, program=True, **option)
    with pytest.raises(LoamError, match="takes one value"):
        explaining.explain(["intset"], "glibc,jemalloc")


def test_each_is_what_is_installed_for_any_program() -> None:
    names = comparison.installed()
    assert "glibc" in names
    assert not {"design", "pool", "bump"} & set(names) and not any(":" in name for name in names)
