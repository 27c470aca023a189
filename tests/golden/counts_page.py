"""docs/instruction-counts.md: the counts that the tests of this folder accept, a section for each part of the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "instruction-counts.md"
_HEAD = """\
# Instruction counts

```
.venv/bin/python -m pytest tests/golden     counts, and compares with this page
./loam test --golden-update                 accepts new counts and writes this page
```

Instructions, exact, counted by callgrind in a release build (`-O3`). *Upper bound*: the test fails above it.
`docs/performance/` compares with others.
"""


def section(title: str, lines: Sequence[str]) -> str:
    """A section as the page has it."""
    return "\n".join([f"## {title}", "", *lines]).rstrip("\n") + "\n"


def put(title: str, lines: Sequence[str]) -> None:
    """Write one section; the others stay."""
    sections = _sections()
    sections[title] = section(title, lines)
    PAGE.write_text("\n".join([_HEAD, *sections.values()]))


def check(title: str, lines: Sequence[str]) -> None:
    """Fail unless the page has this section and begins as it should."""
    again = f"./loam test --golden-update writes docs/{PAGE.name}"
    assert PAGE.read_text().startswith(_HEAD), again
    assert _sections().get(title) == section(title, lines), again


def _sections() -> dict[str, str]:
    _, *texts = PAGE.read_text().split("\n## ")
    return {text.partition("\n")[0]: "## " + text.rstrip("\n") + "\n" for text in texts}
