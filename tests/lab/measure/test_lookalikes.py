"""What stands for an allocator that a machine lacks, in studies that name its look-alike; which cells pages compare."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import available
from loam_lab.model import studies
from loam_lab.model.study import SCHEMA, Study
from loam_lab.presenting.pages.parts.cells import compared
from loam_lab.subjects.allocators import registry


def study(**changed: Any) -> Study:
    content = {
        "schema": SCHEMA, "name": "tiny", "title": "tiny", "question": "?", "allocators": ["glibc", "hoard"],
        "groups": [
            {"name": "here", "workload": "threadtest"},
            {"name": "there", "workload": "threadtest", "machines": ["sim:xeon-e5405"]},
        ],
        **changed,
    }  # fmt: skip
    return Study.model_validate(content)


@pytest.fixture(autouse=True)
def hoard_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.load

    def load(name: str, preset: str = "release") -> registry.Allocator:
        if name == "hoard":
            raise LoamError("--allocator", "hoard", "is not built yet", "run ./loam allocators build hoard")
        return known(name, preset)

    monkeypatch.setattr(registry, "load", load)


def test_a_look_alike_takes_the_place_of_a_missing_allocator_but_on_no_simulated_machine() -> None:
    kept, notes = available.present(study(lookalikes={"hoard": "design:hoard", "supermalloc": "design:supermalloc"}))
    assert kept.allocators == ("glibc", "design:hoard")
    assert [group.allocators for group in kept.groups] == [("glibc", "design:hoard"), ("glibc",)]
    assert notes == [
        "hoard is left out: is not built yet; design:hoard, which is built like it, stands for it; claims about it are "
        "decided by preset; run ./loam allocators build hoard"
    ]


def test_without_a_look_alike_it_is_not_compared() -> None:
    kept, notes = available.present(study())
    assert kept.allocators == ("glibc",) and {group.allocators for group in kept.groups} == {("glibc",)}
    assert notes == ["hoard is left out: is not built yet; it is not compared; run ./loam allocators build hoard"]


@pytest.mark.parametrize("name", ["stm", "stamp", "programs", "delegation"])
def test_look_alikes_of_the_studies_are_presets_that_stand_for_something(name: str) -> None:
    loaded = studies.load(studies.registry()[name])
    known = registry.definitions()
    assert loaded.lookalikes["hoard"] == "design:hoard"
    assert all("(stands for " in known[other].summary for other in loaded.lookalikes.values())
    beside = [group for group in loaded.groups if group.name.endswith("-presets")]
    # What is slower by its making is compared with its like.
    assert all(one.startswith(("design:", "bump")) for group in beside for one in loaded.allocators_of(group))


def cell(group: str, allocator: str, machine: str = "host", copy: int = 0) -> dict[str, Any]:
    return {"group": group, "copy": copy, "factors": {"allocator": allocator, "machine": machine}}


def test_pages_set_beside_each_other_what_shares_a_baseline_and_a_real_machine() -> None:
    own, simulated = [cell("a", "glibc"), cell("a", "tbb")], cell("b", "glibc", "sim:xeon-e5405")
    presets = [cell("c", "design:ptmalloc"), cell("c", "design:hoard")]
    result = typed({"baseline": "glibc", "cells": [*own, cell("a", "glibc", copy=1), simulated, *presets]})
    assert compared(result) == result.cells[:2]
    alone = typed({"baseline": "glibc", "cells": [simulated]})
    assert compared(alone) == alone.cells
    without_baseline = typed({"cells": presets})
    assert compared(without_baseline) == without_baseline.cells
