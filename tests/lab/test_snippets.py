"""The C and C++ blocks of README and docs/*.md compile.

A block is a whole file. One that is not has a comment before it, which readers of the page do not see:

    <!-- after                      <!-- inside a function, after       <!-- inside a function -->
    declarations                    declarations
    -->                             -->

Only the syntax is checked, but templates are made. All blocks of C++ are one file, each in a namespace.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_style import ROOT

PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")))
BLOCK = re.compile(
    r"^(?:<!-- (?P<where>inside a function, after|inside a function|after)(?P<before>(?:(?!-->).)*)-->\n)?"
    r"```(?P<language>c|cpp|c\+\+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
INCLUDE = re.compile(r"^\s*#\s*include.*$", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """A block: declarations before it, its text, whether that stands inside a function, and the line of the page."""

    page: str
    line: int
    language: str
    before: str
    text: str
    inside: bool

    def source(self, number: int) -> str:
        """It without its #include lines; messages of the compiler name page and line."""
        body = f'#line {self.line} "{self.page}"\n{INCLUDE.sub("", self.text)}'
        if self.inside:
            body = f"void in_function_{number}(void);\nvoid in_function_{number}(void) {{\n{body}\n}}\n"
        return f"{INCLUDE.sub('', self.before)}\n{body}\n"

    def includes(self) -> list[str]:
        return INCLUDE.findall(self.before) + INCLUDE.findall(self.text)


def snippets(page: str, text: str) -> list[Snippet]:
    """The blocks of C and C++ of a page."""
    blocks = []
    for match in BLOCK.finditer(text):
        where, line = match["where"] or "", text.count("\n", 0, match.start("text")) + 1
        language = "c" if match["language"] == "c" else "c++"
        blocks.append(Snippet(page, line, language, match["before"] or "", match["text"], where.startswith("inside")))
    return blocks


def together(parts: Sequence[Snippet]) -> str:
    """All blocks of C++ as one file."""
    includes = dict.fromkeys(line.strip() for part in parts for line in part.includes())
    spaces = (f"namespace snippet_{i} {{\n{part.source(i)}}}\n" for i, part in enumerate(parts))
    return "\n".join([*includes, *spaces])


def compile(source: str, language: str, folder: Path) -> str:
    """What the compiler complains about."""
    cxx = language == "c++"
    schemes = folder / "generated"
    if cxx and not schemes.exists():
        options = [f"-DLOAM_SOURCE={ROOT}", f"-DLOAM_GENERATED={schemes}"]
        subprocess.run(["cmake", *options, "-P", str(ROOT / "cmake/LoamSets.cmake")], check=True, capture_output=True)
    compiler = os.environ.get("CXX" if cxx else "CC") or ("g++" if cxx else "gcc")
    command = [compiler, "-fsyntax-only", "-w", f"-x{language}", f"-std={'c++20' if cxx else 'gnu11'}"]
    command += [f"-I{part}" for part in (ROOT / "include", ROOT, schemes, folder)]
    done = subprocess.run([*command, "-"], input=source, capture_output=True, text=True, check=False, timeout=100)
    return "" if done.returncode == 0 else done.stderr or f"status {done.returncode}"


def all_snippets(language: str) -> list[Snippet]:
    return [s for page in PAGES for s in snippets(page, (ROOT / page).read_text()) if s.language == language]


@pytest.mark.skipif(shutil.which("g++") is None and "CXX" not in os.environ, reason="no compiler")
def test_cpp_blocks_compile(tmp_path: Path) -> None:
    parts = all_snippets("c++")
    assert len(parts) >= 10, "blocks are found"
    assert compile(together(parts), "c++", tmp_path) == ""


@pytest.mark.skipif(shutil.which("gcc") is None and "CC" not in os.environ, reason="no compiler")
@pytest.mark.parametrize("part", all_snippets("c"), ids=lambda part: f"{part.page}:{part.line}")
def test_c_block_compiles(part: Snippet, tmp_path: Path) -> None:
    for header in re.findall(r'^\s*#\s*include "(\w+\.h)"', part.text, re.MULTILINE):
        (tmp_path / header).touch()  # of the reader's program
    assert compile("\n".join([*part.includes(), part.source(0)]), "c", tmp_path) == ""


def test_what_does_not_compile_is_found(tmp_path: Path) -> None:
    page = "text\n<!-- inside a function, after\nint x;\n-->\n```c\nx = 1;\n```\n```c\ny = ;\n```\n"
    right, wrong = snippets("a.md", page)
    assert compile(right.source(0), "c", tmp_path) == ""
    assert "a.md:9:" in compile(wrong.source(1), "c", tmp_path)
    template = '```cpp\nint f() { return [](auto& x) { return x.missing; }(*"a"); }\n```\n'
    assert "missing" in compile(together(snippets("b.md", template)), "c++", tmp_path)


def test_every_block_has_a_known_language() -> None:
    for page in PAGES:
        fences = len(re.findall(r"^\s*```(?:c|cpp|c\+\+|C|cc|cxx|hpp|h)$", (ROOT / page).read_text(), re.MULTILINE))
        assert fences == len(snippets(page, (ROOT / page).read_text())), page
