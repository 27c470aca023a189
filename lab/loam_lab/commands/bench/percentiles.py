"""Latency percentiles in what a load generator prints: redis-benchmark, memtier, wrk, ab, hey and their like."""

from __future__ import annotations

import re

_UNITS = {"us": 1e-6, "usec": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0}
_UNIT = r"(us|usec|µs|msec|ms|secs|sec|s)\b"
# "p99=0.4 msec", "P99.9: 12 ms"
_INLINE = re.compile(rf"\bp(\d+(?:\.\d+)?)\s*[=:]?\s*([\d.]+)\s*{_UNIT}", re.IGNORECASE)
# wrk and ab: "  99%   12.5ms"; hey: "  99% in 0.0125 secs"
_LINE = re.compile(rf"^\s*(\d+(?:\.\d+)?)%\s+(?:in\s+)?([\d.]+)\s*{_UNIT}", re.MULTILINE | re.IGNORECASE)
# ab prints milliseconds without saying so.
_AB = re.compile(r"^\s*(\d+)%\s+(\d+)(?:\s+\(longest request\))?\s*$", re.MULTILINE)
# redis-benchmark: a head with the unit, the names, the numbers
_TABLE = re.compile(r"latency summary \((\w+)\):\s*\n((?:\s+\w+)+)\s*\n((?:\s+[\d.]+)+)", re.IGNORECASE)


def find(text: str) -> dict[str, float]:
    """Percentiles in seconds by name ("p50", "p999", "max"); of several tests the slowest one of each.

    Empty where nothing of a known form was printed
    """
    latencies: dict[str, float] = {}

    def note(name: str, seconds: float) -> None:
        latencies[name] = max(seconds, latencies.get(name, 0.0))

    for unit, heads, numbers in _TABLE.findall(text):
        scale = _UNITS.get(unit.lower())
        for head, number in zip(heads.split(), numbers.split(), strict=False):
            if scale is not None and (head == "max" or re.fullmatch(r"p\d+", head)):
                note(head, float(number) * scale)
    for pattern in (_INLINE, _LINE):
        for which, number, unit in pattern.findall(text):
            note(_name(which), _number(number) * _UNITS[unit.lower()])
    if not latencies:
        for which, number in _AB.findall(text):
            note(_name(which), float(number) * 1e-3)
    return latencies


def _name(which: str) -> str:
    """ "99.9" -> "p999", "50.000" -> "p50", "100" -> "max"."""
    if float(which) == 100:
        return "max"
    whole, _, part = which.partition(".")
    return f"p{whole}{part.rstrip('0')}"


def _number(text: str) -> float:
    try:
        return float(text.rstrip("."))
    except ValueError:
        return 0.0
