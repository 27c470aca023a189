"""Machines: what a registry says is asked everywhere, and two machines never meet in one statistic."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, asking, cells, measure, study

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import available
from loam_lab.campaign.measure import plan as plans
from loam_lab.cli import main as cli
from loam_lab.commands.run import commands, selecting
from loam_lab.model import consistent
from loam_lab.model.claim import Claim
from loam_lab.model.study import Study
from loam_lab.subjects import machine as facts
from loam_lab.subjects import machines
from loam_lab.subjects.machines import Machine


class Instruments(FakeInstruments):
    """Made-up instruments that know the machines of the registry."""

    def machine(self, name: str) -> Machine:
        return machines.find(name)


@pytest.fixture
def twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A second machine: deterministic, of four threads, on which programs start through another one and run faster."""
    made = Machine(
        "twin", 4, lambda: {"cpu": "imagined", "cores": 4, "fingerprint": "t"}, deterministic=True,
        prefix=("/usr/bin/env", "FAKE_ALLOCATOR=fast"), environment={"FAKE_LOG": str(tmp_path / "twin")},
    )  # fmt: skip
    host = replace(machines.host(), threads=2, facts=lambda: {"cpu": "made up", "cores": 2, "fingerprint": "h"})
    monkeypatch.setattr(machines, "registry", lambda: {"host": host, "twin": made})
    return made


def test_a_name_that_is_no_machine_gets_the_nearest(twin: Machine) -> None:
    with pytest.raises(LoamError, match=r"--machine=twn: not the name of a machine \(did you mean twin\?\)"):
        machines.find("twn")
    with pytest.raises(LoamError, match=r"--machine=hots: .*did you mean host"):
        commands.run("intset", asking(machines=["hots"]))
    with pytest.raises(LoamError, match=r"--machine=hots: .*did you mean host"):
        commands.study_run("tour", asking(machines=["hots"]))
    with pytest.raises(LoamError, match="did you mean twin"):
        plans.make(study(machines=["twim"]))


def test_each_machine_has_columns_limits_and_facts_of_its_own(twin: Machine, tmp_path: Path) -> None:
    made = study(machines=["host", "twin"], threads=[1, 4], blocks=6)
    ended, result = measure(made, tmp_path / "o", Instruments(disturbed=lambda number: True))
    assert ended.repeated > 0
    assert {(c["factors"]["machine"], c["factors"]["threads"]) for c in result["cells"]} == {
        ("host", 1), ("twin", 1), ("twin", 4),
    }  # fmt: skip
    assert {name: one["cores"] for name, one in result["machines"].items()} == {"host": 2, "twin": 4}
    assert result["machines"]["twin"]["deterministic"] and not result["machines"]["host"]["deterministic"]
    assert any(
        "this machine has 2 hardware threads; its cells with more are left out" in text for text in result["warnings"]
    )
    # Everything is equally fast on the twin, whatever the allocator: its ratios must not see the host's.
    assert cells(result, machine="host", allocator="fast")[0]["ratio_to_baseline"]["estimate"] > 1.2
    assert cells(result, machine="twin", allocator="fast", threads=1)[0]["ratio_to_baseline"]["estimate"] < 1.1
    lines = [json.loads(line) for line in (tmp_path / "o/journal/local.jsonl").read_text().splitlines()]
    blocks: dict[tuple[int, str], set[str]] = {}
    for line in lines:
        blocks.setdefault((line["block"], line["identity"]["machine"]["name"]), set()).add(line["cell"])
    assert all(len(of_machine) == (2 if name == "host" else 4) for (_, name), of_machine in blocks.items())
    twins = [line for line in lines if line["identity"]["machine"]["name"] == "twin"]
    started = [line.split()[0] for line in (tmp_path / "twin").read_text().splitlines()]
    assert started == ["fast"] * len(twins), "each run of the twin, and no other, has its command and its environment"
    assert twins and not any(line["disturbance"]["contaminated"] or line["attempt"] for line in twins)


def test_means_over_cases_are_of_one_machine(twin: Machine, tmp_path: Path) -> None:
    made = study(machines=["host", "twin"], parameters={"structure": ["list", "tree"]}, blocks=6)
    _, result = measure(made, tmp_path / "o", Instruments())
    means = {line["machine"]: line for line in result["geomeans"]}
    assert means["host"]["cases"] == means["twin"]["cases"] == 2
    assert means["host"]["estimate"] > 1.2 > 1.1 > means["twin"]["estimate"]
    assert means["twin"]["what"].endswith("on twin")


