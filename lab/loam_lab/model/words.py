"""The report's vocabulary: metrics, parameters, verdicts and causes in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from loam_lab.model import collector

# Metric -> (what is measured, the noun counted per second).
_METRICS = {
    "ops_per_s": ("throughput", "op"),
    "pairs_per_s": ("malloc–free pairs", "pair"),
    "wall_s": ("wall time", ""),
    "user_s": ("user time", ""),
    "system_s": ("system time", ""),
    "processor_s": ("processor time", ""),
    "rss_peak_bytes": ("peak resident memory", ""),
    "records_rss_bytes": ("memory of the records", ""),
    "aborts_per_attempt": ("aborts per attempt", ""),
    "hardware_commits": ("commits in hardware", ""),
    "hardware_per_commit": ("share of commits in hardware", ""),
    "scalable_commits": ("commits of the scalable algorithm", ""),
    "scalable_per_commit": ("share of commits of the scalable algorithm", ""),
    "switches": ("changes of the algorithm", ""),
    "faults_minor": ("minor page faults", ""),
    "faults_major": ("major page faults", ""),
    "thread_cpu_s": ("CPU time of the threads", ""),
    "elapsed_s": ("timed part", ""),
}

_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))

MAPPINGS = {"table": "record table", "hash": "hashed records", "shadow": "shadow records"}

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

# Verdict -> (mark in figures, word).
VERDICTS = {
    "baseline": ("", "baseline"),
    "equivalent": ("≈", "equivalent"),
    "better": ("▲", "better"),
    "worse": ("▼", "worse"),
    "inconclusive": ("?", "inconclusive"),
    "failed": ("×", "failed"),
    "unproven": ("×", "unproven"),
    "skipped": ("·", "skipped"),
}

# The causes that placement by the allocator brings about: no transaction touched the other's block.
PLACEMENT = ("aborts_other_block", "aborts_other_stripe")


def metric(name: str) -> str:
    """A metric's name in words; unknown ones lose their underscores."""
    return _METRICS.get(name, (name.replace("_", " "), ""))[0]


def noun(name: str) -> str:
    """What a rate counts: "op", "pair"; "1" where that is not known."""
    return _METRICS.get(name, ("", ""))[1] or "1"


def parameter(key: str, value: Any, wording: Mapping[str, str] = MappingProxyType({})) -> str:
    """One parameter in words: "sorted list", "16 B blocks", "60 % updates", else "key = value".

    wording: how its description words it (Parameter.wording): the label of a choice by "name=choice", else one by "name=*", in
    which {} is the value, {/100} a hundredth of it, {^} the value raised, as a power.
    """
    text = str(value)
    if label := wording.get(f"{key}={text}") or wording.get(f"{key}=*"):
        part = f"{int(text) / 100:g}" if text.isdigit() else text
        return label.replace("{}", text).replace("{/100}", part).replace("{^}", text.translate(_RAISED))
    if key == "mapping":
        return MAPPINGS.get(text, text)
    if key == collector.NAME:
        return f"{text} collector"
    return f"{key}\u00a0=\u00a0{text}"


def parameters(values: Mapping[str, Any], wording: Mapping[str, str] = MappingProxyType({})) -> str:
    """Parameters in words, joined by commas. wording: as parameter() takes it"""
    return ", ".join(parameter(key, value, wording) for key, value in values.items())


def threads(number: int) -> str:
    """ "1 thread", "2 threads"."""
    return f"{number}\u00a0thread" + ("" if number == 1 else "s")


def blocks(number: int) -> str:
    """A number of blocks."""
    return f"{number} block{'s' * (number != 1)}"


def listing(names: Iterable[str], last: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    entries = list(names)
    if len(entries) < 2:
        return "".join(entries)
    return ", ".join(entries[:-1]) + f" {last} " + entries[-1]


def verdict_mark(verdict: str) -> str:
    """The mark a figure prints for a verdict: ▲ ▼ ≈ ? ×."""
    return VERDICTS.get(verdict, ("", ""))[0]


def faster(metric_name: str) -> str:
    """How a ratio of that metric reads: "the throughput of", "the wall time of"."""
    return f"the {metric(metric_name)} of"


def good(unit: str) -> str:
    """The adjective of a comparison by a metric of that unit: "fast" for times and rates, else "good"."""
    return "fast" if unit in ("s", "1/s") else "good"


def roughly(rough: bool) -> str:
    """What is said beside a size whose interval is wide: ", roughly"."""
    return ", roughly" if rough else ""


def marked(verdict: str, rough: bool = False) -> str:
    """A verdict as judged() has it, with the mark of the figures: "▲ better, roughly"."""
    mark, word = VERDICTS.get(verdict, ("", verdict))
    return f"{mark} {judged(word, rough)}".strip()


def judged(verdict: str, rough: bool) -> str:
    """A verdict with what its interval's width says beside it: "better", "better, roughly"."""
    return verdict + roughly(rough and verdict in ("better", "worse"))


def quantity(value: float, unit: str) -> str:
    """A value with its unit in a readable size: "1.24 M/s", "12.3 MiB", "0.512 s"."""
    if unit == "B":
        for size, name in _BYTES:
            if value >= size:
                return f"{value / size:.1f} {name}"
        return f"{value:.0f} B"
    if unit == "s":
        return f"{value:.3f} s" if value >= 0.1 else f"{1000 * value:.2f} ms"
    suffix = "/s" if unit == "1/s" else "" if unit == "1" else f" {unit}"
    for scale, name in _SCALES:
        if value >= scale:
            scaled = value / scale
            return f"{scaled:.3g} {name}{suffix}" if scaled < 999.5 else f"{scaled:.0f} {name}{suffix}"
    return f"{value:.3g}{suffix}"
