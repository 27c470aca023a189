"""What stands for an allocator that a machine lacks, in studies that name its look-alike; which cells pages compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import available
from loam_lab.model import consistent, studies
from loam_lab.model.study import SCHEMA, Study
from loam_lab.presenting.pages.parts.cells import compared
from loam_lab.subjects.allocators import recipe, registry


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


VERSIONS = {"jemalloc": "jemalloc-5.3.1"}


def with_jemalloc() -> Study:
    return study(allocators=["glibc", "jemalloc"], versions=VERSIONS)


@pytest.mark.parametrize(("built", "current"), [(False, False), (True, False), (True, True)])
def test_the_papers_version_takes_the_place_of_todays_where_it_is_built_but_on_no_simulated_machine(
    built: bool, current: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recipe.Installed(Path("/nowhere"), "5.3.1", current) if built else None
    monkeypatch.setattr(recipe, "installed", lambda *_: made)
    monkeypatch.setattr(registry, "load", lambda *_: None)
    kept, notes = available.present(with_jemalloc())
    if current:
        assert [kept.allocators_of(group) for group in kept.groups] == [
            ("glibc", "jemalloc-5.3.1"), ("glibc", "jemalloc"),
        ]  # fmt: skip
        assert notes == ["jemalloc-5.3.1 takes the place of jemalloc: it is the version that the paper has"]
    else:
        assert {kept.allocators_of(group) for group in kept.groups} == {("glibc", "jemalloc")}
        assert notes == ["jemalloc is not the paper's version; ./loam allocators build jemalloc-5.3.1"]


def test_no_version_is_named_where_no_real_machine_measures_its_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", lambda *_: None)
    simulated = with_jemalloc().model_copy(update={"groups": with_jemalloc().groups[1:]})
    assert available.present(simulated)[1] == []


def test_a_version_is_of_an_allocator_that_a_group_measures() -> None:
    (mistake,) = consistent.mistakes(study(versions={"tbb": "tbb-4.1"}))
    assert mistake[:2] == (("versions", "tbb"), "no group measures allocator 'tbb'")
    assert not list(consistent.mistakes(study(versions={"hoard": "hoard-3.10"}, labels={"hoard-3.10": "Hoard 3.10"})))


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
