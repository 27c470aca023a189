"""A hundred wrong inputs: each is told in one line that has its subject and its value, and nothing is built for it."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest
from campaigns import STM

import loam_lab
from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.campaign.process import execute
from loam_lab.cli import main
from loam_lab.model import studies
from loam_lab.setup import build, debian
from loam_lab.subjects import typed_names
from loam_lab.subjects.allocators import compilation

BENCH = ["bench", "--server", "/bin/cat", "--ready", "6379", "--load", "/bin/true", "--metric", r"(\d+) per second"]
STUDY = """\
schema = 2
name = "own"
title = "t"
question = "q"
baseline = "glibc"
allocators = ["glibc"{more}]
[[groups]]
name = "g"
workload = "{workload}"
sync = ["{sync}"]
machines = ["{machine}"]
"""


def _study(workload: str = "intset", sync: str = "etl-wb", machine: str = "host", more: str = "") -> str:
    return STUDY.format(workload=workload, sync=sync, machine=machine, more=more)


FILES = {
    "text": "no TOML, no JSON, no trace",
    "empty": "",
    "folder/file": "x",
    "damaged/result.json": '{"schema": 1, "cells": [',
    "list/result.json": "[1, 2]",
    "older/result.json": '{"schema": 0}',
    "broken.toml": "schema = ",
    "keys.toml": _study() + "thread = [1]\n",
    "workload.toml": _study(workload="intsett"),
    "sync.toml": _study(sync="etl-wbb"),
    "machine.toml": _study(machine="sim:xeon"),
    "allocator.toml": _study(more=', "jemaloc"'),
    "setting.toml": _study(more=', "glibc:tcachee=0"'),
    "seed.toml": _study().replace('title = "t"', 'title = "t"\nseed = -1'),
    "none.commands": "# nothing\n\n",
    "open.commands": "echo 'x\n",
}

# The words, then what the line must have. %/ stands for the folder of FILES.
WRONG: list[tuple[list[str], str, str]] = [
    # Commands, options and their kinds
    (["bnech"], "", "bnech"),
    (["--no-such"], "", "--no-such"),
    (["study"], "study", "Missing command"),
    (["study", "rnu"], "study", "rnu"),
    (["list"], "list", "KIND"),
    (["list", "nosuch"], "list", "nosuch"),
    (["list", "syncs", "more"], "list", "more"),
    (["run"], "run", "workload"),
    (["run", "intset", "--thread"], "run", "--thread"),
    (["run", "intset", "--blocks"], "--blocks", "requires an argument"),
    (["doctor", "--for", "nosuch"], "--for", "nosuch"),
    (["tune", "--apply", "--restore"], "--apply", "--restore"),
    (["tune", "--restore", "--only", "thp"], "--only", "thp"),
    (["tune", "--only", "nosuch"], "--only", "nosuch"),
    (["test", "nosuch"], "test", "nosuch"),
    (["test", "--fast", "--smoke"], "--fast", "--smoke"),
    (["test", "--replay", "-1"], "--replay", "-1"),
    (["page", "nosuch"], "page", "nosuch"),
    (["selfcheck", "nosuch"], "check", "nosuch"),
    (["trace"], "trace", "Missing command"),
    (["allocators"], "allocators", "Missing command"),
    # Numbers
    (["run", "intset", "--seed", "-1"], "--seed", "-1"),
    (["run", "intset", "--seed", "18446744073709551616"], "--seed", "18446744073709551616"),
    (["run", "intset", "--seed", "0x1"], "--seed", "0x1"),
    (["bench", "--seed", "-1", "--", "/bin/true"], "--seed", "-1"),
    (["explain", "intset", "--seed", "-7"], "--seed", "-7"),
    (["trace", "replay", "%/text", "--seed", "-1"], "--seed", "-1"),
    (["run", "intset", "--blocks", "0"], "--blocks", "0"),
    (["run", "intset", "--blocks", "-5"], "--blocks", "-5"),
    (["run", "intset", "--blocks", "2.5"], "--blocks", "2.5"),
    (["run", "intset", "--blocks", "1000000000000"], "--blocks", "1000000000000"),
    (["bench", "--blocks", "1000000000", "--", "/bin/true"], "--blocks", "1000000000"),
    (["run", "intset", "--max-blocks", "0"], "--max-blocks", "0"),
    (["study", "run", "tour", "--max-blocks", "99999999999"], "--max-blocks", "99999999999"),
    (["run", "intset", "--timeout", "0"], "--timeout", "0"),
    (["run", "intset", "--timeout", "nan"], "--timeout", "nan"),
    (["run", "intset", "--timeout", "inf"], "--timeout", "inf"),
    (["bench", "--timeout", "1e300", "--", "/bin/true"], "--timeout", "1e+300"),
    (["run", "intset", "--budget", "-1"], "--budget", "-1"),
    (["run", "intset", "--budget", "inf"], "--budget", "inf"),
    (["run", "intset", "--target-width", "2"], "--target-width", "2"),
    (["run", "intset", "--target-width", "nan"], "--target-width", "nan"),
    (["run", "intset", "--threads", "0"], "--threads", "0"),
    (["run", "intset", "--threads", "1,x"], "--threads", "x"),
    (["run", "intset", "--threads", "1.5"], "--threads", "1.5"),
    (["explain", "intset", "--threads", "0"], "--threads", "0"),
    (["explain", "intset", "--every", "0"], "--every", "0"),
    (["bench", "--warmup", "-1", "--", "/bin/true"], "--warmup", "-1"),
    (["bench", "--search-for", "0", "--", "/bin/true"], "--search-for", "0"),
    (["compare", "%/damaged", "%/list", "--gate", "nan"], "--gate", "nan"),
    (["compare", "%/damaged", "%/list", "--gate", "0"], "--gate", "0"),
    (["top", "%/folder", "--every", "nan"], "--every", "nan"),
    (["top", "%/folder", "--every", "0.1"], "--every", "0.1"),
    # Names
    (["run", "intsett"], "WORKLOAD", "intsett"),
    (["run", "intset,quuee"], "WORKLOAD", "quuee"),
    (["run", ""], "WORKLOAD", ""),
    (["run", "intset", "--sync", "etl-wbb"], "--sync", "etl-wbb"),
    (["run", "intset", "--sync", "%/text"], "--sync", "/text"),
    (["run", "intset", "--sync", "/no/such"], "--sync", "/no/such"),
    (["run", "intset", "--allocator", "jemaloc"], "--allocator", "jemaloc"),
    (["run", "intset", "--allocator", "glibc:tcachee=0"], "--allocator", "tcachee"),
    (["run", "intset", "--allocator", "glibc:tcache=x"], "--allocator", "x"),
    (["run", "intset", "--allocator", "glibc:tcache"], "--allocator", "glibc:tcache"),
    (["run", "intset", "--machine", "sim:xeon"], "--machine", "sim:xeon"),
    (["run", "intset", "--engine", "slrum"], "--engine", "slrum"),
    (["run", "intset", "--hosts", "alpha"], "--hosts", "alpha"),
    (["run", "intset", "-p", "structure"], "-p", "structure"),
    (["run", "intset", "-p", "=list"], "-p", "=list"),
    (["run", "intset", "-p", "structure="], "-p", "structure="),
    (["explain", "intsett"], "WORKLOAD", "intsett"),
    (["explain", "--ready", "6379"], "--ready", "belongs to a server"),
    (["explain", "--server", "true", "--ready", "6379"], "--server", "--load"),
    (["explain", "--server", "true", "--ready", "6379", "--load", "true", "intset"], "explain", "only one of them"),
    (["explain", "--server", "true", "--ready", "6379", "--load", "true", "--factors"], "--factors", "workloads"),
    (["explain", "--server", "true", "--ready", "6379", "--load", "true", "--apart", "sites"], "--apart", "bench --server"),
    (["explain", "intset", "--sync", "a,b"], "--sync", "a,b"),
    (["explain", "intset", "--sync", "etl-wbb"], "--sync", "etl-wbb"),
    (["explain", "intset", "--factor", "cache"], "--factor", "belongs"),
    (["explain", "intset", "--factors", "--factor", "cach"], "--factor", "cach"),
    (["explain", "intset", "--factors", "--factor", "cache=many"], "--factor", "many"),
    (["explain", "intset", "--factors", "--base", "jemaloc"], "--base", "jemaloc"),
    (["allocators", "verify", "jemaloc"], "--allocator", "jemaloc"),
    (["allocators", "verify", "glibc", "--", "/no/such"], "command", "/no/such"),
    (["allocators", "build", "jemaloc"], "NAME", "jemaloc"),
    (["allocators", "build", "glibc"], "NAME", "glibc"),
    (["allocators", "remove", "nosuch"], "NAME", "nosuch"),
    (["allocators", "add", "A b", "%/text"], "NAME", "A b"),
    (["allocators", "add", "mine", "%/text"], "text", "/text"),
    (["allocators", "add", "glibc", "%/text"], "NAME", "glibc"),
    (["exec", "--itm", "nosuch", "--", "/bin/true"], "--itm", "nosuch"),
    (["exec", "--", "/no/such"], "exec", "/no/such"),
    # Studies
    (["study", "run", "tuor"], "study", "tuor"),
    (["study", "run", "%/none.toml"], "study", "none.toml"),
    (["study", "run", "%/broken.toml"], "study", "broken.toml"),
    (["study", "run", "%/keys.toml"], "study", "thread"),
    (["study", "run", "%/seed.toml"], "study", "seed"),
    (["study", "run", "%/workload.toml"], "group g: workload", "intsett"),
    (["study", "run", "%/sync.toml"], "group g: sync", "etl-wbb"),
    (["study", "run", "%/machine.toml"], "group g: machines", "sim:xeon"),
    (["study", "run", "%/allocator.toml"], "group g: allocators", "jemaloc"),
    (["study", "run", "%/setting.toml"], "glibc", "tcachee"),
    (["study", "run", "tour", "--effort", "much"], "--effort", "much"),
    # Programs, servers, traces
    (["bench"], "bench", "no command"),
    (["bench", "--", "/no/such"], "bench", "/no/such"),
    (["bench", "--", "%/text"], "bench", "/text"),
    (["bench", "--command", "echo 'x"], "--command", "echo 'x"),
    (["bench", "--commands", "%/none"], "--commands", "/none"),
    (["bench", "--commands", "%/none.commands"], "--commands", "none.commands"),
    (["bench", "--commands", "%/open.commands"], "--command", "echo 'x"),
    (["bench", "--allocator", "jemaloc", "--", "/bin/true"], "--allocator", "jemaloc"),
    (["bench", "--ready", "6379", "--", "/bin/true"], "--ready", "belongs"),
    (["bench", "--server", "/bin/cat"], "--server", "/bin/cat"),
    ([*BENCH, "--ready", "70000"], "--ready", "70000"),
    ([*BENCH, "--ready", "("], "--ready", "("),
    ([*BENCH, "--metric", "["], "--metric", "["),
    ([*BENCH, "--metric", "none"], "--metric", "none"),
    ([*BENCH, "--load", "/no/such"], "bench", "/no/such"),
    ([*BENCH, "--limit", "as=much"], "--limit", "as=much"),
    ([*BENCH, "--limit", "sa=1"], "--limit", "sa=1"),
    ([*BENCH, "--limit", "memory.max=lots"], "--limit", "memory.max"),
    (["trace", "record"], "trace record", "no command"),
    (["trace", "record", "--", "/no/such"], "trace record", "/no/such"),
    (["trace", "record", "--server", "true", "--ready", "1"], "--server", "needs --load"),
    (["trace", "record", "--out", "%/text", "--", "/bin/true"], "--out", "/text"),
    (["trace", "record", "--out", "/proc/x/y", "--", "/bin/true"], "--out", "/proc/x/y"),
    (["trace", "replay", "%/text"], "trace", "/text"),
    (["trace", "replay", "%/empty"], "trace", "/empty"),
    (["trace", "replay", "%/folder"], "trace", "/folder"),
    (["trace", "check", "%/text", "--", "/bin/true"], "trace", "/text"),
    # Results and folders
    (["report", "%/none"], "/none", "no such file or folder"),
    (["report", "%/damaged"], "damaged", "result"),
    (["report", "%/list"], "list", "result"),
    (["report", "%/older"], "older", "0"),
    (["cite", "%/folder"], "/folder", "result.json"),
    (["pack", "%/none"], "/none", "no such file or folder"),
    (["pack", "--check", "%/text"], "text", "/text"),
    (["compare", "%/none", "%/damaged"], "/none", "no such file or folder"),
    (["compare", "%/damaged", "--gate", "0.9"], "--gate", "0.9"),
    (["top", "%/none", "--once"], "/none", "none"),
    (["site", "--out", "/proc/x"], "--out", "/proc/x"),
    (["site", "--out", "%/folder"], "--out", "/folder"),
    (["manual", "--out", "/proc/x"], "/proc/x", "No such file"),
    (["gallery", "--out", "/proc/x"], "/proc/x", "No such file"),
    (["run", "intset", "--out", "/tmp/\udcff"], "--out", "UTF-8"),
    (["bench", "--", "/bin/true", "\udcff"], "argument 4", "UTF-8"),
    (["bench", "--prepare", "rm \udce9", "--", "/bin/true"], "--prepare", "UTF-8"),
    (["report", "/tmp/\udcff"], "argument 2", "UTF-8"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text)
    return made


@pytest.fixture(scope="module", autouse=True)
def every_module_is_imported() -> None:
    """One that is imported while functions are replaced would keep what replaces them, for all later tests."""
    for module in pkgutil.walk_packages(loam_lab.__path__, "loam_lab."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _has(function: object) -> list[tuple[object, str]]:
    """The modules that have a function, and its name there."""
    own = [module for name, module in sys.modules.items() if name.startswith("loam_lab.")]
    return [(module, name) for module in own for name, value in vars(module).items() if value is function]


@pytest.fixture(autouse=True)
def nothing_is_built(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """What is wrong is told before anything is installed, compiled or measured."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("installed, built or measured before it was checked")

    for function in (debian.ensure, build.ensure_built, build.configure, compilation.make, execute.execute):
        for module, name in _has(function):
            monkeypatch.setattr(module, name, refuse)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    console.out.cache_clear()
    console.err.cache_clear()


@pytest.mark.parametrize("name", studies.registry())
def test_the_names_of_every_study_are_known_before_anything_is_built(name: str) -> None:
    typed_names.check_study(studies.find(name)[0])


def test_a_peer_may_have_a_workload_that_no_folder_has() -> None:
    typed_names.check(
        of=["intset"], syncs=["all", "etl-wb", STM], allocators=["glibc:tcache=0", "design:base"], on=["host"]
    )
    with pytest.raises(LoamError, match="did you mean intset"):
        typed_names.check(of=["intsett"], syncs=[STM])


def test_there_are_a_hundred() -> None:
    assert len(WRONG) >= 100 and len({tuple(words) for words, _, _ in WRONG}) == len(WRONG)


@pytest.mark.parametrize(("words", "subject", "value"), WRONG)
def test_a_wrong_input_is_one_line(
    words: list[str], subject: str, value: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main.run([word.replace("%/", f"{folder}/") for word in words])
    captured = capsys.readouterr()
    assert status in (1, 2), captured
    assert "Traceback" not in captured.out + captured.err
    last = captured.err.rstrip("\n").splitlines()[-1]
    assert last.startswith("error: ") and subject in last and value in last, captured.err
