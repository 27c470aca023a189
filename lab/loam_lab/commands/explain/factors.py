"""The designs of a screening: an allocator as it is, and with one of its settings changed at a time.

One at a time, not a two-level fraction of all combinations.  Parts exclude one another (a list that only its thread takes
from needs a heap for each thread), so most fractions hold designs that cannot be; settings have up to five values; and some
hide others (without a cache no batch is taken), so that an effect averaged over combinations is the effect on no design that
anybody has.  The price is that an effect is one on this base: another base is another screening.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from loam_lab.base.errors import LoamError, unknown
from loam_lab.judging.statistics.multiplicity import SIGNIFICANCE
from loam_lab.subjects.allocators import registry

# Blocks beyond those that make a verdict possible: so many may speak against a change, by little, and it is still shown.
SPARE_BLOCKS = 2
# Of an allocator: "" where its settings fit together, else why they do not.
Misfit = Callable[[str], str]


@dataclass(frozen=True)
class Screened:
    """What is measured. base: with the names of its settings as the registry has them; changed: names of allocators

    left_out: changes that cannot be measured here, each with the reason
    """

    base: str
    changed: tuple[str, ...]
    left_out: tuple[str, ...]


def screened(base: str, asked: Sequence[str], misfit: Misfit, *, transactions: bool) -> Screened:
    """Every change of the base that fits.

    asked: settings as NAME or NAME=VALUE; none for all of them, with every value worth trying
    transactions: whether the machine has hardware transactions
    raises: LoamError for what is unknown, for a base that does not fit or has no settings, and where a setting that was
    asked for cannot be changed
    """
    settings = check(base, asked)
    before = registry.values(base)
    if why := misfit(base):
        raise LoamError("--base", base, why, "choose parts that fit")
    designs: list[str] = []
    left_out: list[str] = []
    for factor, values, explicit in _wanted(base, asked, settings):
        reasons = []
        for value in values:
            if value == before.get(factor):
                reasons.append(f"{factor}={value} is what {base} has")
                continue
            other = changed(base, factor, value)
            if value in settings[factor].transactions:
                # What shares a heap by transactions shares it as a lock does, so it fits wherever that one does.
                why = "" if transactions else "the machine has no hardware transactions"
            else:
                why = misfit(other)
            if why:
                reasons.append(f"{factor}={value}: {why}")
                left_out.append(reasons[-1])
            else:
                designs.append(other)
        if explicit and len(reasons) == len(values):
            raise LoamError("--factor", factor, "; ".join(reasons), "choose another value, or another --base")
    if not designs:
        raise LoamError("--base", base, "none of its settings can be changed alone", "; ".join(left_out[:2]))
    return Screened(base, tuple(dict.fromkeys(designs)), tuple(left_out))


def check(base: str, asked: Sequence[str]) -> dict[str, registry.Setting]:
    """Refuse names that no file has, before anything is built; returns: the settings of the base.

    raises: LoamError for what is unknown, and for a base without settings
    """
    name, _, _ = registry.check(base, "--base")
    known = registry.definitions()
    settings = known[name].settings
    if not any(setting.levels for setting in settings.values()):
        choices = [other for other, one in known.items() if any(setting.levels for setting in one.settings.values())]
        raise LoamError("--base", base, "has no settings whose values are known", f"there are: {', '.join(choices)}")
    for _ in _wanted(base, asked, settings):
        pass
    return settings


def changed(base: str, factor: str, value: str) -> str:
    """The base with one setting changed."""
    name, given = registry.split(base)
    return ":".join([name, *(f"{key}={one}" for key, one in {**given, factor: value}.items())])


def _wanted(
    base: str, asked: Sequence[str], settings: dict[str, registry.Setting]
) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """(setting, values to try, whether the user named it), each setting once, in the order of the file."""
    if not asked:
        yield from ((name, setting.levels, False) for name, setting in settings.items() if setting.levels)
        return
    chosen: dict[str, list[str]] = {}
    for item in asked:
        name, equals, value = item.partition("=")
        if name not in settings:
            raise unknown("--factor", name, settings, f"factor of {base}")
        if equals:
            _check(base, settings[name], value)
        chosen.setdefault(name, []).extend([value] if equals else settings[name].levels)
    for name in (name for name in settings if name in chosen):
        if not chosen[name]:
            raise LoamError("--factor", name, "no values of it are known to be worth trying", f"name one: {name}=VALUE")
        yield name, tuple(dict.fromkeys(chosen[name])), True


def _check(base: str, setting: registry.Setting, value: str) -> None:
    if setting.kind == "choice" and value not in dict(setting.choices):
        raise unknown(f"--factor {setting.name}", value, dict(setting.choices), f"value of {setting.name}")
    try:
        setting.text(base, value)
    except LoamError as wrong:
        raise LoamError(f"--factor {setting.name}", value, wrong.limit, wrong.hint) from None


def blocks_needed(size: int) -> int:
    """The fewest blocks in which a change can be shown among so many: as many as Holm's rule asks of the first one.

    The smallest probability of n pairs is 2 / 2^n; the first of `size` changes needs one below 5 % / size
    """
    return math.floor(math.log2(2 * size / SIGNIFICANCE)) + 1
