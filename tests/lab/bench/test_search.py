"""bench --search: which settings are tried, who goes on, what the final may claim, and going on after an interruption."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, asking, forked, stated_times
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure.launch import OVERHEAD_GUESS_S
from loam_lab.commands.bench import bench, rounds, search
from loam_lab.model.store import journal
from loam_lab.subjects.allocators import registry

TABLE = """
candidates = ["/nowhere/{name}.so"]
[settings.a]
environment = "FAKE_A"
value = "{{}}"
type = "integer"
min = 0
max = 9
help = "a"
search = [1, 2]
[settings.b]
environment = "FAKE_B"
value = "{{}}"
type = "integer"
min = 0
max = 9
help = "b"
search = [3]
"""


@pytest.fixture(autouse=True)
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allocators plain and fast with settings a and b, and bare without any; commands take as long as they say."""
    stated_times(monkeypatch)
    own = tmp_path / "own"
    own.mkdir()
    for name in ("plain", "fast"):
        (own / f"{name}.toml").write_text(TABLE.format(name=name))
    (own / "bare.toml").write_text('candidates = ["/nowhere/bare.so"]\n')
    monkeypatch.setenv("LOAM_ALLOCATOR_PATH", str(own))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


# ---- the search on made-up numbers ----


def test_variants_are_single_settings_and_leave_what_is_given() -> None:
    assert search.variants("fast") == ["fast:a=1", "fast:a=2", "fast:b=3"]
    assert search.variants("fast:a=7") == ["fast:a=7:b=3"]
    assert search.variants("bare") == []
    assert search.searchable(["bare", "fast:a=7", "fast", "plain"]) == ["fast:a=7", "plain"]


def test_every_value_worth_trying_is_one_that_the_setting_takes() -> None:
    for name, definition in registry.definitions().items():
        for variant in search.variants(name):
            _, settings = registry.split(variant)
            for key, value in settings.items():
                assert definition.settings[key].text(name, value)


def test_the_better_half_goes_on_and_what_failed_never_does() -> None:
    scores: dict[str, float | None] = {
        "fast:a=1": 0.9,
        "fast:a=2": 1.1,
        "fast:b=3": None,
        "plain:a=1": 0.8,
        "plain:b=3": 0.95,
    }
    assert search.halve(scores) == ["plain:a=1", "fast:a=1", "plain:b=3"]
    assert search.halve({"fast:a=1": 1.2, "fast:a=2": 1.1}) == ["fast:a=2", "fast:a=1"]
    assert search.halve({"fast:a=1": None}) == []


def test_two_settings_join_only_where_each_alone_looked_better() -> None:
    scores: dict[str, float | None] = {
        "fast:a=1": 0.9,
        "fast:a=2": 0.92,
        "fast:b=3": 0.95,
        "plain:a=1": 0.8,
        "plain:b=3": 1.05,
    }
    assert search.combine(scores) == [], "the half that goes on has two values of a and one of another allocator"
    scores["fast:a=2"] = 1.3
    assert search.combine(scores) == ["fast:a=1:b=3"]
    assert search.following(scores, 1) == ["plain:a=1", "fast:a=1", "fast:b=3", "fast:a=1:b=3"]
    assert search.following(scores, 2) == ["plain:a=1", "fast:a=1", "fast:b=3"]


def test_halving_finds_the_best_of_made_up_times() -> None:
    """Twelve settings, of which one saves 20 %, and estimates that are off by up to 4 %."""
    names = [f"plain:a={index}" for index in range(12)]
    truth = {name: 0.8 if name == "plain:a=7" else 1.0 for name in names}
    planned = search.plan(len(names), run_s=1.0, budget_s=240.0)
    assert planned.sizes == (12, 8, 4)
    left = names
    for number in range(1, len(planned.sizes) + 1):
        off = {name: 0.04 * ((hash_of(name) + number) % 5 - 2) / 2 for name in left}
        left = search.following({name: truth[name] * (1 + off[name]) for name in left}, number)
    assert left[0] == "plain:a=7" and len(left) == 2


