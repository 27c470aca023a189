"""Simulated machines: the files of machines/, as the lab knows them and as the simulator reads them.

A file is TOML. Its keys are those of simulator/model/machine.hpp, in tables or with dots (machine_keys.py has them). `title`
says in a line what the machine is. The table `sources` says for each number where it comes from; a source of "l1" serves
each key that begins with "l1.". One that begins with "assumed" marks a guess.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loam_lab.base import paths, toml_errors
from loam_lab.base.errors import LoamError, nearest
from loam_lab.subjects import machine_keys

PREFIX = "sim:"
PRESET = "sim"
# Their instructions between accesses are counted as well.
PRESET_BLOCKS = "sim-blocks"
# Of what words say; the simulator reads none of them.
WORDS = ("title", "sources", "notes")
ASSUMED = "assumed"


@dataclass(frozen=True)
class Simulated:
    """One simulated machine.

    title: what it is, in a line; values: key and text, as the simulator reads them
    sources: where each value comes from, by key
    """

    name: str
    title: str
    values: Mapping[str, str]
    sources: Mapping[str, str] = field(default_factory=dict)

    def assumed(self) -> list[str]:
        """The keys whose values are guesses."""
        return [key for key, source in self.sources.items() if source.startswith(ASSUMED)]

    def assumed_parts(self) -> list[str]:
        """The same, with the name of a table in place of its keys where all of them are guesses."""
        known = {key.partition(".")[0] for key in self.values if key not in set(self.assumed())}
        return list(
            dict.fromkeys(key if (table := key.partition(".")[0]) in known else table for key in self.assumed())
        )

    def text(self) -> str:
        """What the simulator reads: a line key=value for each."""
        return "\n".join([f"name={self.name}", *(f"{key}={value}" for key, value in self.values.items())])

    def digest(self) -> str:
        """Changes whenever something of the machine does: 16 hex digits."""
        return hashlib.sha256(self.text().encode()).hexdigest()[:16]

    def preset(self) -> str:
        """What programs that run on it are built with."""
        return PRESET_BLOCKS if self.values.get("core.costs") == "blocks" else PRESET

    def number(self, key: str) -> int:
        """A whole number, 0 where it is not said."""
        text = self.values.get(key, "0")
        return int(text) if text.isdigit() else 0


def folder() -> Path:
    """Where the files are."""
    return paths.root() / "machines"


def registry() -> dict[str, Simulated]:
    """Every simulated machine by name.

    raises: LoamError if a file is damaged, naming file and place
    """
    return {file.stem: _read(file, file.stat().st_mtime_ns) for file in sorted(folder().glob("*.toml"))}


@functools.lru_cache(maxsize=64)
def _read(file: Path, changed_ns: int) -> Simulated:
    return read(file, *toml_errors.read(file, subject="machine"))


def read(file: Path, text: str, content: Mapping[str, Any]) -> Simulated:
    """The machine of a file: its text, and what tomllib made of it.

    raises: LoamError with file and line, key, value and what is allowed
    """
    title = content.get("title")
    if not isinstance(title, str):
        raise LoamError("machine", f"{file}:1", "title: a line of text that says what the machine is, is missing")
    places: dict[str, toml_errors.Where] = {}
    values: dict[str, str] = {}
    for where, value in _flat({key: value for key, value in content.items() if key not in WORDS}):
        key = ".".join(where)
        places[key] = where
        values[key] = _text(value)
        if key not in machine_keys.known():
            close = nearest(key, machine_keys.known())
            raise _wrong(file, text, where, f"{key}: there is no such key", f"did you mean {close}?" if close else "")
        if allowed := machine_keys.wrong_value(key, values[key]):
            raise _wrong(file, text, where, f"{key} = {values[key]}: {allowed}")
    for key, allowed in machine_keys.disagreements(values):
        shown = f"{key} = {values[key]}" if key in values else key
        raise _wrong(file, text, places.get(key, tuple(key.split("."))), f"{shown}: {allowed}")
    return Simulated(file.stem, title, values, _sources(file, text, content.get("sources", {}), values))


def _sources(file: Path, text: str, given: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The source of each value: that of its key, else of the longest beginning of it up to a dot."""
    sources: dict[str, str] = {}
    used: set[str] = set()
    for key in values:
        parts = key.split(".")
        beginnings = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
        named = next((beginning for beginning in beginnings if beginning in given), None)
        if named is None:
            named_so = f'"{key}" or "{parts[0]}"' if len(parts) > 1 else f'"{key}"'
            hint = f'add {named_so} to [sources]; one that begins with "assumed" marks a guess'
            raise _wrong(file, text, tuple(parts), f"{key} = {values[key]}: its source is missing", hint)
        used.add(named)
        sources[key] = given[named]
    for unused in given.keys() - used:
        raise _wrong(file, text, ("sources", unused), f"sources: no key begins with {unused}")
    return sources


def _wrong(file: Path, text: str, where: toml_errors.Where, limit: str, hint: str = "") -> LoamError:
    return LoamError("machine", f"{file}:{toml_errors.line_of(text, where)}", limit, hint)


def _flat(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """The values of nested tables, each with its path."""
    for key, value in table.items():
        where = (*above, key)
        if isinstance(value, Mapping):
            yield from _flat(value, where)
        else:
            yield where, value


def _text(value: object) -> str:
    """A value as the simulator reads it; what cannot be one is refused by its key's range."""
    if isinstance(value, list):
        flat = [one for part in value for one in (part if isinstance(part, list) else [part])]
        return ",".join(_text(one) for one in flat)
    return str(int(value)) if isinstance(value, bool) else str(value)
