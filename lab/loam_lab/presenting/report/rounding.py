"""Numbers as a reader wants them: three significant digits, one scale per figure, decimals that the interval earns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from loam_lab.model.result import Ends

MISSING = "–"
_MINUS = "−"
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_BINARY = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


@dataclass(frozen=True)
class Scale:
    """One display unit for all values of a figure or column.

    factor: a value divided by it is what is shown; unit: what to write beside it ("M op/s", "%")
    decimals: digits after the point
    """

    factor: float
    unit: str
    decimals: int

    def show(self, value: float | None) -> str:
        """The value in this unit, without the unit; a dash where there is none."""
        if value is None or not math.isfinite(value):
            return MISSING
        return fixed(value / self.factor, self.decimals)


def fixed(value: float, decimals: int) -> str:
    """A decimal number with a true minus sign and narrow no-break spaces between thousands; zero is "0"."""
    if value == 0:
        return "0"
    text = f"{abs(value):,.{decimals}f}".replace(",", "\u202f")
    return (_MINUS if value < 0 else "") + text


def decimals_for(value: float, digits: int = 3) -> int:
    """Digits after the point that give a positive value that many significant digits, at least 0."""
    if value == 0 or not math.isfinite(value):
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def significant(value: float | None, digits: int = 3) -> str:
    """A lone number with that many significant digits."""
    if value is None or not math.isfinite(value):
        return MISSING
    return fixed(value, decimals_for(value, digits))


def scale_for(values: Iterable[float | None], unit: str) -> Scale:
    """The display unit for values of one metric.

    values: estimates in the metric's own unit; unit: as recorded ("1/s", "s", "B", "1")
    returns: a scale that shows the smallest of them with three significant digits, but never with more than two
        decimals beyond what the largest needs
    """
    known = [abs(value) for value in values if value is not None and math.isfinite(value) and value != 0]
    largest, smallest = (max(known), min(known)) if known else (1.0, 1.0)
    if unit == "B":
        factor, shown = next(((f, name) for f, name in _BINARY if largest >= f), _BINARY[-1])
    elif unit == "1":
        # Plain fractions and counts: no prefix, readers expect 0.0123 or 12 345.
        factor, shown = 1.0, ""
    else:
        factor, prefix = next(((f, name) for f, name in _PREFIXES if largest >= f * 0.9995), _PREFIXES[-1])
        shown = f"{prefix}{unit}" if unit != "1/s" else f"{prefix} 1/s".strip()
    decimals = min(decimals_for(smallest / factor), decimals_for(largest / factor) + 2)
    return Scale(factor, shown, decimals)


def rate_unit(scale: Scale, noun: str) -> str:
    """The unit of a rate with what is counted in place of the 1: "M 1/s" with "op" is "M op/s"."""
    return scale.unit.replace("1/s", f"{noun}/s") if scale.unit.endswith("1/s") else scale.unit


def ratio_decimals(low: float | None, high: float | None, estimate: float | None) -> int:
    """Decimals of a ratio: two, three where its interval is narrower than 0.01 or unknown near 1, fewer when large."""
    if estimate is not None and math.isfinite(estimate) and abs(estimate) >= 10:
        return 1 if abs(estimate) < 100 else 0
    if low is None or high is None:
        return 2
    return 3 if abs(high - low) < 0.01 else 2


def ratio(
    estimate: float | None, low: float | None = None, high: float | None = None, decimals: int | None = None
) -> str:
    """A ratio without its interval: "1.13"; decimals by the interval's width unless given."""
    if estimate is None or not math.isfinite(estimate):
        return MISSING
    return fixed(estimate, ratio_decimals(low, high, estimate) if decimals is None else decimals)


def interval(estimate: float | None, low: float | None, high: float | None, decimals: int | None = None) -> str:
    """The interval of a ratio in brackets: "[1.11, 1.15]", or the note that there is none."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "no interval"
    decimals = ratio_decimals(low, high, estimate) if decimals is None else decimals
    return f"[{fixed(low, decimals)}, {fixed(high, decimals)}]"


def spread(given: Ends, decimals: int | None = None) -> tuple[str, str]:
    """A ratio and its interval as two columns of a table."""
    ends = given.estimate, given.low, given.high
    return ratio(*ends, decimals), interval(*ends, decimals)


def percent(fraction: float | None, digits: int = 3) -> str:
    """A fraction in per cent with its sign, three significant digits; tiny ones stay readable ("0.0021 %")."""
    if fraction is None or not math.isfinite(fraction):
        return MISSING
    value = fraction * 100
    if value != 0 and abs(value) < 0.1:
        digits = min(digits, 2)
    return significant(value, digits) + "\u00a0%"


def tenths(fraction: float) -> str:
    """A fraction in per cent with one decimal, as the terminal has it."""
    return fixed(100 * fraction, 1) + "\u00a0%" if math.isfinite(fraction) else MISSING


def count(value: float | None) -> str:
    """A whole number with narrow no-break spaces between thousands."""
    return MISSING if value is None or not math.isfinite(value) else fixed(round(value), 0)


def size(value: float | None) -> str:
    """A number of bytes in the largest fitting binary unit."""
    if value is None or not math.isfinite(value):
        return MISSING
    scale = scale_for([value], "B")
    return f"{significant(value / scale.factor)} {scale.unit}"


def duration(seconds: float | None) -> str:
    """Seconds as "4.2 s", "93 s", "12 min 5 s" or "2 h 3 min"."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if seconds < 100:
        return f"{significant(seconds, 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round positions inside [low, high]: about as many as wanted, and at least three where the range allows it."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    for parts in range(wanted, 3 * wanted):
        raw = (high - low) / parts
        magnitude = 10.0 ** math.floor(math.log10(raw))
        step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
        first = math.ceil(low / step - 1e-9)
        last = math.floor(high / step + 1e-9)
        if last - first >= 2:
            break
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def tick_decimals(marks: Iterable[float]) -> int:
    """Digits after the point that write every mark exactly, at most 8."""
    return max((max(0, -int(f"{Decimal(repr(mark)).normalize().as_tuple().exponent}")) for mark in marks), default=0)
