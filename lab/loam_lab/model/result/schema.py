"""schema/result.schema.json, written from the classes of a result.

    .venv/bin/python -P -m loam_lab.model.result.schema

A test compares the file with what this writes.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import msgspec

from loam_lab.base import paths
from loam_lab.model.result import Result

FILE = "schema/result.schema.json"


def document() -> dict[str, Any]:
    """The JSON schema of a result."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A result of Loam (result.json)"}
    of_result = msgspec.json.schema(Result)
    for part in of_result["$defs"].values():
        if "description" in part:  # a docstring, as Python 3.13 keeps it: without the indents of its lines
            part["description"] = inspect.cleandoc(part["description"])
    return head | of_result


def text() -> str:
    """The schema as its file has it: a line for each property of each part."""

    def line(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    parts = []
    for name, part in document().pop("$defs").items():
        rest = {key: value for key, value in part.items() if key != "properties"}
        of_part = [f"   {line(key)}: {line(value)}" for key, value in part.get("properties", {}).items()]
        properties = ",\n".join(of_part)
        parts.append(f"""  {line(name)}: {line(rest)[:-1]}, "properties": {{\n{properties}\n  }}}}""")
    head = {key: value for key, value in document().items() if key != "$defs"}
    definitions = ",\n".join(parts)
    return f"""{line(head)[:-1]}, "$defs": {{\n{definitions}\n}}}}\n"""


if __name__ == "__main__":
    (paths.root() / FILE).write_text(text())
