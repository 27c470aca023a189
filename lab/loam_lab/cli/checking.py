"""The commands for those who maintain Loam: page and selfcheck. Their subjects are files of a folder."""

from __future__ import annotations

import typer

# The subject has options of its own, --help among them.
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def page(context: typer.Context) -> int:
    """Rebuild a page of docs/performance, or docs/claims.md; without a name, list the pages."""
    from loam_lab.base import subcommands

    return subcommands.run("presenting.pages", "page", context.args)


def selfcheck(context: typer.Context) -> int:
    """Test the instrument itself: does the method keep its promises? Without a name, list the checks."""
    from loam_lab.base import subcommands

    return subcommands.run("dev.selfcheck", "check", context.args)
