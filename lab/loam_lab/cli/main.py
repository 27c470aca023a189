"""The command line of Loam: what it has, and how it fails.

Everything heavy is imported by the command that needs it; this module, typer and the thin command modules are all that
a start pays for.
"""

from __future__ import annotations

import errno
import functools
import itertools
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperOption

from loam_lab import __version__
from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.base.interrupts import ends_like_ctrl_c
from loam_lab.cli import (
    allocating,
    benching,
    checking,
    comparing,
    executing,
    explaining,
    fleet,
    looking,
    measuring,
    publishing,
    sharing,
    simulating,
    tracing,
    tuning,
    watching,
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
# The panels of --help are the questions of users: what does my machine say, why, what shall I do, does it all work.
MEASURE = "Measure: what allocators change, in workloads and studies"
EXPLAIN = "Explain: why, and what a result says"
DECIDE = "Decide: which allocator to use, whether a change is good"
MAINTAIN = "Maintain: the machine, the allocators, this checkout"
app.command("tour", rich_help_panel=MEASURE)(measuring.tour)
app.command("run", rich_help_panel=MEASURE)(measuring.run)
app.add_typer(measuring.study, name="study", rich_help_panel=MEASURE)
app.command("simulate", rich_help_panel=MEASURE)(simulating.simulate)
app.command("top", rich_help_panel=MEASURE)(watching.top)
app.command("list", rich_help_panel=MEASURE)(looking.list_registry)
app.command("explain", rich_help_panel=EXPLAIN)(explaining.explain)
app.command("report", rich_help_panel=EXPLAIN)(looking.report)
app.command("cite", rich_help_panel=EXPLAIN)(sharing.cite)
app.command("pack", rich_help_panel=EXPLAIN)(sharing.pack)
app.command("gallery", rich_help_panel=EXPLAIN)(publishing.gallery)
app.command("bench", rich_help_panel=DECIDE)(benching.bench)
app.add_typer(tracing.trace, name="trace", rich_help_panel=DECIDE)
app.command("exec", rich_help_panel=DECIDE)(executing.execute)
app.command("compare", rich_help_panel=DECIDE)(comparing.compare)
app.command("doctor", rich_help_panel=MAINTAIN)(looking.doctor)
app.command("tune", rich_help_panel=MAINTAIN)(tuning.tune)
app.add_typer(allocating.allocators, name="allocators", rich_help_panel=MAINTAIN)
app.command("setup", rich_help_panel=MAINTAIN)(looking.setup)
app.command("test", rich_help_panel=MAINTAIN)(looking.test)
app.command("site", rich_help_panel=MAINTAIN)(publishing.site)
app.command("manual", rich_help_panel=MAINTAIN)(publishing.manual)
app.add_typer(fleet.agent, name="agent", hidden=True)
app.command("page", rich_help_panel=MAINTAIN, context_settings=checking.PASSED_ON)(checking.page)
app.command("selfcheck", rich_help_panel=MAINTAIN, context_settings=checking.PASSED_ON)(checking.selfcheck)


_MEASURING = (["tour"], ["bench"], ["run"], ["study"], ["trace"])


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version."),
    no_setup: bool = typer.Option(
        False, "--no-setup", help="If something is missing, list it and stop instead of installing it."
    ),
) -> None:
    """Measure memory allocators under transactions, and see why they differ."""
    del no_setup  # taken from anywhere on the line by run()
    if version:
        print(f"loam {__version__}")
    elif context.invoked_subcommand is None:
        welcome(context.command_path)


def welcome(program: str) -> None:
    """Print what to type first: of a checkout as ./loam; installed, loam is on the path and has no tests."""
    installed = "/" not in program
    for line in (Path(__file__).parent / "welcome.txt").read_text().splitlines():
        if installed and line.startswith("  ./loam"):
            if line.startswith("  ./loam test "):
                continue
            line = line.replace("./loam", "loam", 1)
        command, _, rest = line.strip().partition("  ")
        if line.startswith("  ") and command.startswith(("./loam", "loam")):
            gap = " " * (len(line) - 2 - len(command) - len(rest.lstrip()))
            console.out().print(f"  [command]{command}[/command]{gap}{rest.lstrip()}", soft_wrap=True)
        else:
            console.out().print(line, markup=False, soft_wrap=True)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; a failure of ours is one line, never a traceback.

    arguments: without the program's name; those of the process where None
    """
    with console.guard():
        return _run(arguments)


@functools.cache
def _flags_without_type() -> None:
    """Typer's help writes <bool> behind an option that takes no value, as if one were wanted."""
    drawn = TyperOption.display_type_rich

    def display_type_rich(self: TyperOption, ctx: Any) -> str | None:
        return None if self.is_flag else drawn(self, ctx)

    TyperOption.display_type_rich = display_type_rich  # type: ignore[method-assign]


