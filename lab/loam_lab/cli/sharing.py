"""The commands that share a result: cite, pack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loam_lab.cli.looking import Result
from loam_lab.cli.options import AsJson


def cite(result: Result = None, as_json: AsJson = False) -> int:
    """A sentence for a paper and a BibTeX reference."""
    from loam_lab.commands import cite as subject

    return subject.run(result, as_json=as_json)


def pack(
    result: Result = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The archive (default: RESULT.tar.gz here).")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="FILE", help="Verify an archive's checksums instead.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """One archive of a result that can be checked and re-run elsewhere."""
    from loam_lab.commands import pack as subject

    return subject.run(result, out, check, as_json=as_json)
