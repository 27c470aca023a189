"""What `loam test` shows of a failed C++ test, and what it counts as failed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from loam_lab.dev.testing import command, lots, suites
from loam_lab.dev.testing import outcome as outcomes
from loam_lab.dev.testing.lots import lot
from loam_lab.dev.testing.smoke import verifies
from loam_lab.setup import build
from loam_lab.subjects import sources

OUTPUT = """Running main() from ./googletest/src/gtest_main.cc
[==========] Running 2 tests from 1 test suite.
[----------] Global test environment set-up.
[ RUN      ] Heap.Good
[       OK ] Heap.Good (1 ms)
[ RUN      ] Heap.Bad
heap_test.cpp:150: Failure
Expected: (known) > (0u), actual: 0 vs 0
[  FAILED  ] Heap.Bad (6 ms)
[----------] 2 tests from Heap (19 ms total)

[  PASSED  ] 1 test.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Heap.Bad

 1 FAILED TEST
"""


def test_passing_tests_are_left_out() -> None:
    lines = suites.complaints(OUTPUT).splitlines()
    assert lines[:3] == [
        "  heap_test.cpp:150: Failure", "  Expected: (known) > (0u), actual: 0 vs 0", "  [  FAILED  ] Heap.Bad (6 ms)",
    ]  # fmt: skip
    assert not any("Good" in line or "PASSED" in line or not line.strip() for line in lines)


def test_the_test_in_which_a_program_ended_is_named() -> None:
    output = "[ RUN      ] Heap.Good\n[       OK ] Heap.Good (1 ms)\n[ RUN      ] Heap.Hangs\nwaiting\n"
    assert suites.complaints(output).splitlines() == ["  waiting", "  did not end: Heap.Hangs"]


def test_sanitizers_reports_stay_and_the_first_of_many_lines_is_shown() -> None:
    report = [f"==12==ERROR: AddressSanitizer: line {number}" for number in range(100)]
    lines = suites.complaints("\n".join(report)).splitlines()
    assert lines[0] == f"  {report[0]}"
    assert lines[-1] == "  ..."
    assert len(lines) < 30


def test_a_suite_that_ran_nothing_has_failed() -> None:
    outcome = outcomes.Outcome("empty")
    outcomes.carry_out(lambda _: None, outcome, ["./loam", "test"])
    assert outcome.failures == [("no test of this suite ran", ["./loam", "test"])]


def test_a_suite_whose_tests_were_all_skipped_has_not_failed() -> None:
    def skips(outcome: outcomes.Outcome) -> None:
        outcome.skipped += 1

    outcome = outcomes.Outcome("golden")
    outcomes.carry_out(skips, outcome, ["./loam", "test"])
    assert not outcome.failed


def test_what_passes_when_run_again_is_unsteady_and_what_fails_again_has_failed(tmp_path: Path) -> None:
    (tmp_path / "build" / "test").mkdir(parents=True)
    outcome = outcomes.Outcome("lab", passed=3)
    outcome.fail("once", ["true"])
    outcome.fail("always", ["sh", "-c", "echo still wrong; exit 1"])
    outcomes.try_again(outcome, tmp_path)
    assert (outcome.passed, outcome.failed) == (4, 1)
    assert [test for test, _ in outcome.unsteady] == ["once"]
    assert [test for test, _ in outcome.failures] == ["always"]
    assert "still wrong" in (tmp_path / "build" / "test" / "lab-again.log").read_text()


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    outcome = outcomes.Outcome("lab")
    for number in range(6):
        outcome.fail(str(number), ["true"])
    outcomes.try_again(outcome, tmp_path)
    assert outcome.failed == len(outcome.failures) == 6


# A test's name with characters that a shell would interpret.
ODD = "test_names.py::test_word[a b-it's $HOME-*]"


def test_a_command_is_run_again_word_for_word(tmp_path: Path) -> None:
    (tmp_path / "build" / "test").mkdir(parents=True)
    outcome = outcomes.Outcome("lab")
    outcome.fail(ODD, ["sh", "-c", 'printf "%s|" "$@" > words; exit 1', "again", ODD, ""])
    outcomes.try_again(outcome, tmp_path)
    assert (tmp_path / "words").read_text() == f"{ODD}||"


def test_a_command_is_shown_so_that_a_shell_reads_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = [".venv/bin/python", "-m", "pytest", ODD]
    outcome = outcomes.Outcome("lab", passed=1)
    outcome.fail("one", words)
    outcome.unsteady.append(("another", words))
    assert command._finish([outcome], 1.0, True) == 1
    shown = capsys.readouterr()
    (suite,) = json.loads(shown.out)["suites"]
    for entries in (suite["failures"], suite["unsteady"]):
        assert [shlex.split(each["again"]) for each in entries] == [words]
    lines = [line.partition("again: ")[2] for line in shown.err.splitlines() if "again: " in line]
    assert [shlex.split(line) for line in lines] == [words, words]


def test_what_failed_of_pytest_is_run_again_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "log_of", lambda suite: tmp_path / f"{suite}.log")
    monkeypatch.setattr(suites, "_logged", lambda *_: (1, f"FAILED {ODD} - assert 1 == 2\n"))
    outcome = outcomes.Outcome("lab")
    suites.run_pytest(outcome, ["tests/lab"])
    assert outcome.failures == [(ODD, [".venv/bin/python", "-m", "pytest", ODD])]


@pytest.mark.parametrize(
    ("script", "good", "message"),
    [
        ("""echo '{"kind":"start"}'; echo '{"verified":true}'""", True, "start"),
        ("""echo '{"verified":false}'""", False, "false"),
        ("""echo '{"verified":true}'; exit 1""", False, "true"),
        ("""echo '{"verified":true'""", False, "true"),
        ("echo nothing", False, "nothing"),
        ("exec sleep 60", False, "did not end within 0.2 s"),
    ],
)
def test_a_run_that_does_not_verify_or_does_not_end_is_a_failure_and_no_traceback(
    script: str, good: bool, message: str
) -> None:
    verified, output = verifies(["sh", "-c", script], 0.2 if "sleep" in script else 60)
    assert verified is good
    assert message in output


def test_each_test_is_in_one_lot_and_the_lots_change_with_the_sources() -> None:
    names = [f"test_{number:02}" for number in range(20)]
    lots = [lot(names[::-1], 3, chosen) for chosen in range(3)]
    assert sorted(name for each in lots for name in each) == names
    assert max(map(len, lots)) - min(map(len, lots)) <= 1
    assert lot(names, 3, 7) == lots[1]
    assert lot(names, 1, 7) == names


def test_tests_are_found_by_their_programs_before_these_are_built() -> None:
    listing = """
