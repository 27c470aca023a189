"""The page of an explanation: one HTML file with the answer first, and a picture of each shared cache line."""

from __future__ import annotations

from typing import Any

from loam_lab.model import words
from loam_lab.model.explanation import Explanation, Pair, Share
from loam_lab.presenting.report import cache_line, html, rounding

LINES_SHOWN = 12


def render(explained: Explanation) -> str:
    """The page as text; the same explanation gives the same bytes."""
    from markupsafe import Markup

    pairs = [one for one in explained.blocks if one.named and one.picture is not None]
    context: dict[str, Any] = {
        "explained": explained, "markup": Markup, "words": words,
        "lines": [_line(pair, number) for number, pair in enumerate(pairs[:LINES_SHOWN], 1)], "more": len(pairs[LINES_SHOWN:]),
        "kinds": [(one.kind, one.meaning, *percents(one)) for one in explained.kinds],
        "places": [(cache_line.where(one.sampled), cache_line.where(one.other), *percents(one)) for one in explained.lines],
    }  # fmt: skip
    return html.template("explained.html.j2").render(context)


def percents(share: Share) -> tuple[str, str]:
    """A share and its interval."""
    one, low, high = (
        rounding.fixed(100 * value, 1 if share.share < 0.1 else 0) for value in (share.share, share.low, share.high)
    )
    return f"{one} %", f"{low} to {high} %"


def _line(pair: Pair, number: int) -> dict[str, Any]:
    picture = pair.picture
    assert picture is not None
    threads = cache_line.threads_of(pair)
    share, interval = percents(pair)
    return {
        "words": pair.words, "share": share, "interval": interval, "drawing": cache_line.draw(pair, f"line{number}"),
        "address": picture.address, "watches": picture.watches,
        "blocks": [
            {
                "label": cache_line.label(n), "thread": block.thread,
                "what": block.name or f"{block.bytes} bytes, from byte {block.start}",
                "stack": [f"{one.function}  {one.file}:{one.line}" for one in (block.made.chain if block.made else ())],
            }
            for n, block in enumerate(picture.blocks)
        ],
        "accesses": [
            (f"thread {threads.index(one.thread) + 1}", f"{one.thread}", one.how, f"{one.first} to {one.last}", str(one.times),
             cache_line.where(one.at))
            for one in picture.accesses
        ],
    }  # fmt: skip
