"""Several processes of pytest share modules out: each test runs once, those of a module in one process."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from loam_lab.dev.testing import suites
from loam_lab.dev.testing.outcome import Outcome

MODULE = """
import os, time
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def shared():
    folder, deadline = Path(FOLDER), time.monotonic() + 60
    (folder / f"{os.getpid()}.process").touch()
    while len(list(folder.glob("*.process"))) < PROCESSES and time.monotonic() < deadline:
        time.sleep(0.01)
    yield os.getpid()
    Path(__file__).with_suffix(".ended").touch(exist_ok=False)

@pytest.mark.parametrize("number", range(3))
def test_runs(number, shared):
    with Path(__file__).with_suffix(".runs").open("a") as runs:
        print(number, shared, file=runs)
"""
FAILS = "import pytest\ndef test_fails(): assert 1 == 2\ndef test_passes(): pass\n@pytest.mark.skip\ndef test_skipped(): pass\n"
SLOW = "import pytest\n@pytest.mark.slow\ndef test_slow(): pass\n"


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    monkeypatch.setattr(suites, "log_of", lambda suite: folder / f"{suite}.log")
    return folder


def test_each_test_runs_once_and_a_module_is_not_split(tmp_path: Path, logs: Path) -> None:
    names = [f"{letter}/test_{letter}.py" for letter in "abcd"]
    for name in names:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"PROCESSES, FOLDER = 2, {str(tmp_path)!r}\n{MODULE}")
    (tmp_path / "test_fails.py").write_text(FAILS)
    outcome = Outcome("lab")
    suites.run_pytest(outcome, [str(tmp_path)], workers=2)
    assert (outcome.passed, outcome.failed, outcome.skipped) == (13, 1, 1)
    ((test, again),) = outcome.failures
    assert test.endswith("test_fails.py::test_fails") and list(again) == [".venv/bin/python", "-m", "pytest", test]
    processes = set()
    for name in names:
        runs = [line.split() for line in (tmp_path / name).with_suffix(".runs").read_text().splitlines()]
        assert [number for number, _ in runs] == ["0", "1", "2"]
        assert len({process for _, process in runs}) == 1
        processes.add(runs[0][1])
        assert (tmp_path / name).with_suffix(".ended").exists()
    assert len(processes) == 2, "the first that came waited for the other one"
    reports = [ElementTree.parse(logs / f"lab-{number}.xml") for number in (1, 2)]
    assert sum(len(list(report.iter("testcase"))) for report in reports) == 15
    assert (logs / "lab.log").read_text() == "".join((logs / f"lab-{number}.log").read_text() for number in (1, 2))


def test_a_process_that_dies_is_a_failure_and_the_others_run_what_is_left(tmp_path: Path, logs: Path) -> None:
    (tmp_path / "test_a.py").write_text("import os\ndef test_dies(): os._exit(3)\n")
    (tmp_path / "test_b.py").write_text(f"PROCESSES, FOLDER = 1, {str(tmp_path)!r}\n{MODULE}")
    outcome = Outcome("lab")
    suites.run_pytest(outcome, [str(tmp_path)], workers=2)
    assert (outcome.passed, outcome.failed) == (3, 1)
    ((what, _),) = outcome.failures
    assert what == "lab: pytest ended with status 3"


def test_modules_with_slow_tests_are_the_first(tmp_path: Path, logs: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    for name, text in (("test_a.py", "def test_quick(): pass\n"), ("test_b.py", SLOW)):
        (tmp_path / name).write_text(text)
    outcome = Outcome("lab")
    words = [str(tmp_path), "-v", "-p", suites.WORKER]
    suites.run_worker(outcome, suites.log_of("lab"), words, {suites.TAKEN: str(logs)})
    assert outcome.passed == 2
    text = (logs / "lab.log").read_text()
    assert text.index("test_b.py::test_slow") < text.index("test_a.py::test_quick")
