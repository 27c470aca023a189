"""Measuring ends when intervals are narrow, at the cap, or at the requested number of blocks; never by what they show."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, measure, runner, study

from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.progress import Progress
from loam_lab.campaign.measure.stopping_rule import BATCH, Narrow
from loam_lab.judging.statistics.intervals import half_width
from loam_lab.model.store import journal
from loam_lab.model.study import Study


def test_half_width_is_relative() -> None:
    assert half_width(0.98, 1 / 0.98) == pytest.approx(1 / 0.98 - 1)
    assert half_width(None, 1.0) == half_width(0.0, 1.0) == math.inf


def blocks_run(folder: Path) -> dict[Any, int]:
    by_structure: dict[Any, set[int]] = {}
    for line in journal.read(folder):
        by_structure.setdefault(line["identity"]["parameters"]["structure"], set()).add(line["block"])
    return {name: len(blocks) for name, blocks in by_structure.items()}


def test_it_stops_once_every_interval_is_narrow_enough(tmp_path: Path) -> None:
    made = study(parameters={"structure": "list", "spread": 20}, blocks=5, target_width=0.02, max_blocks=40)
    measure(made, tmp_path)
    count = blocks_run(tmp_path)["list"]
    assert 10 <= count < 40, "five blocks have no interval, forty are not needed for a noise of 2 %"
    assert (count - 5) % BATCH == 0
    plan = plans.make(made)
    assert Narrow(made, plan, tmp_path).close(count, frozenset()) == {0}
    narrower = made.model_copy(update={"target_width": 0.0001})
    assert Narrow(narrower, plan, tmp_path).close(count, frozenset()) == frozenset()


def test_the_cap_holds_where_intervals_stay_wide(tmp_path: Path) -> None:
    made = study(parameters={"structure": "list", "spread": 400}, blocks=5, target_width=0.001, max_blocks=12)
    ended, _ = measure(made, tmp_path)
    assert blocks_run(tmp_path) == {"list": 12}
    assert ended.done == ended.total == 36


def test_a_size_of_effect_does_not_stop_it(tmp_path: Path) -> None:
    """fast is 30 % faster: significant at once, and still too wide."""
    made = study(parameters={"structure": "list", "spread": 200}, blocks=10, target_width=0.005, max_blocks=25)
    measure(made, tmp_path)
    assert blocks_run(tmp_path) == {"list": 25}


def test_requested_blocks_are_honoured_exactly(tmp_path: Path) -> None:
    measure(study(parameters={"structure": "list", "spread": 400}, blocks=7), tmp_path)
    assert blocks_run(tmp_path) == {"list": 7}


def test_the_studys_blocks_are_the_least_number(tmp_path: Path) -> None:
    made = study(parameters={"structure": "list", "spread": 0}, blocks=15, target_width=0.5, max_blocks=10)
    measure(made, tmp_path)
    assert blocks_run(tmp_path) == {"list": 15}


def claimed(spread: int, **predicate: Any) -> Study:
    """One allocator, two mappings in the same blocks, and a claim about them; no ratio to a baseline."""
    of = {"group": "one", "allocator": "plain", "parameters": {"mapping": "shadow"}}
    predicates = [{"kind": "ratio_above", "of": of, "to": {"parameters": {"mapping": "table"}}, **predicate}]
    claim = {
        "id": "000-01",
        "section": "1",
        "sentence": "made up",
        "printed": "none: made up",
        "predicates": predicates,
    }
    parameters = {"structure": "list", "mapping": ["table", "shadow"], "spread": spread}
    return study(
        allocators=["plain"], parameters=parameters, claims=[claim], blocks=5, target_width=0.02, max_blocks=40
    )


def test_what_a_claim_compares_has_to_be_narrow_too(tmp_path: Path) -> None:
    """Shadow is 10 % faster, which five blocks would show, and no allocator is compared with another."""
    measure(claimed(spread=20), tmp_path)
    assert 10 <= blocks_run(tmp_path)["list"] < 40, (
        "five blocks have no interval, forty are not needed for a noise of 2 %"
    )


def test_the_cap_holds_for_claims(tmp_path: Path) -> None:
    measure(claimed(spread=400).model_copy(update={"max_blocks": 12}), tmp_path)
    assert blocks_run(tmp_path) == {"list": 12}


def test_a_count_that_never_varies_needs_no_more_blocks(tmp_path: Path) -> None:
    of = {"metric": "records_rss_bytes", "group": "one", "allocator": "plain", "parameters": {"mapping": "shadow"}}
    measure(claimed(spread=400, kind="band", of=of, low=1.0, high=1.0), tmp_path)
    assert blocks_run(tmp_path) == {"list": 10}, "five blocks have no interval"


def test_columns_end_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = study(parameters={"structure": ["list", "tree"]}, blocks=5, target_width=0.02, max_blocks=15)
    closes = {10: {0}}
    monkeypatch.setattr(Narrow, "close", lambda self, turn, closed: frozenset(closes.get(turn, ())))
    measure(made, tmp_path)
    assert sorted(blocks_run(tmp_path).values()) == [10, 15]


def test_the_runs_that_are_left_are_told_after_each_column_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = study(
        parameters={"structure": ["list", "tree"], "spread": [0, 20]}, blocks=2, target_width=0.02, max_blocks=6
    )
    closes = {2: {0}, 3: {1}}
    monkeypatch.setattr(Narrow, "close", lambda self, turn, closed: frozenset(closes.get(turn, ())))
    changes: list[int] = []
    monkeypatch.setattr(Progress, "grow", lambda self, runs: changes.append(runs))
    ended, _ = measure(made, tmp_path)
    assert ended.total + sum(changes) == ended.measured


def test_a_resumed_campaign_stops_where_the_first_one_did(tmp_path: Path) -> None:
    made = study(parameters={"structure": "list", "spread": 20}, blocks=10, target_width=0.05, max_blocks=40)
    measure(made, tmp_path)
    before = journal.read(tmp_path)
    ended = runner(made, tmp_path, resume=True).run()
    assert ended.measured == 0
    assert journal.read(tmp_path) == before


@pytest.mark.parametrize("share", [0.3, 0.6, 0.75, 0.9])
def test_columns_end_where_they_would_have_without_an_interruption(tmp_path: Path, share: float) -> None:
    """One structure is quiet and ends early; nothing of it is measured again after a cut."""
    text = Path(STM).read_text()
    peer = tmp_path / "peer"
    # The noise of a run follows from its seed alone, so that a repeated run has the same value.
    peer.write_text(
        text.replace("$$ * 104729", "${#FAKE_ALLOCATOR} * 104729").replace(
            "noise=$((", '[ "$structure" = tree ] && spread=300\nnoise=$(('
        )
    )
    peer.chmod(0o755)
    made = study(
        sync=[str(peer)], parameters={"structure": ["list", "tree"]}, blocks=5, target_width=0.02, max_blocks=25
    )
    measure(made, tmp_path / "o")
    blocks = blocks_run(tmp_path / "o")
    assert blocks["list"] < blocks["tree"] == 25
    before = [line["id"] for line in journal.read(tmp_path / "o")]
    file = tmp_path / "o" / "journal" / "local.jsonl"
    os.truncate(file, int(file.stat().st_size * share))
    runner(made, tmp_path / "o", resume=True).run()
    assert [line["id"] for line in journal.read(tmp_path / "o")] == before


def test_a_column_in_which_everything_fails_ends_with_its_blocks(tmp_path: Path) -> None:
    made = study(parameters={"mode": "exit"}, blocks=5, target_width=0.02, max_blocks=30)
    measure(made, tmp_path)
    assert blocks_run(tmp_path) == {"list": 5}


def test_the_estimate_says_at_most(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(study(blocks=5, target_width=0.02, max_blocks=12), tmp_path / "a")
    assert "36 runs, at most " in capsys.readouterr().err
    measure(study(blocks=5), tmp_path / "b")
    assert "at most" not in capsys.readouterr().err
