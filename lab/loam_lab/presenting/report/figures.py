"""Which figures a study has, and the files they become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loam_lab.presenting.report import across, charts, findings, flame, heat, listing, palette, scenes, svg
from loam_lab.presenting.report.listing import Table
from loam_lab.presenting.report.plates import Figure, Names, Plate
from loam_lab.presenting.report.view import Case, Study

# Where nothing but the two mappings is compared.
SHADOW = "Shadow records against the table"


def draw(study: Study) -> list[Figure]:
    """Every figure that the result has data for, in the order of the page."""
    names = Names()
    speed, compared = findings.speed_title(study), contrast_title(study)
    everywhere = "Every allocator" + (" in every case" if len(study.groups) > 1 else "")
    groups = [(case, group) for case in study.cases for group in case.groups]
    speeds = [listing.group(study, group) for _, group in groups]
    aborts = [table for case, group in groups if (table := listing.aborts(study, case, group))]
    contrasts = [table for case in study.cases if (table := listing.contrasts(study, case))]
    given = [
        Figure("overview", everywhere, "Overview", _overview(study, names)),
        across.figure(study, names),
        scenes.courses(study, names),
        Figure("throughput", speed, speed, _throughput(study, names), below=tuple(speeds)),
        Figure("aborts", "Causes of aborts", "Aborts", _aborts(study, names), _cause_keys(study), tuple(aborts)),
        scenes.retries(study, names),
        Figure(
            "mapping",
            compared,
            compared,
            _contrasts(study, names),
            below=tuple(contrasts),
            captioned=compared != SHADOW,
        ),
        _effects(study, names),
        scenes.placement(study, names),
        scenes.moves(study, names),
        scenes.trade(study, names),
        scenes.memory(study, names),
        flame.figure(study, names),
        scenes.order(study, names),
    ]
    return [figure for figure in given if figure.plates]


def _cause_keys(study: Study) -> tuple[svg.Key, ...]:
    colours = palette.of_causes([cause.name for cause in study.causes])
    return tuple(svg.Key(cause.words, colours[cause.name]) for cause in study.causes)


def _overview(study: Study, names: Names) -> tuple[Plate, ...]:
    heat_map = heat.build(study)
    if heat_map is None:
        return ()
    case = Case("All cases", "", study.groups, ("",) * len(study.groups), same_work=False)
    return (Plate(case, names.make("overview", "all"), (("", heat.draw(study, heat_map, names.make("overview"))),)),)


def _throughput(study: Study, names: Names) -> tuple[Plate, ...]:
    sentences = {id(answer.group): findings.answer_sentence(answer) for answer in findings.answers(study)}
    plates = []
    for case in study.cases:
        name = names.make("throughput", case.title)
        panels = []
        for group in case.groups:
            # The same work may be read across panels; other work has an axis of its own.
            peers = case.groups if case.same_work else (group,)
            domain = charts.throughput_domain(peers)
            if domain is not None:
                scale = charts.throughput_scale(peers)
                panel = names.make(name, case.label(group), "panel")
                panels.append((case.label(group), charts.throughput(study, case, group, panel, domain, scale)))
        if panels:
            remarks = [findings.leading(case.label(g)) + sentences[id(g)] for g in case.groups if id(g) in sentences]
            plates.append(Plate(case, name, tuple(panels), tuple(remarks)))
    return tuple(plates)


def _aborts(study: Study, names: Names) -> tuple[Plate, ...]:
    plates = []
    for case in study.cases:
        groups = [group for group in case.groups if any(cell.blame for cell in group.cells)]
        if not groups:
            continue
        limit = charts.aborts_limit(groups)
        name = names.make("aborts", case.title)
        panels = tuple(
            (case.label(group), charts.aborts(study, case, group, names.make(name, case.label(group), "panel"), limit))
            for group in groups
        )
        remarks = [text for group in groups if (text := findings.blame_remark(case, group))]
        plates.append(Plate(case, name, panels, tuple(remarks)))
    return tuple(plates)


def _contrasts(study: Study, names: Names) -> tuple[Plate, ...]:
    plates = []
    for case in study.cases:
        every = findings.contrasts(study, case)
        kinds = dict.fromkeys(one.title for one in every)
        if kinds:
            name = names.make("mapping", case.title)
            panels = tuple(
                (
                    what,
                    charts.contrast(
                        study, case, [one for one in every if one.title == what], names.make(name, "panel")
                    ),
                )
                for what in kinds
            )
            plates.append(Plate(case, name, panels))
    return tuple(plates)


def contrast_title(study: Study) -> str:
    """What the figure of contrasts compares."""
    kinds = {one.what for case in study.cases for one in findings.contrasts(study, case)}
    return SHADOW if kinds <= {"shadow against table"} else "Paired comparisons"


def _effects(study: Study, names: Names) -> Figure:
    plates, keys = [], {}
    below: list[str | Table] = []
    for case in study.cases:
        name = names.make("effect", case.title)
        if remark := findings.effect_remark(study, case):
            below.append(f"- {case.title}. {remark}")
        drawing = charts.effect(study, case, names.make(name, "panel"))
        if drawing:
            plates.append(Plate(case, name, (("", drawing),), (remark,) if remark else ()))
            keys.update({(shape, label): svg.Key(label, "#808080", shape) for shape, label in charts.series(case)})
    below += [listing.group(study, group) for group in study.references]
    title = "Allocator effect, synchronised and sequential"
    return Figure("effect", title, "Beside sequential", tuple(plates), tuple(keys.values()), tuple(below))


def documents(figures: Iterable[Figure]) -> dict[str, str]:
    """File name without ending -> stand-alone SVG: one sheet per figure, and one per plate where there are several."""
    sheets = {}
    for figure in figures:
        per_row = 1 if any(len(plate.panels) > 1 for plate in figure.plates) else 2
        sheets[figure.name] = svg.sheet(figure.title, _rows(figure.plates, per_row), figure.legend)
        if len(figure.plates) > 1:
            for plate in figure.plates:
                row = svg.Row(plate.case.title, plate.panels)
                sheets[plate.name] = svg.sheet(figure.title, [row], figure.legend)
    return sheets


def _rows(plates: Sequence[Plate], per_row: int) -> list[svg.Row]:
    if per_row == 1:
        return [svg.Row(plate.case.title, plate.panels) for plate in plates]
    # One panel each: two cases side by side, the case as the caption.
    single = [(plate.case.title, plate.panels[0][1]) for plate in plates]
    return [svg.Row("", single[start : start + per_row]) for start in range(0, len(single), per_row)]