def hash_of(name: str) -> int:
    return sum(name.encode())


@pytest.mark.parametrize("candidates", [1, 2, 3, 5, 8, 14, 30])
def test_a_plan_ends_with_two_and_keeps_its_budget_where_it_can(candidates: int) -> None:
    planned = search.plan(candidates, run_s=0.5, budget_s=600.0)
    assert all(later < earlier for earlier, later in zip(planned.sizes, planned.sizes[1:], strict=False))
    assert not planned.sizes or planned.sizes[0] == candidates
    assert planned.runs * 0.5 <= 600.0
    assert planned.final_blocks >= 10 and all(blocks >= 3 for blocks in planned.blocks)
    slow = search.plan(candidates, run_s=60.0, budget_s=600.0)
    assert slow.final_blocks == 10 and set(slow.blocks) <= {3}, "never fewer than what could decide anything"


# ---- whole searches with a command that says how long it took ----

# With b=3 it says that it took far less under both; nothing else changes anything. See campaigns.stated_times.
GAIN = "case $FAKE_ALLOCATOR in *b=3*) s=2 ;; fast*) s=6 ;; *) s=9 ;; esac; sleep 0.02; echo took 0.0$s >&2"
NO_GAIN = "case $FAKE_ALLOCATOR in fast) s=2 ;; fast*) s=5 ;; *) s=6 ;; esac; sleep 0.02; echo took 0.0$s >&2"


def run(folder: Path, script: str, **options: Any) -> tuple[int, dict[str, Any]]:
    options = {"allocators": ["plain", "fast"], "blocks": 6, "as_json": True, "search_budget_s": 3.0, **options}
    request = asking(out=folder, report=False, search=True, **options)
    status = bench.bench(["sh", "-c", script], request, FakeInstruments())
    return status, json.loads((folder / "result.json").read_text())


@pytest.mark.alone
def test_a_setting_that_helps_is_found_and_its_line_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, result = run(tmp_path / "o", GAIN)
    outcome = result["search"]
    assert status == 0 and outcome["best"] == "fast" and outcome["baseline"] == "plain"
    assert outcome["winner"]["allocator"] in ("fast", "plain") and outcome["winner"]["settings"]["b"] == "3"
    assert 0.15 < outcome["low"] <= outcome["estimate"] <= outcome["high"] < 0.7, "against the baseline as it is"
    assert re.search(
        r"less time \[.*\] than with fast as it is, and .* less time \[.*\] than with plain", outcome["text"]
    )
    assert len(outcome["rounds"][0]["candidates"]) == 6
    captured = capsys.readouterr()
    assert json.loads(captured.out) == result
    assert re.search(
        r"settings of fast and plain: 6 in \d rounds, .*about .*, \d+ runs, and at most \d+ more", captured.err
    )
    last = outcome["rounds"][-1]["candidates"][0]
    assert last["low"] is not None, "two rounds together have the pairs for an interval"
    final = journal.read(tmp_path / "o/search/final")
    assert len({line["block"] for line in final}) >= 10
    assert {line["identity"]["allocator"]["name"] for line in final} >= {"plain", "fast", outcome["winner"]["name"]}


@pytest.mark.alone
def test_nothing_is_claimed_where_nothing_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, result = run(tmp_path / "o", NO_GAIN, as_json=False)
    outcome = result["search"]
    assert status == 0 and outcome["winner"] is None and outcome["estimate"] is None
    printed = capsys.readouterr().out
    assert "No setting of fast or plain was shown to beat fast as it is; the best try" in printed
    assert "LD_PRELOAD" not in printed


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            '{"best": "fast", "baseline": "plain", "rounds": [["fast:a=1", "/tmp/theirs.so:a=1"]]}',
            "names /tmp/theirs.so",
        ),
        ('{"best": "/tmp/theirs.so", "baseline": "plain", "rounds": []}', "names /tmp/theirs.so"),
        ('{"best": "fast", "baseline": "plain"}', "cannot be read: 'rounds'"),
        ("[", "cannot be read"),
    ],
)
def test_what_a_folder_says_of_a_search_loads_no_other_library(tmp_path: Path, content: str, problem: str) -> None:
    own = rounds.Search("bench", tmp_path, 1.0, 10.0, lambda *_: pytest.fail("it ran"))
    (tmp_path / "search").mkdir()
    (tmp_path / "search/search.json").write_text(content)
    with pytest.raises(LoamError, match=problem):
        own._state({}, {"fast", "plain"})


