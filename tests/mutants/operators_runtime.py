"""Operator mutants of parts of the runtime, made by rule and judged by the tests of each file. Once, by command:

    operators_runtime.py [--share N] [--seed S] [FILE...]   of every file below, or those named, one mutant in N
    operators_runtime.py --sample N [--seed S] [FILE...]   N of all mutants of these files, and what follows for all
    operators_runtime.py --seconds N    begins no mutant after so long; the same command goes on where it stopped

A mutant changes one operator, constant or negation, or drops one statement that is a call. Prints what survived, each as
FILE:LINE: before => after, and the score of each file. Not part of any suite: a survivor may be the same program in other
words, which a person must judge (docs/internals/testing.md).

What was judged is kept in build/operators/runtime.jsonl (--journal): a mutant is judged again if its file has changed, and
one that survived also if a test of its file has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import run
import sampling
from mutant import ROOT, Broken, source_of_test
from places import Token, tokens

# Not replaced_operators_test, which takes the library as a library: what it replaces would be there twice.
MALLOC = {
    "apart": ("apart_test",),
    "apart_sites": ("apart_sites_test", "apart_test"),
    "c_api": ("report_test",),
    "c_interface": ("conformance_test", "report_test", "limits_test"),
    "cpp_interface": ("operators_test", "hardened_test", "limits_test"),
    "entry": ("conformance_test", "hardened_test", "thread_ends_test", "guard_pages_test"),
    "fault": ("fault_test", "hardened_test"),
    "guard_pages": ("guard_pages_test",),
    "last_words": ("last_words_test",),
    "message": ("message_test", "fault_test"),
    "operators": ("operators_test", "hardened_test", "limits_test"),
    "process": (
        "background_test",
        "thread_ends_test",
        "settings_test",
        "forks_test",
        "guard_pages_test",
        "hardened_test",
    ),
    "report": ("report_test", "settings_test"),
    "settings": ("settings_test", "hardened_test"),
    "stocks": ("transactional_blocks_test",),
}
EPOCHS = ("limbo_limits_test", "limbo_test", "epoch_test")
# What is mutated, and the tests that must notice, the quick ones first.
FILES: dict[str, tuple[str, ...]] = {
    "runtime/tm/attempts/serial.cpp": ("gate_test", "outcomes_test", "serial_test", "waiting_test", "fork_test"),
    "runtime/tm/attempts/driver.hpp": (
        "outcomes_test", "settled_test", "one_algorithm_test", "nesting_test", "exceptions_test", "closed_test",
        "misuse_test", "serial_test", "handlers_test", "early_release_test", "gate_test", "contention_test",
        "starvation_test", "waiting_test", "waiting_cost_test", "lent_blocks_test",
    ),
    "runtime/reclaim/epoch.cpp": EPOCHS,
    "runtime/reclaim/epoch.hpp": EPOCHS,
    "runtime/reclaim/hazard.cpp": ("hazard_test",),
    "runtime/reclaim/hazard.hpp": ("hazard_test",),
    **{str(file.relative_to(ROOT)): MALLOC[file.stem] for file in sorted((ROOT / "runtime/malloc").glob("*.[ch]pp"))},
}  # fmt: skip
# The layers of the runtime that the tests of a folder, or of a file, are linked with: no more is compiled.
BELOW = ("base", "platform", "sync", "reclaim")
LAYERS = {
    "runtime/reclaim": BELOW,
    "runtime/tm/attempts": (*BELOW, "heap", "tm"),
    "runtime/malloc": (*BELOW, "heap", "malloc"),
    "runtime/malloc/stocks.cpp": (*BELOW, "heap", "malloc", "tm"),
}
# The C interface, with a table for each algorithm: no test here calls it, and it would be most of what is compiled.
LEFT_OUT = (Path("tm/c"),)
DEFINES = ("-DLOAM_TEST_ALGORITHMS=::loam::tm::EtlWb", "-DLOAM_TEST_BLAME=")
# A mutant that hangs ends a test after so long, however busy the machine is.
TEST_SECONDS = "15"

# Between spaces: so a template's brackets, a pointer's star and a reference are left alone.
BINARY = {
    "==": ["!="], "!=": ["=="], "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["+"], "+=": ["-="], "-=": ["+="],
    "|=": ["&="], "&=": ["|="], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"], "^": ["|"],
}  # fmt: skip
WORDS = {"true": "false", "false": "true"}
CALL = re.compile(r"^\s+(?!return\b|const\b|auto\b|using\b|static|LOAM_|else\b|case\b)[\w:.>*()\[\]-]*\w\([^{}]*\);")
SKIPPED = re.compile(
    r"^\s*(#|//|static_assert|template|using|LOAM_|\[\[gnu::|extern|struct|class|alignas)|static_assert"
)


@dataclass(frozen=True)
class Operator:
    """One change of a source text."""

    file: str
    line: int
    start: int
    end: int
    new: str
    before: str  # the line, and the line after the change
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} => {self.after}"


def mutants_of(file: str) -> list[Operator]:
    """Every mutant of a file."""
    text = (ROOT / file).read_text()
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    operators = []
    for number, start in enumerate(starts, 1):
        end = text.find("\n", start) if text.find("\n", start) >= 0 else len(text)
        line = text[start:end]
        if SKIPPED.match(line) or "static_assert" in line:
            continue
        for first, last, new in _changes(line):
            after = (line[:first] + new + line[last:]).strip()
            operators.append(Operator(file, number, start + first, start + last, new, line.strip(), after))
    return operators


def _changes(line: str) -> Iterator[tuple[int, int, str]]:
    words = tokens(line)
    for token in words:
        yield from ((token.start, token.end, new) for new in _instead(line, token))
    if match := CALL.match(line):
        yield len(line) - len(line.lstrip()), match.end(), ";"


def _instead(line: str, token: Token) -> Iterator[str]:
    text = token.text
    around = line[token.start - 1 : token.start] + line[token.end : token.end + 1]
    if text in BINARY and around in ("  ", " ") and token.start > 0:
        yield from BINARY[text]
    elif text == "!" and not around.endswith("="):
        yield ""
    elif text in ("++", "--"):
        yield "--" if text == "++" else "++"
    elif text in WORDS:
        yield WORDS[text]
    elif re.fullmatch(r"\d+", text):
        yield str(int(text) + 1)


class Judge:
    """Builds the tests once, and a mutant on top of it."""

    def __init__(self, top: Path, files: Sequence[str], pool: ThreadPoolExecutor) -> None:
        self._top = top
        # A test is of one folder.
        self._layers = {test: layers_of(file) for file in files for test in FILES[file]}
        every = {layer for file in files for layer in layers_of(file)}
        self._base = run.build_base("checked", top / "base", pool, every, LEFT_OUT)
        if "tm" in every:
            run.build_drivers(self._base, DEFINES)
        list(pool.map(self._build_unmutated, self._layers))
        self._filters = dict(zip(self._layers, pool.map(self._filter_of, self._layers), strict=True))

    def _build_unmutated(self, test: str) -> None:
        source = source_of_test(test)
        own = self._sources(test)
        run.compile_one("checked", self._base.folder, self._base.folder / "copy", source, own[source], DEFINES)
        run.link("checked", [*own.values(), *self._shared(test).values()], test, self._base.test(test, DEFINES))

    def _sources(self, test: str) -> dict[Path, Path]:
        """The sources that are a test's own, with their objects: the driver is of tests of transactions alone."""
        objects = run.objects_of_test(self._base, test, DEFINES)
        return objects if "tm" in self._layers[test] else {source_of_test(test): objects[source_of_test(test)]}

    def _shared(self, test: str) -> dict[Path, Path]:
        """The sources of the runtime that a test is linked with, and the main() of all tests."""
        runtime = self._base.folder / "copy" / "runtime"
        return {
            source: built
            for source, built in self._base.objects.items()
            if not source.is_relative_to(runtime) or source.relative_to(runtime).parts[0] in self._layers[test]
        }

    def _filter_of(self, test: str) -> str:
        """All of a test but what fails on the source as it is: some cases of malloc's need it as a library."""
        program = self._base.test(test, DEFINES)
        _, output = run.passes(program, "*")
        failing = sorted(set(re.findall(r"\[  FAILED  \] (\S+?),? ", output + " ")))
        wanted = "-" + ":".join(failing) if failing else "*"
        good, output = run.passes(program, wanted)
        if not good:
            raise Broken(f"{test} fails on the source as it is: {output}")
        return wanted

    def killer(self, mutant: Operator, number: int) -> str:
        """The test that notices; "" if none does, "-" if it does not compile."""
        folder = self._top / f"mutant-{number}"
        changed = folder / "copy" / mutant.file
        changed.parent.mkdir(parents=True)
        text = (ROOT / mutant.file).read_text()
        changed.write_text(text[: mutant.start] + mutant.new + text[mutant.end :])
        try:
            for test in FILES[mutant.file]:
                linked = [
                    self._built(source, made, mutant, folder, DEFINES) for source, made in self._sources(test).items()
                ]
                linked += [self._built(source, made, mutant, folder, ()) for source, made in self._shared(test).items()]
                program = run.link("checked", linked, test, folder / test)
                if not run.passes(program, self._filters[test])[0]:
                    return test
                program.unlink()
        except Broken:
            return "-"
        finally:
            for file in folder.glob("*"):
                if file.is_file():
                    file.unlink()
        return ""

    def _built(
        self, source: Path, unmutated: Path, mutant: Operator, folder: Path, defines: Sequence[str]
    ) -> Path:  # fmt: skip
        """The object of a source, compiled again if it depends on what is changed."""
        target = folder / unmutated.name
        if target.is_file():
            return target
        if mutant.file not in run.depends_on(unmutated, self._base.folder / "copy"):
            return unmutated
        in_copy = source.is_relative_to(self._base.folder)
        same = source.relative_to(self._base.folder / "copy") if in_copy else source
        mutated = folder / "copy" / same if in_copy and str(same) == mutant.file else source
        self._compile(mutated, target, folder, defines)
        return target

    def _compile(self, source: Path, target: Path, folder: Path, defines: Sequence[str]) -> None:
        # The changed file comes first; all others from the copy of the base.
        folders = [
            f"-I{path}" for path in (folder / "copy", self._base.folder / "copy", ROOT, self._base.folder / "generated")
        ]
        flags = run.flags("checked", self._base.folder)
        run.call([run.COMPILER, *flags, *defines, *folders, "-c", str(source), "-o", str(target)])


