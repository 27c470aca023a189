"""What a run of a study will leave open is told before it begins, with what decides it; parts of a study run by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import available, open_claims
from loam_lab.cli import main as cli
from loam_lab.commands.request import Request
from loam_lab.commands.run import commands, selecting
from loam_lab.model import studies
from loam_lab.model.study import SCHEMA, Study
from loam_lab.subjects import machines
from loam_lab.subjects.allocators import building, registry

WHOLE = ["./loam", "study", "run", "tiny"]


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    host = replace(machines.host(), threads=2, facts=lambda: {"rtm": "absent"})
    known = machines.registry()
    monkeypatch.setattr(machines, "registry", lambda: {**known, "host": host})


def reads(number: int, group: str = "here", **changed: Any) -> dict[str, Any]:
    of = {"group": group, "allocator": "glibc", "threads": 2, **changed.pop("of", {})}
    predicate = {"kind": "band", "of": of, "low": 1, "high": 2}
    return {"id": f"000-{number:02}", "section": "1", "sentence": "s.", "predicates": [predicate], **changed}


def study(*claims: dict[str, Any], **changed: Any) -> Study:
    content = {
        "schema": SCHEMA, "name": "tiny", "title": "tiny", "question": "?", "allocators": ["glibc", "hoard"],
        "groups": [
            {"name": "here", "workload": "threadtest", "threads": [2, 8]},
            {"name": "wide", "workload": "threadtest", "threads": [8]},
            {"name": "there", "workload": "threadtest", "threads": [2, 8], "machines": ["sim:xeon-e5405"]},
        ],
        "claims": claims, **changed,
    }  # fmt: skip
    return Study.model_validate(content)


def without_hoard(of: Study) -> Study:
    return of.model_copy(update={"allocators": tuple(name for name in of.allocators if name != "hoard")})


def lines_of(whole: Study, asked: Study | None = None, **changed: Any) -> list[str]:
    """As a command says it; without: allocators that are not there."""
    asked = asked or whole
    left = available.fitting(without_hoard(asked) if changed.pop("bare", False) else asked)[0]
    return [
        one.words() for one in open_claims.left_open(whole, asked, left, WHOLE, by_group=changed.pop("by_group", False))
    ]


def test_nothing_is_said_where_all_can_be_decided() -> None:
    whole = study(reads(1), reads(2, "there", of={"threads": 8}, needs={"cores": 8}))
    assert lines_of(whole) == [] and open_claims.lines(whole, []) == []


def test_groups_of_another_machine_come_with_the_command_that_runs_them() -> None:
    whole = study(reads(1), reads(2, "there"), reads(3, "there"))
    host = selecting.on_machines(whole, ["host"])
    (line,) = lines_of(whole, host)
    assert line == (
        "000-02 and 000-03: their groups are not in this run; ./loam study run tiny --machine sim:xeon-e5405"
    )
    assert open_claims.lines(whole, open_claims.left_open(whole, host, host, WHOLE, by_group=False)) == [
        "of 3 claims 2 will stay open:", f"  {line}"
    ]  # fmt: skip


def test_groups_that_were_not_named_come_with_their_names() -> None:
    whole = study(reads(1), reads(2, "there"), reads(3, "here", of={"allocator": "hoard"}))
    one = selecting.of_groups(whole, ["there"])
    assert lines_of(whole, one, by_group=True) == [
        "000-01 and 000-03: their groups are not in this run; ./loam study run tiny --group here"
    ]


@pytest.mark.parametrize(
    "claim",
    [
        reads(1, of={"threads": 8}), reads(1, "wide", of={"threads": 8}), reads(1, needs={"cores": 8}),
        {**reads(1), "predicates": [{
            "kind": "trend", "of": {"group": "here", "allocator": "glibc"}, "along": "threads", "levels": [2, 8],
            "direction": "rises",
        }]},
    ],
)  # fmt: skip
def test_threads_beyond_those_of_the_machine_are_named(claim: dict[str, Any]) -> None:
    (line,) = lines_of(study(claim))
    assert line == "000-01: needs 8 hardware threads, and this machine has 2; use a larger machine"


def test_an_allocator_that_is_not_there_comes_with_the_command_that_builds_it() -> None:
    line = "000-01: needs allocator hoard; ./loam allocators build hoard"
    for claim in (reads(1, of={"allocator": "hoard"}), reads(1, needs={"allocators": ["hoard"]})):
        assert lines_of(study(claim), bare=True) == [line]
        assert lines_of(study(claim)) == []


def test_a_program_that_is_not_installed_comes_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacks = "Debian's ghostscript: ./loam setup --programs"
    monkeypatch.setattr(available, "lacks_of", lambda group: lacks if group.name == "there" else "")
    whole = study(reads(1), reads(2, "there"), reads(3, "there"))
    left = available.without(whole, {"there"})
    (one,) = open_claims.left_open(whole, whole, left, WHOLE, by_group=True)
    assert one.words() == "000-02 and 000-03: threadtest lacks Debian's ghostscript; ./loam setup --programs"


def test_a_look_alike_decides_in_its_place() -> None:
    whole = study(reads(1, of={"allocator": "hoard"}), lookalikes={"hoard": "design:hoard"})
    left = whole.model_copy(update={"allocators": ("glibc", "design:hoard")})
    assert open_claims.left_open(whole, whole, left, WHOLE, by_group=False) == []


def test_what_no_simulated_machine_has_is_said_and_what_the_paper_contradicts_is_not() -> None:
    lacks = reads(1, "there", model_lacks="it has no disks")
    against = reads(2, of={"threads": 8}, self_contradicting="table 1 says otherwise")
    assert lines_of(study(lacks, against)) == [
        "000-01: a simulated machine cannot decide it: it has no disks; use a machine of the paper's kind"
    ]


def test_hardware_transactions_are_asked_of_the_machine() -> None:
    (line,) = lines_of(study(reads(1, needs={"rtm": True})))
    assert line == "000-01: needs hardware transactions (RTM); use a machine whose processor has them"


def test_a_machine_that_a_claim_names_is_asked_for() -> None:
    whole = study(reads(1, needs={"machine": "sim:vega3"}))
    assert lines_of(whole) == ["000-01: needs machine sim:vega3; add --machine sim:vega3"]


# ---- parts of a study


def test_a_mistyped_group_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LoamError, match=r"--group=ther: .*did you mean there"):
        selecting.of_groups(study(), ["here", "ther"])
    assert selecting.of_groups(study(), []) == study()
    assert [group.name for group in selecting.of_groups(study(), ["there", "here"]).groups] == ["here", "there"]


def test_a_study_runs_the_groups_that_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[list[str], str]] = []

    def perform(part: Study, request: Request, *, command: str, **given: object) -> int:
        seen.append(([group.name for group in part.groups], command))
        return 0

    monkeypatch.setattr(commands, "perform", perform)
    monkeypatch.setattr(commands, "present", lambda one: (one, []))
    monkeypatch.setattr(studies, "find", lambda name: (study(reads(1), reads(2, "there")), None))
    assert cli.run(["study", "run", "tiny", "--effort", "quick", "--group", "there"]) == 0
    assert seen == [(["there"], "./loam study run tiny --effort quick --group there")]
    assert capsys.readouterr().err.splitlines() == [
        "of 2 claims 1 will stay open:",
        "  000-01: their groups are not in this run; ./loam study run tiny --effort quick --group here",
    ]


# ---- what claims need is built


def test_what_claims_read_is_built_before_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    known = registry.load

    def load(name: str, preset: str = "release") -> registry.Allocator:
        if name == "hoard" and "hoard" not in built:
            raise LoamError("--allocator", "hoard", "is not built yet", "run ./loam allocators build hoard")
        return known("glibc" if name == "hoard" else name, preset)

    monkeypatch.setattr(registry, "load", load)
    monkeypatch.setattr(building, "ensure", lambda names: built.extend(names))
    of_glibc = study(reads(1))
    assert available.present(of_glibc)[0].allocators == ("glibc",) and built == ["glibc"]
    built.clear()
    of_hoard = study(reads(1, of={"allocator": ["glibc", "hoard"]}))
    assert available.present(of_hoard) == (of_hoard, [])
    built.clear()
    elsewhere = selecting.of_groups(of_hoard, ["there"])
    kept, notes = available.present(elsewhere)
    assert kept.allocators == ("glibc",) and built == [] and "run ./loam allocators build hoard" in notes[0]


def test_what_cannot_be_built_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure(names: list[str]) -> None:
        if "hoard" in names:
            raise LoamError("hoard-sys", None, "its sources cannot be downloaded", "no network")

    monkeypatch.setattr(building, "ensure", ensure)
    _, notes = available.present(study(reads(1, of={"allocator": "hoard"})))
    assert notes == ["hoard is left out: its sources cannot be downloaded; it is not compared; no network"]
