"""Numbers in documents that count what the tree has: they are the tree's."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from loam_lab.base import paths
from loam_lab.model import studies
from loam_lab.subjects import itm, simulated
from loam_lab.subjects.programs.catalogue import PROGRAMS

WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def files(pattern: str) -> int:
    return len(list(paths.root().glob(pattern)))


@pytest.mark.parametrize(
    ("document", "text", "count"),
    [
        ("docs/measuring.md", r"its reason for each of the (\w+) claims", lambda: len(studies.find("stm")[0].claims)),
        ("README.md", r"measures (\w+) allocators and writes a report", lambda: len(studies.find("tour")[0].allocators)),
        ("README.md", r"hardware transactions; (\w+) machines;", lambda: len(simulated.registry())),
        ("README.md", r", (\w+) applications, managed programs", lambda: files("workloads/applications/*.cpp")),
        ("README.md", r"managed programs, (\w+) allocation workloads", lambda: files("workloads/allocation/*.cpp")),
        ("README.md", r"allocation workloads, (\w+) real programs", lambda: len(PROGRAMS)),
        ("docs/choosing-an-allocator.md", r"ten times for each of\s(\w+) services", lambda: files("lab/services/*.toml")),
        ("packaging/debian/control", r"(\w+) algorithms behind one interface", lambda: len(set(itm.algorithms()) - {itm.HYBRID})),
    ],
)  # fmt: skip
def test_a_number_in_a_document_is_the_one_of_the_tree(document: str, text: str, count: Callable[[], int]) -> None:
    matches = re.findall(text, (paths.root() / document).read_text())
    assert len(matches) == 1, f"{document} says it once: {text}"
    word = matches[0].lower()
    number = int(word) if word.isdigit() else WORDS.index(word)
    assert number == count(), f"{document}: {text}"
