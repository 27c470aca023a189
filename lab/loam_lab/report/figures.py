"""Which figures a study has, and the files they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from loam_lab.report import charts, findings, palette, svg, words
from loam_lab.report.view import Case, Group, Study, mapping_title


@dataclass(frozen=True)
class Plate:
    """The panels of one case. remarks: sentences beside them; name: for files."""

    case: Case
    name: str
    panels: tuple[tuple[str, svg.Drawing], ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """One section's plates with their legend."""

    name: str
    title: str
    plates: tuple[Plate, ...]
    legend: tuple[svg.Key, ...] = ()


@dataclass
class Names:
    """Names that are free of captured text's dangers and unique within the page."""

    taken: set[str] = field(default_factory=set)

    def make(self, *parts: str) -> str:
        """A new name of [a-z0-9-]."""
        base = name = charts.slug(*parts)
        number = 2
        while name in self.taken:
            name = f"{base}-{number}"
            number += 1
        self.taken.add(name)
        return name


CAUSE_LEGEND = tuple(svg.Key(label, palette.CAUSES[key]) for key, label, _ in words.CAUSES)
EFFECT_LEGEND = (
    svg.Key("sequential", "#808080", "diamond"),
    svg.Key("synchronised, record table", "#808080", "circle"),
    svg.Key("synchronised, shadow records", "#808080", "square"),
)


def draw(study: Study) -> list[Figure]:
    """Every figure that the result has data for: throughput, aborts, one per kind of contrast, effect."""
    names = Names()
    given = [
        Figure("throughput", "Throughput", _throughput(study, names)),
        Figure("aborts", "Causes of aborts", _aborts(study, names), CAUSE_LEGEND),
        Figure("mapping", "Shadow records against the table", _contrasts(study, names)),
        Figure("effect", "Allocator effect, synchronised and sequential", _effects(study, names), EFFECT_LEGEND),
    ]
    return [figure for figure in given if figure.plates]


def _throughput(study: Study, names: Names) -> tuple[Plate, ...]:
    said = {id(answer.group): findings.answer_sentence(answer) for answer in findings.answers(study)}
    plates = []
    for case in study.cases:
        domain = charts.throughput_domain(case.groups)
        if domain is None:
            continue
        scale = charts.throughput_scale(case.groups)
        name = names.make("throughput", case.title)
        panels = tuple(
            (mapping_title(group), charts.throughput(study, case, group, names.make(name, group.mapping, "panel"), domain, scale))
            for group in case.groups
        )
        remarks = tuple(_remark(group, said[id(group)]) for group in case.groups if id(group) in said)
        plates.append(Plate(case, name, panels, remarks))
    return tuple(plates)


def _remark(group: Group, sentence: str) -> str:
    where = mapping_title(group)
    return f"{where[:1].upper()}{where[1:]}: {sentence}" if where else sentence


def _aborts(study: Study, names: Names) -> tuple[Plate, ...]:
    plates = []
    for case in study.cases:
        groups = [group for group in case.groups if any(cell.blame for cell in group.cells)]
        if not groups:
            continue
        limit = charts.aborts_limit(groups)
        name = names.make("aborts", case.title)
        panels = tuple(
            (mapping_title(group), charts.aborts(study, case, group, names.make(name, group.mapping, "panel"), limit))
            for group in groups
        )
        plates.append(Plate(case, name, panels, tuple(filter(None, map(findings.blame_remark, groups)))))
    return tuple(plates)


def _contrasts(study: Study, names: Names) -> tuple[Plate, ...]:
    plates = []
    for case in study.cases:
        every = findings.contrasts(study, case)
        kinds = dict.fromkeys(one.what for one in every)
        if kinds:
            name = names.make("mapping", case.title)
            panels = tuple(
                (what, charts.contrast(study, case, [one for one in every if one.what == what], names.make(name, "panel")))
                for what in kinds
            )
            plates.append(Plate(case, name, panels))
    return tuple(plates)


def _effects(study: Study, names: Names) -> tuple[Plate, ...]:
    plates = []
    for case in study.cases:
        name = names.make("effect", case.title)
        drawing = charts.effect(study, case, names.make(name, "panel"))
        if drawing:
            remark = findings.effect_remark(study, case)
            plates.append(Plate(case, name, (("", drawing),), (remark,) if remark else ()))
    return tuple(plates)


def documents(figures: Iterable[Figure]) -> dict[str, str]:
    """File name without ending -> stand-alone SVG: one sheet per figure, and one per plate where there are several."""
    found = {}
    for figure in figures:
        per_row = 1 if any(len(plate.panels) > 1 for plate in figure.plates) else 2
        found[figure.name] = svg.sheet(figure.title, _rows(figure.plates, per_row), figure.legend)
        if len(figure.plates) > 1:
            for plate in figure.plates:
                row = svg.Row("", [(caption, drawing) for caption, drawing in plate.panels])
                found[plate.name] = svg.sheet(f"{figure.title}: {plate.case.title}", [row], figure.legend)
    return found


def _rows(plates: Sequence[Plate], per_row: int) -> list[svg.Row]:
    if per_row == 1:
        return [svg.Row(plate.case.title, plate.panels) for plate in plates]
    # One panel each: two cases side by side, the case as the caption.
    single = [(plate.case.title, plate.panels[0][1]) for plate in plates]
    return [svg.Row("", single[start : start + per_row]) for start in range(0, len(single), per_row)]


def png(document: str, scale: float = 2.0) -> bytes:
    """A stand-alone SVG as PNG, dark ink on white."""
    import vl_convert

    convert: Callable[..., bytes] = vl_convert.svg_to_png
    return bytes(convert(svg.paper(document), scale=scale))