def test_more_threads_than_a_machine_has_are_refused_or_left_out(twin: Machine) -> None:
    assert {cell.threads for cell in plans.make(study(machines=["twin"], threads=[4])).cells()} == {4}
    with pytest.raises(LoamError, match="--threads=8: machine twin has 4 hardware threads"):
        plans.make(study(machines=["twin"], threads=[8]))
    fit, notes = available.fitting(study(machines=["twin"], threads=[4, 8]))
    assert fit.groups[0].threads == (4,) and "machine twin has 4 hardware threads" in notes[0]


def test_a_group_may_ask_for_more_threads_than_a_machine_has(twin: Machine) -> None:
    crowd = study(machines=["twin"], threads=[4, 8], oversubscribe=True)
    fit, notes = available.fitting(crowd)
    assert (fit, notes) == (crowd, [])
    plan = plans.make(fit)
    assert {cell.threads for cell in plan.cells()} == {4, 8}
    assert any("its times describe the scheduler; they decide no claim" in note for note in plan.notes)


def test_a_claim_over_several_machines_names_one() -> None:
    def mistakes(select: dict[str, Any]) -> list[str]:
        of = {"group": "one", "allocator": "plain", **select}
        claim = {
            "id": "000-01",
            "section": "1",
            "sentence": "s.",
            "predicates": [{"kind": "band", "of": of, "low": 1, "high": 2}],
        }
        made: Study = study(machines=["host", "twin"]).model_copy(update={"claims": (Claim.model_validate(claim),)})
        return [f"{wrong} ({hint})" for _, wrong, hint in consistent.mistakes(made)]

    assert mistakes({}) == ["group one runs on several machines (name one: host, twin)"]
    assert mistakes({"machine": "twin"}) == []
    assert mistakes({"machine": "twn"}) == ["group one does not run on 'twn' (did you mean twin?)"]


def test_a_claim_never_compares_two_machines(twin: Machine) -> None:
    made = study(machines=["host"])
    other = made.groups[0].model_copy(update={"name": "two", "machines": ("twin",)})
    of, to = {"group": "one", "allocator": "plain"}, {"group": "two", "allocator": "plain"}
    claim = {
        "id": "000-01",
        "section": "1",
        "sentence": "s.",
        "predicates": [{"kind": "ratio_above", "of": of, "to": to}],
    }
    both = made.model_copy(update={"groups": (*made.groups, other), "claims": (Claim.model_validate(claim),)})
    assert [(wrong, hint) for _, wrong, hint in consistent.mistakes(both)] == [
        ("it compares host with twin", "name groups of one machine")
    ]


def test_a_study_asked_for_one_machine_runs_the_groups_that_name_it(twin: Machine) -> None:
    made = study(machines=["host"])
    other = made.groups[0].model_copy(update={"name": "two", "machines": ("twin",)})
    both = made.model_copy(update={"groups": (*made.groups, other)})
    assert [group.name for group in selecting.on_machines(both, ["twin"]).groups] == ["two"]
    assert [group.name for group in selecting.on_machines(both, ["host"]).groups] == ["one"]
    moved = selecting.on_machines(made, ["twin"])
    assert [(group.name, group.machines) for group in moved.groups] == [("one", ("twin",))]


def test_the_registry_is_listed(twin: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["list", "machines", "--json"]) == 0
    host, other = json.loads(capsys.readouterr().out)["machines"]
    assert (host["name"], host["threads"], host["deterministic"]) == ("host", 2, False)
    assert (other["name"], other["command"], other["deterministic"]) == (
        "twin",
        ["/usr/bin/env", "FAKE_ALLOCATOR=fast"],
        True,
    )
    assert cli.run(["list", "machines"]) == 0
    shown = capsys.readouterr().out
    assert "twin" in shown and "programs start as /usr/bin/env FAKE_ALLOCATOR=fast" in " ".join(shown.split())


def test_the_host_says_what_it_has() -> None:
    host = machines.host()
    assert host.threads == facts.hardware_threads() and host.facts()["fingerprint"] == facts.identity()
    assert host.command([STM, "x"]) == [STM, "x"] and not host.deterministic
    assert all(cache.size_bytes > 0 and cache.line_bytes > 0 for cache in host.caches)
    assert facts.count("0-1,4") == 3 and facts.count("") == 0
    assert machines.Cache(1, "data", 49152, 12, 64, 2).words() == "L1d 48 KiB for 2"
