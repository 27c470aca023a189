"""Study files: data only, located errors, and the tour that measures for at most 150 s."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel, TypeAdapter

import loam_lab
from loam_lab.base import paths, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import available
from loam_lab.commands.request import Request
from loam_lab.commands.run import commands
from loam_lab.model import studies
from loam_lab.model.description import Kind

GOOD = """
schema = 2
name = "mine"
title = "t"
question = "q?"
allocators = ["glibc", "jemalloc"]
[[groups]]
name = "a"
workload = "intset"
parameters = { structure = ["list", "hash"], shift = 5 }
"""


def test_a_study_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD)
    study, path = studies.find(str(file))
    assert path == file
    assert study.blocks == 20
    assert study.groups[0].levels() == {"structure": ["list", "hash"], "shift": ["5"]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 2", "schema = 1", "the file has schema 1, this lab reads 2: write schema = 2; workloads that only"),
        ('workload = "intset"', "", ":7: groups[0].workload: this key is missing"),
        ('title = "t"', 'title = "t"\ncolour = 1', ":5: colour: unknown key"),
        ('title = "t"', 'title = "t"\nclaims = ["x"]', "claims[0]: Input should be a valid dictionary"),
        ('title = "t"', 'title = "t"\nblocks = 0', "blocks: Input should be greater than or equal to 1"),
        ("schema = 2", "schema = ", "is not TOML"),
        (
            'name = "a"',
            'name = "A b"',
            ":8: groups[0].name: 'A b' is not a name: small letters, digits and dashes, no dash first, as in read-mostly;",
        ),
        ('name = "mine"', 'name = "-x"', ":3: name: '-x' is not a name: small letters"),
        (
            "shift = 5 }",
            'shift = 5 }\n[[claims]]\nid = "8"\nsection = "1"\nsentence = "s"',
            ":12: claims[0].id: '8' is not the id of a claim: the paper, a dash and at least two digits, as in 000-08 (see",
        ),
        ("structure = [", "structure = [[1], ", ":10: groups[0].parameters.structure"),
        ("shift = 5 }", 'shift = 5 }\n[[groups]]\nname = "a"\nworkload = "x"', "two groups have the same name"),
        (
            "shift = 5 }",
            'shift = 5 }\n[[figures]]\nkind = "aborts"\ngroups = ["b"]',
            "a figure names group 'b', which the study does not have",
        ),
    ],
)
def test_a_wrong_study_says_where(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(LoamError) as caught:
        studies.load(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_an_unknown_study_is_named_with_the_nearest() -> None:
    with pytest.raises(LoamError, match=r"study=tuor: not the name of a study \(did you mean tour\?\)"):
        studies.find("tuor")
    with pytest.raises(LoamError, match="cannot be read: No such file"):
        studies.find("./nowhere.toml")


def test_every_study_of_the_checkout_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert "tour" in studies.registry()
    for name, file in studies.registry().items():
        assert studies.load(file).name == name
    assert commands.study_list() == 0
    assert "tour" in capsys.readouterr().out


def test_the_tour_is_what_the_documents_say_and_measures_for_at_most_150_s() -> None:
    tour = studies.load(studies.registry()["tour"])
    transactions, threadtest, sequential = tour.groups
    assert len(tour.allocators) == 7 and tour.allocators[-1] == "loam"
    assert transactions.levels()["structure"] == ["list", "hash", "tree"]
    assert transactions.levels()["mapping"] == ["table", "shadow"]
    assert (transactions.threads, threadtest.threads, sequential.threads) == ((2,), (2,), (1,))
    assert (tour.blocks, tour.warmup_ms, transactions.blame) == (10, 20, True)
    overhead_s = 0.035  # start, filling the set, verifying, journal: measured on a busy machine
    seconds, runs = 0.0, 0
    for group in tour.groups:
        levels = group.levels()
        columns = len(levels.get("structure", levels.get("size", [""])))
        cells = len(tour.allocators) * len(levels.get("mapping", [""]))
        count = columns * (tour.blocks_of(group) * (cells + 1) + (cells if tour.blame_of(group) else 0))
        runs += count
        seconds += count * ((int(levels["duration_ms"][0]) + tour.warmup_of(group)) / 1000 + overhead_s)
    assert runs == 844
    assert tour.budget_s is not None
    assert seconds < 150
    assert tour.budget_s <= 150


def test_commands_that_repeat_a_group_name_every_level() -> None:
    tour = studies.load(studies.registry()["tour"])
    line = commands.repeat(tour, tour.groups[0], Request())
    assert line == (
        "./loam run intset -p structure=list,hash,tree -p mapping=table,shadow -p update_percent=60 -p duration_ms=100 "
        "-p privatization=none -p warmup_ms=20 "
        "--allocator glibc,glibc:tcache=0,jemalloc,tcmalloc,tbb,mimalloc,loam --sync etl-wb --threads 2 "
        "--blocks 10 --blame"
    )


# A study's name in code that asks for it: study.name == "stm", studies.find("stm").
_ASKED_FOR = re.compile(r"\b(?:stud[a-z_]*|registry\(\))[^\n\"']{0,20}[\"']([a-z0-9-]+)[\"']")


def test_a_study_is_data_that_no_code_knows_by_name() -> None:
    """What one study needs, all can have: the lab finds studies in their folder and asks none for its name."""
    asking = 'if study.name == "stm" or study in ("gc", "x"): studies.registry()["tm"]'
    assert _ASKED_FOR.findall(asking) == ["stm", "gc", "tm"]
    folder = paths.root() / "studies"
    assert [file.name for file in folder.iterdir() if file.suffix != ".toml"] == []
    known_as_a_command = {"tour"}
    pages_of_the_same_name = set(subcommands.listed("presenting.pages"))
    kinds_of_synchronisation = set(get_args(Kind))
    names = set(studies.registry()) - known_as_a_command - pages_of_the_same_name - kinds_of_synchronisation
    assert names
    for source in (paths.root() / "lab" / "loam_lab").rglob("*.py"):
        named = set(_ASKED_FOR.findall(source.read_text()))
        assert not named & names, f"{source} names the study {named & names}"


def test_a_quick_study_is_what_its_groups_say(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    quick = "\nquick = { blocks = 9, threads = [1], warmup_ms = 1, parameters = { shift = 4 } }"
    second = '\n[[groups]]\nname = "b"\nworkload = "intset"\nthreads = [1, 2]\nblocks = 3'
    file.write_text(GOOD + "threads = [1, 2]" + quick + second)
    first, plain = studies.load(file).quick(6).groups
    assert (first.blocks, first.threads, first.warmup_ms) == (9, (1,), 1)
    assert first.levels() == {"structure": ["list", "hash"], "shift": ["4"]}
    assert (plain.blocks, plain.threads) == (3, (1, 2))
    file.write_text(GOOD + "quick = { parameters = { shft = 4 } }")
    with pytest.raises(LoamError, match=r"group a does not set shft \(did you mean shift\?\)"):
        studies.load(file)


def test_stm_has_every_claim_of_its_paper_and_fits_into_twenty_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    stm = studies.load(studies.registry()["stm"])
    # 18 and 40 are of hybrids, 20 to 37 and 44 are of the applications.
    numbers = (*range(1, 18), 19, 38, 39, 41, 42, 43)
    assert sorted(claim.id for claim in stm.claims) == [f"000-{number:02}" for number in numbers]
    assert {figure.id.split(",")[0] for figure in stm.paper_figures} == {
        "table 1", "figure 2", "figure 3", "figure 4", "figure 5", "figure 6", "table 3", "table 4",
    }  # fmt: skip
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    quick, _ = available.fitting(stm.quick(6))
    seconds = 0.0
    for group in quick.groups:
        cells = len(quick.allocators_of(group)) * len(group.threads) * len(group.sync)
        own = 1
        for name, levels in group.levels().items():
            if name in ("shift", "records_log2"):  # of the synchronisation: these share a block
                cells *= len(levels)
            else:
                own *= len(levels)
        duration = int(group.levels().get("duration_ms", ["20"])[0]) + quick.warmup_of(group)
        if group.machines != ("host",):
            # A millisecond of the simulated list takes some 0.3 s; two run side by side.
            seconds += own * (cells + 1) * quick.blocks_of(group) * (duration * 0.3 + 0.3) / 2
            continue
        seconds += own * (cells + 1) * quick.blocks_of(group) * (duration / 1000 + 0.15)
        seconds += own * cells * (duration / 1000 + 0.15) if quick.blame_of(group) else 0
        seconds += own * cells * 2 * 4 if "cachegrind" in quick.purposes_of(group) else 0
    assert seconds < 20 * 60


def test_hybrid_decides_its_claim_and_fits_into_eleven_minutes() -> None:
    hybrid = studies.load(studies.registry()["hybrid"])
    simulated, here = hybrid.claims
    assert (simulated.id, simulated.needs.rtm) == ("000-18", False) and (here.id, here.needs.rtm) == ("000-40", True)
    assert {predicate.of.group for predicate in simulated.predicates} == {"sets-8", "room-8"}, "place, room"
    assert {predicate.of.group for predicate in here.predicates} == {"room", "first-touch", "remote"}, "what runs here"
    seconds = 0.0
    quick = hybrid.quick(6)
    for group in quick.groups:
        # Beside one that needs hardware transactions stands one that does not: the group runs everywhere.
        assert {"norec", "hybrid-norec", "htm-lock"} <= set(group.sync)
        own = 1
        for levels in group.levels().values():
            own *= len(levels)
        cells = len(quick.allocators_of(group)) * len(group.sync) * len(group.threads)
        duration = (
            0 if "operations" in group.levels() else int(group.levels()["duration_ms"][0]) + quick.warmup_of(group)
        )
        run_s = (1.5 + 0.3 * duration) / 2 if group.machines != ("host",) else duration / 1000 + 0.12
        seconds += own * (cells + 1) * quick.blocks_of(group) * run_s
    assert seconds < 11 * 60


def test_no_message_can_be_a_regular_expression() -> None:
    """pydantic's own message for a pattern shows it, so no model has one: loam_lab.model.spelling says it in words."""
    for module in pkgutil.walk_packages(loam_lab.__path__, "loam_lab."):
        if module.name.startswith(("loam_lab.model", "loam_lab.subjects")) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    models = [BaseModel]
    for model in models:
        models += model.__subclasses__()
    ours = [model for model in models if model.__module__.startswith("loam_lab.")]
    assert len(ours) > 10
    for model in ours:
        for name, field in model.model_fields.items():
            assert "pattern=" not in repr(field.metadata), f"{model.__name__}.{name}"
            assert '"pattern"' not in json.dumps(TypeAdapter(field.annotation).json_schema()), (
                f"{model.__name__}.{name}"
            )
