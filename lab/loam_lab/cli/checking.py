"""The commands for those who maintain Loam: page and selfcheck. Their subjects are files of a folder."""

from __future__ import annotations

from typing import Annotated

import typer

from loam_lab.cli import completing

# The subject has options of its own, --help among them.
PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}

Page = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME] [OPTIONS]",
        autocompletion=completing.page,
        help="A page, and its own options.",
        show_default=False,
    ),
]
Check = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME] [OPTIONS]",
        autocompletion=completing.selfcheck,
        help="A check, and its own options.",
        show_default=False,
    ),
]


def page(words: Page = None) -> int:
    """Rebuild a page of docs/performance, or docs/claims.md; without a name, list the pages."""
    from loam_lab.base import subcommands

    return subcommands.run("presenting.pages", "page", words or ())


def selfcheck(words: Check = None) -> int:
    """Test the instrument itself: does the method keep its promises? Without a name, list the checks."""
    from loam_lab.base import subcommands

    return subcommands.run("dev.selfcheck", "check", words or ())
