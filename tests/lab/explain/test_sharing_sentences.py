"""Shared cache lines: what is made of the sampler's file, from its lines to the sentences."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from synthetic_watches import CODE, LINE, STACKS, block, caught, file, process, watch

from loam_lab.commands.explain.grouping import BlockPair
from loam_lab.commands.explain.sharing import document, estimate, findings, names, sentences, watches
from loam_lab.commands.explain.sharing.findings import Findings
from loam_lab.commands.explain.sharing.watches import Process
from loam_lab.subjects.symbols import Frame


def findings_of(*processes: Process) -> Findings:
    return findings.find(processes, names.find(processes, Path("/")))


def kinds_of(*lines: str) -> list[str]:
    return [str(one.key) for one in findings_of(process(*lines)).kinds]


def test_a_watch_is_read_with_what_it_caught_and_the_blocks() -> None:
    read = process(
        "thread 1", "thread 2", "unread 1 55", watch(LINE + 8, words=0x2B), caught(LINE + 16),
        f"stack 5 {CODE:x} {CODE + 16:x}", block(LINE + 16, LINE + 16, 24), block(LINE + 8, LINE, 16, stack=0),
    )  # fmt: skip
    (one,) = read.watches
    assert (read.pid, read.threads, read.unread, read.samples) == (7, 2, 1, 2)
    assert (one.line, one.word, one.writes, one.words) == (LINE, LINE + 8, True, frozenset({0, 1, 3, 5}))
    assert one.block == watches.Block(LINE, 16, 1, 0)
    assert one.caught[0].block == watches.Block(LINE + 16, 24, 1, 5)
    assert read.stacks == {5: (CODE, CODE + 16)}


def test_what_is_said_after_the_next_watch_is_not_its_own() -> None:
    read = process(watch(), watch(), caught(LINE), watch())
    assert [len(one.caught) for one in read.watches] == [0, 1, 0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "short"),
        (b"\0" * 40, "another version"),
        (file(["nonsense 1"]), "unknown kind"),
        (file(["watch 1"]), "values"),
    ],
)
def test_what_the_sampler_does_not_write_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        watches.read(content)


def test_kinds_are_told_apart() -> None:
    first, second = block(LINE, LINE, 8), block(LINE + 16, LINE + 16, 8)
    assert kinds_of(watch(), caught(LINE + 16), first, second) == ["other_block"]
    assert kinds_of(watch(), caught(LINE + 8), block(LINE, LINE, 16), block(LINE + 8, LINE, 16)) == ["same_block"]
    assert kinds_of(watch(LINE + 4), caught(LINE), block(LINE + 4, LINE, 16)) == ["same_word"]
    assert kinds_of(watch(), caught(LINE + 8), first) == ["unknown"]
    assert kinds_of(watch(CODE), caught(CODE + 8)) == ["static"]
    assert kinds_of(watch(STACKS[2]), caught(STACKS[2] + 8)) == ["stack"]
    assert kinds_of(watch(STACKS[1] - 64), caught(STACKS[1] - 56)) == ["stack"]


def test_a_catch_of_another_word_stands_for_the_words_that_were_not_watched() -> None:
    lines = [watch(), caught(LINE + 16), *[watch()] * 9]
    one = findings_of(process(*lines)).any
    assert (one.caught, one.of) == (1, 10)
    assert one.share == pytest.approx(0.1 * 7 / 3)
    # Where others use two words of the line, one of the two is more often among those that were watched.
    both = [watch(), caught(LINE + 16), watch(), caught(LINE + 24), *[watch()] * 8]
    assert findings_of(process(*both)).any.share == pytest.approx(0.2 / (1 - math.comb(5, 3) / math.comb(7, 3)))


def test_two_threads_that_meet_use_one_other_word_each() -> None:
    lines = [watch(), caught(LINE + 16), watch(LINE + 16, words=0x0F), caught(LINE), *[watch()] * 8]
    assert findings_of(process(*lines)).any.share == pytest.approx(0.2 * 7 / 3)


def test_the_word_itself_is_always_watched() -> None:
    assert findings_of(process(watch(), caught(LINE), watch())).any.share == pytest.approx(0.5)


def test_a_thread_with_fewer_debug_registers_has_its_own_chance() -> None:
    lines = [watch(words=0x3), caught(LINE + 8), *[watch(words=0x3)] * 19]
    assert findings_of(process(*lines)).any.share == pytest.approx(7 / 20)


def test_of_many_threads_those_that_were_not_watched_are_reckoned_with() -> None:
    lines = [watch(others=31, all_others=124), caught(LINE), *[watch(others=31, all_others=124)] * 19]
    assert findings_of(process(*lines)).any.share == pytest.approx(4 / 20)
    # A word that all threads use is caught in whichever are watched.
    all_of_them = [line for n in range(20) for line in (watch(others=31, all_others=124), caught(LINE, thread=2 + n))]
    assert findings_of(process(*all_of_them)).any.share == pytest.approx(1.0, abs=0.01)


def test_where_no_other_word_was_watched_nothing_is_ruled_out() -> None:
    assert findings_of(process(*[watch(words=0x1)] * 1000)).any.high == 1.0
    assert findings_of(process(*[watch(others=31, all_others=310)] * 1000)).any.high == pytest.approx(0.0858, abs=1e-3)


@pytest.mark.parametrize(
    ("watched", "used", "of", "chance"),
    [(3, 1, 7, 3 / 7), (3, 2, 7, 5 / 7), (3, 5, 7, 1), (0, 1, 7, 0), (1, 1, 1, 1), (0, 1, 0, 0)],
)
def test_the_chance_to_watch_one_that_is_used(watched: int, used: int, of: int, chance: float) -> None:
    assert estimate.chance(watched, used, of) == pytest.approx(chance)


def test_samples_without_an_operand_are_time_too() -> None:
    assert findings_of(process(watch(), caught(LINE), "unread 1 55")).any.share == pytest.approx(0.5)


def test_a_watch_counts_once_for_each_kind() -> None:
    one = findings_of(process(watch(), caught(LINE), caught(LINE), caught(LINE + 8)))
    assert one.any.caught == 1
    assert sorted((str(kind.key), kind.share.caught) for kind in one.kinds) == [("same_word", 1), ("unknown", 1)]


def test_pairs_of_blocks_are_those_of_explain() -> None:
    lines = [watch(), caught(LINE + 16), block(LINE, LINE, 8), block(LINE + 16, LINE + 16, 8)]
    (pair,) = findings_of(process(*lines)).blocks
    assert isinstance(pair.key, BlockPair)
    assert (pair.key.apart, pair.key.offsets, pair.key.neighbours) == (16, (0, 0), False)
    assert pair.words == {0: {"own": 1, "other": 0}, 2: {"own": 0, "other": 1}}


def test_the_first_sentence_is_the_answer() -> None:
    lines = [watch(), caught(LINE + 16), block(LINE, LINE, 8), block(LINE + 16, LINE + 16, 8)]
    seen = findings.see([process(*lines * 40, *[watch()] * 60)], Path("/"))
    explained = document.of(["./victims"], "jemalloc", seen)
    assert (
        explained["words"][0]
        == "Two 8-byte blocks share a cache line; about 93 % of the time is spent there (71 to 100 %)."
    )
    assert explained["kinds"][0]["kind"] == "other_block"
    assert explained["blocks"][0]["line"] == [{"word": 0, "own": 40, "other": 0}, {"word": 2, "own": 0, "other": 40}]


def test_nothing_shared_is_said_with_its_bound() -> None:
    words = sentences.words(findings_of(process(*[watch()] * 1000)), 200)
    assert words == [
        "Nothing is shared: in 1000 watches no thread used a cache line that another thread used at that moment; "
        "at most 0.9 % of the time can be spent on shared lines."
    ]


def test_too_few_watches_do_not_say_that_nothing_is_shared() -> None:
    words = sentences.words(findings_of(process(*[watch()] * 20)), 200)
    assert words[0].startswith("Too little was seen to tell: in 20 watches no thread used")
    assert words[0].endswith("; up to 39 % of the time may be spent on shared lines.")
    one = sentences.words(findings_of(process(*[watch()] * 20, watch(), caught(LINE))), 200)
    assert one[0].startswith("Too little was seen to tell: 1 of 21 watches caught another thread")


def test_one_or_two_catches_name_nothing() -> None:
    lines = [*[watch()] * 500, *[watch(), caught(LINE)] * (findings.NAMED_CAUGHT - 1)]
    words = sentences.words(findings_of(process(*lines)), 200)
    assert words[0].startswith("No cache line is shared for long: 2 of 502 watches caught another thread")
    assert sentences.words(findings_of(process(*lines, watch(), caught(LINE))), 200)[0].startswith(
        "The threads share one word"
    )


def test_what_makes_a_result_rough_is_said() -> None:
    words = sentences.words(findings_of(process(*[watch(ran=0)] * 50)), 200)
    assert words[1].startswith("Only 50 samples were taken")
    assert words[2].startswith("In 0 % of the watches only another thread ran at the same time")
    assert sentences.words(findings_of(process()), 200) == [
        "No sample was taken: the program ended too soon, or its threads did not run; give it work for some seconds."
    ]


def test_a_wait_in_the_c_library_is_named_by_its_caller() -> None:
    inner = Frame("pthread_mutex_lock", "libc.so.6", 0)
    header, own = Frame("lock", "/usr/include/c++/12/mutex", 100), Frame("step", "victims.cpp", 40)
    assert names.best([inner], [header, own]) == Frame("step, in pthread_mutex_lock", "victims.cpp", 40)
    assert names.best([header, own], []) == own
    assert names.best([inner], [Frame("??", "libstdc++.so.6", 0)]) == inner
    assert names.best([Frame("??", "libc.so.6", 0)], [header, own]) == own
    assert names.best([], []) is None


def test_callers_belong_to_their_instruction() -> None:
    read = process(watch(), caught(LINE), f"callers {CODE + 4:x} 11 12", f"callers {CODE:x} 13", watch(), caught(LINE))
    first, second = read.watches
    assert (first.callers, first.caught[0].callers) == ((0x13,), (0x11, 0x12))
    assert (second.callers, second.caught[0].callers) == ((), ())
