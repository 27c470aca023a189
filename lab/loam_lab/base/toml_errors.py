"""Where in a TOML file a mistake is, and which key was probably meant.

tomllib gives values without positions and pydantic gives paths ("groups", 0, "blocks") without lines. `positions` reads
the text once more for the line of every path; `located` turns a pydantic failure into one line with file, line and the
nearest key.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from loam_lab.base.errors import LoamError, nearest

Where = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
# Long strings first: a quote alone would match their beginning.
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
_PLAIN = re.compile(r"[^,\]}#\n]*")


class _Reader:
    """Walks over TOML text that tomllib has accepted, and notes the line on which each path begins."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Where, int] = {(): 1}
        self.lengths: dict[Where, int] = {}  # of arrays of tables

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def note(self, where: Where) -> None:
        self.lines.setdefault(where, self.text.count("\n", 0, self.at) + 1)

    def key(self) -> list[str]:
        parts = []
        while True:
            self.skip(_SPACE)
            quoted = self.skip(_STRING)
            parts.append(next(iter(tomllib.loads(f"{quoted} = 0"))) if quoted else self.skip(_BARE))
            self.skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def pair(self, table: Where) -> None:
        self.skip(_SPACE)
        start = self.at
        parts = self.key()
        end, self.at = self.at, start
        for depth in range(len(parts)):
            self.note((*table, *parts[: depth + 1]))
        self.at = end + 1  # behind the equals sign
        self.value((*table, *parts))

    def value(self, where: Where) -> None:
        self.skip(_SPACE)
        opened = self.text[self.at : self.at + 1]
        if opened not in ("[", "{"):
            if not self.skip(_STRING):
                self.skip(_PLAIN)
            return
        self.at += 1
        index = 0
        while True:
            self.skip(_BLANK)
            if self.text[self.at : self.at + 1] in ("]", "}", ""):
                self.at += 1
                return
            if opened == "[":
                self.note((*where, index))
                self.value((*where, index))
                index += 1
            else:
                self.pair(where)
            self.skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1

    def header(self) -> Where:
        double = self.text.startswith("[[", self.at)
        start = self.at
        self.at += 1 + double
        parts = self.key()
        self.at += 1 + double
        end, self.at = self.at, start
        where: Where = ()
        for depth, part in enumerate(parts):
            where = (*where, part)
            self.note(where)
            if double and depth == len(parts) - 1:
                self.lengths[where] = self.lengths.get(where, 0) + 1
            if where in self.lengths:
                where = (*where, self.lengths[where] - 1)
                self.note(where)
        self.at = end
        return where

    def read(self) -> dict[Where, int]:
        table: Where = ()
        while self.skip(_BLANK) is not None and self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
        return self.lines


def positions(text: str) -> dict[Where, int]:
    """Line (from 1) of every key, table and array element of a TOML text that tomllib accepts; () is line 1."""
    return _Reader(text).read()


def line_of(text: str, where: Where) -> int:
    """Line of a path as pydantic gives it; of its nearest ancestor where the file does not have the path itself."""
    known = positions(text)
    while where not in known:
        where = where[:-1]
    return known[where]


def spelled(where: Where) -> str:
    """A path as a reader would say it: groups[0].blocks."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field may hold, through tuples, unions, options and dictionaries."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def keys_at(model: type[BaseModel], where: Where) -> list[str]:
    """Keys that the table at a path may have, as they are written in the file (aliases); [] where it is no table of ours."""
    reached = [model]
    for part in where:
        if isinstance(part, int):
            continue
        models: list[type[BaseModel]] = []
        for candidate in reached:
            for name, field in candidate.model_fields.items():
                if part in (name, field.alias):
                    models += _models(field.annotation)
        # A member of a union puts its own name into the path: stay where we are.
        reached = models or [candidate for candidate in reached if candidate.__name__ == part]
    return [field.alias or name for candidate in reached for name, field in candidate.model_fields.items()]


def _ended(text: str) -> str:
    return re.sub(r"^(Value|Assertion) error, ", "", text).rstrip(".")


def located(
    problem: ValidationError, *, subject: str, file: Path, text: str, model: type[BaseModel], hint: str = ""
) -> LoamError:
    """The first mistake of a file as an error of ours: file:line, place, reason, and the nearest key for a mistyped one.

    subject: what the file is ("study"); text: its content, valid TOML; model: what it was read as
    hint: next step for mistakes other than an unknown key
    returns: the error to raise. An unknown key goes first: a key that is missing is often the same one, mistyped.
    """
    mistakes = problem.errors()
    mistakes.sort(key=lambda mistake: mistake["type"] != "extra_forbidden")
    first = mistakes[0]
    where: Where = tuple(first["loc"])
    if first["type"] == "extra_forbidden":
        known = keys_at(model, where[:-1])
        close = nearest(str(where[-1]), known)
        reason = "unknown key"
        hint = f"did you mean {close}?" if close else f"keys here: {', '.join(sorted(known))}" if known else hint
    elif first["type"] == "missing":
        reason = "this key is missing"
    else:
        reason = _ended(first["msg"])
        if first["type"] not in ("value_error", "assertion_error") and not isinstance(first["input"], dict | list):
            reason += f", not {first['input']!r}"
    others = len(mistakes) - 1
    place = spelled(where)
    limit = f"{place}: {reason}" if place else reason
    if others:
        limit += f"; and {others} more mistake{'s' * (others != 1)}"
    return LoamError(subject, f"{file}:{line_of(text, where)}", limit, hint)


def read(file: Path, *, subject: str, listing: str = "") -> tuple[str, dict[str, Any]]:
    """The text of a file, and what tomllib makes of it.

    listing: the command that lists such files, for one that cannot be read
    raises: LoamError with file, and line and column where there are any
    """
    try:
        text = file.read_text()
        return text, tomllib.loads(text)
    except OSError as problem:
        raise LoamError(subject, file, f"cannot be read: {problem.strerror}", listing and f"see {listing}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise _not_toml(problem, subject=subject, file=file) from None


def _not_toml(problem: Exception, *, subject: str, file: Path) -> LoamError:
    """What tomllib (or the decoding as UTF-8) says about a broken file, with file:line:column in front where it says so."""
    if isinstance(problem, UnicodeDecodeError):
        line = problem.object.count(b"\n", 0, problem.start) + 1
        return LoamError(subject, f"{file}:{line}", "is not TOML: not text in UTF-8", "save it as UTF-8")
    message = str(problem)
    at = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    place = f"{file}:{at[1]}:{at[2]}" if at else str(file)
    reason = message[: at.start()] if at else message
    return LoamError(
        subject,
        place,
        f"is not TOML: {reason[:1].lower()}{reason[1:]}",
        "texts need quotes, lists need commas, comments begin with #",
    )
