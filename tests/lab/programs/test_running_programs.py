"""How real programs are run: bad ends are told, and nothing outlives a session: no process, no folder."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from pathlib import Path

import pytest

from loam_lab.setup import debian
from loam_lab.subjects.programs import __main__ as driver
from loam_lab.subjects.programs import running
from loam_lab.subjects.programs.catalogue import PROGRAMS
from loam_lab.subjects.programs.running import Failed, Program, Session, session


def says(text: str, *, packages: tuple[str, ...] = ()) -> Program:
    """A program that prints its argument and how much it is to do."""
    return Program(
        "echo", packages, "words", lambda here: here.output("echo", text, str(here.amount)), 1, 2, ("echo", "hello")
    )


def gone(process: int) -> bool:
    """Whether a process has ended within ten seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_run_returns_what_was_written_and_leaves_no_folder() -> None:
    seen: list[Path] = []

    def work(here: Session) -> bytes:
        seen.append(here.folder)
        (here.folder / "file").write_text("kept for as long as the run")
        return here.output("cat", "file", "-", given=b", and given")

    with session({}, 1) as here:
        assert work(here) == b"kept for as long as the run, and given"
    assert not seen[0].exists()


@pytest.mark.parametrize(
    ("script", "message"), [("echo why >&2; exit 3", r"ended with 3\nwhy"), ("kill -SEGV $$", "ended with -11")]
)
def test_a_bad_end_is_told(script: str, message: str) -> None:
    with session({}, 1) as here, pytest.raises(Failed, match=message):
        here.output("sh", "-c", script)


def test_a_status_may_be_an_answer_but_a_signal_never() -> None:
    with session({}, 1) as here:
        assert here.output("sh", "-c", "echo no; exit 1", may_fail=True) == b"no\n"
        with pytest.raises(Failed, match="ended with -9"):
            here.output("sh", "-c", "kill -KILL $$", may_fail=True)


def test_an_ignored_interrupt_is_not_passed_on() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with session({}, 1) as here, pytest.raises(Failed, match="ended with -2"):
            here.output("sh", "-c", "kill -INT $$")
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_takes_too_long_is_ended_with_all_that_it_started() -> None:
    with session({}, 1) as here:
        with pytest.raises(Failed, match=r"did not end within 0 s|did not end within 1 s"):
            here.output("sh", "-c", "sleep 100 & echo $! >child; wait", timeout_s=0.5)
        assert gone(int((here.folder / "child").read_text()))


SERVER = 'trap "exit ${1:-0}" TERM; echo $$ >server; while :; do sleep 0.01; done'


def started(here: Session) -> int:
    deadline = time.monotonic() + 10
    while not (file := here.folder / "server").exists() or not file.read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(file.read_text())


def test_a_server_is_ended_by_the_end_of_the_block_and_by_an_error_in_it() -> None:
    with session({}, 1) as here:
        with here.server("sh", "-c", SERVER):
            process = started(here)
        assert gone(process)
        (here.folder / "server").unlink()
        with pytest.raises(ZeroDivisionError), here.server("sh", "-c", SERVER):
            process = started(here)
            raise ZeroDivisionError
        assert gone(process)


def test_a_server_that_ends_badly_or_early_is_told() -> None:
    with session({}, 1) as here:
        with pytest.raises(Failed, match="ended with 4"), here.server("sh", "-c", SERVER, "sh", "4"):
            started(here)
        (here.folder / "server").unlink()
        with (
            pytest.raises(Failed, match=r"too early\nno room"),
            here.server("sh", "-c", "echo no room; echo $$ >server"),
        ):
            assert gone(started(here))


def test_a_server_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "STOPPING_S", 0.3)
    deaf = 'trap "" TERM; echo $$ >server; while :; do sleep 0.01; done'
    with session({}, 1) as here:
        with pytest.raises(Failed, match="ended with -9"), here.server("sh", "-c", deaf):
            process = started(here)
        assert gone(process)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root")
def test_root_is_given_up() -> None:
    with session({}, 1) as here:
        here.give_up_root()
        assert here.output("id", "-un") == b"nobody\n"
        assert here.output("id", "-G").split() == [b"65534"]
        here.output("touch", "file")
        with here.server("sh", "-c", SERVER, stop=signal.SIGTERM):
            assert Path(f"/proc/{started(here)}").stat().st_uid == 65534


def test_the_peak_is_that_of_the_largest_process() -> None:
    with session({}, 1) as here:
        for mebibytes in (300, 200):
            here.output("/usr/bin/python3", "-c", f"x = b'x' * ({mebibytes} << 20)")
        assert here.used.rss_peak_bytes is not None and 300 << 20 < here.used.rss_peak_bytes < 400 << 20


def test_processor_time_is_that_of_all_commands_and_the_environment_can_be_changed() -> None:
    busy = "import os, time\nprint(os.environ['PYTHONMALLOC'])\nwhile time.process_time() < 0.3: pass"
    with session({}, 1, {"PYTHONMALLOC": "pymalloc"}) as here:
        for _ in range(2):
            assert here.output("/usr/bin/python3", "-c", busy) == b"pymalloc\n"
        assert 0.6 <= here.used.user_s + here.used.system_s < 3
        assert here.used.wall_s >= 0.6


def test_what_is_not_installed_names_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(debian, "PACKAGES", (debian.Package("nine", "command:no-such-tool", ("programs",), ""),))
    program = says("nine", packages=("nine",))
    assert running.lacks(program) == "Debian's nine: ./loam setup --programs"
    monkeypatch.setattr(driver, "PROGRAMS", {"echo": program})
    assert driver.describe()["workloads"][0]["lacks"] == "Debian's nine: ./loam setup --programs"
    with pytest.raises(SystemExit):
        driver.main(["echo"])
    assert "echo lacks Debian's nine: ./loam setup --programs" in capsys.readouterr().err


def test_what_is_missing_besides_packages_is_told_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "PACKAGES", (debian.Package("nine", "command:sh", ("programs",), ""),))
    program = dataclasses.replace(says("nine", packages=("nine",)), missing=lambda: "its sources: fetch them")
    assert running.lacks(program) == "its sources: fetch them"


def test_setup_knows_each_package() -> None:
    known = {package.name for package in debian.PACKAGES if {"programs", "test"} & set(package.needs)}
    assert {name for program in PROGRAMS.values() for name in program.packages} <= known
    used = {name for program in PROGRAMS.values() for name in program.packages}
    assert {package.name for package in debian.PACKAGES if "programs" in package.needs} <= used


def test_sessions_do_not_pass_on_a_preloaded_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/no/such/library.so")
    with session({}, 1) as here:
        assert b"LD_PRELOAD" not in here.output("env")
