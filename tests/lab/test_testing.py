"""What `loam test` shows of a failed C++ test, and what it counts as failed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from loam_lab.dev import testing

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
    lines = testing.complaints(OUTPUT).splitlines()
    assert lines[:3] == [
        "  heap_test.cpp:150: Failure", "  Expected: (known) > (0u), actual: 0 vs 0", "  [  FAILED  ] Heap.Bad (6 ms)",
    ]  # fmt: skip
    assert not any("Good" in line or "PASSED" in line or not line.strip() for line in lines)


def test_the_test_in_which_a_program_ended_is_named() -> None:
    output = "[ RUN      ] Heap.Good\n[       OK ] Heap.Good (1 ms)\n[ RUN      ] Heap.Hangs\nwaiting\n"
    assert testing.complaints(output).splitlines() == ["  waiting", "  did not end: Heap.Hangs"]


def test_sanitizers_reports_stay_and_the_first_of_many_lines_is_shown() -> None:
    report = [f"==12==ERROR: AddressSanitizer: line {number}" for number in range(100)]
    lines = testing.complaints("\n".join(report)).splitlines()
    assert lines[0] == f"  {report[0]}"
    assert lines[-1] == "  ..."
    assert len(lines) < 30


def test_a_suite_that_ran_nothing_has_failed() -> None:
    outcome = testing.Outcome("empty")
    testing.carry_out(lambda _: None, outcome, ["./loam", "test"])
    assert outcome.failures == [("no test of this suite ran", ["./loam", "test"])]


def test_a_suite_whose_tests_were_all_skipped_has_not_failed() -> None:
    def skips(outcome: testing.Outcome) -> None:
        outcome.skipped += 1

    outcome = testing.Outcome("golden")
    testing.carry_out(skips, outcome, ["./loam", "test"])
    assert not outcome.failed


def test_what_passes_when_run_again_is_unsteady_and_what_fails_again_has_failed(tmp_path: Path) -> None:
    (tmp_path / "build" / "test").mkdir(parents=True)
    outcome = testing.Outcome("lab", passed=3)
    outcome.fail("once", ["true"])
    outcome.fail("always", ["sh", "-c", "echo still wrong; exit 1"])
    testing.try_again(outcome, tmp_path)
    assert (outcome.passed, outcome.failed) == (4, 1)
    assert [test for test, _ in outcome.unsteady] == ["once"]
    assert [test for test, _ in outcome.failures] == ["always"]
    assert "still wrong" in (tmp_path / "build" / "test" / "lab-again.log").read_text()


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    outcome = testing.Outcome("lab")
    for number in range(6):
        outcome.fail(str(number), ["true"])
    testing.try_again(outcome, tmp_path)
    assert outcome.failed == len(outcome.failures) == 6


# A test's name with characters that a shell would interpret.
ODD = "test_names.py::test_word[a b-it's $HOME-*]"


def test_a_command_is_run_again_word_for_word(tmp_path: Path) -> None:
    (tmp_path / "build" / "test").mkdir(parents=True)
    outcome = testing.Outcome("lab")
    outcome.fail(ODD, ["sh", "-c", 'printf "%s|" "$@" > words; exit 1', "again", ODD, ""])
    testing.try_again(outcome, tmp_path)
    assert (tmp_path / "words").read_text() == f"{ODD}||"


def test_a_command_is_shown_so_that_a_shell_reads_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = [".venv/bin/python", "-m", "pytest", ODD]
    outcome = testing.Outcome("lab", passed=1)
    outcome.fail("one", words)
    outcome.unsteady.append(("another", words))
    assert testing._finish([outcome], 1.0, True) == 1
    shown = capsys.readouterr()
    (suite,) = json.loads(shown.out)["suites"]
    for found in (suite["failures"], suite["unsteady"]):
        assert [shlex.split(each["again"]) for each in found] == [words]
    lines = [line.partition("again: ")[2] for line in shown.err.splitlines() if "again: " in line]
    assert [shlex.split(line) for line in lines] == [words, words]


def test_what_failed_of_pytest_is_run_again_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "_log", lambda suite: tmp_path / f"{suite}.log")
    monkeypatch.setattr(testing, "_logged", lambda *_: (1, f"FAILED {ODD} - assert 1 == 2\n"))
    outcome = testing.Outcome("lab")
    testing._pytest(outcome, ["tests/lab"])
    assert outcome.failures == [(ODD, [".venv/bin/python", "-m", "pytest", ODD])]


@pytest.mark.parametrize(
    ("script", "good", "said"),
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
    script: str, good: bool, said: str
) -> None:
    verified, output = testing.verifies(["sh", "-c", script], 0.2 if "sleep" in script else 60)
    assert verified is good
    assert said in output
