"""explain --factors: which designs are measured, what a screening's result says, its tables, bad input, and a real run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from campaigns import measure, study
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.cli import main
from loam_lab.commands.explain import factors
from loam_lab.commands.run import factor_tables
from loam_lab.judging.result import screening
from loam_lab.judging.statistics import intervals
from loam_lab.presenting import report
from loam_lab.subjects.allocators import registry


def fits(name: str) -> str:
    return ""


# ---- which designs


def test_every_change_is_of_one_factor_and_none_is_the_base() -> None:
    screened = factors.screened("design:base", [], fits, transactions=False)
    assert screened.base == "design:base" and len(screened.changed) > 20
    changes = [screening.changed(screened.base, name) for name in screened.changed]
    before = registry.values("design:base")
    assert all(change is not None and before[change[0]] != change[1] for change in changes)
    tried = {change[0] for change in changes if change is not None}
    assert tried == set(registry.definitions()["design"].settings)


def test_hardware_transactions_are_screened_where_there_are_any() -> None:
    without = factors.screened("design:base", ["guard"], fits, transactions=False)
    assert without.changed == ("design:base:guard=atomic",)
    assert [text.split(":")[0] for text in without.left_out] == ["guard=transaction", "guard=elided"]
    # Where there are some, they are not asked of a library that runs on another machine.
    screened = factors.screened("design:base", ["guard"], lambda name: "no" * ("trans" in name), transactions=True)
    assert screened.changed == tuple(f"design:base:guard={value}" for value in ("atomic", "transaction", "elided"))


def test_a_setting_of_the_base_is_replaced_and_a_presets_value_is_not_tried() -> None:
    assert factors.changed("design:base:cache=0:batch=4", "cache", "8") == "design:base:cache=8:batch=4"
    screened = factors.screened("design:hoard", ["return-to", "metadata", "cache=7"], fits, transactions=False)
    assert screened.changed == (
        "design:hoard:metadata=beside", "design:hoard:metadata=block", "design:hoard:return-to=thread", "design:hoard:cache=7",
    )  # fmt: skip


def test_what_does_not_fit_is_left_out_with_the_reason() -> None:
    screened = factors.screened(
        "design:base", [], lambda name: "needs a slab" * ("heaps=one" in name), transactions=True
    )
    assert screened.left_out == ("heaps=one: needs a slab",) and "design:base:heaps=one" not in screened.changed


@pytest.mark.parametrize(
    ("base", "asked", "message"),
    [
        ("design:hord", [], "--base=design:hord: not the name of an allocator (did you mean design:hoard?)"),
        ("bump", [], "--base=bump: has no settings whose values are known"),
        ("design:base", ["chace"], "--factor=chace: not the name of a factor of design:base (did you mean cache?)"),
        ("design:base", ["guard=locks"], "--factor guard=locks: not the name of a value of guard (did you mean lock?)"),
        ("design:base", ["cache=many"], "--factor cache=many: must be an integer from 0 to 4096"),
        ("design:base", ["cache=9999"], "--factor cache=9999: must be an integer from 0 to 4096"),
        ("design:base", ["cache=32"], "--factor=cache: cache=32 is what design:base has (choose another value"),
        ("design:base", ["slab=0"], "--factor=slab: slab=0: needs metadata=block (choose another value"),
        ("design:base:slab=0", [], "--base=design:base:slab=0: needs metadata=block"),
        ("glibc:tcache=0:tcache_max", [], 'the setting "tcache_max" is not of the form key=value'),
    ],
)
def test_what_is_unknown_or_does_not_fit_is_named(base: str, asked: list[str], message: str) -> None:
    def misfit(name: str) -> str:
        return "needs metadata=block" if "slab=0" in name else ""

    with pytest.raises(LoamError) as error:
        factors.screened(base, asked, misfit, transactions=False)
    assert message in error.value.line()


@pytest.mark.parametrize("size", [1, 2, 12, 35, 200])
def test_the_blocks_needed_are_the_fewest_that_can_show_one_change_among_all(size: int) -> None:
    def least(blocks: int) -> float:
        p = intervals.hodges_lehmann([1.0] * blocks).p
        assert p is not None
        return size * p

    needed = factors.blocks_needed(size)
    assert least(needed) < 0.05 <= least(needed - 1)


# ---- what a result says

CHANGED = ["plain:cache=fast", "plain:cache=slow", "plain:batch=4"]


def screened_result(folder: Path, blocks: int) -> dict[str, Any]:
    made = study(
        screening=True, allocators=["plain", *CHANGED], blocks=blocks, parameters={"structure": "list", "spread": 5}
    )
    return measure(made, folder)[1]


def test_the_factor_with_the_largest_certain_effect_leads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = screened_result(tmp_path, blocks=8)
    (case,) = result["factors"]
    assert (case["baseline"], case["metric"], case["method"], case["size"]) == ("plain", "ops_per_s", "Holm", 3)
    cache, batch = case["factors"]
    assert (cache["factor"], cache["verdict"]) == ("cache", "matters")
    assert [level["value"] for level in cache["levels"]] == ["slow", "fast"]  # 1 / 0.7 is further from 1 than 1.3
    slow, fast = cache["levels"]
    assert slow["verdict"] == "worse" and slow["low"] <= 0.705 and slow["high"] >= 0.695
    assert fast["verdict"] == "better" and fast["low"] <= 1.31 and fast["high"] >= 1.29
    assert slow["p"] < slow["p_holm"] < 0.05 and slow["p_holm"] == pytest.approx(3 * slow["p"])
    assert (batch["factor"], batch["verdict"]) == ("batch", "equivalent")
    assert 0.98 < case["again"]["low"] < case["again"]["high"] < 1.02
    assert case["text"][0].startswith("cache decides most: cache=slow has 0.") and "batch" in case["text"][-1]
    json.dumps(result, allow_nan=False)
    factor_tables.show(typed(result))
    text = capsys.readouterr().out
    assert (
        text.index("cache decides most") < text.index("slow") < text.index("batch")
        and "3 changes adjusted by Holm" in text
    )
    written = report.build(typed(result), tmp_path / "report", formats=("html", "md"))
    page = written["html"].read_text()
    assert 'id="factors"' in page and page.index("cache=slow") < page.index("cache=fast")
    assert "cache decides most" in page and "## Which factor decides" in written["md"].read_text()


def test_too_few_blocks_show_nothing_whatever_a_change_does(tmp_path: Path) -> None:
    (case,) = screened_result(tmp_path, blocks=6)["factors"]
    cache = case["factors"][0]
    assert cache["factor"] == "cache" and cache["levels"][0]["low"] is not None
    assert cache["verdict"] == "undecided" and cache["levels"][0]["p_holm"] >= 0.05
    assert case["text"][0] == "No factor was shown to change ops_per_s of plain."


def test_other_results_have_no_factors(tmp_path: Path) -> None:
    assert "factors" not in measure(study(), tmp_path)[1]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("design:base:cache=0", ("cache", "0")),
        ("design:base", None),
        ("design:base:cache=0:batch=1", None),
        ("design:hoard:cache=0", None),
        ("glibc", None),
    ],
)
def test_a_change_is_exactly_one_setting(name: str, change: tuple[str, str] | None) -> None:
    assert screening.changed("design:base", name) == change


def test_a_setting_that_the_base_gives_may_change_but_not_vanish() -> None:
    assert screening.changed("design:base:cache=0", "design:base:cache=8") == ("cache", "8")
    assert screening.changed("design:base:cache=0", "design:base:batch=8") is None


# ---- the command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["threadtest", "--factors", "--allocator", "glibc"], "--allocator: has no effect with --factors"),
        (["threadtest", "--factors", "--chains"], "--chains: has no effect with --factors"),
        (["threadtest", "--base", "design:hoard"], "--base: belongs to --factors"),
        (["threadtest", "--blocks", "7"], "--blocks: belongs to --factors"),
        (["threadtest", "--factors", "--base", "design:base,tbb"], "--base=design:base,tbb: --factors takes one base"),
        (["threadtest", "--factors", "--base", "design:bass"], "did you mean design:base?"),
        (["threadtest", "--factors", "--factor", "chace"], "did you mean cache?"),
        (["threadtest", "--factors", "--machine", "hots"], "did you mean host?"),
        (
            ["threadtest", "--factors", "--factor", "cache", "-p", "size=8,16"],
            "--factors takes one value of each parameter",
        ),
        (["lines", "--factors", "--factor", "cache"], "so none of its settings can matter"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main.run(["explain", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


def test_a_real_screening_finds_what_the_cache_is_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = [
        "explain",
        "--factors",
        "threadtest",
        "-p",
        "size=16",
        "-p",
        "operations=200000",
        "--factor",
        "cache=0,carve",
    ]
    assert main.run([*arguments, "--threads", "1", "--blocks", "8", "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    (case,) = result["factors"]
    by_factor = {one["factor"]: one for one in case["factors"]}
    assert by_factor.keys() == {"cache", "carve"} and by_factor["cache"]["was"] == "32"
    # Where others use the machine, too, the interval may be wide; the median of the blocks is not.
    assert by_factor["cache"]["levels"][0]["estimate"] < 0.95
    assert 'id="factors"' in (out / "report.html").read_text()
