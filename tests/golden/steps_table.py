"""Counted steps of a part of the runtime: accepted counts and bounds in a TOML file, and their section of the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import counts_page
import pytest
from test_instruction_counts import BOUND_FACTOR, count_steps, number, wrong

from loam_lab.setup import build

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
UPDATE = os.environ.get("LOAM_GOLDEN_UPDATE") == "1"


def compiler() -> str:
    """Name and version of the compiler, as the counting programs print it."""
    done = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return f"GCC {done.stdout.strip()}"


@dataclass(frozen=True)
class Table:
    """One table and its section of docs/instruction-counts.md.

    part: in file names: PART_paths.cpp counts, PART_paths.toml holds, test_PART_counts.py compares
    title, comment: of the page's section, and the head of the TOML file; intro: of the section, {compiler} stands for its name
    more: further columns by title, each from all counts and the name of a step
    programs: that count, where there is more than one: loam-golden-PROGRAM-paths
    """

    part: str
    title: str
    comment: str
    intro: tuple[str, ...]
    more: Mapping[str, Callable[[Mapping[str, Any], str], str]]
    programs: tuple[str, ...] = ()

    @property
    def golden(self) -> Path:
        return HERE / f"{self.part}_paths.toml"

    def count(self, folder: Path) -> tuple[dict[str, float], str]:
        """Build and run the counting programs; skips the test where valgrind is missing.

        returns: instructions by step, and the compiler's name and version
        """
        if shutil.which("valgrind", path=build.tool_path()) is None:
            pytest.skip("valgrind is not installed")
        targets = [f"loam-golden-{program}-paths" for program in self.programs or (self.part,)]
        build.configure("release", again=True)
        build.build("release", targets, label="what counts")
        steps: dict[str, float] = {}
        for target in targets:
            (folder / target).mkdir()
            more, compiler = count_steps([str(ROOT / "build" / "release" / target)], folder / target)
            steps |= more
        return steps, compiler

    def accepted(self) -> dict[str, Any]:
        return tomllib.loads(self.golden.read_text())

    def accept(self, steps: Mapping[str, float], compiler: str) -> None:
        """Write the counts; a bound that is there stays."""
        before = self.accepted()["steps"] if self.golden.exists() else {}
        lines = [
            f"# {self.comment}, by callgrind; see test_{self.part}_counts.py.",
            "# count: accepted value.  upper_bound: never to be exceeded, whatever the compiler.",
            f'compiler = "{compiler}"',
        ]
        for name, count in sorted(steps.items()):
            bound = before.get(name, {}).get("upper_bound", round(count * BOUND_FACTOR + 1))
            lines += ["", f'[steps."{name}"]', f"count = {number(count)}", f"upper_bound = {number(bound)}"]
        self.golden.write_text("\n".join(lines) + "\n")
        counts_page.put(self.title, self.section())

    def section(self) -> list[str]:
        """Its lines of the page."""
        golden = self.accepted()
        lines = [
            *(line.format(compiler=golden["compiler"]) for line in self.intro), "",
            f"| path | instructions | {''.join(f'{title} | ' for title in self.more)}upper bound |",
            f"| --- | ---: |{' ---: |' * len(self.more)} ---: |",
        ]  # fmt: skip
        for name, step in golden["steps"].items():
            cells = [number(step["count"]), *(cell(golden["steps"], name) for cell in self.more.values())]
            lines.append(f"| {name} | {' | '.join(cells)} | {number(step['upper_bound'])} |")
        return lines

    def check(self, steps: Mapping[str, float], compiler: str) -> None:
        """Fail unless these are the accepted counts; accept them first where that is asked for."""
        if UPDATE:
            self.accept(steps, compiler)
        golden = self.accepted()
        assert sorted(steps) == sorted(golden["steps"]), f"{self.part}_paths.cpp and .toml name different steps"
        beyond = wrong(dict(steps), golden["steps"], same_compiler=compiler == golden["compiler"])
        assert not beyond, "\n" + "\n".join(beyond)

    def check_page(self) -> None:
        counts_page.check(self.title, self.section())
