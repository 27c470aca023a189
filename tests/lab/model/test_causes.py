"""Causes of aborts on their way from an executable to the report: words, counts, and one that nobody knows yet."""

from __future__ import annotations

import copy
from typing import Any

import synthetic_results
from typed import typed

from loam_lab.model.description import Description
from loam_lab.model.records import totals, value_of
from loam_lab.model.schema import SCHEMA
from loam_lab.presenting.report import charts, listing, palette, view

TENTH: dict[str, Any] = {"name": "power_cut", "words": "the light went out", "meaning": "no power"}


def with_a_tenth() -> dict[str, Any]:
    result = copy.deepcopy(synthetic_results.tour())
    result["abort_causes"].append(TENTH)
    for cell in result["cells"]:
        if cell["blame"]:
            cell["blame"].update(aborts_power_cut=50, aborts_of_a_peer=20)
    return result


def test_the_report_says_each_cause_in_the_words_of_the_executable() -> None:
    study = view.read(typed(with_a_tenth()))
    words = [cause.words for cause in study.causes]
    assert words == [
        "same word", "same block, another word", "another block, same stripe", "another stripe, same record",
        "not told apart", "the light went out", "of a peer",
    ]  # fmt: skip
    case = study.cases[0]
    table = listing.aborts(study, case, case.groups[0])
    assert table is not None
    assert [column.head for column in table.columns][3:10] == words and table.rows[0][8:10] == ("50", "20")
    drawing = charts.aborts(study, case, case.groups[0], "x", 20.0)
    assert "the light went out" in drawing.description and "of a peer" in drawing.description
    colours = palette.of_causes([cause.name for cause in study.causes])
    assert len(set(colours.values())) == len(colours), "each has a colour of its own"


def test_a_cause_that_was_never_counted_is_not_shown() -> None:
    assert "capacity" not in [cause.name for cause in view.read(typed(synthetic_results.tour())).causes]


def test_a_description_carries_a_cause_that_the_lab_has_never_heard_of() -> None:
    described = Description.model_validate({
        "schema": SCHEMA,
        "sync": {"name": "p", "kind": "transactional", "threads_max": 1, "tm": {"abort_causes": [TENTH]}},
        "workloads": [{"name": "w", "kinds": ["transactional"], "metrics": [{"name": "aborts_power_cut", "kind": "count"}]}],
    })  # fmt: skip
    assert described.sync.tm is not None and described.sync.tm.abort_causes[0].words == "the light went out"
    records = [{"kind": "iteration", "index": 0, "elapsed_s": 1.0, "tm": {"aborts": 7, "aborts_power_cut": 7}}]
    assert totals(records) == {"elapsed_s": 1.0, "aborts": 7.0, "aborts_power_cut": 7.0}
    assert value_of(described.workloads[0].metrics[0], records) == 7.0
