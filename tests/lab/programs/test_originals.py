"""The programs of papers as their authors have them: built from sources that are given, left out where there are none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.subjects.allocators import repository
from loam_lab.subjects.programs import originals, running
from loam_lab.subjects.programs.catalogue import PROGRAMS
from loam_lab.subjects.programs.originals import Original

TWICE = Original("bench/twice", ("-DTIMES=2",), ("other.c",), "some.input")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is built yet, and the sources are a program that writes what it is given twice."""
    monkeypatch.setattr(originals.paths, "dot_loam", lambda: tmp_path)
    folder = tmp_path / "sources" / TWICE.folder
    folder.mkdir(parents=True)
    # C as it was: no type of main, no declaration of what it calls.
    (folder / "main.c").write_text("main(argc, argv) char** argv; { show(argv[1]); return 0; }\n")
    (folder / "show.c").write_text(
        'show(text) char* text; { int i; for (i = 0; i < TIMES; ++i) printf("%s\\n", text); }\n'
    )
    (folder / "other.c").write_text("another program\n")
    (folder / "some.input").write_text("some input")
    monkeypatch.setattr(repository, "files", lambda source: tmp_path / "sources")
    return tmp_path


def test_it_is_built_once_from_its_own_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    made = originals.build(TWICE)
    assert subprocess.run([made, "five"], capture_output=True, check=True).stdout == b"five\nfive\n"
    assert made.with_suffix(".input").read_text() == "some input"
    monkeypatch.setattr(repository, "files", lambda source: pytest.fail("it is there"))
    assert originals.build(TWICE) == made


def test_another_recipe_is_another_program() -> None:
    assert Original("bench/twice", ("-DTIMES=3",)).program != TWICE.program


def test_what_does_not_compile_is_told_and_not_kept(own_folder: Path) -> None:
    broken = Original("bench/twice")
    with pytest.raises(LoamError, match="does not compile"):
        originals.build(broken)
    assert not broken.program.exists()


def test_what_cannot_be_had_is_left_out_with_the_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(source: object) -> Path:
        raise LoamError("mimalloc-bench", None, "its sources are missing", "set LOAM_SOURCES")

    monkeypatch.setattr(repository, "files", absent)
    lines = list(originals.bring())
    assert [line.partition(" is left out: ")[0] for line in lines] == ["cfrac-original", "espresso-original"]
    assert all("set LOAM_SOURCES" in line for line in lines)
    lacks = running.lacks(PROGRAMS["cfrac-original"])
    assert lacks.startswith("the sources of mimalloc-bench: ./loam setup --programs"), lacks


def test_the_recipe_names_a_commit_and_its_digest() -> None:
    assert len(originals.ORIGIN.commit) == 40 and len(originals.ORIGIN.sha256) == 64
    assert originals.ORIGIN.repository == "mimalloc-bench"