@pytest.mark.slow
@pytest.mark.alone
def test_settings_that_crash_lose_and_allocators_without_settings_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crash = f"case $FAKE_ALLOCATOR in *a=*) kill -SEGV $$ ;; esac; {GAIN}"
    _, result = run(tmp_path / "o", crash)
    assert result["search"]["winner"]["settings"] == {"b": "3"}
    failed = {c["allocator"] for c in result["search"]["rounds"][0]["candidates"] if c["estimate"] is None}
    assert failed == {"fast:a=1", "fast:a=2", "plain:a=1", "plain:a=2"}
    with pytest.raises(LoamError, match="every setting failed"):
        run(tmp_path / "p", "case $FAKE_ALLOCATOR in *=*) kill -SEGV $$ ;; esac; sleep 0.01")
    capsys.readouterr()
    _, result = run(tmp_path / "q", "sleep 0.01", allocators=["bare"])
    assert "search" not in result and "nothing to search" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.alone
def test_a_killed_search_goes_on_with_the_same_candidates(tmp_path: Path) -> None:
    folder = tmp_path / "o"
    child = forked(lambda: run(folder, GAIN)[0])
    second = folder / "search/round-2/journal/local.jsonl"
    for _ in range(600):
        if second.exists() and second.stat().st_size:
            break
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    before = json.loads((folder / "search/search.json").read_text())["rounds"]
    kept = {line["id"] for line in journal.read(folder / "search/round-2")}
    first = (folder / "search/round-1/journal/local.jsonl").read_bytes()
    status, result = run(folder, GAIN, resume=True, search_budget_s=100.0)
    # Whether a few blocks on a busy machine show the winner is not asked here.
    winner = result["search"]["winner"]
    assert status == 0 and (winner is None or winner["settings"]["b"] == "3")
    assert json.loads((folder / "search/search.json").read_text())["rounds"][: len(before)] == before
    assert (folder / "search/round-1/journal/local.jsonl").read_bytes() == first, (
        "what was measured is not measured again"
    )
    ids = [line["id"] for line in journal.read(folder / "search/round-2")]
    assert kept <= set(ids) and len(ids) == len(set(ids))


# ---- the first recommendation's time ----


def test_six_allocators_and_a_second_s_program_are_recommended_within_90_s() -> None:
    """By calculation: previews, blocks of seven runs, and what the lab itself needs per run."""
    previews_s, run_s, own_s = 2 * 1.0, 1.0, OVERHEAD_GUESS_S
    limits = bench._limits(bench.BUDGET_S - previews_s, (run_s + own_s) * 7, None)
    assert limits["blocks"] is not None and limits["blocks"] >= bench.BLOCKS_MIN
    assert previews_s + limits["blocks"] * 7 * (run_s + own_s) <= 90
    assert limits["budget_s"] == bench.BUDGET_S - previews_s, "repetitions of disturbed blocks do not add to it"


def test_ranking_leaves_out_what_cannot_be_recommended() -> None:
    def cell(name: str, ratio: float | None, verdict: str, copy: int = 0) -> dict[str, Any]:
        estimate = None if ratio is None else {"estimate": ratio}
        return {"factors": {"allocator": name}, "copy": copy, "verdict": verdict, "ratio_to_baseline": estimate}

    cells = [cell("g", None, "baseline"), cell("g", 1.01, "equivalent", 1), cell("slow", 1.2, "worse"),
             cell("quick", 0.9, "better"), cell("ghost", 0.1, "unproven")]  # fmt: skip
    assert rounds.ranking(typed({"cells": cells})) == ["quick", "g", "slow"]
