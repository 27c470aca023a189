"""The five predicates on made-up values, every reason for which a claim stays undecided, and a ledger end to end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import campaigns
import claimed
import pytest
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import available
from loam_lab.commands.run import commands, tables
from loam_lab.judging.claims import check, evaluate
from loam_lab.judging.claims.values import Evidence
from loam_lab.judging.statistics.data import Campaign
from loam_lab.model import studies
from loam_lab.model.cell import Cell
from loam_lab.model.claim import Claim, Predicate

A1 = {"group": "list", "allocator": "a", "threads": 1, "parameters": {"shift": 5}}


def claim(*predicates: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {"id": "000-01", "section": "1", "sentence": "It is so.", "predicates": list(predicates), **changed}


def wobble(cell: Cell, block: int) -> float:
    """Noise of one per cent that differs between cells and blocks, the same in every run of the tests."""
    return (
        1
        + ((block * 7 + cell.threads * 3 + ord(cell.allocator[0]) * 4 + dict(cell.parameters)["shift"] * 5) % 11 - 5)
        / 500
    )


def speeds(**by_allocator: float) -> claimed.Values:
    return lambda cell, block: {"operations": by_allocator[cell.allocator] * wobble(cell, block)}


def verdict(made: Campaign, **options: Any) -> dict[str, Any]:
    judged: dict[str, Any] = claimed.ledger(made, options.pop("cells", {}), **options)["claims"][0]
    return judged


def decided(values: claimed.Values, *predicates: dict[str, Any], **changed: Any) -> dict[str, Any]:
    options = {name: changed.pop(name) for name in ("blocks", "cores", "rtm") if name in changed}
    return verdict(claimed.campaign(claimed.study([claim(*predicates, **changed)]), values, **options))


@pytest.mark.parametrize(
    ("kind", "limit", "b", "expected"),
    [
        ("ratio_above", 1.0, 80, "reproduced"),
        ("ratio_above", 1.0, 100, "contradicted"),  # shown to be as fast, within the margin of the study
        ("ratio_above", 1.0, 130, "contradicted"),
        ("ratio_above", 1.5, 80, "contradicted"),  # above 1, but not by half
        ("ratio_below", 1.0, 130, "reproduced"),
        ("ratio_below", 1.0, 100, "contradicted"),
        ("ratio_below", 1.0, 80, "contradicted"),
        ("ratio_below", 0.5, 130, "contradicted"),
    ],
)
def test_ratios_are_decided_by_the_whole_interval(kind: str, limit: float, b: float, expected: str) -> None:
    judged = decided(speeds(a=100, b=b), {"kind": kind, "of": A1, "to": {"allocator": "b"}, "limit": limit})
    assert judged["verdict"] == expected
    (ours,) = judged["ours"]
    assert ours["low"] <= ours["estimate"] <= ours["high"]
    assert ours["estimate"] == pytest.approx(100 / b, rel=0.02)
    if expected == "undecided":
        assert judged["reason"].startswith("the interval does not decide: ops_per_s of a shift=5 1T / b shift=5 1T = ")


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(90, 110, "reproduced"), (110, 120, "contradicted"), (100, 120, "undecided")]
)
def test_a_band_holds_the_whole_interval(low: float, high: float, expected: str) -> None:
    assert decided(speeds(a=100, b=1), {"kind": "band", "of": A1, "low": low, "high": high})["verdict"] == expected


def test_a_band_of_a_ratio_and_of_a_value_that_never_varies() -> None:
    of_ratio = {"kind": "band", "of": A1, "to": {"allocator": "b"}, "low": 1.8, "high": 2.2}
    assert decided(speeds(a=100, b=50), of_ratio)["verdict"] == "reproduced"
    constant = {"kind": "band", "of": {**A1, "metric": "room_bytes"}, "low": 32, "high": 32}
    room = decided(lambda cell, block: {"operations": 1, "room_bytes": 32}, constant)
    assert room["verdict"] == "reproduced"
    assert room["ours"] == [
        {"what": "room_bytes of a shift=5 1T", "estimate": 32.0, "low": 32.0, "high": 32.0, "unit": "B"}
    ]
    assert decided(lambda cell, block: {"operations": 1, "room_bytes": 16}, constant)["verdict"] == "contradicted"


def test_an_order_compares_each_tier_with_the_next() -> None:
    of = {key: value for key, value in A1.items() if key != "allocator"}
    order = {"kind": "order", "of": of, "tiers": [["a"], ["b"]]}
    assert decided(speeds(a=100, b=80), order)["verdict"] == "reproduced"
    assert decided(speeds(a=100, b=100), order)["verdict"] == "contradicted"
    assert decided(speeds(a=80, b=100), order)["verdict"] == "contradicted"


@pytest.mark.parametrize(
    ("direction", "second", "expected"),
    [
        ("rises", 120, "reproduced"), ("rises", 80, "contradicted"), ("falls", 80, "reproduced"),
        ("falls", 120, "contradicted"), ("flat", 101, "reproduced"), ("flat", 130, "contradicted"),
        ("flat", 110, "undecided"),
    ],
)  # fmt: skip
def test_a_trend_follows_the_levels_of_a_factor(direction: str, second: float, expected: str) -> None:
    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": (100 if cell.threads == 1 else second) * wobble(cell, block)}

    trend = {
        "kind": "trend", "of": {"group": "list", "allocator": "a", "parameters": {"shift": 5}}, "along": "threads",
        "levels": [1, 2], "direction": direction,
    }  # fmt: skip
    assert decided(values, trend)["verdict"] == expected


def test_rates_of_events_are_pooled_and_may_be_zero() -> None:
    above = {"kind": "ratio_above", "of": {**A1, "metric": "aborts_per_attempt"}, "to": {"allocator": "b"}, "limit": 2}

    def rates(a: int, b: int) -> claimed.Values:
        return lambda cell, block: {
            "operations": 1, "attempts": 1000 + block, "aborts": (a if cell.allocator == "a" else b) * (block % 3 + 1)
        }  # fmt: skip

    pooled = decided(rates(30, 10), above)
    assert pooled["verdict"] == "reproduced"
    assert pooled["ours"][0]["estimate"] == pytest.approx(3)
    assert decided(rates(30, 0), above)["verdict"] == "reproduced"
    assert decided(rates(0, 0), above)["verdict"] == "contradicted"


def test_one_comparison_of_many_refutes_only_beyond_chance() -> None:
    """Six blocks bound a single comparison, but no two together: nothing can be refuted, all can be shown."""
    both = {"kind": "ratio_above", "of": {**A1, "allocator": ["a", "b"]}, "to": {"parameters": {"shift": 4}}}

    def values(at_five: float) -> claimed.Values:
        return lambda cell, block: {
            "operations": wobble(cell, block) * (at_five if ("shift", 5) in cell.parameters else 100)
        }

    assert decided(values(130), both, blocks=6)["verdict"] == "reproduced"
    assert decided(values(70), both, blocks=6)["verdict"] == "undecided"
    assert decided(values(70), both, blocks=10)["verdict"] == "contradicted"


def test_all_predicates_must_hold_and_one_that_fails_refutes() -> None:
    holds = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}}
    fails = {"kind": "ratio_below", "of": A1, "to": {"allocator": "b"}}
    unsure = {"kind": "band", "of": A1, "low": 100, "high": 200}
    values = speeds(a=100, b=50)
    assert decided(values, holds, holds)["verdict"] == "reproduced"
    assert decided(values, holds, unsure)["verdict"] == "undecided"
    assert decided(values, unsure, fails)["verdict"] == "contradicted"


ABOVE = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}}


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"cores": 8}, "needs 8 cores (this machine has 2)"),
        ({"rtm": True}, "needs hardware transactions (this machine has none that commit)"),
        ({"counters": True}, "needs hardware counters (not looked for)"),
        ({"allocators": ["hoard"]}, "needs allocator hoard (not measured here)"),
        ({"workloads": ["yada", "intset"]}, "needs the applications yada (no executable has them)"),
        ({"syncs": ["hybrid"]}, "needs synchronisation hybrid (not among those measured)"),
        ({"machine": "sim:xeon"}, "needs machine sim:xeon"),
    ],
)
def test_an_unmet_need_leaves_a_claim_undecided(needs: dict[str, Any], reason: str) -> None:
    judged = decided(speeds(a=100, b=50), ABOVE, needs=needs)
    assert (judged["verdict"], judged["reason"], judged["ours"]) == ("undecided", reason, [])


def test_counters_that_do_not_count_say_why() -> None:
    made = claimed.campaign(claimed.study([claim(ABOVE, needs={"counters": True})]), speeds(a=100, b=50))
    sources = [{"source": "perf_event", "counts": False, "why": "counted 0 of 1000 instructions"}]
    assert (
        verdict(made, counter_sources=sources)["reason"] == "needs hardware counters (counted 0 of 1000 instructions)"
    )
    assert verdict(made, counter_sources=[{**sources[0], "counts": True}])["verdict"] == "reproduced"


def test_met_needs_do_not_stand_in_the_way() -> None:
    needs = {"cores": 8, "rtm": True, "workloads": ["intset"], "syncs": ["stm"], "allocators": ["b"], "machine": "host"}
    assert decided(speeds(a=100, b=50), ABOVE, needs=needs, cores=8, rtm="works")["verdict"] == "reproduced"


def test_an_oversubscribed_run_never_decides() -> None:
    two = {"kind": "ratio_above", "of": {**A1, "threads": 2}, "to": {"allocator": "b"}}
    assert decided(speeds(a=100, b=50), two, cores=2)["verdict"] == "reproduced"
    judged = decided(speeds(a=100, b=50), two, cores=1)
    assert judged["verdict"] == "undecided"
    assert judged["reason"] == "a shift=5 2T: 2 threads on 1 cores; an oversubscribed run never decides"


def test_too_few_blocks_failed_cells_and_missing_ones_are_named() -> None:
    few = decided(speeds(a=100, b=50), ABOVE, blocks=5)
    assert few["verdict"] == "undecided"
    assert few["reason"].endswith("5 blocks are too few for an interval")
    failed = decided(lambda cell, block: {"operations": 1} if cell.allocator == "a" else None, ABOVE)
    assert failed["reason"] == "b shift=5 1T is failed (gave up)"
    zero = decided(speeds(a=100, b=0), ABOVE)
    assert zero["reason"].endswith("a value is 0 in every block, so that there is no ratio")
    starved = decided(
        lambda cell, block: {"operations": 0 if block == 3 else {"a": 100, "b": 50}[cell.allocator]}, ABOVE, blocks=7
    )
    assert starved["verdict"] == "reproduced", "one run that never got the processor says nothing"
    made = claimed.campaign(claimed.study([claim(ABOVE)]), speeds(a=100, b=50))
    made.cells = [cell for cell in made.cells if cell.threads == 2]
    assert verdict(made)["reason"] == "a shift=5 1T was not measured"


def test_an_absent_allocator_is_named_and_a_look_alike_says_so() -> None:
    against = {"kind": "ratio_above", "of": A1, "to": {"allocator": ["b", "hoard"]}}
    without = decided(speeds(a=100, b=50), against)
    assert without["verdict"] == "reproduced"
    assert without["reason"].endswith("; without hoard")
    only = decided(speeds(a=100, b=50), {"kind": "ratio_above", "of": A1, "to": {"allocator": "hoard"}})
    assert (only["verdict"], only["reason"]) == ("undecided", "needs hoard, which is missing here")
    stood_in = claimed.study([claim(against, needs={"allocators": ["hoard"]})], lookalikes={"hoard": "b"})
    judged = verdict(claimed.campaign(stood_in, speeds(a=100, b=50)))
    assert (judged["verdict"], judged["by_preset"]) == ("reproduced", True)
    assert not without["by_preset"]


def test_cachegrind_counts_are_read_over_the_repetitions_of_a_parameter() -> None:
    of = {
        "group": "list",
        "allocator": "a",
        "threads": 1,
        "source": "cachegrind",
        "over": "shift",
        "metric": "l1d_miss_ratio",
    }
    predicate = {"kind": "ratio_above", "of": of, "to": {"allocator": "b"}}
    made = claimed.campaign(claimed.study([claim(predicate)]), speeds(a=1, b=1))
    assert verdict(made)["reason"] == "a 1T: no value of l1d_miss_ratio was measured by cachegrind"
    counted = {
        cell.key: {"counters": [{"source": "cachegrind", "l1d_miss_ratio": 0.04 if cell.allocator == "a" else 0.03}]}
        for cell in made.cells
    }
    counts = claimed.counts({key: one["counters"] for key, one in counted.items()})
    (ours,) = evaluate._claim(Evidence(made, counts), made.study.claims[0]).ours
    assert ours.estimate == pytest.approx(4 / 3)


def test_what_a_profile_counted_decides_by_one_value() -> None:
    of = {
        "group": "list",
        "allocator": "a",
        "threads": 1,
        "parameters": {"shift": 5},
        "source": "profile",
        "metric": "calls",
    }
    same = {"kind": "band", "of": of, "to": {"allocator": "b"}, "low": 0.999, "high": 1.001}
    twice = {"kind": "ratio_above", "of": of, "to": {"allocator": "b"}, "limit": 1.5}
    many = {"kind": "band", "of": of, "low": 900, "high": 1100}
    made = claimed.campaign(claimed.study([claim(same)]), speeds(a=1, b=1))

    def decided_by_count(predicate: dict[str, Any], a: float, b: float) -> dict[str, Any]:
        counted = {cell.key: [{"source": "profile", "calls": a if cell.allocator == "a" else b}] for cell in made.cells}
        return evaluate._claim(
            Evidence(made, claimed.counts(counted)), Claim.model_validate(claim(predicate))
        ).as_json()

    assert [decided_by_count(same, 1000, b)["verdict"] for b in (1000, 1010)] == ["reproduced", "contradicted"]
    assert [decided_by_count(twice, a, 1000)["verdict"] for a in (1600, 1400)] == ["reproduced", "contradicted"]
    assert [decided_by_count(many, a, 1)["verdict"] for a in (1000, 1200)] == ["reproduced", "contradicted"]
    assert decided_by_count(many, 1000, 1)["ours"][0]["low"] == 1000
    assert decided_by_count(twice, 1600, 1000)["ours"][0]["unit"] == "1", "of a ratio, whatever is counted"
    assert decided_by_count(many, 1000, 1)["ours"][0]["unit"] == "1"
    assert verdict(made)["reason"] == "a shift=5 1T: no value of calls was measured by profile"


def test_a_claim_without_a_predicate_must_wait_for_something() -> None:
    with pytest.raises(ValueError, match="has no predicate"):
        Claim.model_validate(claim())
    waiting = claim(needs={"workloads": ["yada"]})
    assert decided(speeds(a=1, b=1), needs=waiting["needs"])["verdict"] == "undecided"


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ({"kind": "ratio_above", "of": A1}, "ratio_above needs to"),
        ({"kind": "band", "of": A1, "low": 1}, "band needs high"),
        ({"kind": "band", "of": A1, "low": 2, "high": 1}, "low 2.0 is above high 1.0"),
        ({"kind": "order", "of": {"group": "list"}, "tiers": [["a"]]}, "at least two tiers"),
        ({"kind": "trend", "of": A1, "along": "threads", "levels": [1], "direction": "rises"}, "at least two levels"),
        ({"kind": "ratio_above", "of": A1, "to": {}, "margin": 0.1}, "ratio_above has no margin"),
        ({"kind": "band", "of": {"allocator": "a"}, "low": 1, "high": 2}, "of.group is missing"),
        ({"kind": "band", "of": {"group": "list"}, "low": 1, "high": 2}, "of.allocator is missing"),
        ({"kind": "near", "of": A1}, "Input should be 'ratio_above'"),
    ],
)
def test_a_predicate_that_is_not_whole_is_refused(predicate: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Predicate.model_validate(predicate)


HEAD = """schema = 2
name = "mine"
title = "t"
question = "q?"
allocators = ["plain", "fast"]
baseline = "plain"
blocks = 6
[[groups]]
name = "a"
workload = "intset"
sync = ["STM"]
threads = [1]
parameters = { structure = "list", mapping = ["table", "shadow"], spread = 5 }
[[claims]]
id = "900-01"
section = "1"
sentence = "fast is faster"
[[claims.predicates]]
kind = "ratio_above"
of = { group = "a", allocator = "fast", parameters = { mapping = "table" } }
to = { allocator = "plain" }
""".replace("STM", campaigns.STM)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("section =", "secton =", ":16: claims[0].secton: unknown key"),
        ('kind = "ratio_above"', 'kind = "ratio_abov"', ":19: claims[0].predicates[0].kind: Input should be"),
        ('group = "a", all', 'group = "b", all', ":18: claims[0].predicates[0]: the study has no group 'b'"),
        ('"fast", par', '"fest", par', "does not measure allocator 'fest' (did you mean fast?)"),
        ('mapping = "table" } }', 'maping = "table" } }', "group a does not set maping (did you mean mapping?)"),
        ('{ mapping = "table" }', '{ mapping = "tables" }', "group a has no level tables of mapping (it has table, shadow)"),
        (', parameters = { mapping = "table" }', "", "group a has several levels of mapping (name one: table, shadow)"),
        ('to = { allocator = "plain" }', 'to = { threads = 2 }', "group a has no cells of 2 threads (it has 1)"),
        ('to = { allocator = "plain" }', 'to = { over = "spread" }', "group a does not vary 'spread'"),
        ('to = { allocator = "plain" }', 'to = { code = "x" }', ":21: claims[0].predicates[0].to.code: unknown key"),
        ('sentence = "fast', 'run = "import os"\nsentence = "fast', ":17: claims[0].run: unknown key"),
        ('section = "1"', 'section = "1"\nfollows_from = ["900-02"]', ":17: claims[0].follows_from[0]: there is no other"),
        ('section = "1"', 'section = "1"\nfollows_from = ["900-01"]', "there is no other claim 900-01"),
        ("[[claims.pred", '[[claims]]\nid = "900-01"\nsection = "1"\nsentence = "s"\n[[claims.pred', "has no predicate"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_claim_is_named_with_line_and_nearest_name(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    file = tmp_path / "mine.toml"
    assert old in HEAD
    file.write_text(HEAD.replace(old, new, 1))
    with pytest.raises(LoamError) as caught:
        studies.load(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def run_study(file: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    study, _ = studies.find(str(file))
    request = campaigns.asking(out=out, report=False)
    status = commands.perform(study, request, command="./loam study run mine", instruments=campaigns.FakeInstruments())
    assert status == 0
    return json.loads((out / "result.json").read_text()), capsys.readouterr().out


def test_a_study_ends_with_its_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    figure = """[[paper_figures]]
id = "table 9"
title = "Speeds"
kind = "table"
groups = ["a"]
paper = { columns = ["allocator", "speed"], rows = [["fast", "1.3"]] }
ours = [{ select = { group = "a", parameters = { mapping = "table" } }, metrics = ["ops_per_s", "aborts"] }]
"""
    second = HEAD[HEAD.index("[[claims]]") :].replace("900-01", "900-02").replace("ratio_above", "ratio_below")
    file.write_text(HEAD + second + figure)
    result, printed = run_study(file, tmp_path / "out", capsys)
    assert [(c["id"], c["verdict"]) for c in result["claims"]] == [("900-01", "reproduced"), ("900-02", "contradicted")]
    assert result["claims"][0]["ours"][0]["estimate"] == pytest.approx(1.3, rel=0.05)
    assert "claims of study mine: 1 reproduced, 1 contradicted" in printed
    assert "fast is faster" in printed
    (shown,) = result["paper_figures"]
    assert shown["ours"]["columns"] == ["allocator", "ops_per_s", "aborts"]
    assert [row[0] for row in shown["ours"]["rows"]] == ["plain", "fast"]
    assert shown["ours"]["rows"][1][1]["estimate"] == pytest.approx(1.3e7, rel=0.05)
    assert shown["paper"]["rows"] == [["fast", "1.3"]]


def test_in_a_counted_group_no_allocator_is_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, result = campaigns.measure(campaigns.study(role="counted", blocks=6), tmp_path)
    assert (result["headlines"], result["geomeans"], result["contrasts"]) == ([], [], [])
    tables.show(typed(result))
    assert capsys.readouterr().out == ""


def test_many_reasons_are_counted_and_not_all_said() -> None:
    unsure = [{"kind": "band", "of": A1, "low": low, "high": 2 * low} for low in (99, 99.5, 100, 100.5)]
    reason = decided(speeds(a=100, b=50), *unsure)["reason"]
    assert reason.count("ops_per_s of a shift=5 1T") == 1, "the same reason is said once"
    few = decided(speeds(a=100, b=50), ABOVE, {**ABOVE, "of": {**A1, "threads": 2}}, unsure[0], blocks=5)["reason"]
    assert few.count("too few") == 2
    assert few.endswith("; and 1 more")


def test_a_metric_that_does_not_exist_is_refused_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HEAD.replace('allocator = "fast", p', 'allocator = "fast", metric = "abortz", p'))
    study, _ = studies.find(str(file))
    with pytest.raises(LoamError, match=r"claim 900-01: metric=abortz: .*\(did you mean aborts\?\)"):
        commands.perform(
            study, campaigns.asking(out=tmp_path / "out"), command="", instruments=campaigns.FakeInstruments()
        )
    assert not (tmp_path / "out").exists()


def test_counts_that_no_run_gives_are_refused() -> None:
    def refused(of: dict[str, Any], message: str, **group: Any) -> None:
        groups = [{"name": "list", "workload": "intset", "threads": [1], "parameters": {"shift": [5, 4]}, **group}]
        made = claimed.study([claim({"kind": "band", "of": {**A1, **of}, "low": 0, "high": 1})], groups=groups)
        with pytest.raises(LoamError, match=message):
            check.check(made, {"list": [claimed.DESCRIPTION]})

    refused({"source": "cachegrind", "metric": "l1d_miss_ratio"}, "group list has no cachegrind runs")
    refused({"source": "cachegrind", "metric": "l1_miss_ratio"}, "did you mean l1d_miss_ratio", cachegrind=True)
    refused({"source": "counters", "metric": "cycles"}, "group list has no counters runs")
    refused({"metric": "room_byte"}, "not the name of a metric of intset in stm .did you mean room_bytes")


def test_a_metric_is_asked_of_the_synchronisation_that_a_claim_names() -> None:
    of = {**A1, "sync": "other", "metric": "room"}
    groups = [
        {
            "name": "list",
            "workload": "intset",
            "sync": ["stm", "other"],
            "threads": [1],
            "parameters": {"shift": [5, 4]},
        }
    ]
    made = claimed.study([claim({"kind": "band", "of": of, "low": 0, "high": 1})], groups=groups)
    check.check(made, {"list": [claimed.DESCRIPTION]})  # the other one does not run here
    other = claimed.DESCRIPTION.model_copy(
        update={"sync": claimed.DESCRIPTION.sync.model_copy(update={"name": "other"})}
    )
    with pytest.raises(LoamError, match=r"not the name of a metric of intset in other"):
        check.check(made, {"list": [claimed.DESCRIPTION, other]})


def test_threads_beyond_the_machine_are_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads(count: int) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)))

    threads(4)
    stm, notes = available.fitting(studies.load(studies.registry()["stm"]))
    assert [group.threads for group in stm.groups[:4]] == [(1, 2, 4), (1, 2, 4), (1, 2, 4), (2,)]
    assert notes == [
        "threads 6, 8 are left out: this machine has 4 hardware threads; claims about them stay undecided; "
        "use a larger machine"
    ]
    threads(1)
    one, notes = available.fitting(studies.load(studies.registry()["stm"]))
    assert "rates" not in [group.name for group in one.groups]
    assert any("group rates is left out" in note for note in notes)
    wide = claimed.study([], groups=[{"name": "list", "workload": "intset", "threads": [8]}])
    with pytest.raises(LoamError, match="add --oversubscribe"):
        available.fitting(wide)
