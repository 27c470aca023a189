"""./loam itself, on checkouts that hold only what it touches; no network is used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from loam_lab.base import paths
from loam_lab.cli import main

MAIN = 'import sys\nprint("started", *sys.argv[1:])\n'
PARTS = [
    "loam", "CMakePresets.json", "lab/loam_lab/__init__.py", "lab/loam_lab/base/__init__.py",
    "lab/loam_lab/base/errors.py", "lab/loam_lab/base/paths.py", "lab/loam_lab/base/console.py",
    "lab/loam_lab/setup/__init__.py", "lab/loam_lab/setup/debian.py", "lab/loam_lab/setup/packages.py",
    "lab/loam_lab/setup/system.py",
    "lab/loam_lab/cli/__init__.py", "lab/loam_lab/cli/welcome.txt",
]  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose lock files name no package and whose command line says that it was started."""
    for part in PARTS:
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(paths.root() / part, tmp_path / part)
    (tmp_path / "lab/loam_lab/cli/__main__.py").write_text(MAIN)
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (tmp_path / lock).write_text("# nothing\n")
    return tmp_path


def loam(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("LOAM_", "PYTHON"))}
    clean["PATH"] = os.pathsep.join([str(Path(sys.base_prefix) / "bin"), "/usr/bin", "/bin"])
    return subprocess.run(
        [str(checkout / "loam"), *arguments], env={**clean, "PIP_NO_INDEX": "1", **environment}, cwd="/",
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def make(checkout: Path) -> None:
    done = loam(checkout, "list", "x")
    assert (done.returncode, done.stdout) == (0, "started list x\n"), done.stderr


@pytest.mark.slow
def test_the_first_start_makes_the_environment_and_the_second_does_not(checkout: Path) -> None:
    first = loam(checkout, "list", "a b", "--", "-c")
    assert first.stdout == "started list a b -- -c\n" and "making .venv" in first.stderr, first.stderr
    second = loam(checkout, "list")
    assert (second.stdout, second.stderr) == ("started list\n", "")
    link = checkout / "elsewhere"
    link.symlink_to(checkout / "loam")
    through_link = subprocess.run([str(link), "list"], capture_output=True, text=True, check=False)
    assert through_link.stdout == "started list\n" and through_link.stderr == ""


@pytest.mark.slow
def test_another_lock_file_is_installed_and_a_half_made_environment_made_anew(checkout: Path) -> None:
    make(checkout)
    (checkout / "requirements.lock").write_text("# other\n")
    changed = loam(checkout, "list")
    assert "making .venv" not in changed.stderr and "requirements.lock into .venv" in changed.stderr
    assert "requirements-dev.lock into .venv" in loam(checkout, "test").stderr, "the tests need more"
    assert loam(checkout, "list").stderr == "", "what the tests installed holds the rest too"
    for stamp in (checkout / ".venv").glob(".loam-*"):
        stamp.unlink()
    (checkout / ".venv/half").write_text("")
    assert "making .venv" in loam(checkout, "list").stderr and not (checkout / ".venv/half").exists()


@pytest.mark.slow
def test_a_failing_installation_leaves_no_environment_that_looks_whole(checkout: Path) -> None:
    lock = checkout / "requirements.lock"
    lock.write_text("no-such-package==1 --hash=sha256:" + "0" * 64 + "\n")
    failed = loam(checkout, "list")
    assert failed.returncode == 2 and failed.stdout == ""
    assert "error: .venv: the Python packages could not be installed, see above (is there a network" in failed.stderr
    lock.write_text("# nothing\n")
    again = loam(checkout, "list")
    assert again.stdout == "started list\n" and "making .venv" in again.stderr


@pytest.mark.slow
def test_two_first_starts_make_one_environment(checkout: Path) -> None:
    command = [str(checkout / "loam"), "list"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [out for out, _ in outputs] == ["started list\n"] * 2
    assert sum("making .venv" in err for _, err in outputs) == 1


def test_alone_it_needs_nothing(checkout: Path) -> None:
    done = loam(checkout)
    assert (done.returncode, done.stdout) == (0, (checkout / "lab/loam_lab/cli/welcome.txt").read_text())
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("arguments", [["list", "--no-setup"], ["--no-setup", "tour"]])
def test_no_setup_stops(checkout: Path, arguments: list[str]) -> None:
    done = loam(checkout, *arguments)
    assert done.returncode == 2 and not (checkout / ".venv").exists()
    assert "error: .venv: missing or out of date, and --no-setup was given" in done.stderr


def test_an_option_of_the_measured_command_is_not_ours(checkout: Path) -> None:
    (checkout / ".loam").write_text("a file where a folder should be")
    done = loam(checkout, "list", "--", "--no-setup", "--json")
    assert "cannot be written" in done.stderr and done.stdout == ""


def test_with_json_a_failing_set_up_is_an_object(checkout: Path) -> None:
    done = loam(checkout, "list", "--no-setup", "--json")
    assert json.loads(done.stdout)["error"]["exit_code"] == 2


def test_a_folder_that_cannot_be_written(checkout: Path) -> None:
    (checkout / ".loam").write_text("a file where a folder should be")
    done = loam(checkout, "list")
    assert done.returncode == 2 and "cannot be written, and .venv must be made there" in done.stderr


def test_a_lock_that_cannot_be_written_is_told(checkout: Path) -> None:
    (checkout / ".loam/venv.lock").mkdir(parents=True)  # as in a checkout that is read only; root may write anywhere
    done = loam(checkout, "list")
    assert done.returncode == 2 and "cannot be written, and .venv must be made there" in done.stderr


def test_a_mistyped_word_of_test_installs_nothing_for_the_tests(checkout: Path) -> None:
    venv = checkout / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").write_text('#!/bin/sh\nshift 3\necho started "$@"\n')
    (venv / "bin/python").chmod(0o755)
    shutil.copy2(checkout / "requirements.lock", venv / ".loam-requirements.lock")
    for words in (["test", "nosuch"], ["test", "--fats"], ["test", "--help"]):
        done = loam(checkout, *words)
        assert (done.stdout, done.stderr) == (f"started {' '.join(words)}\n", "")
    command: Any = typer.main.get_command(main.app).commands["test"]  # type: ignore[attr-defined]
    options = {name for parameter in command.params for name in parameter.opts} | {"--no-setup"}
    line = next(
        line for line in (checkout / "loam").read_text().splitlines() if line.strip().startswith("test | --fast")
    )
    known = {word for word in line.strip().rstrip(") ;").split(" | ") if word.startswith("--") and "=" not in word}
    assert known == options, "the shell knows the options of test, and no others"


def _search_path(checkout: Path, *tools: str, python: str = "") -> str:
    """A search path with these tools only; a python3 among them is the given script."""
    folder = checkout / "tools"
    folder.mkdir()
    for name in tools:
        (folder / name).symlink_to(str(shutil.which(name)))
    if python:
        (folder / "python3").write_text(python)
        (folder / "python3").chmod(0o755)
    return str(folder)


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs the system's Python")
def test_an_old_python_first_on_the_path_is_passed_over(checkout: Path) -> None:
    path = _search_path(
        checkout, "sh", "dirname", "readlink", "cmp", "id", "sed", "tr", "mkdir", python="#!/bin/sh\nexit 1\n"
    )
    done = loam(checkout, "list", "--no-setup", PATH=path)
    assert "error: .venv: missing or out of date" in done.stderr, "it went on with /usr/bin/python3"


def test_no_python_at_all(checkout: Path) -> None:
    text = (checkout / "loam").read_text()
    (checkout / "loam").write_text(text.replace("/usr/bin/python3", "/nowhere/python3"))
    path = _search_path(checkout, "sh", "readlink", "cmp", "id", "sed", "tr", "mkdir")
    done = loam(checkout, "list", "--no-setup", PATH=path)
    assert (
        done.returncode == 2
        and "missing: python3 (3.11 or newer) python3-venv (as root: apt-get install" in done.stderr
    )
    done = loam(checkout, "list", PATH=path)
    assert done.returncode == 2 and "python3: not found, or older than 3.11 (as root: apt-get install" in done.stderr
