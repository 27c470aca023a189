"""Pages that a program of the lab writes as Markdown: docs/performance/*.md."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from loam_lab.errors import LoamError


def write(page: Path, text: Callable[[], str]) -> int:
    """Write a page and print where it is.

    text: makes it; raises LoamError where it cannot
    returns: status of the process: 0; 2, with the reason on standard error, where there is nothing to write
    """
    try:
        made = text()
    except LoamError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    page.write_text(made)
    print(page)
    return 0
