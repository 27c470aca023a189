"""Each predicate in both directions and at its limits, for one comparison and for many, and pairs that follow the block."""

from __future__ import annotations

from typing import Any

import claimed
import pytest
from test_claims import A1, claim, decided, speeds, verdict, wobble

from loam_lab.judging.claims import judges, predicates, values
from loam_lab.judging.claims.values import Evidence
from loam_lab.judging.reasons import NothingShared
from loam_lab.judging.statistics import contrasts
from loam_lab.model.cell import Cell
from loam_lab.model.claim import Predicate, Selection

TREND = {
    "kind": "trend", "of": {"group": "list", "allocator": "a", "parameters": {"shift": 5}}, "along": "threads",
    "levels": [1, 2],
}  # fmt: skip


@pytest.mark.parametrize(
    ("direction", "limit", "second", "expected"),
    [
        ("rises", 1.2, 130, "reproduced"), ("rises", 1.2, 110, "contradicted"), ("rises", 1.2, 120, "undecided"),
        ("falls", 1.25, 70, "reproduced"), ("falls", 1.25, 90, "contradicted"), ("falls", 1.25, 80, "undecided"),
        ("falls", 1.25, 125, "contradicted"), ("rises", 1.25, 80, "contradicted"),
    ],
)  # fmt: skip
def test_a_trend_keeps_its_limit_at_each_step(direction: str, limit: float, second: float, expected: str) -> None:
    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": (100 if cell.threads == 1 else second) * wobble(cell, block)}

    assert decided(values, {**TREND, "direction": direction, "limit": limit})["verdict"] == expected


def test_a_trend_steps_from_level_to_level_and_a_flat_one_from_the_first() -> None:
    speeds = {1: 100.0, 2: 150.0, 4: 120.0}
    groups = [
        {"name": "list", "workload": "intset", "sync": ["stm"], "threads": [1, 2, 4], "parameters": {"shift": [5, 4]}}
    ]

    def of(direction: str, **changed: Any) -> dict[str, Any]:
        trend = {**TREND, "levels": [1, 2, 4], "direction": direction, **changed}
        made = claimed.study([claim(trend)], groups=groups)
        return verdict(
            claimed.campaign(
                made, lambda cell, block: {"operations": speeds[cell.threads] * wobble(cell, block)}, cores=4
            )
        )

    rises = of("rises")
    assert rises["verdict"] == "contradicted"
    assert [round(one["estimate"], 1) for one in rises["ours"]] == [1.5, 0.8]
    flat = of("flat", margin=0.3)
    assert flat["verdict"] == "contradicted"
    assert [round(one["estimate"], 1) for one in flat["ours"]] == [1.5, 1.2]
    assert of("flat", margin=0.6)["verdict"] == "reproduced"


@pytest.mark.parametrize(("second", "expected"), [(60, "reproduced"), (130, "contradicted"), (100, "contradicted")])
def test_a_trend_of_a_ratio_is_that_of_one_value_over_the_other(second: float, expected: str) -> None:
    """Half with one thread; what it is divided by doubles with two."""
    trend = {
        "kind": "trend", "of": {"group": "list", "allocator": "a", "parameters": {"shift": 5}}, "along": "threads",
        "to": {"parameters": {"shift": 4}}, "levels": [1, 2], "direction": "falls",
    }  # fmt: skip

    def values(cell: Cell, block: int) -> dict[str, float]:
        five = dict(cell.parameters)["shift"] == 5
        return {
            "operations": (100 * cell.threads if not five else 50 if cell.threads == 1 else second)
            * wobble(cell, block)
        }

    judged = decided(values, trend)
    assert judged["verdict"] == expected
    assert [round(one["estimate"], 1) for one in judged["ours"]] == [second / 100]
    assert judged["predicate"] == "trend: first metric of a shift=5 / shift=4 falls along threads 1 2"


