"""The ledger that is kept in the tree: what a result adds to it, what the page and README say, and that they are of today."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import claimed
import pytest
from test_claims import A1, claim
from typed import typed

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.judging.claims import kept
from loam_lab.model import studies
from loam_lab.model.schema import SCHEMA
from loam_lab.model.study import Study
from loam_lab.presenting.pages import claims as page

ABOVE = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b"}}


def study(**changed: Any) -> Study:
    second = claim(ABOVE, id="000-02", sentence="Or [so] | so.", follows_from=["000-01"])
    return claimed.study([claim(ABOVE, **changed), second])


def folded(
    before: kept.Ledger, day: int, verdict: str, of: Study | None = None, only: Sequence[str] = (), **changed: Any
) -> kept.Ledger:
    stated = of or study()
    judged = {
        "id": "000-01", "verdict": verdict, "reason": "r", "predicate": stated.claims[0].words(),
        "groups": stated.claims[0].groups, "machines": ["host", "sim:x"], "allocators": ["a", "b"],
        "inputs": ["intset size=2"], **changed,
    }  # fmt: skip
    content = {
        "schema": SCHEMA, "study": "tiny", "created_utc": f"2026-11-{day:02}T10:00:00Z", "cells": [], "claims": [judged],
        "machine": {"cpu": "C"}, "build": {"revision": "0123456789abcdef"}, "command": "./loam study run tiny",
    }  # fmt: skip
    return kept.folded(before, stated, typed(content), only)


def verdict(ledger: kept.Ledger) -> tuple[str, str]:
    one = ledger.verdicts["000-01"]
    return one.verdict, one.made[:10]


def test_the_newest_verdict_that_decides_is_kept_in_whatever_order_results_come() -> None:
    first = folded(kept.Ledger(study="tiny"), 2, "reproduced")
    assert verdict(first) == ("reproduced", "2026-11-02")
    assert verdict(folded(first, 3, "contradicted")) == ("contradicted", "2026-11-03")
    assert verdict(folded(first, 1, "contradicted")) == ("reproduced", "2026-11-02")
    assert verdict(folded(first, 3, "undecided")) == ("reproduced", "2026-11-02")
    open_ = folded(kept.Ledger(study="tiny"), 5, "undecided")
    assert verdict(folded(open_, 4, "reproduced")) == ("reproduced", "2026-11-04")
    assert folded(kept.Ledger(study="tiny"), 1, "not asked").verdicts == {}
    assert verdict(folded(first, 2, "contradicted")) == ("contradicted", "2026-11-02"), "the same result, judged again"


def test_of_a_result_only_the_named_claims_are_added() -> None:
    none = kept.Ledger(study="tiny")
    assert folded(none, 2, "reproduced", only=["000-02"]).verdicts == {}
    assert verdict(folded(none, 2, "reproduced", only=["000-02", "000-01"])) == ("reproduced", "2026-11-02")
    with pytest.raises(LoamError, match=r"000-99: is no claim of the results"):
        page.made([], ["000-99"])


def test_a_verdict_on_other_predicates_is_dropped() -> None:
    ledger = folded(kept.Ledger(study="tiny"), 2, "reproduced")
    changed = study(predicates=[{**ABOVE, "limit": 2}])
    assert kept.current(ledger, study()) and not kept.current(ledger, changed)
    assert verdict(folded(ledger, 1, "undecided", changed)) == ("undecided", "2026-11-01")
    assert folded(ledger, 3, "reproduced", predicate="other").verdicts == ledger.verdicts


def test_a_verdict_on_other_groups_is_dropped() -> None:
    ledger = folded(kept.Ledger(study="tiny"), 2, "reproduced", groups=["of another time"])
    assert ledger.verdicts == {}, "the result is older than the claim"
    moved = study(predicates=[{**ABOVE, "of": {**A1, "group": "h"}}])
    assert moved.claims[0].words() == study().claims[0].words() and moved.claims[0].groups == ["h"]
    assert not kept.current(folded(kept.Ledger(study="tiny"), 2, "reproduced"), moved)


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    assert kept.read("tiny", tmp_path) == kept.Ledger(study="tiny")
    ledger = folded(kept.Ledger(study="tiny"), 2, "reproduced", by_preset=True)
    kept.write(ledger, tmp_path)
    assert kept.read("tiny", tmp_path) == ledger
    for damaged in ("{", '{"study": "other"}', '{"study": "tiny", "schema": 99}'):
        (tmp_path / "tiny.json").write_text(damaged)
        with pytest.raises(LoamError, match=r"tiny\.json"):
            kept.read("tiny", tmp_path)


def rows(ledger: kept.Ledger, of: Study | None = None) -> list[page.Row]:
    return page.rows([of or study()], {"tiny": ledger})


def test_the_page_has_a_row_of_each_claim() -> None:
    ledger = folded(kept.Ledger(study="tiny"), 2, "contradicted", by_preset=True)
    text = page.page(rows(ledger))
    assert (
        "| 000-01 | It is so. | contradicted by preset | a, b | host: C; sim:x | intset size=2 | 2026-11-02 | 0123456789ab "
        "| `studies/tiny.toml` |" in text
    )
    assert (
        "| 000-02 | Or \\[so\\] \\| so. *Follows from 000-01, and is not counted.* | not measured |  |  |  |  |  "
        "| `studies/tiny.toml` |" in text
    )
    assert "Of 1 claims 1 contradicted; 1 more follows from these." in text
    assert "- **000-01**, contradicted: r\n" in text and "**000-02**," not in text


def test_a_note_explains_and_a_paper_against_itself_needs_no_measurement() -> None:
    text = page.page(rows(folded(kept.Ledger(study="tiny"), 2, "contradicted", study(note="n")), study(note="n")))
    assert "- **000-01**, contradicted: r; n" in text
    against = rows(kept.Ledger(study="tiny"), study(self_contradicting="table 2"))
    assert page.tally(against) == "of 1 claims 1 self-contradicting; 1 more follows from these"
    assert "- **000-01**, self-contradicting: table 2" in page.page(against)
    assert page.page(rows(folded(kept.Ledger(study="tiny"), 2, "reproduced"))).count("why") == 0


def test_the_line_of_readme_counts_papers_alone() -> None:
    own = page.Row(study(), study().claims[0].model_copy(update={"id": "own-01"}), None)
    text = page.counted(f"a\n{page.COUNTED} old\nb\n", [*rows(kept.Ledger(study="tiny")), own])
    counts = "of 1 claims 1 not measured; 1 more follows from these"
    assert text == f"a\n{page.COUNTED} (1 paper): {counts}: [docs/claims.md](docs/claims.md).\nb\n"
    assert "## Our own: tiny" in page.page([own])
    with pytest.raises(LoamError, match="has no line that begins with"):
        page.counted("a\n", rows(kept.Ledger(study="tiny")))


def test_the_page_and_the_count_in_the_tree_are_those_of_today() -> None:
    """./loam page claims writes both; it measures nothing."""
    of = page.made([])
    assert (paths.root() / "docs/claims.md").read_text() == page.page(of)
    readme = (paths.root() / "README.md").read_text()
    assert readme == page.counted(readme, of)
    names = set(studies.registry())
    assert {file.stem for file in kept.folder().glob("*.json")} <= names
