"""The ledger for readers: each claim with its verdict and reason, and the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from loam_lab.base import console
from loam_lab.judging.claims import together
from loam_lab.model import result, words
from loam_lab.model.claim import CANNOT_BE_DECIDED, SELF_CONTRADICTING
from loam_lab.presenting.report import paper_figures, rounding, svg
from loam_lab.presenting.report.listing import Column, Table
from loam_lab.presenting.report.rounding import MISSING
from loam_lab.presenting.report.view import Study, number

# Verdict -> (mark, word); an unknown one is shown as it is.
VERDICTS = {
    "reproduced": ("✓", "reproduced"), "contradicted": ("✗", "contradicted"), "undecided": ("?", "undecided"),
    "not asked": ("–", "not asked"),
    CANNOT_BE_DECIDED: ("∅", CANNOT_BE_DECIDED), SELF_CONTRADICTING: ("≠", SELF_CONTRADICTING),
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """One claim. paper, ours: finished texts, one per figure; notes: what limits the verdict; derived: not counted."""

    id: str
    place: str
    sentence: str
    verdict: str
    mark: str
    reason: str
    paper: tuple[str, ...]
    ours: tuple[str, ...]
    notes: tuple[str, ...]
    derived: bool = False


def claims(study: Study) -> list[Claim]:
    """The claims of a Result in its order."""
    here = {str(study.raw.machine.get("fingerprint") or "")}
    here |= {str(one.get("fingerprint") or "") for one in study.raw.machines.values()}
    return [claim(item, here, notes_of(_verdicts(study.others, study, item))) for item in study.raw.claims or ()]


def _verdicts(of: Iterable[together.Run], study: Study, item: result.Claim) -> list[together.Verdict]:
    return together.verdicts(of, study.raw.study, item.id, item.predicate)


def notes_of(others: Sequence[together.Verdict]) -> list[str]:
    """What other runs said, as notes."""
    summaries = together.summaries(others)
    return [console.plain(f"in other runs: {'; '.join(summaries)}")] if summaries else []


def summary(study: Study) -> str:
    """What became of the claims in this run, and with the study's other runs."""
    own = tally(claims(study))
    if not study.others or not study.raw.claims:
        return own
    every = together.newest_first([together.of_result(study.raw), *study.others])
    standing = [_verdicts(every, study, item)[0].claim for item in study.raw.claims]
    count = len(study.others)
    overall = tally([claim(item, ()) for item in standing])
    return (
        f"{own} With {count} other run{'' if count == 1 else 's'}: {console.plain(overall[:1].lower() + overall[1:])}"
    )


def claim(item: result.Claim, here: Collection[str], more: Iterable[str] = ()) -> Claim:
    """A claim of a result. here: fingerprints of machines that need not be named; more: notes to add"""
    verdict = str(item.verdict or "undecided")
    mark, word = VERDICTS.get(verdict, ("?", verdict))
    where = (item.section, item.figure)
    notes = [f"needs {words.listing(item.needs)}"] if item.needs else []
    # The machines of the whole result stand in their own section.
    if elsewhere := [one for one in item.machine.split() if one not in here]:
        notes.append(f"on {words.listing(elsewhere)}")
    if item.by_preset:
        notes.append("an absent allocator was replaced by one of the same design")
    if item.self_contradicting:
        notes.append("the paper's own numbers contradict it, whatever is measured")
    if item.follows_from:
        notes.append(f"follows from {words.listing(item.follows_from)}, and is not counted again")
    notes += [one.words() for one in item.assumed]
    notes += [f"rests on assumed numbers of {name} ({', '.join(keys)})" for name, keys in item.guessed.items()]
    if item.note:
        notes.append(item.note)
    notes += more
    paper = tuple(_pair(one.what, value(one.value)) for one in item.paper)
    ours = tuple(_pair(one.what, _measured(one)) for one in item.ours)
    return Claim(
        item.id, ", ".join(part for part in where if part), item.sentence,
        word, mark, item.reason, paper, ours, tuple(notes), bool(item.follows_from),
    )  # fmt: skip


def _pair(what: str, text: str) -> str:
    return f"{what}: {text}" if what else text


def _measured(item: result.Compared) -> str:
    unit = item.unit
    text = value(item)
    return f"{text} {unit}" if unit not in ("", "1", "ratio") and text != MISSING else text


