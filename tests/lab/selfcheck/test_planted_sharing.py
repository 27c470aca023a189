"""Planted sharing: its judgement on made-up documents, a few real runs, and on demand the whole table."""

from __future__ import annotations

from typing import Any

import pytest
import sampled

from loam_lab.base.errors import LoamError
from loam_lab.dev.selfcheck import sharing
from loam_lab.dev.selfcheck.sharing import Case, Row

BLOCKS = Case("blocks", 20, 2, "glibc")
NOTHING = Case("nothing", 0, 2, "glibc")


@pytest.fixture(scope="module")
def program() -> str:
    sampled.skip_without_events()
    return sharing.program()


@pytest.mark.parametrize(
    ("typed", "belongs"),
    [
        (["--program", "queue"], "--program=queue: belongs to --ranks and --cost"),
        (["--ranks", "--kind", "lock"], "--kind=lock: belongs to planted sharing"),
        (["--cost", "--percent", "5"], "--percent=5: belongs to planted sharing"),
        (["--cost", "--burst-us", "740"], "--burst-us=740: belongs to planted sharing"),
        (["--ranks", "--repeats", "3"], "--repeats=3: belongs to planted sharing and --cost"),
        (["--cost", "--seconds", "5"], "--seconds=5.0: belongs to planted sharing and --ranks"),
    ],
)  # fmt: skip
def test_an_option_that_a_check_has_no_use_for_is_refused(typed: list[str], belongs: str) -> None:
    with pytest.raises(LoamError) as refused:
        sharing.main(typed)
    assert belongs in refused.value.line()


@pytest.mark.parametrize(
    ("typed", "refusal"),
    [
        (["--kind", ""], "is none of blocks"),
        (["--percent", ""], "take numbers"),
        (["--threads", ""], "take numbers"),
    ],
)
def test_an_empty_value_is_no_default(typed: list[str], refusal: str) -> None:
    with pytest.raises(LoamError, match=refusal):
        sharing.main(typed)


def document_of(cause: str, *, made: str = "make_block", named: bool = True, low: float = 0.1) -> dict[str, Any]:
    block = {"made": {"function": made}}
    return {
        "blocks": [{"named": named, "cause": cause, "blocks": [block, block]}],
        "kinds": [{"kind": cause, "low": low, "high": 0.3}],
    }


def test_a_run_is_judged_by_kind_places_and_interval() -> None:
    assert sharing.judged(BLOCKS, document_of("other_block"), 0.2) == (True, True, True)
    assert sharing.judged(BLOCKS, document_of("other_block", made="main"), 0.2) == (False, True, True)
    assert sharing.judged(BLOCKS, document_of("same_block"), 0.2) == (False, False, True)
    assert sharing.judged(BLOCKS, document_of("other_block", named=False), 0.2) == (False, True, False)
    assert sharing.judged(BLOCKS, document_of("other_block", low=0.25), 0.2) == (True, False, True)
    assert sharing.judged(BLOCKS, document_of("other_block", low=0.25), 0.26) == (True, True, True), (
        "what it had, not what was asked"
    )
    assert sharing.judged(NOTHING, {"blocks": [], "kinds": []}, 0.0) == (False, False, False)


def test_the_program_tells_the_share_that_it_had() -> None:
    assert sharing.planted_share("x\nsharers: 0.3125 of the time\n") == 0.3125
    with pytest.raises(LoamError, match="does not say which share it planted"):
        sharing.planted_share("sharers: killed")


def test_the_figures_decide() -> None:
    assert sharing.status([Row(BLOCKS, 20, 19, 18, 20), Row(NOTHING, 200, 0, 0, 2)]) == 0
    assert sharing.status([Row(BLOCKS, 20, 18, 20, 20)]) == 1
    assert sharing.status([Row(BLOCKS, 20, 20, 17, 20)]) == 1
    assert sharing.status([Row(NOTHING, 200, 0, 0, 3)]) == 1
    assert sharing.status([Row(Case("blocks", 1, 2, "glibc"), 20, 0, 0, 0)]) == 0, "1 % need not be found"


def test_the_whole_table_has_all_kinds_shares_threads_and_allocators() -> None:
    every = sharing.cases(tuple(sharing.KINDS), sharing.PERCENTS, sharing.THREADS, sharing.ALLOCATORS)
    assert len(every) == (7 * 4 + 1) * 3 * 5 == len(set(every))


@pytest.mark.alone
@pytest.mark.exhaustive  # two seconds of a busy machine may hold too few samples
@pytest.mark.parametrize("kind", ["static", "atomic"])
def test_planted_sharing_of_all_the_time_is_found(program: str, kind: str) -> None:
    one = sharing.row(Case(kind, 100, 2, "glibc"), program, 1, 2.0)
    assert one.found == 1, one


@pytest.mark.alone
@pytest.mark.exhaustive
def test_the_figures_hold_for_the_whole_table(program: str) -> None:
    every = sharing.cases(tuple(sharing.KINDS), sharing.PERCENTS, sharing.THREADS, sharing.ALLOCATORS)
    rows = [sharing.row(case, program, sharing.REPEATS, sharing.SECONDS) for case in every]
    assert not [one for one in rows if not one.holds]
    wrong, of = sharing.wrongly_named(rows)
    assert wrong <= sharing.WRONG * of, (wrong, of)
