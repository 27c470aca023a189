"""docs/internals/orders.md: every labelled memory order of the runtime, and what weakens it under the schedule checker."""

from __future__ import annotations

import functools
import re
import tomllib
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "internals" / "orders.md"
LABEL = re.compile(r"\b([a-z][a-z_]*\.[A-D])\b")
# Where an algorithm's labels are one letter and a number: in the list at its head.
ALGORITHM_LABEL = re.compile(r"^//   ([PST][0-9]) ", re.MULTILINE)
SCHEMES = "delegation/schemes/"
ALGORITHMS = ROOT / "runtime" / "tm" / "algorithms"
# Programs whose mutants are of attempts in hardware, and of the simulator itself.
NO_ORDERS = {"hybrid", "elided", "transactions", "threads"}


def rows(columns: int) -> list[list[str]]:
    """The cells of the page's tables of so many columns, without heads."""
    lines = [line.strip().strip("|").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in lines if len(row) == columns]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@functools.cache
def labels_of_source() -> dict[str, set[str]]:
    """By label, the files of runtime/ that have it in a comment."""
    by_label: dict[str, set[str]] = {}
    for file in sorted((ROOT / "runtime").rglob("*.[hc]pp")):
        for line in file.read_text().splitlines():
            for label in LABEL.findall(line.partition("//")[2]):
                by_label.setdefault(label, set()).add(str(file.relative_to(ROOT / "runtime")))
    return by_label


def placed() -> list[tuple[str, str]]:
    """Labels of the page, each with its file; those of algorithms are elsewhere."""
    of_runtime = [row for row in [*rows(4), *rows(3)] if quoted(row[1]) and quoted(row[1])[0].endswith("pp")]
    return [(label, quoted(row[1])[0]) for row in of_runtime for label in quoted(row[0])]


def mutants() -> dict[str, str]:
    """The mutants of the schedule checker: the words of what kills them, by name.

    Those of attempts in hardware and of the simulator itself are no orders.
    """
    by_name = {}
    for file in (ROOT / "tests" / "mutants").rglob("*.toml"):
        for name, mutant in tomllib.loads(file.read_text()).items():
            if mutant.get("preset") == "sim" and mutant["killed_by"][0] not in NO_ORDERS:
                by_name[name] = mutant["killed_by"][1]
    return by_name


def test_every_label_is_on_the_page_and_stands_where_the_page_says() -> None:
    source = labels_of_source()
    on_page = {label for label, _ in placed()}
    # A new scheme is one file: the page may name its labels later.
    later = {label for label in source if all(file.startswith(SCHEMES) for file in source[label])} - on_page
    if later:
        warnings.warn(f"docs/internals/orders.md does not name {', '.join(sorted(later))}", stacklevel=1)
    assert on_page == set(source) - later
    assert [(label, file) for label, file in placed() if file not in labels_of_source()[label]] == []


def test_labels_of_two_files_that_are_two_orders_have_two_rows() -> None:
    files = {file for label, file in placed() if label == "waiting.A"}
    assert files == {"delegation/waiting.hpp", "tm/attempts/waiting.hpp"}


def test_every_mutant_of_the_checker_is_named_with_the_piece_that_kills_it() -> None:
    named = {name: quoted(row[2])[0] for row in rows(4) for name in quoted(row[3])}
    assert named == {name: words.removesuffix(" right") for name, words in mutants().items()}


@pytest.mark.parametrize("file", sorted(ALGORITHMS.glob("*.hpp")), ids=lambda file: file.stem)
def test_labels_of_an_algorithm_are_named_with_it(file: Path) -> None:
    name = file.stem.replace("_", "-")
    head = file.read_text().partition("#pragma once")[0]
    of_head = set(ALGORITHM_LABEL.findall(head.partition("Memory orders")[2]))
    with_mutants = {row[1] for row in rows(4) if quoted(row[0]) == [name]} - {"`global_lock.A`"}
    assert with_mutants <= of_head
    if of_head and f"`{name}`" not in PAGE.read_text():  # a new algorithm is one file; all transactional pieces run it
        warnings.warn(f"docs/internals/orders.md does not name {name}", stacklevel=1)
        return
    paragraph = PAGE.read_text().partition("no mutant shows that the checker would miss them:")[2].partition(".")[0]
    left = {
        label
        for labels, of in re.findall(r"((?:[PST][0-9](?:,\s|\sand\s)?)+)\sof\s`([^`]+)`", paragraph)
        if of == name
        for label in re.findall(r"[PST][0-9]", labels)
    }
    assert of_head - with_mutants == left
