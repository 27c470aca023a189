"""Pages that the lab writes as Markdown: docs/performance/*.md."""

from __future__ import annotations

from pathlib import Path

from loam_lab.base import paths


def place(page: str) -> Path:
    """Where a page lies where nobody says otherwise. page: its name, of the command that writes it"""
    return paths.root() / "docs" / "performance" / f"{page}.md"


def write(page: Path, text: str) -> int:
    """Write a page and print where it is; returns the exit status."""
    page.write_text(text)
    print(page)
    return 0