def test_the_steadier_of_two_varies_less_from_its_lowest_to_its_highest() -> None:
    """Along three levels: what falls counts as what rises, and how fast each is does not."""
    groups = [
        {"name": "list", "workload": "intset", "sync": ["stm"], "threads": [1, 2, 4], "parameters": {"shift": [5, 4]}}
    ]
    steadier = {
        "kind": "steadier", "of": {"group": "list", "allocator": "a", "parameters": {"shift": 5}}, "to": {"allocator": "b"},
        "along": "threads", "levels": [1, 2, 4],
    }  # fmt: skip

    def of(a: tuple[int, int, int], b: tuple[int, int, int]) -> dict[str, Any]:
        speeds = {"a": dict(zip((1, 2, 4), a, strict=True)), "b": dict(zip((1, 2, 4), b, strict=True))}
        return verdict(
            claimed.campaign(
                claimed.study([claim(steadier)], groups=groups),
                lambda cell, block: {"operations": speeds[cell.allocator][cell.threads] * wobble(cell, block)},
                cores=4,
            )
        )

    judged = of((100, 90, 110), (1000, 500, 2000))
    assert judged["verdict"] == "reproduced"
    assert [round(one["estimate"], 1) for one in judged["ours"]] == [0.3]
    assert judged["predicate"] == "steadier: first metric of a shift=5 along threads 1 2 4 than b"
    assert of((100, 50, 200), (10, 11, 12))["verdict"] == "contradicted"
    assert of((100, 100, 100), (7, 7, 7))["verdict"] == "contradicted"
    with pytest.raises(ValueError, match="steadier needs at least two levels"):
        Predicate.model_validate({**steadier, "levels": [1]})
    with pytest.raises(ValueError, match="steadier needs to"):
        Predicate.model_validate({name: steadier[name] for name in ("kind", "of", "along", "levels")})


@pytest.mark.parametrize(
    ("predicate", "holds", "fails"),
    [
        ({"kind": "ratio_above", "to": {"parameters": {"shift": 4}}}, 130, 70),
        ({"kind": "ratio_below", "to": {"parameters": {"shift": 4}}}, 70, 130),
        ({"kind": "band", "to": {"parameters": {"shift": 4}}, "low": 0.9, "high": 1.1}, 100, 130),
        ({"kind": "band", "to": {"parameters": {"shift": 4}}, "low": 0.9, "high": 1.1}, 100, 70),
        ({"kind": "band", "low": 90, "high": 110}, 100, 130),
        ({"kind": "band", "low": 90, "high": 110}, 100, 70),
    ],
)
def test_of_many_comparisons_one_refutes_only_beyond_chance(
    predicate: dict[str, Any], holds: float, fails: float
) -> None:
    """Six blocks bound one comparison, but no two together (Bonferroni): two can be shown, neither can be refuted."""

    def values(at_five: float) -> claimed.Values:
        return lambda cell, block: {
            "operations": wobble(cell, block) * (at_five if ("shift", 5) in cell.parameters else 100)
        }

    one = {**predicate, "of": A1}
    both = {**predicate, "of": {**A1, "allocator": ["a", "b"]}}
    assert decided(values(holds), one, blocks=6)["verdict"] == "reproduced"
    assert decided(values(holds), both, blocks=6)["verdict"] == "reproduced"
    assert decided(values(fails), one, blocks=6)["verdict"] == "contradicted"
    assert decided(values(fails), both, blocks=6)["verdict"] == "undecided"
    assert decided(values(fails), both, blocks=10)["verdict"] == "contradicted"


def test_of_many_predicates_one_refutes_only_beyond_chance() -> None:
    """The interval is for the claim as a whole: its predicates share the chance to be wrong, however they are cut."""
    above = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}}
    other = {**above, "of": {**A1, "threads": 2}}
    fails = speeds(a=50, b=100)
    assert decided(fails, above, blocks=6)["verdict"] == "contradicted"
    assert decided(fails, above, other, blocks=6)["verdict"] == "undecided"
    assert decided(fails, above, other, blocks=10)["verdict"] == "contradicted"
    assert decided(speeds(a=100, b=50), above, other, blocks=6)["verdict"] == "reproduced"
    # What chance has no part in, and what could not be read, takes nothing from the rest.
    lost = {"kind": "band", "of": {**A1, "metric": "colour"}, "low": 0, "high": 1}
    assert decided(fails, above, lost, blocks=6)["verdict"] == "contradicted"


