"""The command line itself: help, errors in one line, JSON on standard output, and a start that costs little."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError, nearest, unknown
from loam_lab.cli import listing, main, options

COMMANDS = [
    "tour", "bench", "run", "simulate", "study list", "study run", "top", "explain", "report", "cite", "pack", "compare",
    "list", "doctor", "tune", "trace record", "trace replay", "trace check",
    "allocators add", "allocators remove", "allocators build", "allocators costs",
    "allocators verify", "setup", "test",
    "gallery", "exec", "site", "manual", "agent describe", "agent run",
]  # fmt: skip

# exec becomes another program, and an agent speaks to the engine that started it.
WITHOUT_JSON = {"exec", "agent describe", "agent run"}


def loam(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start the command line in a process of its own, as ./loam does."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "loam_lab.cli", *arguments],
        env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def fresh_consoles() -> None:
    """Consoles are made once per process; each test has streams of its own."""
    console.out.cache_clear()
    console.err.cache_clear()


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    """The one line a failing command prints, after checking that nothing goes to standard output."""
    assert main.run(list(arguments)) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    return captured.err.removeprefix("error: ").rstrip("\n")


# ---- alone, help


def test_alone_it_says_what_to_type_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOAM_PROGRAM", "./loam")
    assert main.run([]) == 0
    text = capsys.readouterr().out
    assert "./loam tour" in text and "./loam bench -- COMMAND" in text
    assert text == (paths.root() / "lab/loam_lab/cli/welcome.txt").read_text(), (
        "colour apart, the bootstrap prints the same"
    )


def test_an_installed_loam_greets_with_what_works_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOAM_PROGRAM", "loam")
    assert main.run([]) == 0
    text = capsys.readouterr().out
    assert "./loam" not in text and "loam test" not in text
    assert "\n  loam tour  " in text and "\n  loam bench -- COMMAND" in text
    # Before anything is set up, the shell says the same.
    for name in ("loam", "lab/loam_lab/cli/welcome.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((paths.root() / name).read_bytes())
    done = subprocess.run(
        ["sh", tmp_path / "loam"], env={**os.environ, "LOAM_PROGRAM": "loam"}, capture_output=True, check=True
    )
    assert done.stdout.decode() == text


def test_every_command_is_tested_and_described() -> None:
    top: Any = typer.main.get_command(main.app)
    commands = {
        f"{name} {below}".strip()
        for name, command in top.commands.items()
        for below in getattr(command, "commands", {"": None})
    }
    text = (
        (paths.root() / "docs/internals/command-line.md").read_text().partition("## Commands")[2].partition("\n## ")[0]
    )
    rows = [
        line.split("|")[1:3]
        for line in text.splitlines()
        if line.startswith("| ") and ".py`" in line and not line.startswith("| command")
    ]
    described = {name.strip() for row in rows for name in row[0].split(",")}
    assert commands == described == {*COMMANDS, "page", "selfcheck"}, (
        "those two pass their options on: test_subcommands.py"
    )
    for _, module in rows:
        assert (paths.root() / "lab/loam_lab/cli" / module.strip(" `")).is_file()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str) -> None:
    done = loam(*command.split(), "--help", COLUMNS="80", NO_COLOR="1")
    assert done.returncode == 0 and ("--json" in done.stdout) == (command not in WITHOUT_JSON)
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "<bool>" not in done.stdout, "a flag takes no value"


# ---- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["repotr"], "loam: No such command 'repotr'. Did you mean 'report'? (loam --help)"),
        (["study"], "loam study: Missing command (loam study --help)"),
        (["list", "alocators"], "list=alocators: not the name of a list (did you mean allocators?)"),
        (["list"], "loam list: Missing argument 'KIND' (loam list --help)"),
        (["run", "intset", "--threads", "0"], "--threads=0: must be at least 1"),
        (["run", "intset", "--threads", "two"], "--threads=two: not a whole number (for example --threads 1,2)"),
        (["run", "intset", "--blocks", "0"], "--blocks=0: must be at least 1"),
        (["run", "intset", "--timeout", "-1"], "--timeout=-1.0: must be above 0 seconds"),
        (
            ["run", "intset", "-p", "list"],
            "-p=list: not of the form key=value or key=v1,v2 (for example -p structure=list,tree)",
        ),
        (["bench"], "bench: no command was given (as in ./loam bench -- /usr/bin/python3 -c 'print(1)')"),
        (
            ["doctor", "--for", "cuonters"],
            "--for=cuonters: not the name of a subject of doctor (did you mean counters?)",
        ),
        (["test", "--fast", "--all"], "--fast --all: only one of these at a time"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert error_of(capsys, *arguments) == message


def test_an_error_is_an_object_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["list", "alocators", "--json"]) == 2
    captured = capsys.readouterr()
    error = json.loads(captured.out)["error"]
    assert error["subject"] == "list" and error["value"] == "alocators" and error["hint"] == "did you mean allocators?"
    assert captured.err == f"error: {error['message']}\n"


def test_json_of_the_measured_command_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["bench", "--blocks", "0", "--", "tool", "--json", "--no-setup"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "LOAM_NO_SETUP" not in os.environ


@pytest.mark.parametrize(
    ("raised", "status", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "/x/y"), 2, "/x/y: Permission denied"),
        (OSError(28, "No space left on device", "/x/y"), 2, "/x/y: No space left on device"),
        (OSError(28, "No space left on device"), 2, "the system: No space left on device (check the free space"),
        (BlockingIOError(11, "Resource temporarily unavailable"), 2, "the system: Resource temporarily unavailable"),
        (FileNotFoundError(2, "No usable temporary directory found in ['/x']"), 2, "the system: No usable temporary"),
        (LoamError("--threads", 96, "this machine has 2 hardware threads", "add --oversubscribe to allow more"), 2,
         "--threads=96: this machine has 2 hardware threads (add --oversubscribe to allow more)"),
    ],
)  # fmt: skip
def test_failures_of_a_command_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, raised: BaseException, status: int, words: str
) -> None:
    def show(kind: str, *, as_json: bool) -> int:
        raise raised

    monkeypatch.setattr(listing, "show", show)
    assert words in error_of(capsys, "list", "machines", status=status)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_asked_to_end_it_ends_as_by_ctrl_c(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # nohup has it ignored
    try:
        monkeypatch.setattr(listing, "show", lambda *_, **__: os.kill(os.getpid(), number))
        assert error_of(capsys, "list", "machines", status=130) == "interrupted"
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_folder_whose_name_is_no_text_is_told_before_measuring(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "\udcff").mkdir()
    monkeypatch.chdir(tmp_path / "\udcff")
    assert "the current folder=" in error_of(capsys, "bench", "--", "/bin/true")


def test_what_is_ignored_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As HUP under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        monkeypatch.setattr(listing, "show", lambda *_, **__: os.kill(os.getpid(), signal.SIGHUP) or 0)
        assert main.run(["list", "machines"]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_nearest_and_unknown() -> None:
    assert nearest("jemaloc", ["glibc", "jemalloc"]) == "jemalloc"
    assert nearest("JEMALLOC", ["glibc", "jemalloc"]) == "jemalloc"
    assert nearest("zzz", ["glibc"]) is None
    assert nearest("nosuch", ["norec", "h-synch", "gcbench"]) is None
    assert (
        unknown("--x", "zzz", ["b", "a"], "allocator").line()
        == "--x=zzz: not the name of an allocator (there are: a, b)"
    )
    assert unknown("--x", "zzz", [], "study").line() == "--x=zzz: not the name of a study (none is known yet)"


@pytest.mark.parametrize(
    ("words", "follows"),
    [
        ("run int", "intset"),
        ("run intset,que", "intset,queue"),
        ("run intset --allocator je", "jemalloc"),
        ("run intset --allocator glibc,je", "glibc,jemalloc"),
        ("run intset --sync etl-w", "etl-wb"),
        ("run intset --machine sim:x", "sim:xeon-e5405"),
        ("bench --allocator tcm", "tcmalloc"),
        ("study run to", "tour"),
        ("list synch", ""),
        ("list syn", "syncs"),
        ("explain --base desi", "design:base"),
        ("allocators verify hoa", "hoard"),
        ("allocators build hoa", "hoard"),
        ("bench --limit memory.h", "memory.high="),
        ("bench --limit nof", "nofile="),
        ("doctor --for htm", "htm"),
        ("exec --itm hyb", "hybrid-norec"),
        ("explain --factor cac", "cache"),
        ("page privat", "privatization"),
        ("run gcbench --collector par", "parallel"),
        ("run intset --engine sl", "slurm"),
        ("selfcheck vol", "volume"),
        ("tune --only th", "thp"),
    ],
)
def test_names_are_completed(words: str, follows: str) -> None:
    line = f"loam {words}"
    done = loam(
        _LOAM_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words.split())), _TYPER_COMPLETE_ARGS=line
    )
    assert done.stderr == "" and (follows in done.stdout.split() if follows else not done.stdout.strip())


def test_lists_are_cut_at_commas_in_order_without_repetitions() -> None:
    assert options.names(["glibc:tcache=0, jemalloc", "jemalloc,,tbb"]) == ["glibc:tcache=0", "jemalloc", "tbb"]
    assert options.names(None) == []
    assert options.integers("--threads", ["2,1", "2"]) == [2, 1]


# ---- output


@pytest.mark.parametrize("arguments", [["list", "machines"], ["list", "claims"], ["doctor", "--for", "htm"]])
def test_json_is_all_there_is_on_standard_output(arguments: list[str]) -> None:
    done = loam(*arguments, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["schema"] == 1


def test_doctor_fits_80_columns_and_says_what_follows() -> None:
    done = loam("doctor", COLUMNS="80", NO_COLOR="1")
    assert "RTM" in done.stdout and "checks:" in done.stdout and "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    findings = json.loads(loam("doctor", "--json").stdout)["findings"]
    assert all(f["consequence"] and f["next_step"] for f in findings if f["severity"] != "fine")


def test_the_machine_is_fingerprinted_by_processor_and_threads() -> None:
    machines = json.loads(loam("list", "machines", "--json").stdout)["machines"]
    assert machines[0]["cores"] == len(os.sched_getaffinity(0)) and len(machines[0]["fingerprint"]) == 16
    assert machines[0]["rtm"] in ("works", "absent", "listed but aborts")


def test_a_closed_pipe_ends_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-P", "-m", "loam_lab.cli", "list", "machines", "--json"], stdout=write,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)  # fmt: skip
    os.close(write)
    assert done.returncode == 141 and done.stderr == ""


# ---- the start


def test_a_start_imports_nothing_heavy() -> None:
    heavy = [
        "numpy",
        "jinja2",
        "rich.table",
        "rich.progress",
    ]
    code = f"import sys, loam_lab.cli.main; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_groups_commands_by_what_a_user_wants() -> None:
    printed = loam("--help", COLUMNS="100", NO_COLOR="1").stdout
    heads = [
        word for line in printed.splitlines() for word in re.findall(r"─ (Measure|Explain|Decide|Maintain): ", line)
    ]
    assert heads == ["Measure", "Explain", "Decide", "Maintain"]
    decide = printed[printed.index("Decide: ") : printed.index("Maintain: ")]
    assert re.findall(r"^│ (\w+) ", decide, re.MULTILINE) == ["bench", "exec", "compare", "trace"]


@pytest.mark.parametrize("arguments", [["--help"], *([*command.split(), "--help"] for command in COMMANDS)])
def test_help_imports_no_work(arguments: list[str]) -> None:
    # rich's tables and, below a command, pydantic are what typer itself draws and reads help with.
    heavy = ["numpy", "jinja2", "tomli_w"]
    if arguments == ["--help"]:
        heavy.append("pydantic")
    code = f"""import sys
