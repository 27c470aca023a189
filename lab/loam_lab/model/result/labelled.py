"""A result for readers: with the labels that its study gives to allocators in the place of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from loam_lab.model import labels
from loam_lab.model.result import Part, Result

# What is typed, or looked up by, and warnings, which name commands: no text for readers alone.
_EXACT = frozenset({"command", "commands", "warnings", "predicate", "path", "folder"})
_PLAIN = frozenset((float, int, bool, type(None)))


def labelled(given: Result) -> Result:
    """The result with labels for names; one whose study gives none is the same."""
    names = {one.name: one.label for one in given.allocators if one.label}
    if not names:
        return given
    made: Result = _part(given, labels.worded(names))
    both = [
        replace(new, label=old.name) if old.label else new
        for old, new in zip(given.allocators, made.allocators, strict=True)
    ]
    return replace(made, allocators=both)


def _part(part: Any, words: Callable[[str], str]) -> Any:
    changed = {
        name: _value(value, words)
        for name in part.__struct_fields__
        if name not in _EXACT and (value := getattr(part, name)) is not None and type(value) not in _PLAIN
    }
    return replace(part, **changed)


def _value(value: Any, words: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return words(value)
    if isinstance(value, Part):
        return _part(value, words)
    if isinstance(value, Mapping):
        return {key: _value(item, words) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Values of single blocks are many, and no names.
        return value if set(map(type, value)) <= _PLAIN else [_value(item, words) for item in value]
    return value