def test_one_of_several_takes_one_chance_of_its_claim() -> None:
    below = {"kind": "ratio_below", "of": A1, "to": {"allocator": ["b", "c"]}, "some": True}
    above = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}}

    def of(blocks: int, *together: dict[str, Any]) -> str:
        made = claimed.study([claim(*together)], allocators=["a", "b", "c"])
        return str(verdict(claimed.campaign(made, speeds(a=100, b=50, c=50), blocks=blocks))["verdict"])

    assert of(6, below) == "contradicted" and of(6, below, above) == "undecided"
    assert of(7, below, above) == "contradicted", "two chances, not three: seven blocks bound two and not three"


def test_where_a_predicate_need_not_hold_the_others_need_more() -> None:
    """All but one of two: chance has two to choose from."""
    above = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}}
    other = {**above, "of": {**A1, "threads": 2}}
    holds = speeds(a=100, b=50)
    assert decided(holds, above, other, blocks=6)["verdict"] == "reproduced"
    assert decided(holds, above, other, all_but=1, blocks=6)["verdict"] == "undecided"
    assert decided(holds, above, other, all_but=1, blocks=7)["verdict"] == "reproduced"


# ---- pairs follow the block, not the position


def drifting(ratio: float, lost: dict[str, int]) -> claimed.Values:
    """The machine is twice as fast in every block as in the one before, and a run of an allocator is lost."""

    def values(cell: Cell, block: int) -> dict[str, float] | None:
        if lost.get(cell.allocator) == block:
            return None
        speed = 2.0**block * (ratio if cell.allocator == "a" else 1)
        return {
            "operations": speed, "room_bytes": speed, "attempts": 1000 * 2**block,
            "aborts": (ratio if cell.allocator == "a" else 1) * 100 * 4**block,
        }  # fmt: skip

    return values


# One lost run of 21 leaves a cell that counts.
@pytest.mark.parametrize("lost", [{"a": 3}, {"b": 0}, {"a": 0, "b": 20}, {"a": 7, "b": 8}])
def test_ratios_pair_what_shared_a_block_where_runs_failed(lost: dict[str, int]) -> None:
    to_b = {"to": {"allocator": "b"}}
    above = {"kind": "ratio_above", "of": A1, **to_b, "limit": 2.9}
    below = {"kind": "ratio_below", "of": A1, **to_b, "limit": 3.1}
    band = {"kind": "band", "of": A1, **to_b, "low": 2.9, "high": 3.1}
    order = {"kind": "order", "of": {k: v for k, v in A1.items() if k != "allocator"}, "tiers": [["a"], ["b"]]}
    judged = decided(drifting(3.0, lost), above, below, band, order, blocks=21)
    assert judged["verdict"] == "reproduced"
    for ours in judged["ours"]:
        assert [ours["low"], ours["estimate"], ours["high"]] == pytest.approx([3.0, 3.0, 3.0])


@pytest.mark.parametrize("lost", [{"a": 3}, {"b": 0}, {"a": 0, "b": 20}, {"a": 7, "b": 8}])
def test_rates_of_events_pair_what_shared_a_block(lost: dict[str, int]) -> None:
    rate = {"kind": "band", "of": {**A1, "metric": "aborts_per_attempt"}, "to": {"allocator": "b"}, "low": 2, "high": 4}
    judged = decided(drifting(3.0, lost), rate, blocks=21)
    assert judged["verdict"] == "reproduced"
    assert judged["ours"][0]["estimate"] == pytest.approx(3.0)


@pytest.mark.parametrize("lost", [{"a": 3}, {"b": 0}, {"a": 0, "b": 20}, {"a": 7, "b": 8}])
def test_contrasts_and_figures_pair_what_shared_a_block(lost: dict[str, int]) -> None:
    of = {"group": "list", "parameters": {"shift": 5}}
    extremes = {
        "id": "f", "title": "t", "kind": "table", "groups": ["list"], "paper": {"columns": ["a"], "rows": [[1]]},
        "ours": [{"kind": "extremes", "select": of, "rows": "threads"}],
    }  # fmt: skip
    made = claimed.campaign(claimed.study([], paper_figures=[extremes]), drifting(3.0, lost), blocks=21)
    cells = [cell for cell in made.cells if cell.threads == 1 and ("shift", 5) in cell.parameters]
    first, second = (next(cell for cell in cells if cell.allocator == name) for name in "ab")
    for ratio, expected in (
        (contrasts.paired(made, (first, 0), (second, 0)), 3.0),
        (contrasts.paired(made, (second, 0), (first, 0)), 1 / 3),
        (contrasts.to_baseline(made, second), 1 / 3),
    ):
        assert ratio is not None and ratio.low is not None
        assert [ratio.low, ratio.estimate, ratio.high] == pytest.approx([expected] * 3)
        assert ratio.n == 21 - len(lost)
    without = contrasts.paired(made, (first, 0), (second, 0), without=frozenset({10, 11}))
    assert without is not None and without.n == 19 - len(lost)
    (shown,) = claimed.ledger(made, {})["paper_figures"]
    for row in shown["ours"]["rows"]:
        assert row[1:3] == ["a", "b"]
        assert row[3]["estimate"] == pytest.approx(3.0)