from loam_lab.cli import main
status = main.run({arguments!r})
own = {{m for m in sys.modules if m.startswith("loam_lab.") and not m.startswith("loam_lab.cli")}}
light = {{"loam_lab.base"}} | {{f"loam_lab.base.{{name}}" for name in ("console", "errors", "interrupts")}}
print("STATUS", status, [m for m in {heavy!r} if m in sys.modules], sorted(own - light))"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "STATUS 0 [] []"


@pytest.mark.skipif(not (paths.root() / ".venv/.loam-requirements.lock").is_file(), reason="not started by ./loam")
@pytest.mark.alone
def test_a_start_takes_little_beside_that_of_python() -> None:
    # CPU time, since the machine may be busy with other tests; beside a start of Python that does nothing, since the same
    # start took 0.17 to 0.31 s as the machine was fast or slow. It takes 18 to 20 times as much; numpy would add 12.
    def taken(command: list[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    pairs = [
        (taken([str(paths.root() / "loam"), "--version"]), taken([sys.executable, "-I", "-c", "pass"]))
        for _ in range(10)
    ]
    own, bare = (min(times) for times in zip(*pairs, strict=True))
    assert 0 < own < 25 * bare, f"the cheapest of 10 starts took {own:.3f} s, Python's {bare:.3f} s"


@pytest.mark.skipif(not (paths.root() / ".venv/.loam-requirements.lock").is_file(), reason="not started by ./loam")
def test_a_start_imports_little() -> None:
    # Imports are what a start takes. There were 273.
    done = subprocess.run(
        [str(paths.root() / "loam"), "--version"],
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert 50 < len(imported) < 300


def test_names_of_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LoamError, match="no result in this folder"):
        paths.latest_result()
    (tmp_path / "results/one").mkdir(parents=True)
    (tmp_path / "results/latest").symlink_to("one")
    assert paths.latest_result() == tmp_path / "results/one"
