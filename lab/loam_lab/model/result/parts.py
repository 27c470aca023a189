"""What parts of a result have in common: their JSON, and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec

Better = Literal["higher", "lower", "neither"]
Level = int | float | str
Parameters = Mapping[str, Level]
# What a machine, an environment or a tool says of itself: each names its own keys.
Facts = dict[str, Any]
_PLAIN = frozenset((float, int, bool, str, type(None)))


class Part(msgspec.Struct, frozen=True):
    """A part of a result. _OPTIONAL: fields that are left out of the JSON where they are None; others are null there"""

    _OPTIONAL: ClassVar[frozenset[str]] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """The part as the dictionaries and lists of its JSON."""
        document = {}
        for field, key in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            value = getattr(self, field)
            if value is not None or field not in self._OPTIONAL:
                document[key] = _json(value)
        return document

    def numbers(self) -> dict[str, float]:
        """All numbers of the part itself, by name."""
        every = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in every.items() if type(value) in (int, float)}


def _json(value: Any) -> Any:
    if isinstance(value, Part):
        return value.as_json()
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Those of numbers are long, and nothing in them is to be made.
        return list(value) if set(map(type, value)) <= _PLAIN else [_json(item) for item in value]
    return value


class Ends(Part, frozen=True):
    """An interval that may be missing."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def reach(self) -> float:
        """Of a ratio: the largest difference from 1 that the interval allows, as a fraction, in either direction."""
        if self.low is None or self.high is None or self.low <= 0:
            return math.inf
        return max(self.high, 1 / self.low) - 1


class Interval(Ends, frozen=True):
    """An estimate with its 95 % interval; ends are None where there are too few runs for one."""

    estimate: float


class Family(Part, frozen=True):
    """How many comparisons were adjusted together, and by which method."""

    method: str = ""
    size: int = 0