add_test([=[heap_test]=] "/build/heap_test")
set_tests_properties([=[heap_test]=] PROPERTIES  LABELS "unit" TIMEOUT "300")
add_test([=[itm_test_norec]=] "/usr/bin/setarch" "-R" "/build/itm_test")
add_test([=[itm_test_etl-wb]=] "/usr/bin/setarch" "-R" "/build/itm_test")
add_test([=[team_test]=] "/build/team_test")
add_test([=[elsewhere]=] "/usr/bin/true")
"""
    wanted = {"heap_test", "itm_test_norec", "itm_test_etl-wb", "elsewhere"}
    assert suites.added_tests(listing, Path("/build"), wanted) == {
        "heap_test": ["heap_test"], "itm_test": ["itm_test_norec", "itm_test_etl-wb"],
    }  # fmt: skip


def test_ten_trees_in_a_row_build_every_synchronisation_and_each_one_those_that_are_always_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = {*sources.syncs(), "probe", "programs"}
    monkeypatch.delenv("LOAM_TEST_ALL", raising=False)
    asked: list[list[str] | None] = []

    def built(targets: list[str] | None = None) -> dict[str, dict[str, str]]:
        asked.append(targets)
        return {"executables": dict.fromkeys(every - {"probe"}, ""), "libraries": {"probe": ""}}

    monkeypatch.setattr(build, "ensure_built", built)
    chosen = []
    for tree in range(10):
        monkeypatch.setattr(lots, "sources_hash", lambda tree=tree: tree)
        chosen.append(lots.build_release())
        assert asked[-2:] == [[], asked[-1]] and set(asked[-1] or ()) == chosen[-1]
    on_the_jvm = {name for name in every if name.startswith("jvm-")}
    assert set().union(*chosen) == every - on_the_jvm
    always = set.intersection(*chosen)
    assert {"etl-wb", "norec", "htm-lock", "mutex", "none", "probe", "programs"} <= always
    assert {"tl2", "dctl", "loam-c"} & always == set()
    assert lots.build_release(whole=True) == every and asked[-1] is None
    monkeypatch.setenv("LOAM_TEST_ALL", "1")
    assert lots.build_release() == every and asked[-1] is None


def test_what_the_labs_tests_simulate_is_built_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []

    def built(targets: list[str], preset: str) -> dict[str, dict[str, str]]:
        asked.append((preset, list(targets)))
        return {"executables": dict.fromkeys(("etl-wb", "none", "tl2", "simulated-threads"), ""), "libraries": {}}

    monkeypatch.setattr(build, "ensure_built", built)
    lots.build_simulated()
    assert asked == [
        ("sim", []), ("sim", ["etl-wb", "malloc", "none", "simulated-threads"]), ("sim-blocks", ["simulated-blocks"]),
    ]  # fmt: skip
