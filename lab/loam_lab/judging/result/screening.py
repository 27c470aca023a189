"""What a screening decides: the baseline with one setting changed at a time, ranked by the difference that is certain.

A change is compared with the baseline in the blocks that both ran in.  All changes of a result are one family, and what is
claimed of a change counts how many there are (Holm).  They are ranked by the end of the interval that is nearer to 1, so
that a large estimate which may be noise stands behind a small one which cannot be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loam_lab.base.errors import LoamError
from loam_lab.judging.statistics import multiplicity, verdicts
from loam_lab.judging.statistics.data import state_of
from loam_lab.model import result, words
from loam_lab.model.result import ChangedLevel, ScreenedFactor, Screening
from loam_lab.subjects.allocators import registry

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign
    from loam_lab.judging.statistics.intervals import Interval
    from loam_lab.model.cell import Cell

METHOD = "Holm"


@dataclass(frozen=True)
class _Level:
    """One change: the setting, its value, its ratio to the baseline, and the probability after Holm's rule."""

    factor: str
    value: str
    ratio: Interval | None
    p_holm: float | None
    verdict: str
    rough: bool

    @property
    def certain(self) -> float:
        """How far the nearer end of the interval lies from 1, as a logarithm; 0 where no difference is shown."""
        ratio = self.ratio
        if self.verdict not in ("better", "worse") or ratio is None or ratio.low is None or ratio.high is None:
            return 0.0
        return min(abs(math.log(ratio.low)), abs(math.log(ratio.high)))

    @property
    def order(self) -> tuple[float, float, str]:
        """What ranks levels, the strongest first: the certain difference, then the estimated one."""
        return -self.certain, -abs(math.log(self.ratio.estimate)) if self.ratio else 1.0, self.value

    def of_result(self) -> ChangedLevel:
        """The change as results have it."""
        ratio = self.ratio
        return ChangedLevel(
            *(ratio.ends if ratio else ()), value=self.value, verdict=self.verdict, rough=self.rough, p_holm=self.p_holm,
            n=ratio.n if ratio else None, p=ratio.p if ratio else None,
        )  # fmt: skip


def changed(baseline: str, name: str) -> tuple[str, str] | None:
    """The one setting, and its value, by which an allocator differs from another; None where it is not exactly one."""
    (head, before), (other, after) = _parts(baseline), _parts(name)
    differing = [(key, value) for key, value in after.items() if before.get(key) != value]
    if head != other or len(differing) != 1 or before.keys() - after.keys():
        return None
    return differing[0]


def _parts(name: str) -> tuple[list[str], dict[str, str]]:
    """The words of an allocator's name, and its settings."""
    words_of = name.split(":")
    settings = dict(part.split("=", 1) for part in words_of if "=" in part)
    return [part for part in words_of if "=" not in part], settings


def screened(campaign: Campaign, ratios: Mapping[tuple[Cell, int], Interval | None]) -> list[Screening]:
    """For each family of cells that differ in the allocator only: its factors, ranked; nothing if it is no screening.

    ratios: of each cell and copy of the result to its baseline
    """
    if not campaign.study.screening:
        return []
    changes = {
        cell: change
        for cell in campaign.cells
        if (change := changed(campaign.baseline(cell), cell.allocator)) is not None
    }
    known = {cell: p for cell in changes if (ratio := ratios.get((cell, 0))) is not None and (p := ratio.p) is not None}
    adjusted = dict(zip(known, multiplicity.holm(list(known.values())), strict=True))
    families: dict[tuple[object, ...], list[Cell]] = {}
    for cell in changes:
        families.setdefault(_family(cell), []).append(cell)
    cases = []
    for cells in families.values():
        levels = [_level(campaign, cell, changes[cell], ratios.get((cell, 0)), adjusted.get(cell)) for cell in cells]
        cases.append(_case(campaign, cells[0], levels, ratios, len(adjusted)))
    return cases


def _family(cell: Cell) -> tuple[object, ...]:
    """What cells share that differ in the allocator only."""
    return cell.group, cell.workload, cell.sync, cell.machine, cell.threads, cell.parameters


def _level(
    campaign: Campaign, cell: Cell, change: tuple[str, str], ratio: Interval | None, p_holm: float | None
) -> _Level:
    study, state = campaign.study, state_of(campaign.runs(cell))
    verdict: str = state if state != "ok" else "inconclusive"
    if state == "ok" and ratio is not None:
        verdict = verdicts.decide(ratio, campaign.primary(cell).better, margin=study.margin, adjusted=p_holm)
    rough = ratio is not None and verdicts.rough(ratio, study.width_max)
    return _Level(*change, ratio, p_holm, verdict, rough)


def _case(
    campaign: Campaign,
    cell: Cell,
    levels: Sequence[_Level],
    ratios: Mapping[tuple[Cell, int], Interval | None],
    size: int,
) -> Screening:
    baseline, metric = campaign.baseline(cell), campaign.primary(cell)
    before = _before(baseline)
    by_factor: dict[str, list[_Level]] = {}
    for level in sorted(levels, key=lambda level: level.order):
        by_factor.setdefault(level.factor, []).append(level)
    factors = [
        ScreenedFactor(name, before.get(name, ""), _together(own), [one.of_result() for one in own])
        for name, own in by_factor.items()
    ]
    again = next((ratio for (one, copy), ratio in ratios.items() if copy == 1 and _family(one) == _family(cell)), None)
    parameters = " ".join(f"{name}={value}" for name, value in cell.parameters)
    on = f"{cell.sync}, {words.threads(cell.threads)}"
    return Screening(
        baseline=baseline, workload=cell.workload, sync=cell.sync, threads=cell.threads, machine=cell.machine,
        parameters=dict(cell.parameters), title=f"{cell.workload} {parameters} · {on}".replace("  ", " "),
        metric=metric.name, better=metric.better, method=METHOD, size=size, factors=factors,
        again=None if again is None else result.Interval(*again.ends),
        text=_sentences(factors, baseline, metric.name, campaign.study.margin),
    )  # fmt: skip


def _before(baseline: str) -> dict[str, str]:
    """The baseline's settings; none where this lab no longer knows the allocator."""
    try:
        return registry.values(baseline)
    except LoamError:
        return {}


def _together(levels: Sequence[_Level]) -> str:
    """A factor matters if one of its values does; it does not if none of them can."""
    verdicts_of = [level.verdict for level in levels]
    for verdict in ("better", "worse"):
        if verdict in verdicts_of:
            return "matters"
    return "equivalent" if set(verdicts_of) == {"equivalent"} else "undecided"


def _sentences(factors: Sequence[ScreenedFactor], baseline: str, metric: str, margin: float) -> list[str]:
    """The outcome in words: what decides, what else matters, what does not, what is open."""
    mattering = [one for one in factors if one.verdict == "matters"]
    sentences = []
    if mattering:
        first, level = mattering[0], mattering[0].levels[0]
        sentences.append(
            f"{first.factor} decides most: {first.factor}={level.value} has {level.estimate:.3g} times the {metric} "
            f"of {baseline} [{level.low:.3g}, {level.high:.3g}]."
        )
    else:
        sentences.append(f"No factor was shown to change {metric} of {baseline}.")
    rest = [one.factor for one in mattering[1:]]
    if rest:
        sentences.append(f"Also shown to matter: {words.listing(rest)}.")
    for verdict, lead in (("equivalent", f"No difference above {100 * margin:g} %"), ("undecided", "Not decided")):
        named = [one.factor for one in factors if one.verdict == verdict]
        if named:
            sentences.append(f"{lead}: {words.listing(named)}.")
    return sentences
