"""The factor collector: a study, its claims and the command line name it beside the others; plans have it as a parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.commands.request import Request
from loam_lab.commands.run import commands
from loam_lab.model import collector, studies, words
from loam_lab.model.claim import Selection
from loam_lab.model.study import Study

STUDY = """
schema = 2
name = "mine"
title = "t"
question = "q?"
allocators = ["glibc"]
[[groups]]
name = "a"
workload = "gcbench"
sync = ["jvm-plain"]
collector = ["serial", "g1"]
parameters = { size = 50 }
quick = { collector = "g1" }
[[claims]]
id = "mine-01"
section = "1"
figure = "1"
sentence = "G1 takes longer."
predicates = [
  { kind = "ratio_above", of = { group = "a", allocator = "glibc", collector = "g1" }, to = { collector = "serial" } },
]
"""


def read(folder: Path, text: str) -> Study:
    file = folder / "mine.toml"
    file.write_text(text)
    return studies.find(str(file))[0]


def test_a_study_varies_the_collector_as_it_varies_threads(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY)
    assert study.groups[0].levels() == {"size": ["50"], "collector": ["serial", "g1"]}
    assert study.quick(6).groups[0].levels() == {"size": ["50"], "collector": ["g1"]}
    line = commands.repeat(study, study.groups[0], Request())
    assert line.startswith("./loam run gcbench -p size=50 --collector serial,g1 -p warmup_ms=50 ")


def test_a_claim_compares_two_collectors(tmp_path: Path) -> None:
    predicate = read(tmp_path, STUDY).claims[0].predicates[0]
    assert isinstance(predicate.to, Selection)
    of, to = predicate.of, predicate.to.based_on(predicate.of)
    assert (of.parameters, to.parameters) == ({"collector": "g1"}, {"collector": "serial"})
    assert to.group == "a"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "size = 50 }",
            'collector = "zgc" }',
            "collector stands beside the parameters and in them: leave it out there",
        ),
        ('collector = "serial" }', 'collector = "zgc" }', "group a has no level zgc of collector"),
    ],
)
def test_a_collector_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(LoamError) as refused:
        read(tmp_path, STUDY.replace(old, new))
    assert message in refused.value.line()


def test_a_result_and_a_report_name_the_factor() -> None:
    assert collector.factors({"size": 50, "collector": "zgc"}) == {"collector": "zgc"}
    assert collector.factors({"size": 50}) == {}
    assert words.parameter("collector", "zgc") == "zgc collector"


def test_the_study_of_the_jvm_varies_it() -> None:
    study = studies.load(studies.registry()["gc-jvm"])
    varied = {group.name: group.levels().get("collector", []) for group in study.groups}
    assert varied["collectors"] == ["serial", "parallel", "g1", "zgc", "shenandoah"]
    named = {str(predicate.of.parameters["collector"]) for claim in study.claims for predicate in claim.predicates
             if "collector" in predicate.of.parameters}  # fmt: skip
    assert named == set(varied["collectors"])