def _run(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    program = os.environ.pop("LOAM_PROGRAM", "loam")
    own = given[: given.index("--")] if "--" in given else list(given)
    if "--no-setup" in own:
        given.remove("--no-setup")
        own.remove("--no-setup")
        os.environ["LOAM_NO_SETUP"] = "1"
    # An option that may have a value is two for the parser.
    given[: len(own)] = ["--profile-sample" if word == "--profile=sample" else word for word in own]
    if own[:1] == ["explain"] and len(own) < len(given):  # what follows is a program, which the parser does not tell
        given.insert(len(own), "--program")
    if own[:1] == ["simulate"]:  # what follows is for the program, and not a source
        given[len(own) :] = [f"--argument={word}" for word in given[len(own) + 1 :]]
    as_json = "--json" in own
    # What exec starts gets its words as they are; all others are written into results.
    if (wrong := _not_text(own if own[:1] == ["exec"] else given)) is not None:
        return _fail(wrong, as_json)
    if {"-h", "--help"} & set(own):
        _flags_without_type()
    try:
        with ends_like_ctrl_c():
            return _invoked(program, given, own)
    except typer.Exit as done:
        return done.exit_code
    except LoamError as error:
        return _fail(error, as_json)
    except typer.TyperException as error:
        return _fail(_usage(error, program, own), as_json)
    except (EOFError, KeyboardInterrupt, typer.Abort):
        kept = ("what was measured is kept", "--resume continues") if own[:1] in _MEASURING else ("", "")
        return _fail(LoamError("interrupted", None, *kept, exit_code=130), as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at exit
        return 141
    except OSError as problem:
        if (
            problem.filename is None
            and problem.errno not in _OF_THE_SYSTEM
            and not isinstance(problem, FileNotFoundError)
        ):
            raise
        return _fail(_refused(problem), as_json)


def _invoked(program: str, given: list[str], own: list[str]) -> int:
    """The exit status of the command that a line names. own: its words before `--`"""
    command = typer.main.get_command(app)
    if "_LOAM_COMPLETE" in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
        command.main(args=[], prog_name="loam")  # answers a shell that completes a line, and exits
    if own[:1] in (*_MEASURING, ["explain"]):
        _check_folder()
    # Not app(): that would turn an interrupt or a closed pipe into a bare exit status.
    with command.make_context(program, given) as context:
        status: Any = command.invoke(context)
    return status if isinstance(status, int) else 0


# What the system refuses whatever a program does. Some of its calls name no file: a write to an open one, a start.
_OF_THE_SYSTEM = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN,
)  # fmt: skip


def _not_text(words: Sequence[str]) -> LoamError | None:
    """The error for the first word that is not UTF-8; None if all are."""
    for place, word in enumerate(words):
        try:
            word.encode()
        except UnicodeEncodeError:
            option = words[place - 1] if place and words[place - 1].startswith("-") and words[place - 1] != "--" else ""
            what = option or f"argument {place + 1}"
            return LoamError(
                what, word, "is not UTF-8, as text in results is", "name it otherwise, or by a symbolic link"
            )
    return None


def _check_folder() -> None:
    """Refuse to measure in a folder whose name is not UTF-8: results name it; raises: LoamError"""
    folder = str(Path.cwd())
    try:
        folder.encode()
    except UnicodeEncodeError:
        raise LoamError(
            "the current folder", folder, "is not UTF-8, as text in results is", "start in another one"
        ) from None


def _refused(problem: OSError) -> LoamError:
    """What the system refused, as one of our errors."""
    if problem.filename is not None:
        what, hint = str(problem.filename), "check the path, its permissions and the free space"
    else:
        what, hint = "the system", "check the free space here and in /tmp, the memory, and the limits of ulimit"
    return LoamError(what, None, str(problem.strerror or problem), hint)


def _usage(error: typer.TyperException, program: str, words: Sequence[str]) -> LoamError:
    """What typer says about a mistyped command line, as one of our errors; it leaves out the value that is wrong."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else program
    message, hint = error.format_message().rstrip("."), f"{path} --help"
    if match := re.match(r"Invalid value for '(-[\w-]+)[^']*': (.*)", message):
        given = [b for a, b in itertools.pairwise(words) if a == match[1]]
        given += [word.partition("=")[2] for word in words if word.startswith(f"{match[1]}=")]
        if given:
            return LoamError(match[1], given[-1], match[2], hint, exit_code=error.exit_code)
    return LoamError(path, None, message, hint, exit_code=error.exit_code)


def _fail(error: LoamError, as_json: bool) -> int:
    if as_json:
        console.print_json({"error": error.as_json()})
    from rich.text import Text

    line = Text.assemble(("error:", "bold red"), f" {error.line()}")
    console.err().print(line, soft_wrap=True)
    return error.exit_code
