"""A paper's figures and tables beside ours, and the pictures of live addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from loam_lab.judging.claims.predicates import paired
from loam_lab.judging.claims.values import Evidence, Undecided, names, read
from loam_lab.judging.statistics import intervals
from loam_lab.model import result
from loam_lab.model.claim import BLOCKS

if TYPE_CHECKING:
    from loam_lab.judging.statistics.data import Campaign, Run
    from loam_lab.model.cell import Cell
    from loam_lab.model.claim import Ours, PaperFigure, Selection

BLOCKS_DRAWN = 64
LINE_BYTES = 64
Table = tuple[list[str], list[list[result.Entry]]]


def paper_figures(evidence: Evidence, cells: Mapping[str, result.Cell]) -> list[result.PaperFigure]:
    """Each figure of the study's paper beside ours.

    cells: by cell key, as results have them, copy 0
    """
    figures = []
    for figure in evidence.campaign.study.paper_figures:
        columns, rows = _joined([_table(evidence, cells, one) for one in figure.ours if not one.drawn])
        theirs = figure.paper
        paper = result.PaperTable(list(theirs.columns), [list(row) for row in theirs.rows], theirs.note)
        ours = result.PaperTable(columns, rows)
        figures.append(result.PaperFigure(figure.id, figure.title, figure.kind, paper, ours, list(figure.groups)))
    return figures


def placements(campaign: Campaign) -> list[result.Placement]:
    """Blocks of one run of each allocator for every figure that draws them, at most BLOCKS_DRAWN each."""
    return [
        one
        for figure in campaign.study.paper_figures
        for ours in figure.ours
        if ours.drawn
        for one in _placements(campaign, figure, ours)
    ]


def _table(evidence: Evidence, cells: Mapping[str, result.Cell], ours: Ours) -> Table:
    makers = {"grid": _grid, "extremes": _extremes, "reach": _reach}
    columns, rows = makers[ours.kind](evidence, cells, ours)
    if ours.percent:
        rows = [[level, *map(_percent, values)] for level, *values in rows]
    return (["of", *columns], [[ours.label, *row] for row in rows]) if ours.label else (columns, rows)


def _percent(share: result.Entry) -> result.Entry:
    """A share, with its interval or without one, as per cent; None stays."""
    if isinstance(share, int | float):
        share = result.Value(share)
    if not isinstance(share, result.Value):
        return None
    low, high = (None if end is None else 100 * end for end in (share.low, share.high))
    return result.Value(100 * share.estimate, low, high, "%")


def _joined(tables: Sequence[Table]) -> Table:
    """One table of several: below each other where their rows say of what they are, else beside each other.

    Tables of other machines may have other allocators; a column that one of them has not is empty in its rows. What was not
    measured has no rows.
    """
    known = [table for table in tables if table[1]] or list(tables[:1])
    if not known:
        return [], []
    if all(columns[0] == "of" for columns, _ in known):
        heads = list(dict.fromkeys(head for columns, _ in known for head in columns))
        named = [dict(zip(columns, row, strict=True)) for columns, rows in known for row in rows]
        return heads, [[row.get(head) for head in heads] for row in named]
    columns, rows = known[0]
    for more_columns, more_rows in known[1:]:
        if more_columns == columns:
            rows = rows + more_rows
            continue
        beside = {row[0]: row[1:] for row in more_rows}
        blank: list[result.Entry] = [None] * (len(more_columns) - 1)
        columns = columns + more_columns[1:]
        rows = [row + beside.get(row[0], blank) for row in rows]
    return columns, rows


def _levels(evidence: Evidence, ours: Ours) -> list[int | str]:
    """Levels of the factor that makes the rows, as far as they were measured."""
    cells = _cells(evidence.campaign, ours.select)
    if ours.rows == "threads":
        return [*sorted({cell.threads for cell in cells})]
    given = [dict(cell.parameters) for cell in cells]
    return list(dict.fromkeys(one[ours.rows] for one in given if ours.rows in one))


def _allocators(evidence: Evidence, ours: Ours) -> list[str]:
    wanted = ours.select.allocator
    measured = dict.fromkeys(cell.allocator for cell in _cells(evidence.campaign, ours.select))
    return [name for name in measured if not wanted or name in wanted]


def _cells(campaign: Campaign, select: Selection) -> list[Cell]:
    return [cell for cell in campaign.cells if names(select, cell)]


def _grid(evidence: Evidence, cells: Mapping[str, result.Cell], ours: Ours) -> Table:
    metrics = list(ours.metrics) or [""]
    allocators = _allocators(evidence, ours)
    if ours.rows == "allocator":
        heads = [metric or "value" for metric in metrics]
        if ours.relative:
            over = [f"{head} / {evidence.campaign.study.baseline}" for head in heads]
            return ["allocator", *over], [
                [n, *(_relative(evidence, ours.select, n, m) for m in metrics)] for n in allocators
            ]
        rows = [[name, *(_value(evidence, cells, ours.select, name, m) for m in metrics)] for name in allocators]
        return ["allocator", *heads], rows
    columns = [ours.rows]
    columns += [f"{name} {metric}" if len(metrics) > 1 else name for name in allocators for metric in metrics]
    rows = []
    for level in _levels(evidence, ours):
        select = ours.select.at(ours.rows, level)
        rows.append([level, *(_value(evidence, cells, select, n, m) for n in allocators for m in metrics)])
    return columns, rows


def _value(
    evidence: Evidence, cells: Mapping[str, result.Cell], select: Selection, allocator: str, metric: str
) -> result.Entry:
    """An interval, a plain number where counters gave one, or None."""
    chosen = [cell for cell in _cells(evidence.campaign, select) if cell.allocator == allocator]
    if select.source != "timing":
        try:
            seen = read(evidence, select.model_copy(update={"metric": metric}), allocator)
        except Undecided:
            return None
        return _interval(intervals.median(list(seen.values.values())))
    entries = [cells[cell.key] for cell in chosen if cell.key in cells and cells[cell.key].state == "ok"]
    candidates = [_of(evidence.campaign, entry, metric) for entry in entries]
    values = [value for value in candidates if value is not None]
    if not values:
        return None
    if len(values) == 1 or select.over == BLOCKS:
        one = values[0]
        # What never varies, as the bytes of a block, needs no interval.
        return one.estimate if one.low is not None and one.low == one.high else one
    return median(value.estimate for value in values)


def _relative(evidence: Evidence, select: Selection, allocator: str, metric: str) -> result.Value | None:
    """The value over the baseline's; None where one of them is missing."""
    wanted = select.model_copy(update={"metric": metric})
    try:
        above = read(evidence, wanted, allocator)
        ratio = paired(above.values, read(evidence, wanted, evidence.campaign.study.baseline).values)
    except Undecided:
        return None
    return None if ratio is None else _interval(ratio(intervals.CONFIDENCE))


