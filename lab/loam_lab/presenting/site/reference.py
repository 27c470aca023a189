"""Pages of the site that are made from the code: commands, keys of a study, the record schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from loam_lab.base import paths
from loam_lab.presenting.site.command_tree import commands


def pages(root: Any) -> dict[str, str]:
    """Each page's text by its name below reference/; root: of the command line."""
    return {"commands.md": _commands(root), "study-keys.md": _study_keys(), "records.md": _records()}


def _commands(root: Any) -> str:
    lines = ["# Commands", "", "Made from the help of each command: `./loam COMMAND --help` prints the same.", ""]
    for command in commands(root):
        lines += [f"## {command.words}", "", _text(command.about), "", "```", f"./{command.usage}", "```", ""]
        lines += [_text(command.more), ""] if command.more else []
        rows = [
            (f"{option.names} {option.value}".strip(), option.help) for option in (*command.arguments, *command.options)
        ]
        lines += _table(("option", "meaning"), rows)
    return "\n".join(lines)


def _study_keys() -> str:
    from loam_lab.model.study import Study

    schema = Study.model_json_schema(by_alias=True)
    lines = [
        "# Keys of a study",
        "",
        "Made from the model that reads study files. [Studies](../studies.md) explains them.",
        "",
    ]
    lines += _object("The file", schema)
    for name, one in sorted(schema.get("$defs", {}).items()):
        if one.get("properties"):
            lines += _object(name, one)
    return "\n".join(lines)


def _object(title: str, schema: Mapping[str, Any]) -> list[str]:
    about = (schema.get("description") or "").split("\n\n")[0]
    lines = [f"## {title}", "", _text(about), ""] if about else [f"## {title}", ""]
    required = set(schema.get("required", ()))
    rows = [
        (name, f"{_kind(one)}{'; required' if name in required else _default(one)}")
        for name, one in schema["properties"].items()
    ]
    return lines + _table(("key", "value"), rows)


def _kind(schema: Mapping[str, Any]) -> str:
    """The type of a JSON Schema in words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema or "enum" in schema:
        return ", ".join(str(value) for value in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(kind for one in schema[several] if (kind := _kind(one)) != "null")
    if schema.get("type") == "array":
        items = schema.get("items") or {}
        return f"list of {_kind(items)}" if items else "list"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"table of {_kind(schema['additionalProperties'])}"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _default(schema: Mapping[str, Any]) -> str:
    value = schema.get("default")
    return "" if value in (None, [], {}, "") else f"; default {json.dumps(value)}"


def _records() -> str:
    schema = json.loads((paths.root() / "schema/record.schema.json").read_text())
    lines = ["# Records", "", "Made from the schema that every workload's output is checked against.", ""]
    lines += [_text(schema["description"]), ""] if schema.get("description") else []
    for name, one in (schema.get("$defs") or schema.get("definitions") or {}).items():
        if one.get("properties"):
            lines += _described(name, one)
    return "\n".join(lines)


def _described(title: str, schema: Mapping[str, Any]) -> list[str]:
    required = set(schema.get("required", ()))
    rows = []
    for name, one in schema["properties"].items():
        need = "; required" if name in required else ""
        rows.append((name, f"{_kind(one)}{need}{': ' + one['description'] if one.get('description') else ''}"))
    about = [_text(schema["description"]), ""] if schema.get("description") else []
    return [f"## {title}", "", *about, *_table(("key", "value"), rows)]


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    cells = [(f"`{first}`".replace("|", "\\|"), _text(second).replace("|", "\\|")) for first, second in rows]
    return [f"| {head[0]} | {head[1]} |", "| --- | --- |", *(f"| {first} | {second} |" for first, second in cells), ""]


def _text(text: str) -> str:
    """Words on one line that Markdown shows as they are."""
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").replace("[", "\\[")
