"""Bounded exhaustive checking: every execution of a small program, each once, with the values that C++20 allows."""

from __future__ import annotations

import itertools
import re
import subprocess

import pytest
from simulating import CHECKED, start

# No program here departs so often: the search says that it found everything.
WHOLE = "99"


def explored(program: str, *words: str, bound: str = WHOLE, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"LOAM_SIM_CHECK": "exhaustive", "LOAM_SIM_BOUND": bound, **environment}
    return start(program, *words, machine=CHECKED, environment=own, timeout_s=270)


def pairs(*values: str) -> set[str]:
    return {" ".join(value) for value in values}


EVERYTHING = pairs("00", "01", "10", "11")
FOUR = {" ".join(values) for values in itertools.product("01", repeat=4)}
ORDERED = pairs("00", "01", "02", "11", "12", "22")
# By test and order: what C++20 allows, but for values from the future (load buffering's 1 1), which the checker never shows.
ALLOWED = [
    ("store-buffering", "relaxed", EVERYTHING),
    ("store-buffering", "release", EVERYTHING),
    ("store-buffering", "seq_cst", EVERYTHING - {"0 0"}),
    ("fenced-store-buffering", "release", EVERYTHING),
    ("fenced-store-buffering", "seq_cst", EVERYTHING - {"0 0"}),
    ("message-passing", "relaxed", EVERYTHING),
    ("message-passing", "release", EVERYTHING - {"1 0"}),
    ("message-passing", "seq_cst", EVERYTHING - {"1 0"}),
    ("load-buffering", "relaxed", EVERYTHING - {"1 1"}),
    ("load-buffering", "release", EVERYTHING - {"1 1"}),
    ("coherence", "relaxed", ORDERED),
    ("coherence", "seq_cst", ORDERED),
    ("first-store", "relaxed", pairs("11")),
    ("lost-update", "seq_cst", {"1", "2"}),
    ("update", "relaxed", {"2"}),
]
# Four threads, and a loop: with a bound, which is enough for all that is allowed.
BOUNDED = [
    ("independent-reads", "release", FOUR), ("independent-reads", "seq_cst", FOUR - {"1 0 1 0"}),
    ("waiting", "relaxed", {"0", "1"}),
]  # fmt: skip


@pytest.mark.parametrize(("test", "order", "allowed"), ALLOWED)
def test_a_litmus_test_shows_exactly_what_is_allowed(test: str, order: str, allowed: set[str]) -> None:
    done = explored("simulated-litmus", test, order)
    assert done.returncode == 0, done.stderr
    assert {line.strip() for line in done.stdout.splitlines()} == allowed
    assert "every one of this program" in done.stderr


@pytest.mark.parametrize(("test", "order", "allowed"), BOUNDED)
def test_a_larger_litmus_test_shows_it_within_a_bound(test: str, order: str, allowed: set[str]) -> None:
    done = explored("simulated-litmus", test, order, bound="2")
    assert done.returncode == 0, done.stderr
    assert {line.strip() for line in done.stdout.splitlines()} == allowed
    assert "every one with at most 2 departures (LOAM_SIM_BOUND)" in done.stderr


def test_a_thread_that_waits_may_be_the_one_that_interrupts() -> None:
    """With one departure: it has waited in vain and goes on, between two reads of the other."""
    done = explored("simulated-litmus", "giving-up", "seq_cst", bound="1")
    assert done.returncode == 0, done.stderr
    assert {line.strip() for line in done.stdout.splitlines()} == pairs("00", "01", "11")


def test_a_bound_is_stated_and_more_departures_find_more() -> None:
    counts = []
    for bound in ("0", "1", "2"):
        done = explored("simulated-litmus", "coherence", "relaxed", bound=bound)
        match = re.search(r"explored (\d+) executions: every one with at most (\d+) departures", done.stderr)
        assert match, done.stderr
        assert match[2] == bound
        counts.append((int(match[1]), len(done.stdout.splitlines())))
    assert [outputs for _, outputs in counts] == [2, 5, len(ORDERED)]
    assert counts[0] < counts[1] < counts[2]


def test_a_search_that_is_cut_short_says_so() -> None:
    done = explored("simulated-litmus", "independent-reads", "release", LOAM_SIM_EXECUTIONS_MAX="5")
    assert "stopped after 5 executions (LOAM_SIM_EXECUTIONS_MAX)" in done.stderr


@pytest.mark.parametrize(
    ("piece", "message"), [("message", "the program ended with status 1"), ("dekker", "the program ended with status 1"),
                        ("spin-lock", "race: thread"), ("lost-update", "the program ended with status 1")],
)  # fmt: skip
def test_a_fault_is_found_and_its_schedule_repeats_it(piece: str, message: str) -> None:
    failing = explored("simulated-orders", piece, "weak", bound="3")
    assert failing.returncode != 0, failing.stdout + failing.stderr
    assert message in failing.stderr
    schedule = re.search(r'LOAM_SIM_SCHEDULE="([^"]*)"', failing.stderr)
    assert schedule, failing.stderr
    again = explored("simulated-orders", piece, "weak", LOAM_SIM_SCHEDULE=schedule[1])
    assert again.returncode == failing.returncode
    assert again.stderr == failing.stderr[: len(again.stderr)], "the same trace; who explored adds a line"
    assert re.search(r"found in execution \d+, with [012] departures", failing.stderr), failing.stderr


@pytest.mark.parametrize("piece", ["message", "dekker", "lost-update", "spin-lock", "cc-synch", "flat-combining"])
def test_a_small_piece_that_is_right_is_said_to_be_clean(piece: str) -> None:
    done = explored("simulated-orders", piece, "small", bound="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
    assert re.search(r"explored \d+ executions: every one (of this program|with at most 2 departures)", done.stderr)


def test_a_deadlock_and_a_wait_without_an_end_are_told_with_their_schedule() -> None:
    stuck = explored("simulated-orders", "opposite-locks", "weak")
    assert "deadlock" in stuck.stderr
    assert 'LOAM_SIM_SCHEDULE="' in stuck.stderr
    endless = explored("simulated-orders", "forgotten-flag", "weak")
    assert "did not end within" in endless.stderr


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"LOAM_SIM_CHECK": "exhaustiv"}, "must be random, pct or exhaustive"),
        ({"LOAM_SIM_SCHEDULE": "1:x"}, "LOAM_SIM_SCHEDULE=1:x: must be PLACE:WAY"),
        ({"LOAM_SIM_SCHEDULE": "0:9"}, "LOAM_SIM_SCHEDULE is that of another program"),
        ({"LOAM_SIM_SCHEDULE": "0:1", "LOAM_SIM_CHECK": "random"}, "only with LOAM_SIM_CHECK=exhaustive"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(environment: dict[str, str], message: str) -> None:
    done = explored("simulated-litmus", "update", "relaxed", **environment)
    assert done.returncode == 2
    assert message in done.stderr
