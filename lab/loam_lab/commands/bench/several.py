"""The recommendation for several commands together: by the geometric mean of their ratios, then for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from loam_lab.commands.bench import choices, recommend
from loam_lab.judging.statistics import multiplicity
from loam_lab.judging.statistics.verdicts import percent
from loam_lab.model.result import Choice, Recommendation, Result

if TYPE_CHECKING:
    from loam_lab.commands.bench.footprint import Footprint
    from loam_lab.commands.bench.rule import Alike


def add(result: Result, commands: Sequence[str], memory: Footprint, alike: Mapping[str, Alike]) -> Result:
    """The result with a recommendation that has one for each command, as recommend.add and choices.add make it.

    alike: of each command, as for recommend.add()
    """
    if recommend.unproven(result):
        return recommend.add(result, "")
    each = []
    for command in commands:
        part = replace(
            result,
            cells=[cell for cell in result.cells if cell.parameters["command"] == command],
            best=[line for line in result.best if line.parameters.get("command") == command],
        )
        own, same = memory.of(command), alike[command]
        one = choices.add(recommend.add(part, command, own, memory.by, same), own, memory.by, same).recommendation
        assert one is not None, "it was just added"
        each.append(replace(one, of=command))
    baseline = result.baseline
    means = [line for line in result.geomeans if line.low is not None]
    adjusted = multiplicity.holm([1.0 if line.p is None else line.p for line in means])
    shown = [
        line for line, p in zip(means, adjusted, strict=True)
        if line.verdict == "better" and p < multiplicity.SIGNIFICANCE
    ]  # fmt: skip
    if shown:
        best = max(shown, key=lambda line: line.estimate)
        name = best.allocator
        less, least, most = (percent(1 - 1 / end) for end in (best.estimate, best.low, best.high) if end)
        text = (
            f"Use {name}: over {len(commands)} commands it takes {less} less time than "
            f"{baseline} [{least}, {most}], in the geometric mean."
        )
    else:
        name = baseline
        text = f"Stay with {baseline}: over {len(commands)} commands no other was shown to be faster."
    lines = [Choice(f"'{one.of}'", one.allocator, one.text) for one in each]
    advised = Recommendation(name, text, by=recommend.decides(result), each=each, choices=lines)
    return replace(result, recommendation=advised)