def _of(campaign: Campaign, entry: result.Cell, metric: str) -> result.Value | None:
    name = metric or next(
        campaign.primary(cell).name for cell in campaign.cells if cell.workload == entry.factors.workload
    )
    value = entry.metrics.get(name)
    return None if value is None else result.Value(value.estimate, value.low, value.high)


def _extremes(evidence: Evidence, cells: Mapping[str, result.Cell], ours: Ours) -> Table:
    campaign = evidence.campaign
    rows: list[list[result.Entry]] = []
    for level in _levels(evidence, ours):
        select = ours.select.at(ours.rows, level)
        seen = {}
        for name in _allocators(evidence, ours):
            try:
                seen[name] = read(evidence, select, name).values
            except Undecided:
                continue
        if len(seen) < 2:
            continue
        sign = -1 if campaign.primary(_cells(campaign, select)[0]).better == "lower" else 1
        ranked = sorted(seen, key=lambda name: sign * median(seen[name].values()))
        worst, best = ranked[0], ranked[-1]
        top, bottom = (best, worst) if sign > 0 else (worst, best)
        ratio = paired(seen[top], seen[bottom])
        if ratio is None:
            continue
        rows.append([level, best, worst, _interval(ratio(intervals.CONFIDENCE))])
    return [ours.rows, "best", "worst", "times better"], rows


def _reach(evidence: Evidence, cells: Mapping[str, result.Cell], ours: Ours) -> Table:
    metric = ours.metrics[0] if ours.metrics else ""
    levels = _levels(evidence, ours)
    rows: list[list[result.Entry]] = []
    for name in _allocators(evidence, ours):
        try:
            first = read(evidence, ours.select.at(ours.rows, levels[0]).model_copy(update={"metric": metric}), name)
        except Undecided:
            rows.append([name, None])
            continue
        last = levels[0]
        for level in levels[1:]:
            try:
                seen = read(evidence, ours.select.at(ours.rows, level).model_copy(update={"metric": metric}), name)
            except Undecided:
                break
            ratio = paired(seen.values, first.values)
            if ratio is None:
                break
            # A level that keeps its share to the last digit keeps it, whatever the logarithms have rounded.
            if ratio(intervals.CONFIDENCE).estimate < ours.share * (1 - 1e-12):
                break
            last = level
        rows.append([name, last])
    return ["allocator", f"{ours.rows} up to which {100 * ours.share:.0f} % of the rate is kept"], rows


def _interval(interval: intervals.Interval) -> result.Value:
    return result.Value(*interval.ends)


def _placements(campaign: Campaign, figure: PaperFigure, ours: Ours) -> Iterator[result.Placement]:
    for cell in _cells(campaign, ours.select):
        if ours.select.allocator and cell.allocator not in ours.select.allocator:
            continue
        run = next((run for run in campaign.runs(cell) if run.state == "ok"), None)
        series = None if run is None else _series(run)
        if run is None or series is None:
            continue
        columns = {name: index for index, name in enumerate(series["columns"])}
        if not {"thread", "address", "usable_bytes", "record"} <= columns.keys():
            continue
        parameters = run.begin.get("parameters", {})
        yield result.Placement(
            cell.allocator, ours.kind, figure.title, figure.id, cell.threads, LINE_BYTES,
            int(parameters.get("stripe_log2", 5)),
            [
                result.Block(*(row[columns[name]] for name in ("thread", "address", "usable_bytes", "record")))
                for row in series["rows"][:BLOCKS_DRAWN]
            ],
        )  # fmt: skip


def _series(run: Run) -> Mapping[str, Any] | None:
    return next((line for line in run.others if line.get("kind") == "series" and line.get("name") == "blocks"), None)
