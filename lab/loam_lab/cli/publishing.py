"""The commands that make what is published: site, manual, gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loam_lab.cli.options import AsJson


def site(
    context: typer.Context,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Its folder (default: build/site).")] = None,
    as_json: AsJson = False,
) -> int:
    """Build the documentation as pages with a search that open offline."""
    from loam_lab.presenting.site import build

    return build.run(context.find_root().command, out, as_json=as_json)


def manual(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A prefix such as ~/.local.")] = Path(
        "build/manual"
    ),
    as_json: AsJson = False,
) -> int:
    """Write man pages, and completions for bash, zsh and fish, where shells look for them."""
    from loam_lab.presenting.site import manual as subject

    return subject.run(context.find_root().command, out.expanduser(), as_json=as_json)


def gallery(
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="Where results lie (default: results here).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Its folder (default: build/gallery).")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write one page with the claims of all papers and their verdicts here."""
    from loam_lab.presenting.site import gallery as subject

    return subject.run(results, out, as_json=as_json)