def value(given: result.Interval | result.Entry) -> str:
    """A value of the ledger: text as it is, a number with four digits, an estimate with its interval."""
    if isinstance(given, result.Interval):
        middle, low, high = given.estimate, given.low, given.high
        if low is None or high is None:
            return _scaled(middle)
        if abs(middle) >= _LARGE:
            scale = rounding.scale_for([middle], "")
            ends = [rounding.fixed(end / scale.factor, 2) for end in (middle, low, high)]
            return f"{ends[0]} {scale.unit} [{ends[1]}, {ends[2]}]"
        decimals = max(rounding.decimals_for(middle), rounding.decimals_for(high - low, 2) if high > low else 0)
        shown = [rounding.fixed(end, min(decimals, 6)) for end in (middle, low, high)]
        return f"{shown[0]} [{shown[1]}, {shown[2]}]"
    if given is None or isinstance(given, bool):
        return MISSING if given is None else ("yes" if given else "no")
    printed = number(given)
    return str(given) if printed is None else _plain(printed)


# From here on an estimate is told in thousands, millions and so on; a paper's own numbers are left as they are.
_LARGE = 1e5


def _scaled(estimate: float) -> str:
    """A measured number without an interval: four digits, large ones in thousands, millions and so on."""
    if abs(estimate) < _LARGE:
        return _plain(estimate)
    scale = rounding.scale_for([estimate], "")
    return f"{rounding.significant(estimate / scale.factor, 4)} {scale.unit}"


def _plain(printed: float) -> str:
    """A number of a paper with its own digits: 12.5 stays 12.5, 1/3 gets four digits."""
    if printed == int(printed) and abs(printed) < 1e15:
        return rounding.fixed(printed, 0)
    exact = f"{printed:.10g}"
    digits = len(exact.partition(".")[2]) if "e" not in exact else 9
    return rounding.fixed(printed, digits) if digits <= 4 else rounding.significant(printed, 4)


def tally(counted: list[Claim]) -> str:
    """ "12 of 20 claims reproduced, 3 contradicted, 5 undecided"."""
    derived = sum(claim.derived for claim in counted)
    counted = [claim for claim in counted if not claim.derived]
    counts = {
        word: sum(claim.verdict == word for claim in counted) for word in dict.fromkeys(c.verdict for c in counted)
    }
    order = [word for _, word in VERDICTS.values() if word in counts] + [w for w in counts if w not in VERDICTS]
    parts = [f"{counts[word]} {word}" for word in order]
    more = f" {derived} more follow{'s' if derived == 1 else ''} from these." if derived else ""
    return f"Of {len(counted)} claim{'' if len(counted) == 1 else 's'} {words.listing(parts)}.{more}"


@dataclass(frozen=True)
class Pair:
    """A figure or table of the paper: the paper's values and ours; note: what to know about the paper's.

    panels: ours as drawings with captions, where the paper draws too
    """

    id: str
    title: str
    note: str
    paper: Table | None
    ours: Table | None
    panels: tuple[tuple[str, svg.Drawing], ...]


def pairs(study: Study) -> list[Pair]:
    """The paper's figures and tables that the Result holds, in its order."""
    compared = []
    for item in study.raw.paper_figures or ():
        paper, ours = item.paper, item.ours
        name = item.id
        compared.append(
            Pair(
                name, item.title, paper.note or "",
                _table(f"{name[:1].upper()}{name[1:]} in the paper", paper), _table("Measured here", ours),
                paper_figures.draw(study, item),
            )
        )  # fmt: skip
    return compared


def _cell(given: result.Entry) -> str:
    """A value of a table: as value() has it; per cent stands behind the estimate, as papers print it."""
    text = value(given)
    if not isinstance(given, result.Value) or given.unit != "%" or text == MISSING:
        return text
    middle, _, span = text.partition(" [")
    return f"{middle} %" + (f" [{span}" if span else "")


def _table(caption: str, given: result.PaperTable) -> Table | None:
    columns, rows = given.columns, given.rows
    if not columns or not rows:
        return None
    shown = tuple(tuple(_cell(row[i]) if i < len(row) else MISSING for i in range(len(columns))) for row in rows)
    numeric = [
        i > 0 and any(number(row[i]) is not None or isinstance(row[i], result.Value) for row in rows if i < len(row))
        for i in range(len(columns))
    ]
    heads = tuple(Column(head.replace("_", " "), numeric=numeric[i]) for i, head in enumerate(columns))
    return Table(caption, heads, shown, tuple(row[0] for row in shown))
