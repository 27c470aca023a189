"""A signal that comes while the command line starts: no traceback, and the status of one that was interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

# As python -m loam_lab.cli, which sends itself a signal when a module is first looked for.
START = textwrap.dedent("""
    import os, runpy, signal, sys

    number, module = int(sys.argv[1]), sys.argv[2]

    class Sender:
        def find_spec(self, name, path=None, target=None):
            if name == module:
                os.kill(os.getpid(), number)

    sys.meta_path.insert(0, Sender())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the tests were started with, such as nohup
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.argv = ["loam", *sys.argv[3:]]
    runpy.run_module("loam_lab.cli", run_name="__main__", alter_sys=True)
""")


def started(number: signal.Signals, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", START, str(int(number)), module, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_while_modules_load_it_ends_the_process(number: signal.Signals) -> None:
    done = started(number, "typer", "list", "machines")
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_in_a_command_it_is_one_line(number: signal.Signals) -> None:
    done = started(number, "loam_lab.subjects.machines", "list", "machines")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "error: interrupted\n"


def test_one_that_is_ignored_stays_so() -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    ignored = START.replace("signal.signal(signal.SIGINT, signal.default_int_handler)", code)
    assert ignored != START
    for module in ("typer", "loam_lab.subjects.machines"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", ignored, str(int(signal.SIGINT)), module, "list", "machines", "--json"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
