"""Why a claim is undecided, or machines are not pooled: values, and the one place that words them.

Code makes a reason and tests compare it; only words() writes a sentence, and only tests/lab/test_reasons.py reads one.
"""

from __future__ import annotations

from dataclasses import dataclass

from loam_lab.judging.statistics import verdicts
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.words import listing
from loam_lab.subjects.machines import HOST

# ---- what a claim needs


@dataclass(frozen=True)
class Unmet:
    """A need of a claim that a campaign does not meet.

    what: cores, rtm, counters, allocator, workloads, sync or machine; needs: how many, or their names
    has: what there is; on: the machine that was asked
    """

    what: str
    needs: int | str | tuple[str, ...] = ""
    has: int | str = ""
    on: str = ""


# ---- values that cannot decide. where: a selection in words


@dataclass(frozen=True)
class NotMeasured:
    """No cell is of this selection."""

    where: str


@dataclass(frozen=True)
class Oversubscribed:
    """A cell had more threads than its machine has processors."""

    where: str
    threads: int
    cores: int


@dataclass(frozen=True)
class NoValue:
    """Nothing counted this metric. metric: "" for the first; source: of counts, "" for timed runs"""

    where: str
    metric: str
    source: str = ""


@dataclass(frozen=True)
class NoMetric:
    """A workload has no metric of that name."""

    workload: str
    sync: str
    metric: str


@dataclass(frozen=True)
class NotGood:
    """A cell failed, was not proven, or was skipped. detail: of the first run that was not good"""

    where: str
    state: str
    detail: str = ""


@dataclass(frozen=True)
class NothingShared:
    """Two sides of a comparison have no block in common."""

    what: str


@dataclass(frozen=True)
class AllZero:
    """A side of a ratio is 0 in every block."""

    what: str


@dataclass(frozen=True)
class NotPrinted:
    """A paper prints no number for this."""

    what: str


@dataclass(frozen=True)
class PrintedTwice:
    """Several numbers that a paper prints fit this."""

    what: str
    count: int


# ---- machines that were declared identical


@dataclass(frozen=True)
class Unlike:
    """A fact of the machines differs. values: (machine, what it has)"""

    fact: str
    values: tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class NoCommonCase:
    """No case was measured on all of the machines."""


@dataclass(frozen=True)
class BaselineDiffers:
    """The baseline's values on two machines may lie further apart than a margin allows. two: the machines"""

    case: str
    baseline: str
    two: tuple[str, str]
    ratio: Interval
    margin: float


@dataclass(frozen=True)
class TooFewBlocks:
    """A machine has fewer blocks of a case than the comparison needs."""

    case: str
    has: int
    needs: int


@dataclass(frozen=True)
class RatiosDiffer:
    """An allocator's ratio depends on which of two machines measured it."""

    case: str
    two: tuple[str, str]


Reason = (
    Unmet | NotMeasured | Oversubscribed | NoValue | NoMetric | NotGood | NothingShared | AllZero | NotPrinted | PrintedTwice
    | Unlike | NoCommonCase | BaselineDiffers | TooFewBlocks | RatiosDiffer
)  # fmt: skip


def words(reason: Reason) -> str:
    """A reason as the ledger and the report have it."""
    match reason:
        case Unmet():
            return _need(reason)
        case NotMeasured(where):
            return f"{where} was not measured"
        case Oversubscribed(where, threads, cores):
            return f"{where}: {threads} threads on {cores} cores; an oversubscribed run never decides"
        case NoValue(where, metric, source):
            return f"{where}: no value of {metric or 'its metric'} was measured{f' by {source}' if source else ''}"
        case NoMetric(workload, sync, metric):
            return f"{workload} of {sync} has no metric {metric}"
        case NotGood(where, "skipped"):
            return f"{where} was not reached, or was stopped after failures"
        case NotGood(where, state, detail):
            return f"{where} is {state}{f' ({detail})' if detail else ''}"
        case NothingShared(what):
            return f"{what}: no block has both"
        case AllZero(what):
            return f"{what}: a value is 0 in every block, so that there is no ratio"
        case NotPrinted(what):
            return f"the paper prints nothing for {what}"
        case PrintedTwice(what, count):
            return f"{count} printed numbers fit {what}: name the levels that tell them apart"
        case Unlike(fact, values):
            facts = listing(f"{value or 'unknown'} on {name}" for name, value in values)
            return f"they are not of one kind: {fact} is {facts}"
        case NoCommonCase():
            return "no case was measured on all of them"
        case BaselineDiffers(case, baseline, (first, second), ratio, margin):
            return (
                f"{baseline} on {second} has {_times(ratio)} of what it has on {first} in {case}, which may differ by more "
                f"than {verdicts.percent(margin)}"
            )
        case TooFewBlocks(case, has, needs):
            return f"{case} has {has} blocks on one of them, and the comparison needs {needs}"
        case RatiosDiffer(case, (first, second)):
            return f"ratios differ between {first} and {second} in {case}"


def _need(unmet: Unmet) -> str:
    named = ", ".join(unmet.needs) if isinstance(unmet.needs, tuple) else unmet.needs
    return {
        "cores": f"{named} cores ({'this machine' if unmet.on == HOST else unmet.on} has {unmet.has})",
        "rtm": "hardware transactions (this machine has none that commit)",
        "counters": f"hardware counters ({unmet.has})",
        "allocator": f"allocator {named} (not measured here)",
        "workloads": f"the applications {named} (no executable has them)",
        "sync": f"synchronisation {named} (not among those measured)",
        "machine": f"machine {named}",
    }[unmet.what]


def _times(ratio: Interval) -> str:
    if ratio.low is None:
        return f"{ratio.estimate:.3f} times, with too few blocks for an interval,"
    return f"{ratio.estimate:.3f} times [{ratio.low:.3f}, {ratio.high:.3f}]"