# ---- rates of events


def rates(aborts: dict[str, int]) -> claimed.Values:
    """Few attempts in every other block, half of which abort; many in the others, of which `aborts` do."""
    return lambda cell, block: {
        "operations": 1, "attempts": 10000 if block % 2 else 100,
        "aborts": aborts[cell.allocator] if block % 2 else 50 * (aborts[cell.allocator] > 0),
    }  # fmt: skip


def test_a_band_of_a_rate_pools_its_counts() -> None:
    """A median of the blocks' rates, 0.255, would weigh 100 attempts as much as 10000."""
    band = {"kind": "band", "of": {**A1, "metric": "aborts_per_attempt"}}
    pooled = decided(rates({"a": 100, "b": 1}), {**band, "low": 0.005, "high": 0.1}, blocks=20)
    assert pooled["verdict"] == "reproduced"
    (ours,) = pooled["ours"]
    assert ours["estimate"] == pytest.approx(150 / 10100)
    assert ours["low"] < ours["estimate"] < ours["high"] < 0.1
    assert (ours["what"], ours["unit"]) == ("aborts_per_attempt of a shift=5 1T", "1")
    assert decided(rates({"a": 100, "b": 1}), {**band, "low": 0.2, "high": 0.3}, blocks=20)["verdict"] == "contradicted"


def test_a_rate_without_any_event_has_a_finite_ratio() -> None:
    below = {"kind": "ratio_below", "of": {**A1, "metric": "aborts_per_attempt"}, "to": {"allocator": "b"}}
    judged = decided(rates({"a": 0, "b": 100}), below, blocks=20)
    assert judged["verdict"] == "reproduced"
    assert 0 < judged["ours"][0]["low"] <= judged["ours"][0]["estimate"] < 0.02
    none = decided(rates({"a": 0, "b": 0}), below, blocks=20)
    assert none["ours"][0]["estimate"] == pytest.approx(1.0)


EVENTS = {**A1, "metric": "aborts_per_attempt"}


def counted(a: tuple[int, int], b: tuple[int, int], but: int = -1) -> claimed.Values:
    """Aborts and attempts of each block; in one block the first allocator has an abort more."""
    return lambda cell, block: {
        "operations": wobble(cell, block), "attempts": (a if cell.allocator == "a" else b)[1],
        "aborts": (a if cell.allocator == "a" else b)[0] + (cell.allocator == "a" and block == but),
    }  # fmt: skip


def test_half_an_event_more_where_there_is_none() -> None:
    below = {"kind": "ratio_below", "of": EVENTS, "to": {"allocator": "b"}}
    (ours,) = decided(counted((0, 9), (3, 19)), below)["ours"]
    assert ours["estimate"] == pytest.approx((0.5 / 10) / (3.5 / 20))
    assert (ours["what"], ours["unit"]) == ("aborts_per_attempt of a shift=5 1T / b shift=5 1T", "1")
    (one,) = decided(counted((0, 9), (3, 19), but=4), below)["ours"]
    assert one["estimate"] == pytest.approx((1 / 90) / (3 / 19)), "a single event is pooled"


def test_a_rate_over_a_count_is_a_ratio_of_values() -> None:
    mixed = {"kind": "band", "of": EVENTS, "to": {"allocator": "b", "metric": "attempts"}, "low": 0, "high": 1}
    for predicate in (mixed, {**mixed, "of": {**A1, "metric": "attempts"}, "to": {"metric": "aborts_per_attempt"}}):
        (ours,) = decided(counted((3, 10), (3, 20)), predicate)["ours"]
        assert ours["estimate"] == pytest.approx(0.3 / 20 if predicate is mixed else 10 / 0.3)
        assert ours["unit"] == "1"


