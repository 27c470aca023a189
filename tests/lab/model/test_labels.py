"""What a study calls its allocators stands in tables, report and ledger; names stay where something is typed or looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic_results
from pydantic import ValidationError
from typed import typed

from loam_lab.commands.run import selecting
from loam_lab.model import consistent, labels, studies
from loam_lab.model.result.labelled import labelled
from loam_lab.model.study import SCHEMA, Study
from loam_lab.presenting import report

LABELS = {"pool:local": "pools", "pool:local:small=256": "first pool", "design:hoard": "Hoard"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pool:local", "pools"),
        ("pool:local:small=256", "first pool"),
        ("pool:local:small=2560 and pool:local:small=256.", "pool:local:small=2560 and first pool."),
        ("ops_per_s of pool:local / pool:direct = 2", "ops_per_s of pools / pool:direct = 2"),
        ("design:hoard's, design:hoard-2", "Hoard's, design:hoard-2"),
        ("my-design:hoard design:hoard.so", "my-design:hoard design:hoard.so"),
    ],
)
def test_a_label_stands_for_a_whole_name_alone(text: str, expected: str) -> None:
    assert labels.worded(LABELS)(text) == expected
    assert labels.worded({})(text) == text


def result(label: str | None) -> Any:
    factors = {"workload": "queue", "sync": "none", "allocator": "pool:local", "machine": "host", "threads": 1}
    return typed({
        "baseline": "pool:local", "command": "./loam run queue --allocator pool:local", "warnings": ["pool:local is new"],
        "allocators": [{"name": "pool:local", "label": label, "path": "/x/pool:local"}, {"name": "glibc"}],
        "cells": [{"group": "g", "copy": 0, "factors": factors}],
        "claims": [{
            "id": "000-01", "predicate": "of pool:local", "reason": "of pool:local = 1", "allocators": ["pool:local", "glibc"],
            "ours": [{"what": "pool:local", "estimate": 1.0}],
        }],
        "paper_figures": [{"id": "1", "ours": {"columns": ["threads", "pool:local"], "rows": [[1, "pool:local"]]}}],
    })  # fmt: skip


def test_readers_see_labels_and_commands_and_lookups_names() -> None:
    given = result("pools")
    made = labelled(given)
    assert (made.baseline, made.cells[0].allocator, made.allocators[0].name) == ("pools", "pools", "pools")
    assert made.allocators[0].label == "pool:local" and made.allocators[1] == given.allocators[1]
    (claim,) = made.claims
    assert (claim.allocators, claim.reason, claim.ours[0].what) == (["pools", "glibc"], "of pools = 1", "pools")
    assert made.paper_figures[0].ours.columns == ["threads", "pools"] and made.paper_figures[0].ours.rows == [
        [1, "pools"]
    ]
    assert (made.command, made.warnings, claim.predicate) == (given.command, given.warnings, "of pool:local")
    assert made.allocators[0].path == "/x/pool:local"
    assert given.cells[0].allocator == "pool:local"


def test_without_a_label_nothing_changes() -> None:
    given = result(None)
    assert labelled(given) is given
    assert "label" not in given.allocators[0].as_json()


def study(**changed: Any) -> Study:
    content = {
        "schema": SCHEMA, "name": "tiny", "title": "t", "question": "?", "allocators": ["glibc", "pool:local"],
        "groups": [{"name": "g", "workload": "queue"}], **changed,
    }  # fmt: skip
    return Study.model_validate(content)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"pool:local": "pools"}, []),
        ({"pool:locale": "pools"}, ["no group measures allocator 'pool:locale' (did you mean pool:local?)"]),
        ({"pool:local": "glibc"}, ["two allocators would be called 'glibc' (give each its own label)"]),
        ({"pool:local": "same", "glibc": "same"}, ["two allocators would be called 'same' (give each its own label)"] * 2),
    ],
)  # fmt: skip
def test_a_label_that_would_mislead_is_a_mistake(given: dict[str, str], expected: list[str]) -> None:
    assert [f"{wrong} ({hint})" for _, wrong, hint in consistent.mistakes(study(labels=given))] == expected


def test_a_label_has_room_where_names_stand() -> None:
    for wrong in ("", "x" * 25):
        with pytest.raises(ValidationError, match="labels"):
            study(labels={"pool:local": wrong})


def test_a_part_of_a_study_keeps_the_labels_of_the_whole() -> None:
    whole = studies.load(studies.registry()["stm"])
    part = selecting.of_groups(whole, ["places"])
    assert Study.model_validate(part.model_dump(by_alias=True)).labels == whole.labels


@pytest.mark.parametrize("name", ["pools", "stm", "stamp", "delegation"])
def test_studies_of_papers_call_what_is_put_together_by_the_papers_names(name: str) -> None:
    loaded = studies.load(studies.registry()[name])
    named = {one for group in loaded.groups for one in loaded.allocators_of(group)}
    made = {one for one in named if one.startswith(("design:", "pool:", "bump"))}
    # An allocator of the paper's own time may have a label, too.
    assert made <= set(loaded.labels) <= made | set(loaded.versions.values())


def test_a_report_shows_labels_and_says_which_allocator_each_is(tmp_path: Path) -> None:
    content = synthetic_results.tour()
    content["allocators"] = [
        {**one, "label": "the C library"} if one["name"] == "glibc" else one for one in content["allocators"]
    ]
    written = report.build(typed(content), tmp_path, formats=("html", "md"))
    page = written["html"].read_text()
    assert "the C library: glibc" in page and ">glibc<" not in page
    assert "the C library" in written["md"].read_text()
