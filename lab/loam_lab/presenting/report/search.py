"""The search of `bench --search`, as tables: what each round tried and kept, and what the final decided."""

from __future__ import annotations

from loam_lab.model import result
from loam_lab.presenting.report import rounding
from loam_lab.presenting.report.listing import Column, Table
from loam_lab.presenting.report.view import Study


def tables(study: Study) -> list[Table]:
    """The rounds of the search and its final; none for a result without a search."""
    given = study.raw.search or result.Search()
    best = given.best or "the best allocator as it is"
    rounds = []
    for one in given.rounds:
        for tried in sorted(one.candidates, key=_rank):
            rounds.append((tried.allocator, str(one.round), *rounding.spread(tried), "kept" if tried.kept else ""))
    head = (Column("Settings"), Column("Round", numeric=True), Column(f"× {best}", numeric=True))
    span = Column("95 % interval", numeric=True)
    made = []
    if given.final:
        rows = tuple(
            (one.allocator, *rounding.spread(one.to_best), *rounding.spread(one.to_baseline)) for one in given.final
        )
        base = Column(f"× {given.baseline or 'baseline'}", numeric=True)
        made.append(Table("The final, with fresh runs", (head[0], head[2], span, base, span), rows))
    if rounds:
        made.append(Table("The rounds: they select, and prove nothing", (*head, span, Column("")), tuple(rounds)))
    return made


def _rank(one: result.Ends) -> tuple[bool, float]:
    return one.estimate is None, one.estimate or 0.0


def commands(study: Study) -> list[str]:
    """The command with the winning settings, and the one that checks it with fresh runs."""
    given = study.raw.search or result.Search()
    return [text for text in (given.winner.command if given.winner else "", given.check) if text]