@pytest.mark.parametrize(
    ("of", "to", "values"),
    [
        (A1, {"parameters": {"shift": 4}}, None),
        (A1, None, None),
        (EVENTS, {"parameters": {"shift": 4}}, (5, 0)),
        (EVENTS, {"parameters": {"shift": 4}}, (0, 5)),
        (EVENTS, None, (5, 0)),
    ],
)
def test_every_kind_of_comparison_has_a_wider_interval_beside_others(
    of: dict[str, Any], to: dict[str, Any] | None, values: tuple[int, int] | None
) -> None:
    def varied(cell: Cell, block: int) -> dict[str, float]:
        five = ("shift", 5) in cell.parameters
        events = 0 if values is None else values[0 if five else 1] * (1 + block)
        return {"operations": wobble(cell, block), "attempts": 100 + 7 * block * block, "aborts": events}

    predicate = {"kind": "band", "of": {**of, "allocator": ["a", "b"]}, "low": 0, "high": 99}
    made = claimed.campaign(claimed.study([]), varied, blocks=12)
    asked = Predicate.model_validate({**predicate, **({"to": to} if to else {})})
    (decision,) = predicates.decide(Evidence(made), [asked])
    assert len(decision.comparisons) == 2
    for one in decision.comparisons:
        own, apart = one.interval, one.apart
        assert own.low is not None and own.high is not None and apart.low is not None and apart.high is not None
        assert apart.low <= own.low <= own.estimate <= own.high <= apart.high
        assert apart.width > own.width


def test_values_that_share_no_block_are_undecided() -> None:
    one, other = (values.Observed("x of " + name, {name: 1.0}, {}, "1") for name in "ab")
    with pytest.raises(values.Undecided) as undecided:
        predicates._ratio(one, other, judges.above(1.0))
    assert undecided.value.reason == NothingShared("x of a / b")


def test_both_sides_of_a_comparison_are_told_apart_in_words() -> None:
    pools = Selection(group="g", allocator=("pool",), sync="htm-lock", machine="sim:mppa16", threads=2)
    assert pools.words() == "pool htm-lock 2T on sim:mppa16"
    by_lock = Predicate(kind="ratio_above", of=pools, to=Selection(sync="global-lock"), limit=1.2)
    assert by_lock.words() == "ratio_above: first metric of pool htm-lock 2T on sim:mppa16 / global-lock > 1.2"
    elsewhere = Predicate(kind="ratio_below", of=pools, to=Selection(machine="sim:host", threads=1))
    assert elsewhere.words().endswith(" / 1T on sim:host < 1")
    extra = pools.model_copy(update={"metric": "aborts"})
    counts = Predicate(kind="band", of=extra, to=Selection(metric="commits"), low=0.1, high=0.2)
    assert counts.words() == "band: aborts of pool htm-lock 2T on sim:mppa16 / commits in [0.1, 0.2]"
    other = Predicate(kind="band", of=extra, to=Selection(metric="commits", threads=1), low=0.1, high=0.2)
    assert " / commits of 1T in " in other.words()
    than = Predicate(kind="ratio_below", of=pools, to=Selection(sync="global-lock"), than=Selection(threads=4))
    assert than.words().endswith(" / global-lock, over the same of 4T, < 1")
    some = Predicate(kind="ratio_above", of=pools, to=Selection(allocator=("a", "b")), some=True)
    assert some.words().endswith(" / a, b of at least one > 1")


# ---- a ratio over the same ratio elsewhere; one of several


