"""Documents name examples of synchronisations, workloads and allocators that exist; where they list a kind, they list all."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.subjects import sources
from loam_lab.subjects.allocators import registry

NAME = re.compile(r"`([a-z0-9][a-z0-9-]*)`")


def rows(page: str, heading: str) -> list[str]:
    """The rows of the table that begins with a heading, without its own two lines."""
    text = (paths.root() / page).read_text()
    lines = text[text.index(heading) :].split("\n\n")[0].splitlines()
    return lines[2:]


@pytest.mark.parametrize("kind", ["allocators", "syncs", "workloads"])
def test_the_factors_of_the_architecture_point_to_the_lists_and_name_what_is_there(kind: str) -> None:
    known = {"allocators": registry.definitions, "syncs": sources.syncs, "workloads": sources.workloads}[kind]()
    row = next(row for row in rows("ARCHITECTURE.md", "| factor | option |") if f"`./loam list {kind}`" in row)
    named = NAME.findall(row.split("|")[3])
    assert 3 <= len(named) <= 12  # examples: a list of all would be kept by hand
    assert set(named) <= set(known)


def test_the_page_of_delegation_names_schemes_that_are_there() -> None:
    """Its table says of each scheme who executes and which paper it is of. A new scheme is one file, so it may be missing."""
    named = [
        name
        for row in rows("docs/delegation.md", "| `--sync` | who executes")
        for name in NAME.findall(row.split("|")[1])
    ]
    schemes = {name for name, source in sources.syncs().items() if Path(source.file).parent.name == "schemes"}
    assert named and len(named) == len(set(named)) and set(named) <= schemes
    if new := schemes - set(named):
        warnings.warn(f"docs/delegation.md has no row for {', '.join(sorted(new))}", stacklevel=1)


def test_the_kinds_of_synchronisations_name_what_is_there() -> None:
    named = {
        name for row in rows("docs/internals/workloads.md", "| kind | how") for name in NAME.findall(row.split("|")[3])
    }
    assert {"none", "two-lock"} <= named <= set(sources.syncs())
