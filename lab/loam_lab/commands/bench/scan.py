"""Commands with a parameter: `--scan threads=1..8 -- PROGRAM -t {threads}` is a command for each value."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from loam_lab.base.errors import LoamError

# More would take hours, and nobody would read them.
COMMANDS_MAX = 64
_EXAMPLE = "as in --scan threads=1..8 -- PROGRAM -t {threads}, or --scan size=64,256,1024"
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?::(\d+))?")


def expanded(command: Sequence[str], scans: Sequence[str]) -> list[list[str]]:
    """The command once for each combination of values, the last parameter's changing first.

    scans: NAME=VALUES each; raises: LoamError if they are not to be understood, or the command does not hold {NAME}
    """
    given = [_parse(scan) for scan in scans]
    names = [name for name, _ in given]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise LoamError("--scan", repeated, "is given twice", "one --scan for each parameter")
    for name in names:
        if not any(f"{{{name}}}" in word for word in command):
            raise LoamError("--scan", name, f"no word of the command holds {{{name}}}", _EXAMPLE)
    commands = [
        [_filled(word, dict(zip(names, values, strict=True))) for word in command]
        for values in itertools.product(*(values for _, values in given))
    ]
    if len(commands) > COMMANDS_MAX:
        raise LoamError("--scan", len(commands), f"commands are more than {COMMANDS_MAX}", "scan fewer values")
    return commands


def _filled(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _parse(scan: str) -> tuple[str, list[str]]:
    """A parameter and its values: A..B, A..B:STEP, or a list with commas."""
    name, equals, text = scan.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
        raise LoamError("--scan", scan, "is not NAME=VALUES", _EXAMPLE)
    if (matched := _RANGE.fullmatch(text)) is not None:
        first, last, step = int(matched[1]), int(matched[2]), int(matched[3] or 1)
        if step == 0 or last < first or (last - first) // step >= COMMANDS_MAX:
            limit = f"has no values, or more than {COMMANDS_MAX}"
            raise LoamError("--scan", scan, limit, _EXAMPLE)
        return name, [str(value) for value in range(first, last + 1, step)]
    values = text.split(",")
    if "" in values or len(set(values)) < len(values):
        raise LoamError("--scan", scan, "has an empty value, or one twice", _EXAMPLE)
    return name, values
