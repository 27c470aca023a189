"""What a mutant is: where it stands, and its edits applied.

The mutants of a source file stand in one file: those of runtime/tm/logs/undo_log.hpp in tests/mutants/tm/logs/undo_log.toml,
those of simulator/model/misses.cpp in tests/mutants/simulator/model/misses.toml, those of include/loam/tm_norec.h in
tests/mutants/include/loam/tm_norec.toml, those of workloads/harness/slices.cpp in tests/mutants/workloads/harness/slices.toml,
those of lab/interposer/record.cpp in tests/mutants/interposer/record.toml, those of
lab/loam_lab/judging/claims/values.py in tests/mutants/lab/judging/claims/values.toml. Each is a table [NAME] with

    what       the fault, in words
    killed_by  ["TEST", "GTEST FILTER"]: the test executable (its source is found by name) and the tests that must fail;
               of the lab, and of its native programs, ["test_FILE", "TEST FUNCTION"]; with the preset sim
               ["PROGRAM of tests/simulator", "ITS WORDS"]
    preset     "checked" (default) or "asan": the flags to compile with; "sim": a weaker memory order, which the schedule
               checker must find, or a fault of attempts in hardware or of the simulator (in_simulator.py)
    edit       one or more of
                 in    the function, type or namespace where it is (A::f: f within A); without it, the whole file,
                       as always in Python
                 drop  some tokens: the statement around them goes
                 old   some tokens, and
                 new   what stands in their place
                 file  below runtime/ or lab/loam_lab/ (or simulator/..., structures/..., include/..., workloads/...,
                       interposer/...), not the file's own

The tokens must occur exactly once there; comments and white space do not count (places.py).
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from places import Lost, runs, statement, tokens

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
INTERPOSER = Path("lab") / "interposer"
_KEYS = {"in", "drop", "old", "new", "file"}


class Broken(Exception):
    """A mutant that does not fit the source any more, or does not compile."""


@dataclass(frozen=True)
class Mutant:
    name: str
    what: str
    test: str
    filter: str
    preset: str
    edits: tuple[Mapping[str, str], ...]  # each with its file, relative to the root

    @property
    def in_python(self) -> bool:
        """Whether it changes the lab."""
        return self.edits[0]["file"].endswith(".py")

    @property
    def in_program(self) -> bool:
        """Whether it changes one of the lab's native programs or libraries, which its tests in Python run."""
        file = Path(self.edits[0]["file"])
        return file.is_relative_to(INTERPOSER) and source_of_test(self.test).suffix == ".py"

    @property
    def in_simulator(self) -> bool:
        """Whether only the simulator shows it: a weaker memory order, or a fault of attempts in hardware or of its own."""
        return self.preset == "sim"

    def apply(self, target: Path) -> set[str]:
        """Write the files that it changes, changed, below `target`, where the others need not be.

        returns: the files, relative
        raises: Broken
        """
        touched = set()
        for edit in self.edits:
            file = target / edit["file"]
            text = (file if file.is_file() else ROOT / edit["file"]).read_text()
            try:
                changed = apply(edit, text)
            except Lost as problem:
                raise Broken(f"{edit['file']}: {problem}") from None
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(changed)
            touched.add(edit["file"])
        return touched


def apply(edit: Mapping[str, str], text: str) -> str:
    """A source text with one edit.

    raises: Lost
    """
    unknown = set(edit) - _KEYS
    if unknown or ("drop" in edit) == ("old" in edit) or ("old" in edit) != ("new" in edit):
        raise Lost(
            f"an edit has `drop`, or `old` and `new`, and perhaps `in` and `file`; this one {', '.join(sorted(edit))}"
        )
    run = edit.get("drop", edit.get("old", ""))
    scope = edit.get("in", "")
    places = runs(text, scope, run)
    if len(places) != 1:
        where = f" in {scope}" if scope else ""
        raise Lost(f"`{run}` occurs {len(places)} times{where}, not once; fit the mutant to the source, or, if what it "
                   "tests is gone, delete it and say which test covers the reason now")  # fmt: skip
    source = tokens(text)
    first, end = statement(source, *places[0]) if "drop" in edit else places[0]
    return text[: source[first].start] + edit.get("new", "") + text[source[end - 1].end :]


def _source_of(file: Path, edit: Mapping[str, str]) -> str:
    """The source below the root that an edit changes: of a header and its .cpp the one in which the place is."""
    relative = file.relative_to(HERE).with_suffix("")
    of_lab = relative.parts[0] == "lab"
    top, suffixes = (Path("lab/loam_lab"), (".py",)) if of_lab else (Path("runtime"), (".hpp", ".cpp", ".h"))
    if "file" in edit:
        return str(top / edit["file"] if of_lab else _below(Path(edit["file"])))
    stem = top / relative.relative_to("lab") if of_lab else _below(relative)
    there = [f"{stem}{suffix}" for suffix in suffixes if (ROOT / f"{stem}{suffix}").is_file()]
    if not there:
        raise Broken(
            f"{file.relative_to(ROOT)} holds mutants of {stem}{suffixes[0]}, which is not there; move it with its source"
        )
    run = edit.get("drop", edit.get("old", ""))
    return next((name for name in there if runs((ROOT / name).read_text(), edit.get("in", ""), run)), there[0])


def _below(place: Path) -> Path:
    """Where a place of these folders is in the tree."""
    if place.parts[0] == INTERPOSER.name:
        return INTERPOSER.parent / place
    return place if place.parts[0] in ("simulator", "structures", "include", "workloads") else Path("runtime") / place


def read(file: Path) -> list[Mutant]:
    """The mutants of one file.

    raises: Broken
    """
    try:
        tables = tomllib.loads(file.read_text())
        return [_read(file, name, table) for name, table in tables.items()]
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as problem:
        raise Broken(f"{file.relative_to(ROOT)}: {problem!r}") from None


def _read(file: Path, name: str, table: Mapping[str, Any]) -> Mutant:
    edits = tuple({**edit, "file": _source_of(file, edit)} for edit in table["edit"])
    test, wanted = table["killed_by"]
    return Mutant(name, table["what"], test, wanted, table.get("preset", "checked"), edits)


def mutants() -> list[Mutant]:
    """All, by name.

    raises: Broken, also if two have one name
    """
    by_name = sorted((one for file in HERE.rglob("*.toml") for one in read(file)), key=lambda one: one.name)
    for one, other in itertools.pairwise(by_name):
        if one.name == other.name:
            raise Broken(
                f"two mutants have the name {one.name}: of {one.edits[0]['file']} and {other.edits[0]['file']}"
            )
    return by_name


def find(names: Sequence[str]) -> list[Mutant]:
    """Those of these names, in the order of the names.

    raises: Broken
    """
    of_name = {one.name: one for one in mutants()}
    if unknown := [name for name in names if name not in of_name]:
        raise Broken(f"no such mutant: {unknown[0]} (tests/mutants/**/*.toml)")
    return [of_name[name] for name in names]


def source_of_test(test: str) -> Path:
    """The source of a test executable, or a file of tests in Python.

    raises: Broken
    """
    files = [file for suffix in ("cpp", "py") for file in (ROOT / "tests").rglob(f"{test}.{suffix}")]
    if len(files) != 1:
        raise Broken(f"{test}: {len(files)} files of that name in tests/, one is expected")
    return files[0]


def class_of(stem: str) -> str:
    """The class of the transactional algorithm in the file of this name."""
    return "".join(part.capitalize() for part in stem.split("_"))