class Journal:
    """What became of the mutants of this and earlier runs, one JSON line each; the last one of a mutant counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, dict[str, str]] = {}
        if file.is_file():
            for line in file.read_text().splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:  # torn by a kill
                    continue
                self._known[entry["key"]] = entry

    def killer(self, mutant: Operator) -> str | None:
        """As Judge.killer(); None where it was not judged, or has to be judged again."""
        entry = self._known.get(self._key(mutant))
        if entry is None or (entry["killer"] == "" and entry["tests"] != self._tests(mutant.file)):
            return None
        return entry["killer"]

    def add(self, mutant: Operator, killer: str) -> None:
        """Write down what became of one."""
        entry = {"key": self._key(mutant), "mutant": str(mutant), "killer": killer, "tests": self._tests(mutant.file)}
        self._known[entry["key"]] = entry
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    @staticmethod
    def _key(mutant: Operator) -> str:
        return digest(
            (ROOT / mutant.file).read_bytes(), f"{mutant.file} {mutant.start} {mutant.end} {mutant.new}".encode()
        )

    @staticmethod
    def _tests(file: str) -> str:
        return digest(*(source_of_test(test).read_bytes() for test in FILES[file]))


def layers_of(file: str) -> tuple[str, ...]:
    """The layers that the tests of a file are linked with."""
    return LAYERS.get(file) or LAYERS[str(Path(file).parent)]


def digest(*parts: bytes) -> str:
    """One short name of some contents."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:24]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=list(FILES))
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--journal", type=Path, default=ROOT / "build" / "operators" / "runtime.jsonl")
    options = parser.parse_args()
    if unknown := sorted(set(options.files) - set(FILES)):
        parser.error(f"{unknown[0]}: not among the files that this mutates: {', '.join(FILES)}")
    end = time.monotonic() + options.seconds
    os.environ["LOAM_TEST_SECONDS"] = TEST_SECONDS
    journal = Journal(options.journal)
    counts: dict[str, Counter[str]] = {file: Counter() for file in options.files}

    def count(mutant: Operator, killer: str | None) -> None:
        words = {None: "not run", "": "survived", "-": "does not compile"}
        counts[mutant.file][words.get(killer, "killed")] += 1
        if killer == "":
            print(f"survived {mutant}", flush=True)

    left = []
    for mutant in chosen(options.files, options.sample, options.share, options.seed):
        known = journal.killer(mutant)
        if known is None:
            left.append(mutant)
        else:
            count(mutant, known)
    if left:
        with tempfile.TemporaryDirectory(prefix="loam-operators-") as top, ThreadPoolExecutor(options.jobs) as pool:
            judge = Judge(Path(top), list(dict.fromkeys(mutant.file for mutant in left)), pool)

            def judged(each: tuple[int, Operator]) -> str | None:
                return None if time.monotonic() > end else judge.killer(each[1], each[0])

            for mutant, killer in zip(left, pool.map(judged, enumerate(left)), strict=True):
                count(mutant, killer)
                if killer is not None:
                    journal.add(mutant, killer)
    for file, states in counts.items():
        valid = states["killed"] + states["survived"]
        print(f"{file}: {states['killed']} of {valid} killed, {states['does not compile']} do not compile, "
              f"{states['not run']} not run")  # fmt: skip
    if options.sample is not None:
        killed = sum(states["killed"] for states in counts.values())
        print(sampling.score(killed, killed + sum(states["survived"] for states in counts.values()), options.seed))
    return 0


def chosen(files: Sequence[str], sample: int | None, share: int, seed: int) -> list[Operator]:
    """The mutants to judge, in this order: a sample of all, else of each file one in `share`."""
    if sample is not None:
        return sampling.drawn([mutant for file in files for mutant in mutants_of(file)], sample, seed)
    picked = []
    for file in files:
        every = mutants_of(file)
        some = random.Random(f"{seed} {file}").sample(every, -(-len(every) // share))
        picked += sorted(some, key=lambda each: (each.start, each.new))
    return picked


if __name__ == "__main__":
    sys.exit(main())
