"""The ledger on the terminal: every claim with its verdict, the reason, and our values beside the paper's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from loam_lab.base import console
from loam_lab.model.claim import CANNOT_BE_DECIDED, SELF_CONTRADICTING

if TYPE_CHECKING:
    from rich.text import Text

    from loam_lab.model.result import Claim, Compared, Result

STYLES = {
    "reproduced": "good", "contradicted": "bad", "undecided": "doubt", "not asked": "aside", CANNOT_BE_DECIDED: "doubt",
    SELF_CONTRADICTING: "bad",
}  # fmt: skip
# What stands before the reason of a verdict.
LEADS = {
    "contradicted": "against it", "undecided": "undecided", "not asked": "not asked",
    CANNOT_BE_DECIDED: "not in the model", SELF_CONTRADICTING: "the paper against itself",
}  # fmt: skip
# More values than these of one claim are in the report, not here.
VALUES_SHOWN = 3


def show(result: Result) -> None:
    """Print the claims of a Result on standard output."""
    claims = result.claims or []
    counts = Counter(claim.verdict for claim in claims if not claim.follows_from)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in STYLES if counts[verdict])
    derived = sum(1 for claim in claims if claim.follows_from)
    summary += f"; {derived} follow{'s' if derived == 1 else ''} from others" if derived else ""
    rows: list[list[str | Text]] = [[claim.id, _verdict(claim), _text(claim)] for claim in claims]
    title = f"claims of study {result.study}: {summary}"
    console.out().print(
        console.table(["claim", "verdict", "what the paper says, and what was found"], rows, title=title)
    )


def _verdict(claim: Claim) -> Text:
    from rich.text import Text

    words = claim.verdict + (" by preset" if claim.by_preset else "")
    if claim.follows_from:
        words += f"\nfollows from\n{', '.join(claim.follows_from)}"
    return Text(words, style=STYLES[claim.verdict])


def _text(claim: Claim) -> Text:
    from rich.text import Text

    figure = f" ({claim.figure})" if claim.figure else ""
    parts: list[tuple[str, str]] = [(f"{claim.sentence}{figure}", "")]
    if claim.paper:
        values = "; ".join(f"{value.what} {value.value}" for value in claim.paper)
        parts.append((f"paper: {values}", "aside"))
    if claim.verdict == "reproduced":
        parts += [(f"ours: {line}", "aside") for line in _ours(claim.ours)]
    else:
        parts.append((f"{LEADS[claim.verdict]}: {claim.reason}", STYLES[claim.verdict]))
    if claim.note and claim.verdict != "reproduced":
        parts.append((f"note: {claim.note}", "aside"))
    text = Text()
    for index, (line, style) in enumerate(parts):
        text.append(("\n" if index else "") + line, style=style)
    return text


def _ours(values: list[Compared]) -> list[str]:
    lines = []
    for value in values[:VALUES_SHOWN]:
        low, high = value.low, value.high
        span = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
        unit = "" if value.unit == "1" else f" {value.unit}"
        lines.append(f"{value.what} = {value.estimate:.3g}{span}{unit}")
    more = len(values) - VALUES_SHOWN
    return [*lines, f"{more} more in the report"] if more > 0 else lines