@pytest.mark.parametrize(("behind", "expected"), [(50, "reproduced"), (80, "contradicted"), (90, "contradicted")])
def test_a_ratio_is_compared_with_the_same_ratio_elsewhere(behind: float, expected: str) -> None:
    """a / b with one thread, over a / b with two threads: below 1 if `a` is further behind with one."""

    def values(cell: Cell, block: int) -> dict[str, float]:
        slow = {1: behind, 2: 80}[cell.threads] if cell.allocator == "a" else 100
        return {"operations": 7 * cell.threads * slow * wobble(cell, block)}

    predicate = {"kind": "ratio_below", "of": A1, "to": {"allocator": "b"}, "than": {"threads": 2}}
    judged = decided(values, predicate)
    assert judged["verdict"] == expected
    (one,) = judged["ours"]
    assert one["estimate"] == pytest.approx(behind / 80, rel=0.03)
    assert one["what"] == "ops_per_s of a shift=5 1T / b shift=5 1T / a shift=5 2T / b shift=5 2T"


def test_elsewhere_may_be_other_allocators_and_is_never_the_same() -> None:
    """The speed-up of a, over that of each of a and b: a is compared with b alone."""

    def values(cell: Cell, block: int) -> dict[str, float]:
        return {"operations": (3 if (cell.allocator, cell.threads) == ("a", 2) else 1) * wobble(cell, block)}

    of = {**A1, "threads": 2}
    predicate = {"kind": "ratio_above", "of": of, "to": {"threads": 1}, "than": {"allocator": ["a", "b"]}, "limit": 2}
    judged = decided(values, predicate)
    assert judged["verdict"] == "reproduced" and len(judged["ours"]) == 1
    both = {
        "kind": "ratio_above",
        "of": {**of, "allocator": ["a", "b"]},
        "to": {"threads": 1},
        "than": {"parameters": {"shift": 4}},
    }
    judged = decided(values, {**both, "limit": 0.5})
    assert judged["verdict"] == "reproduced" and len(judged["ours"]) == 2, "each with itself elsewhere"
    gone = {**predicate, "than": {"allocator": "hoard"}}
    assert decided(values, gone)["reason"] == "needs hoard, which is missing here"


@pytest.mark.parametrize(
    ("b", "c", "expected"),
    [(50, 150, "reproduced"), (50, 100, "contradicted"), (50, 60, "contradicted"), (150, 160, "reproduced")],
)
def test_one_of_several_comparisons_is_enough(b: float, c: float, expected: str) -> None:
    """a is slower than b or than c."""
    one = {"kind": "ratio_below", "of": A1, "to": {"allocator": ["b", "c"]}, "some": True}
    made = claimed.study([claim(one)], allocators=["a", "b", "c"])
    judged = verdict(claimed.campaign(made, speeds(a=100, b=b, c=c)))
    assert judged["verdict"] == expected and len(judged["ours"]) == 2


def test_one_of_several_needs_the_confidence_of_all_and_to_fail_takes_its_own() -> None:
    """Six blocks have an interval of 95 %, and none of 97.5 %."""
    one = {"kind": "ratio_below", "of": A1, "to": {"allocator": ["b", "c"]}, "some": True}
    made = claimed.study([claim(one)], allocators=["a", "b", "c"])
    assert verdict(claimed.campaign(made, speeds(a=100, b=150, c=50), blocks=6))["verdict"] == "undecided"
    assert verdict(claimed.campaign(made, speeds(a=100, b=150, c=50), blocks=7))["verdict"] == "reproduced"
    assert verdict(claimed.campaign(made, speeds(a=100, b=50, c=50), blocks=6))["verdict"] == "contradicted"
    absent = verdict(
        claimed.campaign(claimed.study([claim({**one, "to": {"allocator": ["b", "hoard"]}})]), speeds(a=100, b=150))
    )
    assert absent["verdict"] == "reproduced" and absent["reason"].endswith("; without hoard")


@pytest.mark.parametrize("kind", ["band", "trend", "order"])
@pytest.mark.parametrize("key", [{"than": {"threads": 2}}, {"some": True}])
def test_only_ratios_may_say_than_and_some(kind: str, key: dict[str, Any]) -> None:
    of = {name: value for name, value in A1.items() if name != "allocator"} if kind == "order" else A1
    rest = {
        "band": {"low": 1, "high": 2}, "order": {"tiers": [["a"], ["b"]]},
        "trend": {"along": "threads", "levels": [1, 2], "direction": "rises"},
    }[kind]  # fmt: skip
    with pytest.raises(ValueError, match=f"{kind} has no {next(iter(key))}"):
        Predicate.model_validate({"kind": kind, "of": of, **rest, **key})
