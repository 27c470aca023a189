"""Entry point: the command line of Loam.

Everything heavy is imported by the command that needs it; this module, typer and the thin command modules are all that
a start pays for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from loam_lab import __version__, console
from loam_lab.cli import allocating, comparing, explaining, looking, measuring, sharing, tuning, watching
from loam_lab.errors import LoamError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("tour", rich_help_panel="Measure")(measuring.tour)
app.command("bench", rich_help_panel="Measure")(measuring.bench)
app.command("run", rich_help_panel="Measure")(measuring.run)
app.add_typer(measuring.study, name="study", rich_help_panel="Measure")
app.command("top", rich_help_panel="Look")(watching.top)
app.command("explain", rich_help_panel="Look")(explaining.explain)
app.command("report", rich_help_panel="Look")(looking.report)
app.command("cite", rich_help_panel="Look")(sharing.cite)
app.command("pack", rich_help_panel="Look")(sharing.pack)
app.command("compare", rich_help_panel="Look")(comparing.compare)
app.command("list", rich_help_panel="Look")(looking.list_registry)
app.command("doctor", rich_help_panel="Look")(looking.doctor)
app.command("tune", rich_help_panel="Prepare")(tuning.tune)
app.add_typer(allocating.allocators, name="allocators", rich_help_panel="Prepare")
app.command("setup", rich_help_panel="Prepare")(looking.setup)
app.command("test", rich_help_panel="Prepare")(looking.test)


_MEASURING = (["tour"], ["bench"], ["run"], ["study"])


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version."),
    no_setup: bool = typer.Option(
        False, "--no-setup", help="Stop with the list of what is missing instead of setting it up."
    ),
) -> None:
    """Measure memory allocators under transactions, and see why they differ."""
    del no_setup  # taken from anywhere on the line by run()
    if version:
        print(f"loam {__version__}")
    elif context.invoked_subcommand is None:
        welcome()


def welcome() -> None:
    """Print what to type first."""
    for line in (Path(__file__).parent / "welcome.txt").read_text().splitlines():
        command, _, rest = line.strip().partition("  ")
        if line.startswith("  ./loam"):
            gap = " " * (len(line) - 2 - len(command) - len(rest.lstrip()))
            console.out().print(f"  [command]{command}[/command]{gap}{rest.lstrip()}", soft_wrap=True)
        else:
            console.out().print(line, markup=False, soft_wrap=True)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; a failure of ours is one line, never a traceback.

    arguments: without the program's name; those of the process where None
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    program = os.environ.pop("LOAM_PROGRAM", "loam")
    own = given[: given.index("--")] if "--" in given else given
    if "--no-setup" in own:
        given.remove("--no-setup")
        os.environ["LOAM_NO_SETUP"] = "1"
    as_json = "--json" in own
    command = typer.main.get_command(app)
    try:
        # Not app(): that would turn an interrupt or a closed pipe into a bare exit status.
        with command.make_context(program, given) as context:
            status: Any = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except LoamError as error:
        return _fail(error, as_json)
    except typer.TyperException as error:
        return _fail(_usage(error, program), as_json)
    except (EOFError, KeyboardInterrupt, typer.Abort):
        kept = ("what was measured is kept", "--resume goes on") if own[:1] in _MEASURING else ("", "")
        return _fail(LoamError("interrupted", None, *kept, exit_code=130), as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at exit
        return 141
    except OSError as problem:
        if problem.filename is None:
            raise
        return _fail(
            LoamError(
                str(problem.filename), None, str(problem.strerror), "check the path, its permissions and the free space"
            ),
            as_json,
        )
    return status if isinstance(status, int) else 0


def _usage(error: typer.TyperException, program: str) -> LoamError:
    """What typer says about a mistyped command line, as one of our errors."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else program
    return LoamError(path, None, error.format_message().rstrip("."), f"{path} --help", exit_code=error.exit_code)


def _fail(error: LoamError, as_json: bool) -> int:
    if as_json:
        console.print_json({"error": error.as_json()})
    from rich.text import Text

    line = Text.assemble(("error:", "bold red"), f" {error.line()}")
    console.err().print(line, soft_wrap=True)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(run())
