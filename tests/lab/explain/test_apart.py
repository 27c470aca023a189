"""`explain --apart FILE`: which sites are at fault, the file of them, and the words of the proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_watches import CODE, LINE, block, caught, process, watch

from loam_lab.base.errors import LoamError
from loam_lab.commands.explain.sharing import commands, findings, proof, sites
from loam_lab.commands.explain.sharing.estimate import Share
from loam_lab.judging.statistics.intervals import Interval

VICTIMS = "/no/such/victims"
CALLER = CODE + 0x200
OFFSET = CALLER - 0x555500000000


def at_fault(*lines: str) -> list[sites.Site]:
    return sites.at_fault(findings.see([process(*lines)], Path("/")))


def hits(count: int, *, other: int = LINE + 16, start: int = LINE + 16, stacks: tuple[int, int] = (5, 6)) -> list[str]:
    """So many watches that caught another thread, each with both blocks."""
    each = [watch(), caught(other), block(other, start, 8, stack=stacks[1]), block(LINE, LINE, 8, stack=stacks[0])]
    return each * count


STACKS = (f"stack 5 {CALLER:x} {CODE:x}", f"stack 6 {CALLER + 16:x} {CODE:x}")


def test_both_blocks_of_a_line_are_at_fault() -> None:
    faults = at_fault(*STACKS, *hits(4))
    assert {one.frames for one in faults} == {((VICTIMS, OFFSET),), ((VICTIMS, OFFSET + 16),)}
    assert all("of the time: 8-byte blocks" in one.words for one in faults)


def test_a_site_is_written_once() -> None:
    (one,) = at_fault(*STACKS, *hits(5, stacks=(5, 5)))
    assert one.frames == ((VICTIMS, OFFSET),)


def test_what_no_placement_mends_is_no_site() -> None:
    assert at_fault(*STACKS, *hits(5, start=LINE, stacks=(5, 5))) == []  # two words of one block
    assert at_fault(*STACKS, *hits(5, other=LINE, start=LINE)) == []  # one word
    assert at_fault(*STACKS, *hits(2)) == [], "too few to be named"
    assert at_fault(*hits(5)) == [], "nobody knows the stacks"


def test_a_stack_goes_outwards_to_the_first_file_of_the_program() -> None:
    libc = "map 7f3400000000-7f3400010000 r-xp 00000000 fe:00 13 /usr/lib/libc.so.6"
    inner = 0x7F3400000100
    faults = at_fault("maps", libc, f"map 555500000000-555500010000 r-xp 00000000 fe:00 12 {VICTIMS}",
                     f"stack 5 {inner:x} {CALLER:x} {CODE:x}", *hits(3, stacks=(5, 5)))  # fmt: skip
    assert [one.frames for one in faults] == [(("/usr/lib/libc.so.6", 0x100), (VICTIMS, OFFSET))]


def test_the_file_has_the_program_its_modules_and_the_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "identity", lambda file: f"build-id {file.name}")
    faults = [sites.Site((("/lib/b", 0x20), ("/bin/a", 0x1F)), "63 %"), sites.Site((("/bin/a", 0x30),), "2 %")]
    assert sites.text("/bin/a", faults) == (
        "loam-apart 1\nprogram /bin/a\nmodule build-id b /lib/b\nmodule build-id a /bin/a\n"
        "site 0+20 1+1f # 63 %\nsite 1+30 # 2 %\n"
    )


def test_the_proof_says_both_shares_and_the_time() -> None:
    before, after = Share(0.63, 0.5, 0.75, 56, 206), Share(0.0, 0.0, 0.012, 0, 200)
    proved = proof.as_json(
        Path("s"), [sites.Site(((VICTIMS, 1),), "made")], before, after, Interval(0.411, 0.39, 0.434, 8)
    )
    assert proved["before"]["share"] == 0.63 and proved["after"]["share"] == 0.0
    assert proved["words"][0] == (
        "With the blocks of 1 site apart, threads meet in cache lines of different blocks for 0 % of the time "
        "(0 to 1.2 %); before 63 % (50 to 75 %)."
    )
    assert proved["words"][1] == "The program takes 0.41 (0.39 to 0.43) of its time, in 8 paired blocks."
    assert "LOAM_MALLOC_APART=s " in proved["words"][2]
    few = replace(Interval(0.5, 0.4, 0.6, 8), low=None, high=None, n=4)
    assert (
        proof.words(Path("s"), [], before, after, few)[1] == "The program takes 0.50 of its time, in 4 paired blocks."
    )


def test_what_the_malloc_says_of_the_file_is_passed_on() -> None:
    stderr = "x\nloam malloc: LOAM_MALLOC_APART: 1 of 2 sites were never reached:\n  site 0+1 in /bin/a\nlast\n"
    assert proof.complaints(stderr) == [
        "loam malloc: LOAM_MALLOC_APART: 1 of 2 sites were never reached: site 0+1 in /bin/a"
    ]
    assert proof.complaints("loam malloc: double free\n") == []


def test_what_cannot_be_asked_is_refused_before_anything_runs(tmp_path: Path) -> None:
    for file, why in ((tmp_path, "is a folder"), (tmp_path / "no" / "file", "does not exist")):
        with pytest.raises(LoamError, match=why):
            commands.check_file("--apart", file)
    with pytest.raises(LoamError, match="puts no blocks apart"):
        commands.explain(["true"], allocator="jemalloc", apart=tmp_path / "sites")
