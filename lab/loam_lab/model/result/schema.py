"""schema/result.schema.json, written from the classes of a result.

    .venv/bin/python -P -m loam_lab.model.result.schema

A test compares the file with what this writes.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from loam_lab.base import paths
from loam_lab.model.result import Result

FILE = "schema/result.schema.json"


def document() -> dict[str, Any]:
    """The JSON schema of a result."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A result of Loam (result.json)"}
    return head | msgspec.json.schema(Result)


def text() -> str:
    """The schema as its file has it."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (paths.root() / FILE).write_text(text())
