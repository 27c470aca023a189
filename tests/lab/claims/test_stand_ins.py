"""Whose cells a claim reads: an allocator's own, those of the paper's version of it, or of a look-alike."""

from __future__ import annotations

import claimed
from test_claims import A1, claim, speeds

from loam_lab.judging.claims import evaluate
from loam_lab.judging.claims.values import Evidence


def test_the_papers_version_is_read_in_the_groups_that_measure_it_and_is_no_preset() -> None:
    """On a simulated machine the study keeps today's: each group is read as it was measured."""
    group = {"workload": "intset", "sync": ["stm"], "threads": [1], "parameters": {"shift": [5, 4]}}
    groups = [
        {**group, "name": "list", "allocators": ["a", "b-1"]},
        {**group, "name": "other", "allocators": ["a", "b"]},
    ]
    above = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}}
    claims = [claim(above), claim({**above, "of": {**A1, "group": "other"}}, id="t-02")]
    made = claimed.study(claims, groups=groups, versions={"b": "b-1"}, lookalikes={"b": "a"})
    measured = claimed.campaign(made, speeds(**{"a": 100, "b": 200, "b-1": 50}))
    first, second = (evaluate._claim(Evidence(measured), one).as_json() for one in made.claims)
    assert (first["verdict"], first["by_preset"]) == ("reproduced", False) and "b-1" in first["reason"]
    assert (second["verdict"], second["by_preset"]) == ("contradicted", False)


def test_a_look_alike_stands_for_an_allocator_only_in_groups_that_measure_it() -> None:
    against = {"kind": "ratio_above", "of": A1, "to": {"allocator": ["b", "hoard"]}}
    group = {"workload": "intset", "sync": ["stm"], "threads": [1], "parameters": {"shift": [5, 4]}}
    groups = [{**group, "name": "list"}, {**group, "name": "presets", "allocators": ["c"]}]
    of = {**A1, "group": "presets", "allocator": "hoard"}
    there = {"kind": "ratio_above", "of": of, "to": {"parameters": {"shift": 4}}, "limit": 0.5}
    claims = [claim(against), claim(there, id="t-02")]
    made = claimed.study(claims, groups=groups, lookalikes={"hoard": "c"})
    measured = claimed.campaign(made, speeds(a=100, b=50, c=70))
    first, second = (evaluate._claim(Evidence(measured), one).as_json() for one in made.claims)
    assert (first["verdict"], first["by_preset"]) == ("reproduced", False) and first["reason"].endswith(
        "; without hoard"
    )
    assert (second["verdict"], second["by_preset"]) == ("reproduced", True)
